"""One descriptor that becomes readable with any of several: kqueue(2) on macOS, epoll(7) where this is tested."""

from __future__ import annotations

import select

from stockade.annotation import Any


class Watch:
    """A set of descriptors that are waited for together."""

    def __init__(self) -> None:
        """Begin with none."""
        self._descriptors: set[int] = set()
        self._is_kqueue = hasattr(select, "kqueue")
        self._poll: Any = getattr(select, "kqueue" if self._is_kqueue else "epoll")()

    @property
    def closed(self) -> bool:
        """Whether nothing is watched any more."""
        return bool(self._poll.closed)

    def add(self, descriptor: int) -> None:
        """Watch a descriptor."""
        self._descriptors.add(descriptor)
        self._change(descriptor, "KQ_EV_ADD", "register")

    def remove(self, descriptor: int) -> None:
        """Watch it no more; before it is closed."""
        if descriptor in self._descriptors and not self.closed:
            self._descriptors.remove(descriptor)
            self._change(descriptor, "KQ_EV_DELETE", "unregister")

    def fileno(self) -> int:
        """Return the one descriptor."""
        number: int = self._poll.fileno()
        return number

    def close(self) -> None:
        """Watch nothing any more; may be called again."""
        self._poll.close()

    def _change(self, descriptor: int, flag: str, name: str) -> None:
        words: Any = select
        if self._is_kqueue:
            event = words.kevent(descriptor, words.KQ_FILTER_READ, getattr(words, flag))
            self._poll.control([event], 0, 0)
        elif name == "register":
            self._poll.register(descriptor, words.EPOLLIN)
        else:
            self._poll.unregister(descriptor)

"""The proxy process, as its owner has it.

The proxy reads what strangers send, so it is a process of its own, with nothing of the owner's in it: an interpreter
without site packages or environment, in a session of its own, that knows what it is told over one link and ends with
it. Nothing secret stands in its arguments or environment.

Rules: the owner never waits for it longer than a moment; a proxy that does not take what it is told, or says what is
no message, is given up. Nothing that it says is believed beyond text to be shown: a command that was never told to it
is no command.

Cheap to import: the command line has this in every process.
"""

from __future__ import annotations

import os
import sys

from stockade.annotation import TYPE_CHECKING, Final, TypeAlias
from stockade.errors import StockadeError, UnavailableError
from stockade.network import proxy_message
from stockade.network.link import Link, Message
from stockade.network.proxy_message import Listeners, ProxySettings, Question, Refused, Withdrawn

if TYPE_CHECKING:
    from collections.abc import Callable

    from stockade.network.environment import Credential
    from stockade.policy.network_rules import NetworkRules

__all__ = ["Listeners", "News", "ProxyProcess", "ProxySettings", "Question", "Refused", "Withdrawn"]

#: What a proxy tells.
News: TypeAlias = Refused | Question | Withdrawn

_START: Final = "import sys; sys.path += sys.argv[1:]; from stockade.network.proxy_main import main; main()"
_LINK: Final = 3
_SEND_SECONDS: Final = 10.0
_LAST_WORDS_SECONDS: Final = 3.0
_SIGKILL: Final = 9
_MOST_COMMANDS: Final = 4096
_REQUIRED: Final = ("h11", "idna")
_CERTIFICATES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")
_READERS: Final[dict[bytes, Callable[[Message], News]]] = {
    proxy_message.REFUSED: Refused.read,
    proxy_message.QUESTION: Question.read,
    proxy_message.WITHDRAWN: Withdrawn.read,
}


class ProxyProcess:
    """One proxy process. Belongs to one thread at a time."""

    def __init__(self, pid: int, link: Link) -> None:
        """Own a child and the link to it; ``start`` makes both."""
        self.pid = pid
        self._owner = os.getpid()
        self._link = link
        self._commands: dict[str, None] = {}
        self._running = True

    @classmethod
    def start(cls, settings: ProxySettings) -> ProxyProcess:
        """Start a proxy. Raises ``InvalidTextError`` for settings that are wrong, and ``UnavailableError``.

        It does not wait for the proxy: what connects meanwhile waits in the listeners' queues.
        """
        _check(settings)
        link, theirs = Link.pair()
        try:
            pid = _spawn(theirs.fileno())
        except BaseException as error:
            link.close()
            if not isinstance(error, OSError):
                raise
            message = f"cannot start the network proxy: {error.strerror}"
            raise UnavailableError(message, "check the Python installation and the limit of processes") from error
        finally:
            theirs.close()
        process = cls(pid, link)
        process._introduce(settings)
        return process

    def serve(self, listeners: Listeners) -> None:
        """Take in connections from now on; the descriptors are copied. Raises ``UnavailableError``."""
        for message in listeners.messages():
            self._say(message)

    def publish(self, listener: int, port: int, porter: int) -> None:
        """Carry what connects to this listener of the host to a port inside. Raises ``UnavailableError``.

        ``porter`` is a stream or packet socket: for a byte ``4`` or ``6`` it gives back a word, and with it a socket of
        that family that was made inside, neither blocking nor connected. Both descriptors are copied.
        """
        self._say(proxy_message.publish_message(listener, port, porter))

    def add(self, credential: Credential, command: str) -> None:
        """Let a credential mean a command. Raises ``UnavailableError``."""
        self._commands.pop(command, None)
        self._commands[command] = None
        if len(self._commands) > _MOST_COMMANDS:
            del self._commands[next(iter(self._commands))]
        self._say(proxy_message.add_message(credential, command))

    def revoke(self, credential: Credential) -> None:
        """Let a credential mean nobody; of a proxy that is gone, none does."""
        self._link.send(proxy_message.revoke_message(credential), _SEND_SECONDS)

    def update(self, rules: NetworkRules) -> None:
        """Use other rules from the next request on; a proxy that is gone lets nobody through."""
        self._link.send(proxy_message.update_message(rules), _SEND_SECONDS)

    def answer(self, number: int, choice: str, reason: str = "") -> None:
        """Answer a question by the name of a ``gate.Choice``; any other denies, and is not remembered.

        A question that was withdrawn, or was put by a proxy that is gone, needs no answer.
        """
        self._link.send(proxy_message.answer_message(number, choice, reason), _SEND_SECONDS)

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when there is something to ``receive``, or the proxy is gone."""
        return self._link.fileno()

    def receive(self) -> tuple[News, ...]:
        """Return what the proxy has told, without waiting."""
        return self._read(self._link.receive_available())

    def is_gone(self) -> bool:
        """Say whether the proxy serves nobody any more; what it told before can still be received."""
        return self._reap() or self._link.ended or self._link.broken

    def close(self) -> tuple[News, ...]:
        """End the proxy; return what it told last. Nothing is left of it then."""
        if self._link.fileno() < 0:
            return ()
        if os.getpid() != self._owner:
            self._link.close()  # in a fork of the owner, whose proxy it still is
            return ()
        self._link.end()
        news = self._read(self._link.receive_until_end(_LAST_WORDS_SECONDS))
        if not self._reap():
            # Still ours, and not waited for, so that the number cannot be another's.
            os.kill(self.pid, _SIGKILL)
            self._reap(wait=True)
        self._link.close()
        return news

    def _introduce(self, settings: ProxySettings) -> None:
        """Tell the proxy what to do and whose it is: a fork of the owner may hold the link open after its end."""
        owner = _own_handle()
        try:
            message = settings.message()
            self._say(message.but(descriptors=() if owner is None else (owner,)))
        except StockadeError:
            self.close()
            raise
        finally:
            if owner is not None:
                os.close(owner)

    def _say(self, message: Message) -> None:
        if not self._link.send(message, _SEND_SECONDS):
            text = "the network proxy of this session is gone"
            raise UnavailableError(text, "somebody killed it, or it could not start: try again")

    def _read(self, messages: list[Message]) -> tuple[News, ...]:
        news: list[News] = []
        for message in messages:
            try:
                told = _READERS[message.kind](message)
            except (KeyError, ValueError, StockadeError):
                self._link.abandon()
                break
            if not isinstance(told, Withdrawn) and told.command not in self._commands:
                told = told.but(command="")
            news.append(told)
        return tuple(news)

    def _reap(self, *, wait: bool = False) -> bool:
        """Say whether the child has ended, and leave no zombie of it."""
        if self._running:
            try:
                ended, _ = os.waitpid(self.pid, 0 if wait else os.WNOHANG)
            except ChildProcessError:
                ended = self.pid  # somebody else waits for every child of this process, and has got it
            self._running = ended == 0
        return not self._running


def package_path() -> list[str]:
    """Return where the proxy finds its packages: directories by absolute paths, none of them the working one.

    Raises ``UnavailableError`` if a package is not there.
    """
    from importlib.machinery import PathFinder

    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    found = [root]
    places = [place for place in sys.path if os.path.isabs(place) and not _is_here(place)]
    for name in _REQUIRED:
        spec = PathFinder.find_spec(name, places)
        if spec is None or not spec.origin:
            message = f"the network proxy needs the package {name}, which is not installed"
            from stockade.escape import escape

            hint = f"install it beside Stockade: {escape(sys.executable)} -m pip install {' '.join(_REQUIRED)}"
            raise UnavailableError(message, hint)
        place = os.path.dirname(os.path.dirname(spec.origin))
        if place not in found:
            found.append(place)
    return found


def _is_here(place: str) -> bool:
    try:
        return os.path.samefile(place, os.curdir)
    except OSError:
        return False


def _check(settings: ProxySettings) -> None:
    """Refuse here, where somebody reads it, what the proxy could not use."""
    environment = {name: value for name, value in settings.environment.items() if value}
    if not proxy_message.UPSTREAM_VARIABLES.isdisjoint(environment):
        from stockade.network.upstream import Upstreams

        Upstreams.from_environment(environment)
    if settings.name_servers:
        from stockade.network.dns_client import parse_server

        for text in settings.name_servers:
            parse_server(text)


def _spawn(link: int) -> int:
    """Start the interpreter with the link as descriptor 3 and nothing else."""
    import fcntl

    words = [sys.executable, "-I", "-S", "-c", _START, *package_path()]
    kept = [fcntl.fcntl(link, fcntl.F_DUPFD_CLOEXEC, _LINK + 1)]
    try:
        # Both above 3, whatever is free: no step below may overwrite what a later one needs.
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        kept.append(nothing)
        kept.append(fcntl.fcntl(nothing, fcntl.F_DUPFD_CLOEXEC, _LINK + 1))
        streams = [(os.POSIX_SPAWN_DUP2, kept[2], number) for number in range(_LINK)]
        actions = [*streams, (os.POSIX_SPAWN_DUP2, kept[0], _LINK)]
        try:
            return os.posix_spawn(words[0], words, _environment(), file_actions=actions, setsid=True, setsigmask=())
        except NotImplementedError:  # an old macOS: the proxy does it itself
            return os.posix_spawn(words[0], words, _environment(), file_actions=actions, setpgroup=0, setsigmask=())
    finally:
        for descriptor in kept:
            os.close(descriptor)


def _environment() -> dict[str, str]:
    """Return where the host keeps its certificates, if not in the usual place."""
    return {name: os.path.abspath(os.environ[name]) for name in _CERTIFICATES if os.environ.get(name)}


def _own_handle() -> int | None:
    """Return a descriptor that tells when this process ends, where there is such a thing."""
    if sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(os.getpid())
    except OSError:
        return None

"""The owner of the session, as the proxy has it: told of refusals, asked questions, never waited for.

Rules: so many bytes may wait to be read by the owner. A refusal that finds no room is counted with those like it and
told later; when too many different ones wait, the rest is told as one number. A question that finds no room is one that
nobody can be asked. A question that needs no answer any more is withdrawn.
"""

from __future__ import annotations

import asyncio

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import StockadeError
from stockade.network.gate import Answer, Choice
from stockade.network.proxy_message import Question, Refused, Withdrawn

if TYPE_CHECKING:
    from stockade.network.link import Link, Message
    from stockade.policy.decision import NetworkDecision

_ROOM: Final = 1 << 17
_MOST_KEPT: Final = 1024


class Owner:
    """The other end of the link. Belongs to one event loop."""

    def __init__(self, link: Link, *, room: int = _ROOM, most_kept: int = _MOST_KEPT) -> None:
        """Take the link; ``room`` is how many bytes may wait, ``most_kept`` how many refusals beyond them."""
        self._link = link
        self._room = room
        self._most_kept = most_kept
        self._kept: dict[Refused, int] = {}
        self._others = 0
        self._number = 0
        self._questions: dict[int, asyncio.Future[Answer]] = {}
        self._watching = False

    def report(self, decision: NetworkDecision, command: str, times: int) -> None:
        """Tell of a refusal, now or when there is room."""
        refused = Refused.of(decision, command, times)
        if self._kept or not self._post(refused.message()):
            self._keep(refused)

    async def ask(self, host: str, port: int, command: str) -> Answer:
        """Ask whether a command may connect, and wait for the answer. Raises ``OSError`` if nobody can be asked."""
        self._number += 1
        number = self._number
        heard: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._questions[number] = heard
        try:
            if not self._post(Question(number, host, port, command).message()):
                message = "whoever is asked reads no questions"
                raise OSError(message)
            return await heard
        finally:
            del self._questions[number]
            if not heard.done() or heard.cancelled():
                self._post(Withdrawn(number).message())

    def answer(self, number: int, choice: str, reason: str) -> None:
        """Pass an answer on; the question may have been withdrawn meanwhile."""
        heard = self._questions.get(number)
        if heard is None or heard.done():
            return
        if choice in Choice.__members__:
            heard.set_result(Answer(Choice[choice], reason))
        else:
            heard.set_exception(StockadeError(reason))

    def finish(self, seconds: float) -> None:
        """Tell all that was only counted, and wait until it is on its way, for at most so long."""
        self._stop_watching()
        self._link.finish(seconds)
        while (self._kept or self._others) and not self._link.broken:
            self._tell_kept()
            self._link.finish(seconds)

    def _post(self, message: Message) -> bool:
        posted = self._link.post(message, self._room)
        if self._link.unsent and not self._watching:
            asyncio.get_running_loop().add_writer(self._link.fileno(), self._writable)
            self._watching = True
        return posted

    def _writable(self) -> None:
        self._link.flush()
        self._tell_kept()
        if not self._link.unsent:
            self._stop_watching()

    def _stop_watching(self) -> None:
        if self._watching:
            asyncio.get_running_loop().remove_writer(self._link.fileno())
            self._watching = False

    def _keep(self, refused: Refused) -> None:
        alike = refused.but(times=1)
        if alike in self._kept or len(self._kept) < self._most_kept:
            self._kept[alike] = self._kept.get(alike, 0) + refused.times
        else:
            self._others += refused.times

    def _tell_kept(self) -> None:
        for alike, times in tuple(self._kept.items()):
            if not self._link.post(alike.but(times=times).message(), self._room):
                return
            del self._kept[alike]
        if self._others:
            words = f"denied: {self._others} requests to further destinations, too many to be told one by one"
            if self._link.post(Refused("", "", times=self._others, words=words).message(), self._room):
                self._others = 0

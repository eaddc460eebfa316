"""The gate: every request to connect gets its decision here, and a person is asked where no rule settles it.

Rules:

- the lists come first, before and after a question: a rule that comes while somebody thinks decides at once, and
  ``update`` holds for the next request of a command that already runs;
- one open question per destination; requests that come meanwhile wait for the same answer;
- a question names one command, and "once" holds for connections of that command alone: those that waited, for as long
  as each lasts. Requests of others that waited are asked about next, command by command, each under its own name.
  Where nobody knows whose a connection is, "once" holds for that one connection;
- "session" holds for the destination until the gate is gone, and so does "deny", for a program that tries again must
  not ask again: both settle it for all that wait. Nothing is written down;
- no answer is no: an error, an answer that is none, and silence past the time limit deny all that wait, but are not
  remembered;
- a flood of destinations cannot flood the person: so many questions may be open, and so many be put in a minute;
- an address that the guard forbids is never asked about: only a setting opens it.

``ask`` may live in another process; the gate only awaits it. What it raises is not told inside: a denial is read
by the command, and errors of the host program are not its business.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from enum import Enum

from stockade.annotation import TYPE_CHECKING, Final, TypeAlias
from stockade.errors import StockadeError
from stockade.network.guard import Checked, check, unjudged
from stockade.policy.decision import NetworkDecision, Verdict, decide, decide_destination
from stockade.policy.destination import Destination
from stockade.policy.host import HostKind
from stockade.policy.port import Port
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from stockade.policy.host import Host
    from stockade.policy.network_rules import NetworkRules

_MINUTE: Final = 60.0
_HTTPS: Final = 443
#: Decisions that are kept until the rules change; more are forgotten all at once.
_KEPT: Final = 512
_LONGEST_KEPT: Final = 255


class Choice(Enum):
    """What somebody may answer."""

    ONCE = "allow once"
    SESSION = "allow for this session"
    DENY = "deny"


class Answer(Value):
    """An answer; ``reason`` is told to the command when it is denied."""

    choice: Choice
    reason: str = ""

    def check(self) -> None:
        """Refuse what is no choice: an answer comes from a stranger's callback, and is not to be guessed at."""
        if (type(self.choice), type(self.reason)) != (Choice, str):
            message = f"an answer is a choice and a text, not {self!r}"
            raise TypeError(message)


#: Asks about a canonical host and a port, for the command with this id.
Ask: TypeAlias = Callable[[str, int, str], Awaitable[Answer]]


class AskingLimits(Value):
    """How many questions may be open at once and be put in a minute, and how long one waits for its answer."""

    open: int = 8
    per_minute: int = 30
    seconds: float = 120.0


class _Question:
    """One open question. ``heard`` gets the answer, a text that says why there is none, or ``None``: see the rules."""

    def __init__(self, command: str, granted: set[Destination], heard: asyncio.Future[Answer | str | None]) -> None:
        self.command = command
        self._granted = granted
        self.heard = heard
        self.task: asyncio.Task[None] | None = None

    def is_about(self, command: str, granted: set[Destination]) -> bool:
        """Say whether it named this command; one that named none was about one connection."""
        return self.command == command if command else self._granted is granted

    def settle(self, outcome: Answer | str | None) -> None:
        if not self.heard.done():
            self.heard.set_result(outcome)


class Gate:
    """Decides on every connection of one session. Belongs to one event loop."""

    def __init__(
        self,
        rules: NetworkRules,
        ask: Ask | None = None,
        *,
        limits: AskingLimits | None = None,
        own: Callable[[], frozenset[Host]] = frozenset,
        leads_here: Callable[[Destination], bool] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the rules and whom to ask, if anybody; ``own`` gives this host's addresses.

        ``leads_here`` says whether a connection would end on this host, though its address is none of ``own``. What
        it said counts for as long as ``own`` gives the same.
        """
        self._rules = rules
        self._ask = ask
        self._limits = limits or AskingLimits()
        self._own = own
        self._leads_here = leads_here
        self._clock = clock
        self._remembered: dict[Destination, Answer] = {}
        self._open: dict[Destination, _Question] = {}
        self._put: deque[float] = deque()
        self._decided: dict[tuple[str, int | str, bool], NetworkDecision] = {}
        self._checked: dict[int, tuple[NetworkDecision, tuple[Host, ...], frozenset[Host], Checked]] = {}

    @property
    def rules(self) -> NetworkRules:
        """The rules that hold now."""
        return self._rules

    @property
    def open_questions(self) -> frozenset[Destination]:
        """The destinations that somebody is being asked about."""
        return frozenset(self._open)

    def update(self, rules: NetworkRules) -> None:
        """Use other rules from the next decision on; questions that they settle are withdrawn."""
        self._rules = rules
        self._decided.clear()
        self._checked.clear()
        for destination, question in list(self._open.items()):
            if decide_destination(rules, destination, can_ask=True).verdict is not Verdict.ASK:
                self._withdraw(destination, question)

    def forget(self) -> None:
        """Forget every answer, as a new session would."""
        self._remembered.clear()

    def close(self) -> None:
        """Withdraw every question; who waits for one is denied."""
        self._ask = None
        for destination, question in list(self._open.items()):
            self._withdraw(destination, question)

    def caller(self, command: str = "") -> Caller:
        """Return one connection's view of the gate: ask it about each request that comes over the connection."""
        return Caller(self, command)

    def check(self, decision: NetworkDecision, addresses: Iterable[Host]) -> Checked:
        """Judge where an allowed destination leads, by the rules that hold now."""
        try:
            own = self._own()
        except StockadeError as error:
            return Checked(decision if decision.verdict is Verdict.DENY else unjudged(decision, error))
        found = tuple(addresses)
        # By identity, which costs nothing: the decision in the entry is kept alive by it.
        known = self._checked.get(id(decision))
        if known is not None and known[0] is decision and known[1] == found and known[2] is own:
            return known[3]
        checked = check(decision, self._rules, found, own, self._leads_here)
        if len(self._checked) >= _KEPT:
            self._checked.clear()
        self._checked[id(decision)] = (decision, found, own, checked)
        return checked

    def _decide(self, host: str, port: int | str) -> NetworkDecision:
        """Decide by the lists alone; programs ask for the same destination again and again."""
        key = (host, port, self._ask is not None)
        decision = self._decided.get(key)
        if decision is None:
            decision = decide(self._rules, host, port, can_ask=key[2])
            if len(host) > _LONGEST_KEPT:
                return decision
            if len(self._decided) >= _KEPT:
                self._decided.clear()
            self._decided[key] = decision
        return decision

    def _check_literal(self, decision: NetworkDecision) -> NetworkDecision:
        if decision.destination is None or decision.destination.host.kind is HostKind.NAME:
            return decision
        return self.check(decision, (decision.destination.host,)).decision

    def decide_name(self, host_text: str) -> NetworkDecision:
        """Decide whether a name may be resolved: it may if it could be reached, or asked about, on some port."""
        can_ask = self._ask is not None
        plain = decide(self._rules, host_text, _HTTPS, can_ask=can_ask)
        if plain.destination is None or plain.verdict is Verdict.ALLOW:
            return plain
        named = {rule.value.port for rule in (*self._rules.allowed, *self._rules.denied)}
        unnamed = next(port for port in map(Port, range(1, len(named) + 2)) if port not in named)
        decisions = [plain]
        for port in (unnamed, *(port for port in named if port is not None)):
            target = Destination(plain.destination.host, port)
            decisions.append(decide_destination(self._rules, target, can_ask=can_ask))
        remembered = (there for there, answer in self._remembered.items() if answer.choice is Choice.SESSION)
        if can_ask:
            decisions.extend(self._settled(there) for there in remembered if there.host == plain.destination.host)
        return min(decisions, key=lambda decision: _ORDER[decision.verdict])

    async def decide(self, host: str, port: int | str, *, command: str, granted: set[Destination]) -> NetworkDecision:
        """Decide on one request; ``granted`` are the destinations that were allowed once on its connection."""
        decision = self.decide_at_once(host, port, granted)
        destination = decision.destination
        if decision.verdict is not Verdict.ASK or destination is None:
            return decision
        return await self._asked(destination, command, granted)

    def decide_at_once(
        self, host: str, port: int | str, granted: Collection[Destination] = frozenset()
    ) -> NetworkDecision:
        """Decide on one request as far as that goes without asking: it may have to be asked about."""
        decision = self._check_literal(self._decide(host, port))
        destination = decision.destination
        if decision.verdict is not Verdict.ASK or destination is None:
            return decision
        if destination in granted:
            return decision.answered(yes=True)
        return self._settled(destination) if destination in self._remembered else decision

    async def _asked(self, destination: Destination, command: str, granted: set[Destination]) -> NetworkDecision:
        while True:
            question = self._open.get(destination) or self._put_question(destination, command, granted)
            outcome = question if isinstance(question, str) else await asyncio.shield(question.heard)
            decision = decide_destination(self._rules, destination, can_ask=True)
            if isinstance(question, str) or not isinstance(outcome, Answer):
                why = outcome if isinstance(outcome, str) else "the question was withdrawn"
                return decision.unanswered(why)
            once = decision.verdict is Verdict.ASK and outcome.choice is Choice.ONCE
            if not once or question.is_about(command, granted):
                break
            # That was about another command. What was said since may settle it; else this one is asked about.
            if destination in self._remembered:
                return self._settled(destination)
        yes = outcome.choice is not Choice.DENY
        if yes and decision.verdict is Verdict.ASK:
            granted.add(destination)
        return decision.answered(yes=yes, detail="" if yes else outcome.reason)

    def _settled(self, destination: Destination) -> NetworkDecision:
        answer = self._remembered[destination]
        yes = answer.choice is not Choice.DENY
        decision = decide_destination(self._rules, destination, can_ask=True)
        return decision.answered(yes=yes, detail="" if yes else answer.reason)

    def _put_question(self, destination: Destination, command: str, granted: set[Destination]) -> _Question | str:
        """Open a question, or say why that cannot be."""
        ask = self._ask
        if ask is None:
            return "nobody can be asked any more"
        if len(self._open) >= self._limits.open:
            return f"{len(self._open)} questions are open already"
        now = self._clock()
        while self._put and self._put[0] <= now - _MINUTE:
            self._put.popleft()
        if len(self._put) >= self._limits.per_minute:
            return f"{len(self._put)} questions were put within a minute"
        self._put.append(now)
        question = _Question(command, granted, asyncio.get_running_loop().create_future())
        self._open[destination] = question
        question.task = asyncio.create_task(self._hear(ask, destination, question))
        return question

    async def _hear(self, ask: Ask, destination: Destination, question: _Question) -> None:
        outcome: Answer | str | None = None
        try:
            async with asyncio.timeout(self._limits.seconds):
                heard: object = await ask(destination.host.text, destination.port.number, question.command)
            outcome = heard if isinstance(heard, Answer) else "the answer was none of the possible ones"
        except TimeoutError:
            outcome = "there was no answer in time"
        except StockadeError as error:
            outcome = error.message
        except Exception as error:  # noqa: BLE001 - whatever a stranger's callback raises, the answer is no
            outcome = f"the question failed ({type(error).__name__})"
        finally:
            # The connections that wait hear of it before anybody can be asked again.
            if self._open.get(destination) is question:
                del self._open[destination]
            if isinstance(outcome, Answer) and outcome.choice is not Choice.ONCE:
                self._remembered[destination] = outcome
            question.settle(outcome)

    def _withdraw(self, destination: Destination, question: _Question) -> None:
        del self._open[destination]
        question.settle(None)
        if question.task is not None:
            question.task.cancel()


class Caller:
    """One connection from inside. What was allowed once stays allowed on it, and on no other."""

    def __init__(self, gate: Gate, command: str) -> None:
        """Take the gate and the id of the command that made the connection."""
        self._gate = gate
        self._granted: set[Destination] = set()
        self.command = command

    async def decide(self, host: str, port: int | str) -> NetworkDecision:
        """Decide on a connection to a host and port as the request spelt them; never "to be asked"."""
        return await self._gate.decide(host, port, command=self.command, granted=self._granted)


_ORDER: Final = {Verdict.ALLOW: 0, Verdict.ASK: 1, Verdict.DENY: 2}

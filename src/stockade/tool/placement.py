"""Where a call runs: inside the walls, outside, or nowhere. The first gate that answers wins, and says which it was.

The gates stand in ``GATES``, in their order; nothing else decides. A bypass holds for the call that asked for it, and
only where the policy lets it; a sub-agent never has one. Walls that are wanted but cannot be built are no reason to
run bare, unless the policy says so in as many words (``failIfUnavailable`` off), and then it is told with every
result.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.enumeration import Enum
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from stockade.policy.model import SandboxPolicy
    from stockade.tool.call import ShellCall


class Place(Enum):
    """Where a call runs."""

    INSIDE = "inside"
    OUTSIDE = "outside"
    NOWHERE = "nowhere"


class Situation(Value):
    """All that decides. ``unavailable`` says why there can be no walls here, and is empty if there can."""

    call: ShellCall
    policy: SandboxPolicy
    unavailable: str = ""
    may_bypass: bool = True


class Placement(Value):
    """The answer: where, by which gate, and why in words."""

    place: Place
    gate: str
    reason: str


class Gate(Value):
    """One question. ``when`` says in words what it answers to; ``answer`` is the place and why, or nothing."""

    name: str
    when: str
    answer: Callable[[Situation], tuple[Place, str] | None]


def place(situation: Situation) -> Placement:
    """Return where a call runs."""
    for gate in GATES:
        answer = gate.answer(situation)
        if answer is not None:
            return Placement(answer[0], gate.name, answer[1])
    message = "the last gate answers every call"
    raise AssertionError(message)


def _disabled(situation: Situation) -> tuple[Place, str] | None:
    return None if situation.policy.mode.enabled else (Place.OUTSIDE, "the sandbox is off")


def _required(situation: Situation) -> tuple[Place, str] | None:
    if not situation.unavailable or not situation.policy.mode.fail_if_unavailable:
        return None
    return Place.NOWHERE, f"the sandbox is on, but cannot be built here: {situation.unavailable}"


def _unavailable(situation: Situation) -> tuple[Place, str] | None:
    if not situation.unavailable:
        return None
    return Place.OUTSIDE, f"NO SANDBOX: it is on, but cannot be built here: {situation.unavailable}"


def _bypass(situation: Situation) -> tuple[Place, str] | None:
    asked = situation.call.dangerously_disable_sandbox
    if not asked or not bypass_allowed(situation.policy, may_bypass=situation.may_bypass):
        return None
    return Place.OUTSIDE, "this call asked to run outside the sandbox"


def _empty(situation: Situation) -> tuple[Place, str] | None:
    return (Place.OUTSIDE, "there is no command") if situation.call.is_empty else None


def _excluded(situation: Situation) -> tuple[Place, str] | None:
    patterns = situation.policy.commands.excluded
    if not patterns:
        return None
    from stockade.policy.exclusion import decide_exclusion

    verdict = decide_exclusion(patterns, situation.call.command)
    return (Place.OUTSIDE, verdict.reason) if verdict.excluded else None


def _walls(situation: Situation) -> tuple[Place, str] | None:
    if not situation.call.dangerously_disable_sandbox:
        return Place.INSIDE, "the sandbox is on"
    if not situation.may_bypass:
        return Place.INSIDE, "the sandbox is on; a sub-agent cannot run anything outside it"
    return Place.INSIDE, "the sandbox is on; this policy lets no call run outside it"


def bypass_allowed(policy: SandboxPolicy, *, may_bypass: bool = True) -> bool:
    """Say whether a call may ask to run outside."""
    return policy.mode.allow_unsandboxed and may_bypass


def leaves_walls(placement: Placement) -> bool:
    """Say whether walls stand, and a call runs outside them: what it starts, commands inside may have planted."""
    return placement.gate in ("bypass", "excluded")


GATES: Final = (
    Gate("disabled", "the sandbox is not enabled", _disabled),
    Gate("required", "walls cannot be built here, and `failIfUnavailable` is on", _required),
    Gate("unavailable", "walls cannot be built here", _unavailable),
    Gate("bypass", "the call asked for a bypass, and the policy allows it", _bypass),
    Gate("empty", "there is no command", _empty),
    Gate("excluded", "every command of the line is excluded", _excluded),
    Gate("walls", "otherwise", _walls),
)

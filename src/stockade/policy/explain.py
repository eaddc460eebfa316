"""What a text is about (a path, a destination, a command), and what the policy says to it."""

from __future__ import annotations

import os.path

from stockade.annotation import TYPE_CHECKING, Final
from stockade.enumeration import Enum
from stockade.errors import InvalidTextError
from stockade.policy.decision import decide_destination
from stockade.policy.destination import Destination
from stockade.policy.exclusion import decide_exclusion
from stockade.policy.files import Access, survey
from stockade.policy.inspected import inspection_of
from stockade.policy.port import Port
from stockade.value import Value

if TYPE_CHECKING:
    from stockade.policy.decision import NetworkDecision
    from stockade.policy.exclusion import Exclusion
    from stockade.policy.files import FileVerdict
    from stockade.policy.model import SandboxPolicy
    from stockade.policy.places import Places
    from stockade.policy.unix_sockets import SocketVerdict


HTTPS: Final = Port(443)


class Subject(Enum):
    """What a question is about."""

    PATH = "path"
    HOST = "host"
    COMMAND = "command"


class PathExplanation(Value):
    """The verdicts on one path, and what the inspection does about what commands leave there.

    ``connect`` is there if a rule about unix sockets is about the path.
    """

    read: FileVerdict
    write: FileVerdict
    inspection: str = ""
    connect: SocketVerdict | None = None


class CommandExplanation(Value):
    """Where a command line would run: the exclusions' answer, and whether there is a sandbox at all."""

    line: str
    enabled: bool
    exclusion: Exclusion

    @property
    def inside(self) -> bool:
        """Whether the walls would stand around it."""
        return self.enabled and not self.exclusion.excluded


if TYPE_CHECKING:
    Explanation = PathExplanation | CommandExplanation | NetworkDecision


def classify(text: str, policy: SandboxPolicy, places: Places) -> Subject:
    """Guess what a text is about. What exists on disk is a path, whatever else it might be."""
    if "://" in text:
        return Subject.HOST
    if text.startswith(("/", "~", ".")) or "\0" in text:
        return Subject.PATH
    if places.exists(os.path.join(policy.cwd, text)):
        return Subject.PATH
    if any(character.isspace() or character in "|&;<>()$`'\"\\" for character in text):
        return Subject.COMMAND
    if _is_destination(text):
        return Subject.HOST
    return Subject.PATH if "/" in text else Subject.COMMAND


def explain(text: str, subject: Subject, policy: SandboxPolicy, places: Places) -> Explanation:
    """Return what the policy says to a path, a destination or a command line."""
    if subject is Subject.PATH:
        path = policy.home + text[1:] if text == "~" or text.startswith("~/") else text
        ground = survey(policy.files, places)
        write = ground.judge(Access.WRITE, path, places)
        root = ground.root_of(write.place)
        inspected = "" if root is None else inspection_of(write, root, policy.files, places)
        read = ground.judge(Access.READ, path, places)
        return PathExplanation(read, write, inspected, explain_socket(policy, path, places))
    if subject is Subject.HOST:
        return decide_destination(policy.network, _destination(text), can_ask=False)
    return CommandExplanation(text, policy.mode.enabled, decide_exclusion(policy.commands.excluded, text))


def explain_socket(policy: SandboxPolicy, path: str, places: Places) -> SocketVerdict | None:
    """Return what the policy says to connecting to a path, ``None`` if no rule is about it as a unix socket."""
    if not policy.sockets.unix and not policy.sockets.denied_unix:
        return None
    from stockade.policy.unix_sockets import judge_socket

    verdict = judge_socket(policy.sockets, policy.files, path, places)
    return verdict if verdict.rule is not None else None


def _destination(text: str) -> Destination:
    """Read a destination; a host without a port is asked about as programs mostly reach it."""
    return Destination.parse(text, default_port=HTTPS)


def _is_destination(text: str) -> bool:
    if not any(mark in text for mark in ".:[") and text != "localhost":
        return False
    try:
        _destination(text)
    except InvalidTextError:
        return False
    return True

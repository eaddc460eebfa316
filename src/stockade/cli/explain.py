"""``stockade explain``: verdict, reason, rule, file, and what would change it."""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING
from stockade.cli import flags
from stockade.cli.context import context
from stockade.cli.parser import UsageError
from stockade.escape import escape
from stockade.policy.explain import CommandExplanation, PathExplanation, Subject

if TYPE_CHECKING:
    from stockade.cli.parser import Parser
    from stockade.cli.terminal import Terminal
    from stockade.policy.decision import NetworkDecision
    from stockade.policy.explain import Explanation
    from stockade.policy.files import FileVerdict
    from stockade.policy.model import SandboxPolicy
    from stockade.policy.unix_sockets import SocketVerdict
    from stockade.settings.layer import Origin
    from stockade.settings.sources import Locations


class Options(flags.PolicyOptions):
    """What the command line parses to."""

    target: str | None
    subject: str | None
    plan: bool
    platform: str | None


def configure(parser: Parser) -> None:
    """Add the arguments."""
    parser.add_argument("target", nargs="?", metavar="PATH|HOST[:PORT]|COMMAND", help="what to judge; quote a command")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--plan", action="store_true", help="show what the walls would do about files, and why")
    for subject in Subject:
        kinds.add_argument(
            f"--{subject.value}",
            dest="subject",
            action="store_const",
            const=subject.value,
            help=f"take it for a {subject.value}",
        )
    parser.add_argument("--platform", choices=("macos",), help="say what the walls of another system would do")
    flags.add_json(parser)
    flags.configure(parser)


def run(options: Options, shown: Terminal, locations: Locations | None) -> int:
    """Print what the policy says; 0 whatever the verdict."""
    from stockade.policy.explain import classify, explain
    from stockade.policy.places import Disk

    if options.plan == bool(options.target is not None):
        message = "give one thing to judge, or --plan"
        raise UsageError(message, "for example: stockade explain ./notes.txt")
    policy = context(options, shown, locations).policy
    if options.platform is not None:
        from stockade.cli.explain_macos import run_macos

        return run_macos(options, shown, policy)
    if options.target is None:
        return _plan(options, shown, policy)
    disk = Disk()
    subject = Subject(options.subject) if options.subject else classify(options.target, policy, disk)
    explanation = explain(options.target, subject, policy, disk)
    if options.json:
        shown.json({"subject": subject.value, "target": options.target, **_facts(explanation)})
        return 0
    for line in _lines(explanation, shown):
        shown.line(line)
    return 0


def _plan(options: Options, shown: Terminal, policy: SandboxPolicy) -> int:
    """Print the plan of mounts; 1 if it could not be carried out."""
    from stockade.filesystem.scan import plan_now

    plan = plan_now(policy.files)
    if options.json:
        shown.json(
            {
                "mounts": [{"operation": m.operation.value, "path": m.path, "reason": m.reason} for m in plan.mounts],
                "absent": [{"path": one.path, "reason": one.reason} for one in plan.placeholders],
                "notes": list(plan.notes),
                "refusals": list(plan.refusals),
            }
        )
    else:
        for line in plan.lines():
            shown.line(line)
    return 1 if plan.refusals else 0


def _facts(explanation: Explanation) -> dict[str, object]:
    if isinstance(explanation, PathExplanation):
        facts = {"read": _file_facts(explanation.read), "write": _file_facts(explanation.write)}
        if explanation.connect is not None:
            facts["connect"] = _file_facts(explanation.connect)
        return {**facts, "inspection": explanation.inspection or None}
    if isinstance(explanation, CommandExplanation):
        return {
            "inside": explanation.inside,
            "sandboxEnabled": explanation.enabled,
            "excluded": explanation.exclusion.excluded,
            "reason": explanation.exclusion.reason,
        }
    return {"verdict": explanation.verdict.name.lower(), **_grounds(explanation)}


def _file_facts(verdict: FileVerdict | SocketVerdict) -> dict[str, object]:
    return {
        "allowed": verdict.allowed,
        "path": verdict.path,
        "place": verdict.place,
        **_grounds(verdict),
    }


def _grounds(verdict: FileVerdict | SocketVerdict | NetworkDecision) -> dict[str, object]:
    return {
        "reason": verdict.reason.name.lower(),
        "words": str(verdict.but(remedy="")),
        "rule": verdict.rule.value.text if verdict.rule else None,
        "origin": _origin_facts(verdict.rule.origin) if verdict.rule else None,
        "remedy": verdict.remedy,
    }


def _origin_facts(origin: Origin) -> dict[str, str]:
    return {"layer": str(origin.layer), "file": origin.file, "path": origin.path}


def _lines(explanation: Explanation, shown: Terminal) -> list[str]:
    if isinstance(explanation, PathExplanation):
        lines = [*_file_lines(explanation.read, shown), *_file_lines(explanation.write, shown)]
        lines += _file_lines(explanation.connect, shown) if explanation.connect is not None else []
        return [*lines, *_remedy(explanation.inspection)]
    if isinstance(explanation, CommandExplanation):
        return _command_lines(explanation, shown)
    colour = "green" if explanation.verdict.name == "ALLOW" else "red"
    return [shown.paint(str(explanation.but(remedy="")), colour), *_remedy(explanation.remedy)]


def _file_lines(verdict: FileVerdict | SocketVerdict, shown: Terminal) -> list[str]:
    words = str(verdict.but(remedy=""))
    return [shown.paint(words, "green" if verdict.allowed else "red"), *_remedy(verdict.remedy)]


def _command_lines(explanation: CommandExplanation, shown: Terminal) -> list[str]:
    line = escape(explanation.line)
    if not explanation.enabled:
        return [
            f"{line}: runs outside: the sandbox is not enabled here",
            *_remedy("to turn it on, run: stockade enable; `stockade run` uses it in any case"),
        ]
    if explanation.exclusion.excluded:
        return [shown.paint(f"{line}: runs outside: {explanation.exclusion.reason}", "yellow")]
    return [shown.paint(f"{line}: runs inside: {explanation.exclusion.reason}", "green")]


def _remedy(remedy: str) -> list[str]:
    return [f"  {remedy}"] if remedy else []

"""Stockade: shell commands that nobody has read first, behind operating-system walls.

What is public is what ``__all__`` names. Each name is imported when it is first asked for: to import the package costs
nothing, and whoever only decides never loads what runs.
"""

from __future__ import annotations

__version__ = "0.1.0"

TYPE_CHECKING = False  # typing costs more than all that a helper imports
if TYPE_CHECKING:
    from stockade.errors import InvalidTextError, LockedError, SettingsError, StockadeError, UnavailableError
    from stockade.network.gate import Answer, Choice
    from stockade.policy.decision import decide as decide_host
    from stockade.policy.effective import load_policy
    from stockade.policy.exclusion import decide_exclusion
    from stockade.policy.files import Access
    from stockade.policy.files import judge as decide_path
    from stockade.policy.live import LivePolicy, PolicyChange
    from stockade.policy.model import SandboxPolicy
    from stockade.policy.places import Disk
    from stockade.sandbox.asynchronous import Sandbox
    from stockade.sandbox.blocking import BlockingSandbox
    from stockade.sandbox.limits import Limit, Limits
    from stockade.sandbox.plumbing import PIPE, STDOUT
    from stockade.sandbox.process import Process
    from stockade.sandbox.result import Result
    from stockade.sandbox.wrapped import Wrapped
    from stockade.settings.sources import Locations
    from stockade.tool.approval import ApprovalMode
    from stockade.tool.call import ShellCall
    from stockade.tool.guidance import guidance
    from stockade.tool.job_call import JobCall
    from stockade.tool.placement import Place
    from stockade.tool.request import ApprovalAnswer, ApprovalChoice, ApprovalRequest
    from stockade.tool.shell_result import ShellResult
    from stockade.tool.shell_tool import ShellTool
    from stockade.tool.slash import slash
    from stockade.violations.store import Violations
    from stockade.violations.violation import Violation

__all__ = [
    "PIPE",
    "STDOUT",
    "Access",
    "Answer",
    "ApprovalAnswer",
    "ApprovalChoice",
    "ApprovalMode",
    "ApprovalRequest",
    "BlockingSandbox",
    "Choice",
    "Disk",
    "InvalidTextError",
    "JobCall",
    "Limit",
    "Limits",
    "LivePolicy",
    "Locations",
    "LockedError",
    "Place",
    "PolicyChange",
    "Process",
    "Result",
    "Sandbox",
    "SandboxPolicy",
    "SettingsError",
    "ShellCall",
    "ShellResult",
    "ShellTool",
    "StockadeError",
    "UnavailableError",
    "Violation",
    "Violations",
    "Wrapped",
    "__version__",
    "decide_exclusion",
    "decide_host",
    "decide_path",
    "guidance",
    "load_policy",
    "slash",
]

#: Where each name comes from, as the imports above say it to type checkers: module, and name there if it differs.
_HOMES = {
    "PIPE": "stockade.sandbox.plumbing",
    "STDOUT": "stockade.sandbox.plumbing",
    "Access": "stockade.policy.files",
    "Answer": "stockade.network.gate",
    "ApprovalAnswer": "stockade.tool.request",
    "ApprovalChoice": "stockade.tool.request",
    "ApprovalMode": "stockade.tool.approval",
    "ApprovalRequest": "stockade.tool.request",
    "BlockingSandbox": "stockade.sandbox.blocking",
    "Choice": "stockade.network.gate",
    "Disk": "stockade.policy.places",
    "InvalidTextError": "stockade.errors",
    "JobCall": "stockade.tool.job_call",
    "Limit": "stockade.sandbox.limits",
    "Limits": "stockade.sandbox.limits",
    "LivePolicy": "stockade.policy.live",
    "Locations": "stockade.settings.sources",
    "LockedError": "stockade.errors",
    "Place": "stockade.tool.placement",
    "PolicyChange": "stockade.policy.live",
    "Process": "stockade.sandbox.process",
    "Result": "stockade.sandbox.result",
    "Sandbox": "stockade.sandbox.asynchronous",
    "SandboxPolicy": "stockade.policy.model",
    "SettingsError": "stockade.errors",
    "ShellCall": "stockade.tool.call",
    "ShellResult": "stockade.tool.shell_result",
    "ShellTool": "stockade.tool.shell_tool",
    "StockadeError": "stockade.errors",
    "UnavailableError": "stockade.errors",
    "Violation": "stockade.violations.violation",
    "Violations": "stockade.violations.store",
    "Wrapped": "stockade.sandbox.wrapped",
    "decide_exclusion": "stockade.policy.exclusion",
    "decide_host": "stockade.policy.decision:decide",
    "decide_path": "stockade.policy.files:judge",
    "guidance": "stockade.tool.guidance",
    "load_policy": "stockade.policy.effective",
    "slash": "stockade.tool.slash",
}


if not TYPE_CHECKING:  # type checkers have the imports above, and would take any name for one of ours

    def __getattr__(name: str) -> object:
        """Import a public name when it is first asked for."""
        if name not in _HOMES:
            message = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(message)
        from importlib import import_module

        module, _, there = _HOMES[name].partition(":")
        value: object = getattr(import_module(module), there or name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return sorted({*globals(), *__all__})

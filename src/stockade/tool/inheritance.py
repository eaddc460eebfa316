"""What a sub-agent gets from the agent that starts it.

Inherited: the sandbox with its state (it is the same session), the policy and its changes, exclusions, auto-allow,
the mode, and the working directory at that moment. Never inherited: a bypass. A sub-agent cannot ask for one, nor can
any below it, whatever a call says; what an agent was granted for a call ends with that call.
"""

from __future__ import annotations

from stockade.tool.approval import Terms
from stockade.value import Value


class Inheritance(Value):
    """Who an agent is: its name (empty for the first), the host's terms, whether it may ask for a bypass."""

    agent: str = ""
    terms: Terms = Terms()
    may_bypass: bool = True
    plan_file: str = ""

    @property
    def is_child(self) -> bool:
        """Whether another agent started it."""
        return bool(self.agent)

    def child(self, name: str) -> Inheritance:
        """Return what a sub-agent gets."""
        named = name or "sub-agent"
        return self.but(agent=f"{self.agent}/{named}" if self.agent else named, may_bypass=False)

"""One thing that people do every day, and what should come of it behind the walls."""

from __future__ import annotations

from stockade.value import Value

PARTS = ("git", "node", "python", "compiled", "servers", "desktop", "system")
EMPTY, REPOSITORY = "empty directory", "repository"
ROOT, USER = "root", "user"
#: A step that begins so is a line for the host's shell, which starts stockade itself.
ON_HOST = "$ "


def until(check: str) -> str:
    """Return a line for the shell that waits for a command to succeed, but not for ever."""
    return f"n=0; until {check} >/dev/null 2>&1; do n=$((n+1)); test $n -lt 200; sleep 0.1; done"


class Workflow(Value):
    """Commands of a tool, each given to ``stockade run -c`` in turn, and what must hold afterwards.

    ``{host}`` in a text is the address of the servers that the test has on loopback, ``{port}`` a port of loopback that
    is free, ``{home}`` the home directory, ``{stockade}`` the command line itself.
    """

    name: str
    part: str
    #: Lines for the shell, one for each run. All but the last must succeed; the last too, unless it is to be refused.
    steps: tuple[str, ...]
    #: Programs that must be there.
    needs: tuple[str, ...] = ()
    #: What the host on loopback stands for, in the table's words, if the runs may reach it.
    reaches: str = ""
    #: Protected names that the runs may write.
    allows: tuple[str, ...] = ()
    #: Another flag that makes it work, in the table's words; the lines for the host's shell have it.
    setting: str = ""
    #: Why it is refused by design, and what to do instead, in words for the table.
    refused: str = ""
    #: An expression that the output of all runs together must match.
    says: str = ""
    #: A text that no output may hold.
    hides: str = ""
    #: What is typed once a text was shown; with any, the last step runs in a terminal.
    keys: tuple[tuple[str, str], ...] = ()
    #: Lines for a shell on the host, before and after.
    before: str = ""
    after: str = ""
    starts: tuple[str, ...] = (EMPTY, REPOSITORY)
    users: tuple[str, ...] = (USER, ROOT)
    #: Protected names that are there afterwards because the workflow is meant to make them.
    makes: tuple[str, ...] = ()
    #: Keys of the repository's configuration that it is meant to set, by their beginnings.
    configures: tuple[str, ...] = ()
    #: It may leave these in the home directory.
    homes: tuple[str, ...] = ()

    def check(self) -> None:
        """Demand words for the table that agree with what is done."""
        on_host = any(step.startswith(ON_HOST) for step in self.steps)
        if self.part not in PARTS or not self.steps or (self.setting and (self.refused or not on_host)):
            message = f"the workflow {self.name!r} is not well described"
            raise ValueError(message)

    def flags(self) -> tuple[str, ...]:
        """Return the flags of the runs."""
        reach = ("--allow-domain", "{host}") if self.reaches else ()
        return (*reach, *(word for name in self.allows for word in ("--allow-protected", name)))

    def expectation(self) -> str:
        """Return the outcome that the table should show."""
        if self.refused:
            return f"refused by design: {self.refused}"
        reach = (f"`--allow-domain {self.reaches}`",) if self.reaches else ()
        flags = (*reach, *(f"`--allow-protected {name}`" for name in self.allows), *filter(None, (self.setting,)))
        return f"works with {' '.join(flags)}" if flags else "works"

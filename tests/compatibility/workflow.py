"""One thing that people do every day, and what should come of it behind the walls."""

from __future__ import annotations

from stockade.value import Value

PARTS = ("git", "node", "python", "compiled", "servers", "desktop", "system")
EMPTY, REPOSITORY = "empty directory", "repository"
ROOT, USER = "root", "user"


class Workflow(Value):
    """Commands of a tool, each given to ``stockade run -c`` in turn, and what must hold afterwards.

    ``{host}`` in a text is the address of the servers that the test has on loopback, ``{home}`` the home directory,
    ``{stockade}`` the command line itself.
    """

    name: str
    part: str
    #: Lines for the shell, one for each run. All but the last must succeed; the last too, unless it is to be refused.
    steps: tuple[str, ...]
    #: Programs that must be there.
    needs: tuple[str, ...] = ()
    #: The flags of the runs. Each that is not in the table's words is explained by ``setting``.
    flags: tuple[str, ...] = ()
    #: What makes it work, in words for the table.
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
        if self.part not in PARTS or not self.steps or (self.setting and self.refused):
            message = f"the workflow {self.name!r} is not well described"
            raise ValueError(message)
        if bool(self.flags) != bool(self.setting) and not self.refused:
            message = f"the workflow {self.name!r} has flags without words for them, or the other way round"
            raise ValueError(message)

    def expectation(self) -> str:
        """Return the outcome that the table should show."""
        if self.refused:
            return f"refused by design: {self.refused}"
        return f"works with {self.setting}" if self.setting else "works"

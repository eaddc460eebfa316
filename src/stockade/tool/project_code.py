"""Programs that run what files of the project say: interpreters, and runners of tasks, tests and builds.

Commands inside may write those files. So outside the walls such a program is worth no more than the file that it reads,
whatever its own name promises.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.tool.may_match import WRAPPERS

if TYPE_CHECKING:
    from collections.abc import Sequence


def _names(*lines: str) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split())


#: What follows these is a script, and then words for it.
INTERPRETERS: Final = _names(
    "sh bash dash zsh ksh ash fish python pypy node nodejs bun deno ts-node tsx ruby perl php lua tclsh osascript",
    "Rscript",
)
#: These find out by themselves what to run, in the working directory.
_RUNNERS: Final = _names(
    "npm npx pnpm pnpx yarn bunx corepack make gmake cmake ninja meson bazel just task cargo go gradle gradlew mvn",
    "mvnw ant sbt lein mix rebar3 dotnet msbuild rake bundle rails composer phpunit pytest py.test tox nox invoke",
    "poetry uv uvx hatch pdm pipenv pipx pip pre-commit jest vitest mocha ava tsc eslint prettier webpack vite rollup",
    "gulp grunt cypress playwright flutter dart swift zig cabal stack dune scons waf vagrant ansible",
    "ansible-playbook terraform pulumi",
)
#: What follows these is run, or holds what is run; awk and java, say, have no name of their own for a script.
_WRAPPERS: Final = WRAPPERS | _names(
    "awk gawk mawk nawk sed ed ex vi vim nvim emacs java jshell groovy scala kotlin R expect gdb tar"
)
#: Their first word is no script but says what to do.
_WITHOUT_SCRIPT: Final = frozenset(("deno", "bun"))
#: These only print when they are asked for their version, whatever they are given to read.
_PRINTING: Final = frozenset(("python", "pypy", "node", "nodejs", "ruby", "perl", "php", "bash", "zsh", "deno", "bun"))


def plain_name(path: str) -> str:
    """Return the name of a program without its directory and its version: ``python`` for ``/usr/bin/python3.12``."""
    name = path.rpartition("/")[2]
    return name.rstrip("0123456789.-") or name


def is_interpreter(path: str) -> bool:
    """Say whether a program runs a script that its words name."""
    return not INTERPRETERS.isdisjoint((path.rpartition("/")[2], plain_name(path)))


def is_runner(path: str) -> bool:
    """Say whether a program runs what it finds in the working directory."""
    return not _RUNNERS.isdisjoint((path.rpartition("/")[2], plain_name(path)))


def runs_its_words(path: str) -> bool:
    """Say whether any word of a program may be what it runs."""
    return not _WRAPPERS.isdisjoint((path.rpartition("/")[2], plain_name(path))) and not is_interpreter(path)


def has_no_script(path: str) -> bool:
    """Say whether the first word of an interpreter is no script."""
    return plain_name(path) in _WITHOUT_SCRIPT


def asks_only(path: str, words: Sequence[str]) -> bool:
    """Say whether an interpreter is only asked for its version."""
    return list(words) == ["--version"] and plain_name(path) in _PRINTING

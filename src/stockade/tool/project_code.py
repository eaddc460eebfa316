"""Programs that run what files of the project say: interpreters, and runners of tasks, tests and builds.

Commands inside may write those files. So outside the walls such a program is worth no more than the file that it reads,
whatever its own name promises.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final

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
_ASKING_ONLY: Final = frozenset(("--version", "-V", "-v", "--help", "-h", "-version"))


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


def asks_only(words: Sequence[str]) -> bool:
    """Say whether the words behind a program only ask for its version or its help."""
    return len(words) == 1 and words[0] in _ASKING_ONLY

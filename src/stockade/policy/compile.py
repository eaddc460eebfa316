"""Settings become a policy: every text in them is given its meaning, or named as a mistake.

The only module that knows what a setting is for. All mistakes of all files are collected before it raises. One kind of
text is passed over with a note: a ``Bash`` rule that allows what no pattern can say (a compound line, a substitution).
Claude Code saves such rules by itself; to leave them out allows less, never more. A deny is never passed over.
Relative paths in a project's file refer to the directory of that project, wherever below it the session works; all
others to the session's working directory. In permission rules of a ``.claude`` file a single leading slash means the
directory of the project (or ``~/.claude``), as Claude Code has it.
``~`` is ``$HOME``, which anybody can set; so in the administrator's file a deny means the home of the user database as
well, and an allow means nothing where the two differ: who chooses the variable would choose what is opened. For the
same reason a deny in the files of a HOME that is not the user's home also means what it means if they are a project's.
"""

from __future__ import annotations

import os.path
import sys

from stockade.annotation import TYPE_CHECKING, Final, TypeVar
from stockade.errors import InvalidTextError, SettingsError
from stockade.escape import escape
from stockade.policy.files import PRIVATE_PLACE, FileRules
from stockade.policy.installation import own_places
from stockade.policy.model import CommandRules, Mode, SandboxPolicy, Sockets
from stockade.policy.network_rules import NetworkRules
from stockade.policy.path_pattern import PathPattern, is_at_or_below, joined, names_of
from stockade.policy.protected import reaches
from stockade.policy.protected_names import OWN
from stockade.settings import catalog
from stockade.settings.ancestors import database_home, holds, tidy
from stockade.settings.layer import Layer, Origin, Sourced
from stockade.settings.problem import Problem
from stockade.settings.sources import project_of
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stockade.policy.command_pattern import CommandPattern
    from stockade.policy.domain_pattern import DomainPattern
    from stockade.policy.rule import Rule
    from stockade.settings.catalog import Key, Texts
    from stockade.settings.merge import Settings

T = TypeVar("T")
U = TypeVar("U")
BUILT_IN: Final = Origin(Layer.DEFAULTS)


class _Rules(Value):
    """The rules of one list, by what they concern."""

    domains: tuple[Sourced[DomainPattern], ...]
    edits: tuple[Sourced[PathPattern], ...]
    reads: tuple[Sourced[PathPattern], ...]
    commands: tuple[Sourced[CommandPattern], ...]


def compile_policy(settings: Settings, *, cwd: str, home: str, guarded: tuple[str, ...] = ()) -> SandboxPolicy:
    """Return what the settings mean in a working directory.

    ``guarded`` are the settings files themselves, existing or not: no command may ever write them, nor what else is in
    a directory of ours.
    """
    reader = _Reader(settings, cwd, home)
    allow, deny, ask = (reader.rules(key) for key in (catalog.ALLOW, catalog.DENY, catalog.ASK))
    homes = tuple(known for known in (database_home(),) if known not in ("", home))
    held = next((one for one in (home, *homes) if holds(cwd, one)), None)
    lifted, spared = reader.lifted(catalog.ALLOW_PROTECTED, guarded)
    within = None if held is not None else _obeyed(cwd, (home, *homes))
    if within is not None and (within[0] in lifted or _covers(spared, cwd)):
        within = None
    # What is in a home is obeyed by the whole host, so that a home is opened only by somebody who says so.
    is_open = held is None and within is None
    built_in_allow = (Sourced(PathPattern.literal(cwd), BUILT_IN),) if is_open else ()
    built_in_deny = tuple(Sourced(PathPattern.literal(file), BUILT_IN) for file in _closed_with(guarded))
    write_allow = (*built_in_allow, *reader.paths(catalog.ALLOW_WRITE), *allow.edits)
    closed = "" if held is None else _closed(cwd, held, write_allow)
    if within is not None:
        closed = _closed_within(cwd, *within, write_allow)
    policy = SandboxPolicy(
        mode=Mode(
            enabled=settings.get(catalog.ENABLED),
            auto_allow=settings.get(catalog.AUTO_ALLOW),
            allow_unsandboxed=settings.get(catalog.ALLOW_UNSANDBOXED),
            fail_if_unavailable=settings.get(catalog.FAIL_IF_UNAVAILABLE),
            weaker_nested=settings.get(catalog.WEAKER_NESTED),
            private_cache=settings.get(catalog.PRIVATE_CACHE),
        ),
        files=FileRules(
            cwd=cwd,
            home=home,
            write_allow=write_allow,
            write_deny=(*reader.denied_paths(catalog.DENY_WRITE), *deny.edits, *built_in_deny),
            read_deny=(*reader.denied_paths(catalog.DENY_READ), *deny.reads),
            read_allow=reader.paths(catalog.ALLOW_READ),
            search_depth=settings.get(catalog.SEARCH_DEPTH),
            allow_git_config=settings.get(catalog.ALLOW_GIT_CONFIG),
            left_allow=spared,
            private=_private_place(settings),
            own=() if settings.get(catalog.ALLOW_OWN_INSTALLATION) else own_places(cwd),
            homes=homes,
            lifted=lifted,
            closed=closed,
            staged=sys.platform == "linux",
        ),
        network=NetworkRules(
            allowed=(*reader.domains(catalog.ALLOWED_DOMAINS), *allow.domains),
            denied=(*reader.domains(catalog.DENIED_DOMAINS), *deny.domains),
        ),
        sockets=Sockets(
            unix=reader.paths(catalog.UNIX_SOCKETS),
            all_unix=settings.get(catalog.ALL_UNIX_SOCKETS),
            local_binding=settings.get(catalog.LOCAL_BINDING),
            http_proxy_port=settings.get(catalog.HTTP_PROXY_PORT),
            socks_proxy_port=settings.get(catalog.SOCKS_PROXY_PORT),
            denied_unix=reader.denied_paths(catalog.DENIED_UNIX_SOCKETS),
        ),
        commands=CommandRules(
            excluded=reader.exclusions(catalog.EXCLUDED_COMMANDS),
            allow=allow.commands,
            deny=deny.commands,
            ask=ask.commands,
        ),
        ignored_violations=reader.ignored(),
        ripgrep=_ripgrep(settings),
        notes=reader.notes,
    )
    reader.finish()
    return policy


class _Reader:
    """Parses the texts of the settings and remembers what was wrong with them."""

    def __init__(self, settings: Settings, cwd: str, home: str) -> None:
        self._settings = settings
        self._cwd = cwd
        self._home = tidy(home)
        self._tilde = self._home
        self._home_is_project = False
        self._problems: list[Problem] = []
        self._notes: list[str] = []

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(self._notes)

    def paths(self, key: Key[Texts]) -> tuple[Sourced[PathPattern], ...]:
        return _once(self._opened(self._settings.items(key), lambda item: self._path(item.value, item.origin)))

    def lifted(
        self, key: Key[Texts], guarded: tuple[str, ...]
    ) -> tuple[frozenset[str], tuple[Sourced[PathPattern], ...]]:
        """Return the protected names that entries lift everywhere, and the paths where others lift all."""
        items = self._settings.items(key)
        if not items:
            return frozenset(), ()
        from stockade.policy.protected_entry import SETTINGS, names_lifted_by

        read = [found.value for found in self._each(items, lambda item: (item, names_lifted_by(item.value)))]
        paths = self._opened(
            [item for item, names in read if not names], lambda item: self._path(item.value, item.origin)
        )
        closed = {*guarded, *(os.path.dirname(file) for file in guarded if _is_own(file))}
        named = [item.value for item, names in read if names and names <= SETTINGS and guarded]
        named += (path.value.text for path in paths if path.value.path in closed)
        for text in named:
            why = "Stockade takes its settings from there, and no command may write those of its own walls"
            self._notes.append(f'"{escape(text, 60)}" in allowProtected opens nothing here: {why}; change them outside')
        return frozenset(name for _, names in read for name in names), _once(paths)

    def denied_paths(self, key: Key[Texts]) -> tuple[Sourced[PathPattern], ...]:
        return _once(self._denied(self._settings.items(key), lambda item: self._path(item.value, item.origin)))

    def domains(self, key: Key[Texts]) -> tuple[Sourced[DomainPattern], ...]:
        deny = key is catalog.DENIED_DOMAINS
        return self._each(self._settings.items(key), lambda item: _domain_pattern(item.value, deny=deny))

    def exclusions(self, key: Key[Texts]) -> tuple[Sourced[CommandPattern], ...]:
        return self._each(self._settings.items(key), lambda item: _exclusion(item.value))

    def ignored(self) -> tuple[Sourced[tuple[str, str]], ...]:
        def parse(item: Sourced[tuple[str, str]]) -> tuple[str, str]:
            if item.value[0] != "*":
                _command(item.value[0])
            return item.value

        return self._each(self._settings.pairs(catalog.IGNORE_VIOLATIONS), parse)

    def rules(self, key: Key[Texts]) -> _Rules:
        rules = self._each(self._settings.items(key), lambda item: _rule(item.value))
        deny = key is catalog.DENY
        walls = key is not catalog.ASK
        return _Rules(
            domains=_once(self._meaning(rules if walls else (), lambda rule: _domain(rule.value, deny=deny))),
            edits=_once(self._edits(rules if walls else (), deny=deny)),
            reads=_once(self._denied(rules if deny else (), self._read)),
            commands=_once(self._meaning(rules, lambda rule: self._command(rule, allow=key is catalog.ALLOW))),
        )

    def finish(self) -> None:
        if self._problems:
            raise SettingsError(self._problems)

    def _path(self, text: str, origin: Origin, base: str | None = None) -> PathPattern:
        return PathPattern.parse(text, cwd=self._anchor(origin), home=self._tilde, base=base)

    def _edits(self, rules: Iterable[Sourced[Rule]], *, deny: bool) -> tuple[Sourced[PathPattern], ...]:
        found = self._denied if deny else self._opened
        return found(rules, lambda rule: self._edit(rule, deny=deny))

    def _denied(
        self, items: Iterable[Sourced[T]], parse: Callable[[Sourced[T]], PathPattern | None]
    ) -> tuple[Sourced[PathPattern], ...]:
        """Return what texts deny, also by the other reading of those that depend on what HOME is."""
        items = tuple(items)
        return (*self._meaning(items, parse), *self._by_database(items, parse), *self._by_project(items, parse))

    def _by_database(
        self, items: Iterable[Sourced[T]], parse: Callable[[Sourced[T]], PathPattern | None]
    ) -> tuple[Sourced[PathPattern], ...]:
        """Return what ``~`` means in the administrator's texts, by the user database."""
        at_home = [item for item in items if _is_policys_home(item)]
        known = _database_home() if at_home else ""
        if known in ("", self._home):
            return ()
        self._tilde = known
        found = self._meaning(at_home, parse)
        self._tilde = self._home
        # Some system users have the root of the disk for a home; with all of it denied nothing could start.
        return tuple(item for item in found if item.value.path != "/")

    def _by_project(
        self, items: Iterable[Sourced[T]], parse: Callable[[Sourced[T]], PathPattern | None]
    ) -> tuple[Sourced[PathPattern], ...]:
        """Return what the texts of home mean if it is a project's directory, where it is not the user's home."""
        placed = [item for item in items if self._is_placed_in_home(item)]
        if not placed or _is_users_home(self._home):
            return ()
        self._home_is_project = True
        found = self._meaning(placed, parse)
        self._home_is_project = False
        return found

    def _is_placed_in_home(self, item: Sourced[object]) -> bool:
        place, folder = os.path.split(item.origin.scope)
        absolute = ("~", "//") if folder == ".claude" else ("~", "/")
        return bool(place) and tidy(place) == self._home and not _text_of(item.value).startswith(absolute)

    def _opened(
        self, items: Iterable[Sourced[T]], parse: Callable[[Sourced[T]], PathPattern | None]
    ) -> tuple[Sourced[PathPattern], ...]:
        """Return what texts open, without the administrator's ``~`` where HOME is not the user's home."""
        counting = []
        for item in items:
            if not _is_policys_home(item) or _is_users_home(self._home):
                counting.append(item)
                continue
            why = f"HOME is {escape(self._home)}, which is not your home in the user database"
            self._notes.append(f'{escape(_where(item.origin))}: "{escape(str(item.value), 60)}" allows nothing: {why}')
        return self._meaning(counting, parse)

    def _edit(self, rule: Sourced[Rule], *, deny: bool) -> PathPattern | None:
        if rule.value.tool != "Edit":
            return None
        if rule.value.content is None:
            # A bare `Edit` lets an agent's own editor work without asking; it opens no wall. Denied, it closes all.
            return PathPattern.literal("/") if deny else None
        return self._path(rule.value.content, rule.origin, self._base(rule.origin))

    def _read(self, rule: Sourced[Rule]) -> PathPattern | None:
        if rule.value.tool != "Read":
            return None
        if rule.value.content is None:
            message = "Read without a path would hide every file, and no command could start"
            raise InvalidTextError(message, "name a path: Read(./secrets)")
        return self._path(rule.value.content, rule.origin, self._base(rule.origin))

    def _command(self, rule: Sourced[Rule], *, allow: bool) -> CommandPattern | None:
        if rule.value.tool != "Bash":
            return None
        try:
            return _command("*" if rule.value.content is None else rule.value.content)
        except InvalidTextError:
            if not allow:
                raise
        why = "it is not the plain words of one command"
        self._notes.append(f'{escape(_where(rule.origin))}: "{escape(rule.value.text, 60)}" allows nothing: {why}')
        return None

    def _anchor(self, origin: Origin) -> str:
        """Return what relative paths start at: the project of a project's file, else where the session works."""
        return project_of(origin, self._home) or (self._home if self._home_is_project else self._cwd)

    def _base(self, origin: Origin) -> str | None:
        """Return what a leading slash means in a rule: only Claude Code's files give it a meaning of its own."""
        folder = os.path.dirname(origin.file)
        if os.path.basename(folder) != ".claude":
            return None
        own = tidy(folder) == os.path.join(self._home, ".claude") and not self._home_is_project
        return folder if own else os.path.dirname(folder)

    def _each(self, items: Iterable[Sourced[T]], parse: Callable[[Sourced[T]], U]) -> tuple[Sourced[U], ...]:
        parsed = []
        for item in items:
            try:
                parsed.append(Sourced(parse(item), item.origin))
            except InvalidTextError as error:
                problem = Problem(_where(item.origin), item.origin.path, error.message, error.hint)
                if problem not in self._problems:  # a name of a table stands once for each of its texts
                    self._problems.append(problem)
        return tuple(parsed)

    def _meaning(self, items: Iterable[Sourced[T]], parse: Callable[[Sourced[T]], U | None]) -> tuple[Sourced[U], ...]:
        found = self._each(items, parse)
        return tuple(Sourced(item.value, item.origin) for item in found if item.value is not None)


def _closed(cwd: str, home: str, write_allow: Iterable[Sourced[PathPattern]]) -> str:
    """Return why a working directory is not writable that holds the home; empty if a setting opens it."""
    if _covers(write_allow, cwd):
        return ""
    from stockade.policy import file_remedy

    return file_remedy.for_closed(cwd, is_home=holds(home, cwd))


def _closed_with(guarded: Iterable[str]) -> Iterable[str]:
    """Return the settings files and our own directories that hold some.

    As a whole they need no placeholder for a file that is missing in them: it would be in the way of those on the host
    who make it while commands run, an editor or this program.
    """
    return dict.fromkeys(
        place for file in guarded for place in ((os.path.dirname(file), file) if _is_own(file) else (file,))
    )


def _is_own(file: str) -> bool:
    return os.path.basename(os.path.dirname(file)) == OWN


def _obeyed(cwd: str, homes: Iterable[str]) -> tuple[str, str] | None:
    """Return the name of a home that a working directory is, or lies in, and its path; ``None`` for a project."""
    for home in dict.fromkeys(place for one in homes for place in (tidy(one), os.path.realpath(one))):
        if is_at_or_below(cwd, home) and reaches(cwd, home):
            from stockade.policy.home_names import name_above

            name = name_above(cwd, home)
            if name:
                return name, joined(names_of(cwd)[: len([*names_of(home), *names_of(name)])])
    return None


def _closed_within(cwd: str, name: str, path: str, write_allow: Iterable[Sourced[PathPattern]]) -> str:
    """Return why a working directory is not writable that lies in a name of the home; empty if a setting opens it."""
    covering = [rule.value for rule in write_allow if _covers((rule,), cwd)]
    is_wide = any(not one.is_glob and not is_at_or_below(one.path, path) for one in covering)
    is_named = any(is_at_or_below(one.static_prefix, path) for one in covering)
    if is_named and not is_wide:
        return ""
    from stockade.policy import file_remedy

    return file_remedy.for_closed_within(cwd, name, lifting=is_wide)


def _covers(rules: Iterable[Sourced[PathPattern]], place: str) -> bool:
    return any(rule.value.depth_on(place) is not None for rule in rules)


def _once(items: Iterable[Sourced[U]]) -> tuple[Sourced[U], ...]:
    """Drop what was said before: the same text in two files may mean two places, and may mean one."""
    first: dict[tuple[U, bool], Sourced[U]] = {}
    for item in items:
        first.setdefault((item.value, item.origin.is_policy), item)
    return tuple(first.values())


# Most settings have neither exclusions nor rules, and need not know what these mean.


def _exclusion(text: str) -> CommandPattern:
    from stockade.policy.exclusion import parse_exclusion

    return parse_exclusion(text)


def _command(text: str) -> CommandPattern:
    from stockade.policy.command_pattern import CommandPattern

    return CommandPattern.parse(text)


def _rule(text: str) -> Rule:
    from stockade.policy.rule import Rule

    return Rule.parse(text)


def _domain(rule: Rule, *, deny: bool) -> DomainPattern | None:
    if rule.tool != "WebFetch":
        return None
    if rule.content is None:
        # As with `Edit`: allowed, it concerns an agent's own tool; denied, it closes the network.
        return _domain_pattern("*", deny=True) if deny else None
    return None if rule.domain is None else _domain_pattern(rule.domain, deny=deny)


def _domain_pattern(text: str, *, deny: bool) -> DomainPattern:
    from stockade.policy.domain_pattern import DomainPattern  # most runs reach nothing

    return DomainPattern.parse(text, deny=deny)


def _is_policys_home(item: Sourced[object]) -> bool:
    """Tell whether the administrator names a place in home: in a path, or in a rule for ``Edit`` or ``Read``."""
    return item.origin.is_policy and _text_of(item.value).startswith("~")


def _text_of(value: object) -> str:
    """Return the path in a text or in a rule for ``Edit`` or ``Read``; "" for all other rules."""
    if isinstance(value, str):
        return value
    from stockade.policy.rule import Rule

    return value.content or "" if isinstance(value, Rule) and value.tool in ("Edit", "Read") else ""


# The user database is asked only where an administrator speaks of home.


def _database_home() -> str:
    from stockade.settings.home import database_home

    return database_home()


def _is_users_home(home: str) -> bool:
    from stockade.settings.home import is_users_home

    return is_users_home(home)


def _where(origin: Origin) -> str:
    return origin.file or str(origin.layer)


def _private_place(settings: Settings) -> str:
    """Return the place that is private to a session; where all sockets are open, those of the host must be there."""
    wanted = settings.get(catalog.PRIVATE_TMP) and not settings.get(catalog.ALL_UNIX_SOCKETS)
    return PRIVATE_PLACE if wanted and sys.platform == "linux" else ""


def _ripgrep(settings: Settings) -> tuple[str, ...]:
    command = settings.get(catalog.RIPGREP_COMMAND)
    return (command, *settings.get(catalog.RIPGREP_ARGS)) if command else ()

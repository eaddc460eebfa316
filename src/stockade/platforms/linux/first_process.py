"""The first process of a command's pid namespace: builds the last walls, starts the command, reaps.

The launcher forks it ahead of need; it waits for one request, serves it and ends, and whatever
the command left behind is ended with it by the kernel. The command itself is never process 1,
because the kernel hides from process 1 every signal that it has no handler for.

Rules: no file is read and nothing imported here, since this view of the files belongs to the
jail; what can be done before the request comes is done then, for nobody waits for it; capabilities go
before anything of the request is touched but its mounts; the filter is on before the command exists.
Source of truth: pid_namespaces(7), capabilities(7), seccomp(2).
"""

from __future__ import annotations

import fcntl
import os
import resource
from _signal import (  # type: ignore[import-not-found] # signal costs 3 ms: it makes enumerations
    SIG_BLOCK,
    SIG_DFL,
    SIG_IGN,
    SIG_SETMASK,
    SIGCHLD,
    SIGCONT,
    SIGHUP,
    SIGINT,
    SIGPIPE,
    SIGSTOP,
    SIGTERM,
    SIGTTIN,
    SIGTTOU,
    SIGXFSZ,
    pthread_sigmask,
    signal,
    sigwait,
)
from errno import EACCES, EBUSY, EMFILE, ENOENT, ENOTDIR

from stockade.platforms.linux import kernel, landlock, stream, tree
from stockade.platforms.linux.channel import Channel, Packet
from stockade.platforms.linux.message import (
    ANNOUNCE,
    COPIED,
    EXEC,
    LISTENING,
    STARTED,
    STOPPED,
    TERMINAL,
    Ended,
    Failed,
    Run,
    read_signal,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stockade.platforms.linux.locked_tree import LockedTree

CHANNEL = 3
WAKE = SIGTERM
#: What this process waits for. They are blocked, and so stay until they are asked for: one that a handler took just
#: before a wait would not end it. Blocked ones are kept even for process 1.
_HEARD = (WAKE, SIGCHLD, SIGHUP)
_IGNORED_BY_PYTHON = (SIGPIPE, SIGXFSZ)
_STREAMS = 3
_DEFAULT_PATH = b"/usr/local/bin:/usr/bin:/bin"
_MICROSECONDS = 1_000_000
_WORD = 8
_TYPICAL = 64
_SAMPLE = Run([b"/bin/sh", b"-c", b"true"], {b"%d" % number: b"" for number in range(_TYPICAL)}, b"/").packet(0, ())


class Setting:
    """What every command of the session gets alike."""

    __slots__ = (
        "capabilities",
        "common",
        "files",
        "filters",
        "fresh_processes",
        "grounds",
        "is_denied",
        "locked",
        "note",
        "places",
        "private",
        "reuse",
        "rights",
        "spare",
        "supervised",
        "unsupervised",
        "writable_processes",
    )

    def __init__(  # noqa: PLR0913 - one value of many fields, all named
        self,
        *,
        capabilities: int,
        filters: list[bytes],
        fresh_processes: bool,
        writable_processes: bool,
        files: tuple[int, int],
        rights: int,
        grounds: list[bytes],
        locked: LockedTree,
        places: list[tree.Place],
        supervised: bool = False,
        unsupervised: Callable[[], bytes] = bytes,
        note: bytes = b"",
        spare: bool = True,
        reuse: bool = True,
        is_denied: Callable[[bytes], bool] | None = None,
        private: bytes = b"",
        common: bytes = b"",
    ) -> None:
        """Take ``files`` as the limit of open files that the owner had.

        ``locked`` is the tree that commands get copies of; ``places`` are the mounts in it.
        ``rights`` are those that Landlock denies, but for the writable ``grounds``; 0 where there is no Landlock.
        ``supervised``: the first filter notifies; ``unsupervised`` makes what takes its place if the kernel refuses.
        ``note`` says why there is no supervisor, if that is known before. ``spare``: a next command is expected.
        ``reuse``: copies of the mounts may serve one command after another. ``is_denied`` tells of the path of a unix
        socket whether a rule denies it. ``private`` is the private place; ``common`` says why a planned one is missing.
        """
        self.capabilities = capabilities
        self.filters = filters
        self.fresh_processes = fresh_processes
        self.writable_processes = writable_processes
        self.files = files
        self.rights = rights
        self.grounds = grounds
        self.locked = locked
        self.places = places
        self.supervised = supervised
        self.unsupervised = unsupervised
        self.note = note
        self.spare = spare
        self.reuse = reuse
        self.is_denied = is_denied
        self.private = private
        self.common = common


class _Step:
    """Names what is being done, for the report if the kernel refuses."""

    __slots__ = ("name",)

    def __init__(self, name: bytes) -> None:
        self.name = name

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Say which step it was."""
        if isinstance(error, OSError):
            raise StepError(self.name) from error


class StepError(Exception):
    """One step failed; the cause says why."""

    def __init__(self, step: bytes) -> None:
        """Name the step in words."""
        super().__init__(step)
        self.step = step


def main(channel: Channel, namespace: int | None, setting: Setting) -> None:
    """Prepare, wait for one request, serve it; the caller ends the process afterwards."""
    number = 0
    try:
        mine, copy = _prepare(channel, namespace, setting)
        rules = _rules(setting)
        _drop_rights(setting)
        _install_filters(setting, mine)
        if copy is not None:
            mine.send(Packet(COPIED, 0, b"", (copy,)))
            os.close(copy)
        _rehearse()
        packet = mine.receive()
        if packet is None:
            return
        number = packet.number
        command = _Command(Run.read(packet), packet.descriptors, setting, mine, rules)
        mine.send(command.serve(number).packet(number))
    except StepError as failure:
        Channel.adopt(CHANNEL).send(Failed.of(failure.step, failure.__cause__ or failure).packet(number))


def _prepare(channel: Channel, namespace: int | None, setting: Setting) -> tuple[Channel, int | None]:
    """Get a copy of the jail's mounts with a /proc of its own; return a copy that is new, to tell the launcher."""
    # First of all: until then this descriptor is the launcher's way to the owner, who must not hear of failures here.
    os.dup2(channel.fileno(), CHANNEL, inheritable=False)
    processes = -1
    if setting.fresh_processes:
        with _Step(b"fresh /proc"):
            processes = tree.new_processes(writable=setting.writable_processes)
    with _Step(b"mount namespace"):
        setting.locked.enter(namespace)
        if namespace is not None and setting.fresh_processes:
            tree.uncover_processes()
    if setting.fresh_processes:
        with _Step(b"fresh /proc"):
            tree.show_processes(processes, writable=setting.writable_processes)
    kernel.close_from(CHANNEL + 1)
    mine = Channel.adopt(CHANNEL)
    found = None
    if namespace is None:
        with _Step(b"mount namespace"):
            found = os.open(b"/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    return mine, found


def _rules(setting: Setting) -> int:
    """Prepare what may be written, while nobody waits; -1 where there is no Landlock."""
    with _Step(b"landlock"):
        return landlock.prepare(setting.rights, setting.grounds) if setting.rights else -1


def _drop_rights(setting: Setting) -> None:
    """Drop capabilities; the bounding set as well, for whoever enters a user namespace gets a full one."""
    with _Step(b"capabilities"):
        kernel.limit_bounding_set(setting.capabilities)
        kernel.limit_capabilities(setting.capabilities)


def _install_filters(setting: Setting, channel: Channel) -> None:
    """Put the session's filters on, and hand over the listener of the one that notifies."""
    with _Step(b"filter"):
        for program in setting.filters[:1]:
            if setting.supervised:
                _install_notifying_filter(program, setting, channel)
            else:
                kernel.install_filter(program)
        for program in setting.filters[1:]:
            kernel.install_filter(program)


def _install_notifying_filter(program: bytes, setting: Setting, channel: Channel) -> None:
    try:
        listener = kernel.install_filter(program, listen=True)
    except OSError as error:
        if error.errno != EBUSY:
            raise
        # Somebody around this sandbox listens already, and the kernel allows but one.
        kernel.install_filter(setting.unsupervised())
        channel.send(Packet(LISTENING, 0))
        return
    channel.send(Packet(LISTENING, 0, b"", (listener,)))
    os.close(listener)


def _rehearse() -> None:
    """Go once through what a request will go through: each page that a forked process touches is copied then."""
    Run.read(_SAMPLE)
    with _Step(b"standard stream"):
        for number in range(_STREAMS):
            stream.require_harmless(number)
        # Only read: for a device that may be written, the supervisor would be asked.
        os.close(os.open(b"/dev/null", os.O_RDONLY | os.O_CLOEXEC))
    Ended(0, 0, 0, 0).packet(0)


class _Command:
    """One request on its way."""

    def __init__(self, run: Run, descriptors: tuple[int, ...], setting: Setting, channel: Channel, rules: int) -> None:
        self.run = run
        # Numbers at which the command finds a pipe are kept free of what is still needed.
        self.top = max(run.passed, default=0)
        with _Step(b"passed descriptor"):
            descriptors = tuple(stream.above(descriptor, self.top) for descriptor in descriptors)
        self.streams, behind = descriptors[:_STREAMS], descriptors[_STREAMS:]
        self.groups, self.passed = behind[: run.groups], behind[run.groups :]
        self.setting = setting
        self.channel = channel
        self.rules = rules
        self.pid = 0
        #: The command's terminal, as long as it is not the job in front there.
        self.behind = -1

    def serve(self, number: int) -> Ended:
        """Do what is asked for, and return how the command ended."""
        with _Step(b"standard stream"):
            for given in self.streams:
                stream.require_harmless(given, self.setting.is_denied)
        with _Step(b"control group"):
            self.join_groups()
        with _Step(b"passed descriptor"):
            stream.require_pipes(self.passed, len(self.run.passed))
        with _Step(b"standard stream"):
            for given in self.streams:
                stream.use_own_device(given)
        with _Step(b"working directory"):
            os.chdir(self.run.directory)
        resource.setrlimit(resource.RLIMIT_NOFILE, self.setting.files)
        if self.setting.rights:
            with _Step(b"landlock"):
                landlock.restrict(self.rules, self.setting.rights, self.streams)
        signal(SIGINT, SIG_DFL)
        pthread_sigmask(SIG_BLOCK, _HEARD)
        kernel.close_on_exec_from(CHANNEL)
        if self.run.flags & TERMINAL:
            with _Step(b"terminal"):
                self.lead_session()
        try:
            return self.stay(number)
        finally:
            if self.run.flags & TERMINAL:
                stream.leave_terminal()

    def stay(self, number: int) -> Ended:
        """Start the command and wait for its end."""
        self.start()
        for descriptor in (*self.streams, *self.passed):
            os.close(descriptor)
        self.forward_signals()
        if self.run.flags & ANNOUNCE and self.behind < 0:
            self.channel.send(Packet(STARTED, number))
        return self.reap(number)

    def join_groups(self) -> None:
        """Enter the control groups whose ``cgroup.procs`` came with the request, if all of them came."""
        if len(self.groups) != self.run.groups:
            raise OSError(EMFILE, os.strerror(EMFILE))
        for group in self.groups:
            os.write(group, b"0")
            os.close(group)

    def lead_session(self) -> None:
        """Become what a login shell is to its terminal: leader of the session, with the command as the job in front.

        A command that led the session itself could not be stopped by Ctrl-Z: nobody would be there to continue it. One
        with a stream that is no terminal begins behind: in a pipeline the keys may be for another program.
        """
        os.setsid()
        terminal = next(filter(os.isatty, self.streams), self.streams[0])
        kernel.claim_terminal(terminal)
        if not all(map(os.isatty, self.streams)):
            self.behind = fcntl.fcntl(terminal, fcntl.F_DUPFD_CLOEXEC, self.top + 1)

    def hang_up(self) -> None:
        """Pass on that the terminal is gone, which the kernel tells the leader of the session alone."""
        for number in (SIGHUP, SIGCONT) if self.run.flags & TERMINAL else ():
            try:
                os.killpg(self.pid, number)
            except ProcessLookupError:
                return

    def forward_signals(self) -> None:
        """Pass on what the launcher has sent to the command's group; a wake-up from inside finds nothing."""
        while (packet := self.channel.receive(wait=False)) is not None:
            number = read_signal(packet)
            try:
                if number in {SIGSTOP, SIGCONT} and not self.run.flags & TERMINAL:
                    # A process that left the group would go on reading the keys of a terminal that it shares.
                    os.kill(-1, number)
                else:
                    os.killpg(self.pid, number)
            except ProcessLookupError:
                return

    def start(self) -> None:
        """Try each place where the program may be; the first that can be run, runs."""
        error = ENOENT
        for program in _candidates(self.run):
            try:
                self.pid = self.start_special(program) if self.is_special() else self.start_plain(program)
            except OSError as failure:
                if failure.errno not in {ENOENT, ENOTDIR, EACCES}:
                    raise StepError(EXEC) from failure
                error = failure.errno if failure.errno == EACCES else error
            else:
                return
        raise StepError(EXEC) from OSError(error, os.strerror(error), self.run.argv[0])

    def is_special(self) -> bool:
        """Tell whether something must be done between fork and exec, which costs a real fork."""
        return bool(self.run.limits) or bool(self.run.flags & TERMINAL)

    def start_plain(self, program: bytes) -> int:
        """Start by vfork."""
        return os.posix_spawn(
            program,
            self.run.argv,
            self.run.environment,
            file_actions=[(os.POSIX_SPAWN_DUP2, descriptor, number) for number, descriptor in self.targets()],
            setsid=True,
            setsigmask=(),
            setsigdef=_IGNORED_BY_PYTHON,
        )

    def targets(self) -> list[tuple[int, int]]:
        """Return which number the command is to find each descriptor at."""
        return [*enumerate(self.streams), *zip(self.run.passed, self.passed, strict=True)]

    def start_special(self, program: bytes) -> int:
        """Start by fork, with a terminal or limits of its own."""
        reader, writer = (stream.above(end, self.top) for end in os.pipe())
        pid = os.fork()
        if pid == 0:
            try:
                self.become(program)
            except OSError as error:
                os.write(writer, (error.errno or 0).to_bytes(_WORD, "little"))
            finally:
                os._exit(127)
        os.close(writer)
        failure = os.read(reader, _WORD)
        os.close(reader)
        if failure:
            os.waitpid(pid, 0)
            number = int.from_bytes(failure, "little")
            raise OSError(number, os.strerror(number), program)
        return pid

    def become(self, program: bytes) -> None:
        """Turn this process into the command."""
        terminal = self.run.flags & TERMINAL
        for number in _IGNORED_BY_PYTHON:
            signal(number, SIG_DFL)
        for number, descriptor in self.targets():
            os.dup2(descriptor, number)
        if terminal:
            os.setpgid(0, 0)
            if self.behind < 0:
                signal(SIGTTOU, SIG_IGN)  # as long as this is not in front
                os.tcsetpgrp(0, os.getpid())
                signal(SIGTTOU, SIG_DFL)
        else:
            os.setsid()
        for kind, value in self.run.limits:
            _, hardest = resource.getrlimit(kind)
            # Processor time ends with SIGXCPU, which says why; one second later with SIGKILL, which does not.
            most = value + 1 if kind == resource.RLIMIT_CPU else value
            allowed = (value, most) if hardest == resource.RLIM_INFINITY else (min(value, hardest), min(most, hardest))
            resource.setrlimit(kind, allowed)
        pthread_sigmask(SIG_SETMASK, ())
        os.execve(program, self.run.argv, self.run.environment)  # noqa: S606 - to run it is the purpose

    def come_forward(self, number: int) -> bool:
        """Put the command in front if it was stopped because it wants its terminal and is behind."""
        if self.behind < 0 or number not in {SIGTTIN, SIGTTOU}:
            return False
        os.tcsetpgrp(self.behind, self.pid)
        os.close(self.behind)
        self.behind = -1
        os.killpg(self.pid, SIGCONT)
        return True

    def listen(self) -> None:
        """Wait until a process ended or stopped, or somebody has something to say."""
        came = sigwait(_HEARD)
        if came == WAKE:
            self.forward_signals()
        elif came == SIGHUP:
            self.hang_up()

    def reap(self, number: int) -> Ended:
        """Wait for the command, burying orphans meanwhile; the last report is true for all of them."""
        user = system = memory = status = 0
        ended = False
        options = os.WNOHANG | (os.WUNTRACED if self.run.flags & TERMINAL else 0)
        while True:
            try:
                pid, result, usage = os.wait4(-1, options)
            except ChildProcessError:
                return Ended(status, user, system, memory, alone=True)
            if pid == 0:
                if ended:
                    return Ended(status, user, system, memory, alone=False)
                self.listen()
                continue
            if os.WIFSTOPPED(result):
                if pid == self.pid:
                    came = self.come_forward(os.WSTOPSIG(result))
                    self.channel.send(Packet(STARTED if came else STOPPED, number))
                continue
            user += int(usage.ru_utime * _MICROSECONDS)
            system += int(usage.ru_stime * _MICROSECONDS)
            memory = max(memory, usage.ru_maxrss)
            if pid == self.pid:
                status, ended = result, True


def _candidates(run: Run) -> Iterator[bytes]:
    """Yield the files that a program's name may mean, by the command's own PATH."""
    name = run.argv[0]
    if b"/" in name:
        yield name
        return
    for directory in run.environment.get(b"PATH", _DEFAULT_PATH).split(b":"):
        path = b"%b/%b" % (directory or b".", name)
        if os.access(path, os.F_OK):
            yield path

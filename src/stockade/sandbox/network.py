"""The network of one session: the proxy process, who may use it, and what it has to say.

The walls hand out sockets that are bound inside them; the proxy process serves them. If the rules let something
through, or somebody can be asked, it is started at once, and comes up while the walls are built. Otherwise it is
started when something first connects: until then the kernel keeps the connection, so that nothing is refused only for
not being there yet, and a command that uses no network pays for none.

Rules: the session's copies of the sockets stay open, so that a proxy process that was killed is replaced when somebody
connects again; after a few that end at once there is none, ``failure`` says so, and connections are refused. Every
credential that is alive is told to each of them. Nothing here waits, but ``close``, and nothing raises but ``publish``:
a command that needs no network runs without one.
"""

from __future__ import annotations

import os
import select
import time

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import StockadeError, UnavailableError
from stockade.network.environment import Credential, ProxyPorts, proxy_variables
from stockade.sandbox.host_proxy import without_proxies

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from stockade.network.proxy_process import News, ProxyProcess, ProxySettings
    from stockade.platforms.backend import Entrance, Walls
    from stockade.policy.model import SandboxPolicy

_TOKEN_BYTES: Final = 18
_MOST_DEATHS: Final = 5
_SHORT_LIFE: Final = 2.0
_HINT: Final = "run `stockade doctor`"
_UPSTREAM: Final = ("http_proxy", "https_proxy", "all_proxy")


class Network:
    """See the module. One for each session that is open."""

    def __init__(
        self,
        walls: Walls,
        host: Mapping[str, str],
        *,
        inherited: Mapping[str, str] | None = None,
        can_ask: bool = False,
        name_servers: tuple[str, ...] = (),
        hasty: bool = False,
    ) -> None:
        """Take walls that may not stand yet; ``hasty``: start nothing before it is needed.

        ``host`` is where upstream proxies are found; ``inherited`` is what of it gets inside.
        """
        #: Why there is no network at all; empty while there is one.
        self.failure = ""
        self._hint = _HINT
        self._walls = walls
        self._host = host
        self._inherited = without_proxies(host) if inherited is None else inherited
        self._can_ask = can_ask
        self._name_servers = name_servers
        self._hasty = hasty
        self._policy: SandboxPolicy | None = None
        self._entrances: list[Entrance] = []
        self._process: ProxyProcess | None = None
        self._began = 0.0
        self._deaths = 0
        self._watched: list[int] = []
        self._credentials: dict[Credential, str] = {}
        self._number = 0
        self._published: list[tuple[int, int, int]] = []

    @property
    def note(self) -> str:
        """Why there is no network at all and what to do about it, in one line; empty while there is one."""
        return f"{self.failure}; {self._hint}" if self.failure else ""

    def follow(self, policy: SandboxPolicy) -> None:
        """Use the rules of a policy from the next request on, and what the walls have opened since."""
        before, self._policy = self._policy, policy
        if before is not None and before is not policy and before.network != policy.network:
            self._tell(lambda process: process.update(policy.network))
        new = self._walls.take_entrances()
        if new:
            self._entrances += new
            self._take_up(new)

    def admit(self, command: str) -> tuple[Credential, dict[str, str]]:
        """Make a credential for a command; return it with the variables by which programs find the proxies."""
        self._number += 1
        credential = Credential(f"command-{self._number}", os.urandom(_TOKEN_BYTES).hex())
        self._credentials[credential] = command
        self._tell(lambda process: process.add(credential, command))
        return credential, self._variables(credential)

    def dismiss(self, credential: Credential) -> None:
        """Let a credential mean nobody any more."""
        if self._credentials.pop(credential, None) is not None:
            self._tell(lambda process: process.revoke(credential))

    def publish(self, listener: int, port: int) -> None:
        """Let what connects to a listening socket of the host reach a port inside; the socket is ours from now on."""
        try:
            way_in = self._walls.open_way_in()
        except BaseException:
            os.close(listener)
            raise
        self._published.append((listener, port, way_in))
        if self._process is None:
            self._start()
        else:
            self._tell(lambda process: process.publish(listener, port, way_in))
        if self._process is None:
            raise UnavailableError(self.failure or "the sandbox's proxy could not be started", self._hint)

    def answer(self, number: int, choice: str, reason: str = "") -> None:
        """Answer a question."""
        self._tell(lambda process: process.answer(number, choice, reason))

    def pump(self) -> tuple[News, ...]:
        """Take what the proxy process has to say; start it if somebody waits for it."""
        process = self._process
        if process is None:
            if self._is_wanted():
                self._start()
            return ()
        said = process.receive()
        if process.is_gone():
            self._lose()
        return said

    def close(self) -> tuple[News, ...]:
        """End the proxy process, and return the last that it said."""
        process, self._process = self._process, None
        said: tuple[News, ...] = ()
        if process is not None:
            self._walls.unwatch(process.fileno())
            said = process.close()
        self._give_up()
        for listener, _, way_in in self._published:
            os.close(listener)
            os.close(way_in)
        self._published.clear()
        self._credentials.clear()
        return said

    def _variables(self, credential: Credential) -> dict[str, str]:
        foreign = self._policy is not None and self._policy.sockets.http_proxy_port is not None
        return proxy_variables(
            ProxyPorts(*self._walls.ports()),
            None if foreign else credential,
            self._inherited,
            transparent=not self._walls.unrouted(),
        )

    def _take_up(self, new: tuple[Entrance, ...]) -> None:
        """Serve entrances that are new, or wait for somebody to come to them."""
        if self._process is not None:
            self._tell(lambda process: _serve(process, new))
        elif self._watched:
            self._wait_at(entrance.descriptor for entrance in new)
        elif self._is_open() and not self._hasty:
            self._start()
        else:
            self._look_ahead()
            self._wait()

    def _look_ahead(self) -> None:
        """See now what would keep the proxy from being started: who runs one command hears of it no other way."""
        named = any(self._host.get(name) or self._host.get(name.upper()) for name in _UPSTREAM)
        if named and self._is_open():
            from stockade.network.upstream import Upstreams

            try:
                Upstreams.from_environment(self._host)
            except StockadeError as error:
                self.failure, self._hint = error.message, error.hint

    def _is_open(self) -> bool:
        """Tell whether any connection could be let through."""
        return self._can_ask or (self._policy is not None and bool(self._policy.network.allowed))

    def _is_wanted(self) -> bool:
        """Tell whether somebody has connected, and waits."""
        if not self._watched:
            return False
        poller = select.poll()
        for descriptor in self._watched:
            poller.register(descriptor, select.POLLIN)
        return bool(poller.poll(0))

    def _wait(self) -> None:
        """Have this looked at again when somebody connects."""
        self._wait_at(entrance.descriptor for entrance in self._entrances)
        self._wait_at(listener for listener, _, _ in self._published)

    def _wait_at(self, descriptors: Iterable[int]) -> None:
        for descriptor in descriptors:
            self._walls.watch(descriptor)
            self._watched.append(descriptor)

    def _wait_no_more(self) -> None:
        while self._watched:
            self._walls.unwatch(self._watched.pop())

    def _tell(self, say: Callable[[ProxyProcess], None]) -> None:
        """Tell the proxy process something, if there is one; the next one is told everything that still holds."""
        if self._process is not None:
            try:
                say(self._process)
            except UnavailableError:
                self._lose()

    def _start(self) -> None:
        from stockade.network.proxy_process import ProxyProcess

        self._wait_no_more()
        try:
            process = ProxyProcess.start(self._settings())
        except StockadeError as error:
            self.failure, self._hint = error.message, error.hint or _HINT
            self._fail()
            return
        self._process = process
        self._began = time.monotonic()
        self._walls.watch(process.fileno())
        self._tell(self._introduce)

    def _introduce(self, process: ProxyProcess) -> None:
        for credential, command in self._credentials.items():
            process.add(credential, command)
        _serve(process, self._entrances)
        for published in self._published:
            process.publish(*published)

    def _settings(self) -> ProxySettings:
        from stockade.network.proxy_process import ProxySettings

        if self._policy is None:
            return ProxySettings()
        return ProxySettings(
            rules=self._policy.network,
            can_ask=self._can_ask,
            environment=self._host,
            name_servers=self._name_servers,
            http_port=self._policy.sockets.http_proxy_port,
            socks_port=self._policy.sockets.socks_proxy_port,
        )

    def _lose(self) -> None:
        """Let a proxy process go that was killed."""
        process, self._process = self._process, None
        if process is not None:
            self._walls.unwatch(process.fileno())
            process.close()
        if time.monotonic() - self._began >= _SHORT_LIFE:
            self._deaths = 0
        self._fail()

    def _fail(self) -> None:
        """Try again with the next connection, but not for ever."""
        self._deaths += 1
        if self._deaths < _MOST_DEATHS:
            self._wait()
            return
        self.failure = f"there is no network: {self.failure or 'the proxy of this session ends as soon as it starts'}"
        self._give_up()

    def _give_up(self) -> None:
        """Serve no entrance any more: what connects there is refused."""
        self._wait_no_more()
        for entrance in self._entrances:
            os.close(entrance.descriptor)
        self._entrances.clear()


def _serve(process: ProxyProcess, entrances: Iterable[Entrance]) -> None:
    from stockade.network.proxy_process import Listeners

    for entrance in entrances:
        place = entrance.descriptor
        process.serve(
            Listeners(
                http=place if entrance.kind == "http" else None,
                socks=place if entrance.kind == "socks" else None,
                transparent=(place,) if entrance.kind == "transparent" else (),
                name_udp=(place,) if entrance.kind == "name-udp" else (),
                name_tcp=(place,) if entrance.kind == "name-tcp" else (),
                host=((place, entrance.address, entrance.port),) if entrance.kind == "host" else (),
            )
        )

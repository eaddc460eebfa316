"""The proxy process, from within: everything that lets connections out of a session, or into it, at work.

Started by ``proxy_process`` as ``python -I -S`` with the link to its owner as descriptor 3. Its sockets come over the
link, made in the session's own network; it makes none of its own that listen.

Rules: it ends when the link does, or its owner, by whatever signal; what it had only counted it tells first, if
somebody still reads. What the owner says is believed; a message that cannot be read ends it, for rules that are half
known protect nobody. Whatever a connection brings ends no more than that connection.

Who makes a connection is known by its credential. Transparent connections and names carry none: they are the command's
that is alone at work, and nobody's if there are several.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket
import sys
from contextlib import suppress

from stockade.annotation import TYPE_CHECKING, Final
from stockade.network import proxy_message, refusal
from stockade.network.carrier import Carrier
from stockade.network.credentials import Entrance, Tokens
from stockade.network.dial import dial
from stockade.network.fake_address import FakeAddresses
from stockade.network.gate import AskingLimits, Gate
from stockade.network.hardening import harden, raise_file_limit
from stockade.network.interfaces import OwnAddresses
from stockade.network.limits import Admissions, ProxyLimits
from stockade.network.link import Link
from stockade.network.local_route import leads_here
from stockade.network.name_server import NameServer
from stockade.network.outlet import Opened, Outlet
from stockade.network.owner import Owner
from stockade.network.porter import Porter
from stockade.network.proxy import Proxy
from stockade.network.proxy_message import ProxySettings
from stockade.network.resolver import Resolver, system_lookup
from stockade.network.route import Router
from stockade.network.stream import Stream
from stockade.network.transparent import TransparentProxy
from stockade.network.upstream import Upstreams
from stockade.policy.decision import Verdict
from stockade.policy.host import Host
from stockade.policy.port import Port

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from stockade.network.carrier import Reach
    from stockade.network.link import Message
    from stockade.network.resolver import Lookup
    from stockade.network.service import Visit

LINK: Final = 3
_LAST_WORDS_SECONDS: Final = 2.0
_MOST_DESCRIPTORS: Final = 1 << 20
_MOST_SEARCHED: Final = 1 << 16
_LOOPBACK: Final = "127.0.0.1"
#: Whom connections to published ports count for, as if for a command of this id.
_FROM_OUTSIDE: Final = "from outside"


def main() -> None:
    """Serve until the link ends; does not return."""
    try:
        _prepare()
        asyncio.run(_serve(Link.adopt(LINK)))
    finally:
        os._exit(1)


def _prepare() -> None:
    # One call on Linux; elsewhere one for each that there could be.
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    os.closerange(LINK + 1, _MOST_DESCRIPTORS if sys.platform == "linux" else min(soft, _MOST_SEARCHED))
    os.chdir("/")
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    with suppress(OSError):  # it was started as one already
        os.setsid()
    raise_file_limit()
    harden()


async def _serve(link: Link) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, _context: None)  # there is nobody to tell, and nothing to write to
    over = asyncio.Event()
    desk = Desk(link, over.set)
    loop.add_reader(link.fileno(), desk.read)
    await over.wait()
    desk.finish()
    os._exit(0)  # at once: thousands of connections need not be closed one by one


class Desk:
    """Does what the owner says, message by message."""

    def __init__(self, link: Link, end: Callable[[], None]) -> None:
        """Take the link, and whom to tell that it is over."""
        self._link = link
        self._end = end
        self._house: House | None = None

    def read(self) -> None:
        """Do what has been said and not yet been done."""
        try:
            for message in self._link.receive_available():
                self._do(message)
        except Exception:  # noqa: BLE001 - whatever it is, it was not done, and nobody knows what else was not
            self._end()
        if self._link.ended:
            self._end()

    def finish(self) -> None:
        """Tell what was only counted."""
        if self._house is not None:
            self._house.finish()

    def _do(self, message: Message) -> None:
        if self._house is None:
            if message.kind != proxy_message.SETTINGS:
                raise ValueError(message.kind)
            settings = ProxySettings.read(message)
            self._house = House(settings, Owner(self._link), self.read)
            for owner in message.descriptors:
                asyncio.get_running_loop().add_reader(owner, self._end)
            return
        self._house.do(message)


class House:
    """All services of one session, sharing one judge, one way out, and one count of connections."""

    def __init__(self, settings: ProxySettings, owner: Owner, read: Callable[[], None]) -> None:
        """Build them; ``read`` does what the owner has said and was not yet done."""
        self._settings = settings
        self._owner = owner
        self._read = read
        self._tokens = Tokens()
        self._commands: dict[str, str] = {}
        self._porters: dict[tuple[int, int], Porter] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._limits = ProxyLimits().within(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        self._admissions = Admissions(self._limits)
        self.outlet = _outlet(settings, owner)
        names = FakeAddresses()
        self._proxy = Proxy(self.outlet, Entrance(self.authenticate), limits=self._limits, admissions=self._admissions)
        self._transparent = TransparentProxy(
            self.outlet,
            names,
            _original,
            whose=lambda _connection: self.whose(),
            limits=self._limits,
            admissions=self._admissions,
        )
        self._names = NameServer(self.outlet, names, whose=self.whose, limits=self._limits, admissions=self._admissions)

    def do(self, message: Message) -> None:
        """Do one thing. Raises if it is none."""
        _DEEDS[message.kind](self, message)

    def authenticate(self, user: str, token: str) -> str | None:
        """Return whose credential this is; one that was told of this very moment counts."""
        command = self._tokens.authenticate(user, token)
        if command is None:
            self._read()
            command = self._tokens.authenticate(user, token)
        return command

    def whose(self) -> str:
        """Return the command that is alone at work."""
        return next(iter(self._commands.values())) if len(self._commands) == 1 else ""

    def finish(self) -> None:
        """Tell what was only counted."""
        self.outlet.close()
        self._owner.finish(_LAST_WORDS_SECONDS)

    def listen(self, message: Message) -> None:
        """Serve on one more socket."""
        role, descriptor, address, port = proxy_message.read_listener(message)
        listener = socket.socket(fileno=descriptor)
        self._start(self._service(role, address, port)(listener))

    def publish(self, message: Message) -> None:
        """Carry what connects to a listener to a port inside."""
        listener, port, porter_descriptor = proxy_message.read_publish(message)
        porter = self._porter(socket.socket(fileno=porter_descriptor))
        self._start(self._carrier(lambda visit: _inward(visit, porter, port)).serve(socket.socket(fileno=listener)))

    def add(self, message: Message) -> None:
        """Let a credential mean a command."""
        credential, command = proxy_message.read_add(message)
        self._tokens.add(credential, command)
        self._commands[credential.user] = command

    def revoke(self, message: Message) -> None:
        """Let a credential mean nobody."""
        credential = proxy_message.read_revoke(message)
        self._tokens.revoke(credential)
        self._commands.pop(credential.user, None)

    def update(self, message: Message) -> None:
        """Use other rules."""
        self.outlet.update(proxy_message.read_update(message))

    def answer(self, message: Message) -> None:
        """Pass an answer on."""
        self._owner.answer(*proxy_message.read_answer(message))

    def _service(self, role: bytes, address: str, port: int) -> Callable[[socket.socket], Coroutine[None, None, None]]:
        elsewhere = {proxy_message.HTTP: self._settings.http_port, proxy_message.SOCKS: self._settings.socks_port}
        other = elsewhere.get(role)
        if other is not None:
            told = refusal.no_other_proxy(_LOOPBACK, other).render(cut_short=True)  # who asks was not heard: maybe curl
            words = told if role == proxy_message.HTTP else b""
            return self._carrier(lambda visit: self._to_other_proxy(visit, other), words).serve
        if role == proxy_message.HOST:
            return self._carrier(lambda visit: self._to_host(visit, address, port)).serve
        return {
            proxy_message.HTTP: self._proxy.serve,
            proxy_message.SOCKS: self._proxy.serve,
            proxy_message.TRANSPARENT: self._transparent.serve,
            proxy_message.NAME_UDP: self._names.serve_udp,
            proxy_message.NAME_TCP: self._names.serve_tcp,
        }[role]

    def _carrier(self, reach: Reach, words: bytes = b"") -> Carrier:
        return Carrier(reach, limits=self._limits, admissions=self._admissions, words=words)

    def _porter(self, connection: socket.socket) -> Porter:
        """Return the porter of a connection; the same one if it has come before."""
        porter = Porter(connection)
        known = self._porters.setdefault(porter.place, porter)
        if known is not porter:
            porter.close()
        return known

    async def _to_other_proxy(self, visit: Visit, port: int) -> Stream | None:
        return None if visit.ticket.bind(self.whose()) else await _connect(_LOOPBACK, port)

    async def _to_host(self, visit: Visit, address: str, port: int) -> Stream | None:
        """Connect to a port of the host, if the rules that hold now allow it."""
        command = self.whose()
        if visit.ticket.bind(command):
            return None
        caller = self.outlet.gate.caller(command)
        decision = await self.outlet.decide(caller, address, port)
        if decision.verdict is not Verdict.ALLOW:
            return None
        opened = await self.outlet.open(caller, decision)
        return opened.stream if isinstance(opened, Opened) else None

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


_DEEDS: Final = {
    proxy_message.LISTEN: House.listen,
    proxy_message.PUBLISH: House.publish,
    proxy_message.ADD: House.add,
    proxy_message.REVOKE: House.revoke,
    proxy_message.UPDATE: House.update,
    proxy_message.ANSWER: House.answer,
}


def _outlet(settings: ProxySettings, owner: Owner) -> Outlet:
    ask = owner.ask if settings.can_ask else None
    limits = AskingLimits(seconds=settings.ask_seconds)
    gate = Gate(settings.rules, ask, limits=limits, own=OwnAddresses(), leads_here=leads_here)
    upstreams = Upstreams.from_environment(settings.environment)
    return Outlet(gate, Router(gate, Resolver(_lookup(settings)), upstreams), owner.report)


def _lookup(settings: ProxySettings) -> Lookup:
    if not settings.name_servers:
        return system_lookup
    from stockade.network.dns_client import DnsClient

    return DnsClient(settings.name_servers)


def _original(connection: socket.socket) -> tuple[str, int]:
    from stockade.network.original_destination import original_destination

    return original_destination(connection)


async def _inward(visit: Visit, porter: Porter, port: int) -> Stream | None:
    return None if visit.ticket.bind(_FROM_OUTSIDE) else await porter.reach(port)


async def _connect(address: str, port: int) -> Stream:
    stream = Stream()
    connection = await dial((Host.parse(address),), Port(port))
    try:
        await asyncio.get_running_loop().create_connection(lambda: stream, sock=connection)
    except BaseException:
        connection.close()
        raise
    return stream

"""What a client says first in a tunnel: if that is TLS, it must name the server that the tunnel is for.

Who may reach one name of a content network could else reach every other there, by asking for a tunnel to the first and
for a certificate of the second.

Rules: what a server might take for TLS by its first bytes is TLS (``client_flight``); what is too short to tell is held
back. Of TLS nothing goes out before a whole hello is there and is right, and the client is looked at until the server
has answered for good (``server_flight``) and the client goes on from there, because a server that asks for a second
hello takes the name from that. Every hello gives the same name, or gives none. TLS that names no server goes out.
Whatever begins otherwise goes out at once and is not looked at again; so does everything if the server speaks first: a
server of TLS never does. That leaves protocols that turn to TLS later (STARTTLS), and the hello of SSL 2, which has no
place for a name. A tunnel to an address has no name to be held against.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING
from stockade.errors import InvalidTextError
from stockade.escape import escape
from stockade.network.client_flight import ClientFlight, Refused, begins_tls
from stockade.network.server_flight import ServerFlight
from stockade.policy.host import Host

if TYPE_CHECKING:
    from collections.abc import Callable

    from stockade.network.server_name import Hello
    from stockade.policy.destination import Destination


class Screen:
    """Stands before one tunnel to a name. ``done`` says that nothing more needs to be looked at."""

    __slots__ = ("_client", "_destination", "_first", "_head", "_refused", "_server", "_tell", "done")

    def __init__(self, destination: Destination, tell: Callable[[str], None]) -> None:
        """Take what the tunnel is for, and who hears why it must not go on."""
        self.done = False
        self._destination = destination
        self._tell = tell
        self._head = b""  # what is too short to tell whether it is TLS
        self._client: ClientFlight | None = None
        self._server: ServerFlight | None = None
        self._first: Hello | None = None
        self._refused = False

    @property
    def holds(self) -> bool:
        """Whether something of the client is held back."""
        return bool(self._head) or (self._client is not None and self._client.holds)

    def receive(self, data: bytes) -> bytes | None:
        """Take bytes of the client; return those that may go on now, or ``None`` if the tunnel must end."""
        if self._client is None:
            data, self._head = self._head + data, b""
            is_tls = begins_tls(data)
            if is_tls is None:
                self._head = data
                return b""
            if not is_tls:
                self.done = True
                return data
            self._client = ClientFlight(self._judge)
        passed = self._client.receive(data)
        if isinstance(passed, Refused):
            self._refuse(passed.why)
            return None
        self._settle()
        return passed

    def hear(self, data: bytes) -> None:
        """Take bytes of the server, which go on whatever they are."""
        if self._server is None:
            self._server = ServerFlight()
        self._server.receive(data)
        self._settle()

    def end(self) -> bool:
        """Take the end of what the client says; return whether it may go on: not if a hello lacks its end.

        What is too short to tell goes on: there is no hello in it.
        """
        if self._client is not None and self._client.holds:
            self._refuse("its TLS hello cannot be read: it ends in the midst")
            return False
        self.done = True
        return True

    def rest(self) -> bytes:
        """Return what is held back, once it is done, and forget it."""
        head, self._head = self._head, b""
        return head if self._client is None else self._client.rest()

    def _settle(self) -> None:
        """Be done once the server has answered and hears no other hello.

        What it says without having heard the hello that is on its way is no answer.
        """
        server, client = self._server, self._client
        if server is None or not server.answered:
            return
        if client is None:
            self.done = not self._head
        elif client.has_said_hello:
            self.done = not server.said_hello or client.answer()

    def _refuse(self, why: str) -> None:
        if not self._refused:
            self._refused = True
            self._tell(why)

    def _judge(self, hello: Hello) -> str:
        """Say why a hello must not go on, or nothing."""
        name, first = hello.host_text, self._first
        if first is None:
            self._first = hello
            return "" if name is None or self._is_right(name) else f'its TLS server name is "{escape(name)}"'
        if name == first.host_text:
            return ""
        return "its second TLS hello names " + ("no server" if name is None else f'another server: "{escape(name)}"')

    def _is_right(self, name: str) -> bool:
        if name == self._destination.host.text:
            return True
        try:
            return Host.parse(name) == self._destination.host
        except InvalidTextError:
            return False

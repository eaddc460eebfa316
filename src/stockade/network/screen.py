"""What a client says first in a tunnel: if that is TLS, it must name the server that the tunnel is for.

Who may reach one name of a content network could else reach every other there, by asking for a tunnel to the first and
for a certificate of the second.

Rules: nothing of a TLS hello goes out before all of it is there and is right. Whatever is not TLS goes out at once, and
so does TLS that names no server. A tunnel to an address has no name to be held against. What comes later is not looked
at: nothing is decrypted.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import InvalidTextError
from stockade.escape import escape
from stockade.network.server_name import Malformed, Name, NeedMore, ServerNameReader
from stockade.policy.host import Host, HostKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from stockade.network.server_name import Finding
    from stockade.policy.destination import Destination

_TLS: Final = 22


def mismatch(finding: Finding, destination: Destination) -> str:
    """Say why a connection must not go on, or nothing."""
    if isinstance(finding, Malformed):
        return f"its TLS hello cannot be read: {finding.why}"
    if not isinstance(finding, Name) or destination.host.kind is not HostKind.NAME:
        return ""
    try:
        named = Host.parse(finding.host_text)
    except InvalidTextError:
        named = None
    return "" if named == destination.host else f'its TLS server name is "{escape(finding.host_text)}"'


class Screen:
    """Stands before one tunnel to a name. ``done`` says that nothing more needs to be looked at."""

    __slots__ = ("_destination", "_held", "_reader", "_tell", "done")

    def __init__(self, destination: Destination, tell: Callable[[str], None]) -> None:
        """Take what the tunnel is for, and who is told why it must not go on."""
        self.done = False
        self._destination = destination
        self._tell = tell
        self._held = bytearray()
        self._reader: ServerNameReader | None = None

    def receive(self, data: bytes) -> bytes | None:
        """Take bytes of the client; return those that may go on now, or ``None`` if the tunnel must end."""
        if self._reader is None:
            if data[0] != _TLS:
                self.done = True
                return data
            self._reader = ServerNameReader()
        self._held += data
        finding = self._reader.receive(data)
        if isinstance(finding, NeedMore):
            return b""
        self.done = True
        why = mismatch(finding, self._destination)
        if why:
            self._tell(why)
            return None
        return self.rest()

    def rest(self) -> bytes:
        """Return what is held back, and forget it: no server makes anything of half a hello that has ended."""
        rest = bytes(self._held)
        self._held.clear()
        return rest

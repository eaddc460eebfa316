"""What a TLS server answers in plain, as far as it tells whether the server still listens to a hello.

Servers of OpenSSL 3.0, Node 20 and Go 1.19 were tried: once they have sent their own hello, in TLS 1.2 and 1.3, they
take a hello of the client in plain for an error. Others were not; OpenSSL before 1.1 is known to take one
(``client_flight``). What is renegotiated later is encrypted. A hello retry request looks like a server's hello but for
its random, and asks for one more.

``receive`` returns whether the server has answered: it has said hello (``said_hello``), or speaks something else than
TLS, or is further on. Alerts (of the kind that only warns), the change of cipher behind a retry request and requests
for a hello say nothing.

A record is looked at once it is whole: no client can act on less of it.

Source of truth: RFC 8446 sections 4.1.3 and 4.1.4, appendix D.4.
"""

from __future__ import annotations

from stockade.annotation import Final
from stockade.network.client_flight import (
    APPLICATION,
    HANDSHAKE,
    KINDS,
    LARGEST,
    MESSAGE_HEAD,
    RECORD_HEAD,
    VERSION,
)

_SERVER_HELLO: Final = 2
_RANDOM: Final = slice(MESSAGE_HEAD + 2, MESSAGE_HEAD + 34)
#: SHA-256 of "HelloRetryRequest": RFC 8446 section 4.1.3.
RETRY: Final = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")


class ServerFlight:
    """Reads one server."""

    __slots__ = ("_message", "_records", "answered", "said_hello")

    def __init__(self) -> None:
        """Wait for the first record."""
        self.answered = False
        self.said_hello = False
        self._records = bytearray()
        self._message = bytearray()

    def receive(self, data: bytes) -> bool:
        """Take bytes of the server; return whether it has answered."""
        if not self.answered:
            self._records += data
            self.answered = self._look()
        return self.answered

    def _look(self) -> bool:
        records = self._records
        while records:
            if records[0] not in KINDS or records[0] == APPLICATION:
                return True
            if len(records) < RECORD_HEAD:
                return False
            if records[1] != VERSION:
                return True
            end = RECORD_HEAD + int.from_bytes(records[3:RECORD_HEAD], "big")
            if len(records) < end:
                return False
            if records[0] == HANDSHAKE:
                self._message += records[RECORD_HEAD:end]
                if self._read_messages():
                    return True
            del records[:end]
        return False

    def _read_messages(self) -> bool:
        message = self._message
        while len(message) >= MESSAGE_HEAD:
            size = MESSAGE_HEAD + int.from_bytes(message[1:MESSAGE_HEAD], "big")
            if size > LARGEST:
                return True
            can_tell = message[0] == _SERVER_HELLO and len(message) >= min(size, _RANDOM.stop)
            if can_tell and message[_RANDOM] != RETRY:
                self.said_hello = True
                return True
            if len(message) < size:
                return False
            del message[:size]
        return False

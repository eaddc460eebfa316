"""Who makes a connection: the credential in a command's proxy variables, and what becomes of it.

Rules: a credential is made for one command, and means that command until it is taken back. Its user is the command's
id where every program can carry that unquoted, else a made-up one. Credentials that are given must be right, whether
any must be given or not. Tokens are compared in constant time, and are shown nowhere.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable

from stockade.annotation import TYPE_CHECKING, Final, TypeAlias
from stockade.errors import InvalidTextError
from stockade.network.environment import Credential

if TYPE_CHECKING:
    from stockade.network.http_message import Credentials

#: Takes user and token, returns the id of the command, or ``None`` if they are wrong.
Authenticate: TypeAlias = Callable[[str, str], "str | None"]

_TOKEN_BYTES: Final = 24
_LONGEST_USER: Final = 64


class Tokens:
    """The credentials that hold now."""

    def __init__(self) -> None:
        """Begin with none."""
        self._known: dict[str, tuple[bytes, str]] = {}

    def issue(self, command: str) -> Credential:
        """Make a credential for a command."""
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        try:
            fits = len(command) <= _LONGEST_USER and command not in self._known
            credential = Credential(command if fits else "", token)
        except InvalidTextError:
            credential = Credential(secrets.token_urlsafe(_TOKEN_BYTES), token)
        self.add(credential, command)
        return credential

    def add(self, credential: Credential, command: str) -> None:
        """Let a credential that was made elsewhere mean a command."""
        self._known[credential.user] = (credential.token.encode(), command)

    def revoke(self, credential: Credential) -> None:
        """Let it mean nobody."""
        self._known.pop(credential.user, None)

    def authenticate(self, user: str, token: str) -> str | None:
        """Return whose credential this is, ``None`` if it is nobody's."""
        expected, command = self._known.get(user, (b"", ""))
        right = hmac.compare_digest(expected, token.encode("utf-8", "surrogatepass"))
        return command if right and expected else None


class Entrance:
    """Decides whose connection it is."""

    def __init__(self, authenticate: Authenticate | None = None, *, must_authenticate: bool | None = None) -> None:
        """Without ``authenticate`` nobody has a name; with it everybody must, unless said otherwise."""
        self._authenticate = authenticate
        self.must_authenticate = authenticate is not None if must_authenticate is None else must_authenticate

    def command_of(self, given: Credentials | None) -> str | None:
        """Return the command, empty if it does not matter which, or ``None`` if it is not to be served."""
        if given is None or self._authenticate is None:
            return None if self.must_authenticate else ""
        return self._authenticate(given.username, given.password)

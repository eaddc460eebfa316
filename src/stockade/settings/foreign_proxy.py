"""A proxy that is not ours, against domains that the administrator denies.

Deny rules of the policy layer always hold, lock or no lock. But what goes through a proxy of somebody else
(``httpProxyPort``, ``socksProxyPort``) is not filtered here. So where the policy layer denies domains, only that layer
itself can name such a proxy: of a lower file it does not count, and the command line is refused aloud.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import LockedError
from stockade.escape import escape
from stockade.settings.catalog import DENIED_DOMAINS, DENY, HTTP_PROXY_PORT, SOCKS_PROXY_PORT
from stockade.settings.layer import Layer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stockade.settings.document import Document
    from stockade.settings.layer import Origin
    from stockade.settings.merge import Settings

_PORTS: Final = (HTTP_PROXY_PORT, SOCKS_PROXY_PORT)
#: The tool whose rules are about domains; what precisely they say does not matter here.
_TOOL: Final = "webfetch"


def find_deny(documents: Iterable[Document]) -> Origin | None:
    """Return where the policy layer denies domains, if it does."""
    for document in documents:
        if document.layer is not Layer.POLICY:
            continue
        if document.get(DENIED_DOMAINS):
            return document.origin(DENIED_DOMAINS)
        if any(rule.strip().lower().startswith(_TOOL) for rule in document.get(DENY) or ()):
            return document.origin(DENY)
    return None


def without_foreign_proxy(document: Document, deny: Origin) -> tuple[Document, str]:
    """Return a document of a lower layer without proxies of others, and a warning if it named one."""
    names = [key.name for key in _PORTS if key.name in document.values]
    if not names or document.layer >= Layer.POLICY:
        return document, ""
    values = {name: value for name, value in document.values.items() if name not in names}
    why = f"{deny} denies domains, and a proxy of somebody else does not know them"
    return document.but(values=values), f"{escape(document.file)}: ignored: {', '.join(names)}; {why}"


def require_ours(document: Document, deny: Origin | None, below: Settings) -> None:
    """Raise LockedError if a command-line document names a proxy that the policy layer has not named itself."""
    for key in _PORTS if deny is not None else ():
        if key.name in document.values and document.values[key.name] != below.get(key):
            who = escape(document.file) or "the command line"
            message = (
                f"{who} sets {key.name}, but {deny} denies domains, and a proxy of somebody else does not know them"
            )
            raise LockedError(message, "Leave the proxy out, or ask the administrator of this machine to name it.")

"""A host in its one canonical form, used for the check and for the dial alike.

Two programs that read one spelling differently are how a filter is passed, so each host has exactly
one spelling here, and whatever does not have one is refused:

- names: lower case, no trailing dot, international labels in their ``xn--`` form (UTS 46 mapping, then
  IDNA 2008). An ``xn--`` label must be the very one that its decoded form encodes to;
- IPv4: dotted quad. One to four parts, decimal, octal or hexadecimal, are what ``inet_aton`` takes, and
  are read as it does. A name whose last label is a number is an IPv4 address or nothing;
- IPv6: compressed, lower case, no brackets; IPv4-mapped addresses are that IPv4; zones are refused.

Mapping comes first, so that full-width digits and dots meet the same tests as plain ones. Characters
that nobody sees are refused although UTS 46 would drop them; the few names that need a joiner can be
written in ``xn--`` form. Symbols (emoji) are no letters in IDNA 2008: refused in both forms.

Underscores: ``my_bucket.s3.amazonaws.com``, ``_dmarc.example.com`` and single names of container networks
(``my_db``) do resolve and are taken. No top-level domain has one, and IDNA forbids them beside
international letters: refused there.

``localhost`` is a name and 127.0.0.1 an address: they are two hosts, and a rule on one says nothing of
the other. What a name resolves to is judged by whoever resolves it.

Source of truth: RFC 1123, RFC 5891, UTS 46, RFC 5952, inet_aton(3), the WHATWG URL standard (hosts that
end in a number).
"""

from __future__ import annotations

from stockade.annotation import Final
from stockade.enumeration import Enum
from stockade.errors import InvalidTextError
from stockade.escape import escape, visible
from stockade.value import Value

_LONGEST_NAME: Final = 253
_LONGEST_LABEL: Final = 63
# Decomposed letters shrink when mapped, so a longer text may still be a name; work on it stays bounded.
_LONGEST_TEXT: Final = 4 * _LONGEST_NAME
_ACE: Final = "xn--"
_NAME_CHARACTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_.")
_HEXADECIMAL: Final = frozenset("0123456789abcdef")
_OCTAL: Final = frozenset("01234567")
_IPV4_PARTS: Final = 4

_HINT: Final = "write a host name such as api.example.com, or an IP address"
_KNOWN_INTRUDERS: Final = {
    " ": "it has a space",
    "%": "it has a percent sign",
    "/": "it has a slash",
    "\\": "it has a backslash",
    "@": "it has an @, which would put a user name before the host",
    ":": "it has a colon",
    "*": "it has a *",
}


class HostKind(Enum):
    """What sort of host it is."""

    NAME = "name"
    IPV4 = "IPv4 address"
    IPV6 = "IPv6 address"


class Host(Value):
    """A name or address in canonical form. Build it with ``Host.parse``."""

    text: str
    kind: HostKind

    def __str__(self) -> str:
        """Return the canonical text, IPv6 in brackets, as it stands in patterns and URLs."""
        return f"[{self.text}]" if self.kind is HostKind.IPV6 else self.text

    @classmethod
    def parse(cls, text: str) -> Host:
        """Read a host in any spelling, or raise ``InvalidTextError``."""
        if not text:
            message = "the host is empty"
            raise InvalidTextError(message, _HINT)
        if len(text) > _LONGEST_TEXT:
            raise _not_a_host(text, "it is too long")
        if text.startswith("[") or text.count(":") > 1:
            return _ipv6(text)
        mapped = _mapped(text)
        name = mapped.removesuffix(".")
        labels = name.split(".")
        if "" in labels:
            raise _not_a_host(text, "a label is empty")
        if _is_number(labels[-1]):
            return cls(_ipv4(text, labels), HostKind.IPV4)
        return cls(_name(text, labels), HostKind.NAME)


def _not_a_host(text: str, why: str, hint: str = _HINT) -> InvalidTextError:
    return InvalidTextError(f'"{escape(text)}" is not a host: {why}', hint)


def _mapped(text: str) -> str:
    """Lower the case and apply UTS 46, so that what follows sees each character in its one form."""
    unseen = next((char for char in text if not visible(char)), None)
    if unseen is not None:
        raise _not_a_host(text, f"it has the invisible character U+{ord(unseen):04X}")
    if text.isascii():
        mapped = text.lower()
    else:
        import idna  # 10 ms that only international names need

        try:
            mapped = idna.uts46_remap(text, std3_rules=False)
        except ValueError:
            raise _not_a_host(text, "it has a character that no international name may have") from None
    for char in mapped:
        if char.isascii() and char not in _NAME_CHARACTERS:
            why = _KNOWN_INTRUDERS.get(char, f'it has the character "{escape(char)}"')
            raise _not_a_host(text, why, "leave the port out" if char == ":" else _HINT)
    return mapped


def _name(text: str, labels: list[str]) -> str:
    if len(labels) > 1 and "_" in labels[-1]:
        raise _not_a_host(text, "its last label has an underscore, and no top-level domain does")
    name = ".".join(_label(text, label) for label in labels)
    if len(name) > _LONGEST_NAME:
        raise _not_a_host(text, f"it is longer than {_LONGEST_NAME} bytes")
    return name


def _label(text: str, label: str) -> str:
    if label.startswith("-") or label.endswith("-"):
        raise _not_a_host(text, "a label begins or ends with a hyphen")
    if not label.isascii() or label.startswith(_ACE):
        label = _international(text, label)
    if len(label) > _LONGEST_LABEL:
        raise _not_a_host(text, f"a label is longer than {_LONGEST_LABEL} bytes")
    return label


def _international(text: str, label: str) -> str:
    """Return the ``xn--`` form of a label; one that is in this form already must be the right one."""
    import idna  # 10 ms that only international names need

    try:
        decoded = idna.ulabel(label)
        encoded = idna.alabel(decoded).decode("ascii")
    except ValueError:
        raise _not_a_host(text, f'"{escape(label)}" is not a valid international label') from None
    # New releases of idna check this themselves; the oldest that we accept do not.
    if decoded.isascii() or (label.isascii() and encoded != label):
        raise _not_a_host(text, f'"{escape(label)}" is a false spelling of "{escape(decoded)}"')
    return encoded


def _is_number(label: str) -> bool:
    """Say whether a last label makes the whole an IPv4 address, well-formed or not."""
    if label.startswith("0x"):
        return _HEXADECIMAL.issuperset(label[2:])
    return label.isascii() and label.isdigit()


def _ipv4(text: str, parts: list[str]) -> str:
    if len(parts) > _IPV4_PARTS:
        raise _not_a_host(text, "its last label is a number, but an IPv4 address has at most four parts")
    *leading, last = (_ipv4_part(text, part) for part in parts)
    free_bytes = _IPV4_PARTS - len(leading)
    if any(part > 0xFF for part in leading) or last >= 1 << 8 * free_bytes:  # noqa: PLR2004 (a byte)
        raise _not_a_host(text, "a part of its IPv4 address is too large")
    return ".".join(map(str, (*leading, *last.to_bytes(free_bytes, "big"))))


def _ipv4_part(text: str, part: str) -> int:
    if len(part) <= _LONGEST_LABEL:
        if part.startswith("0x") and len(part) > len("0x") and _HEXADECIMAL.issuperset(part[2:]):
            return int(part, 16)
        if part.startswith("0") and _OCTAL.issuperset(part):
            return int(part, 8)
        if part.isascii() and part.isdigit() and not part.startswith("0"):
            return int(part)
    raise _not_a_host(text, f'its last label is a number, but "{escape(part)}" is no part of an IPv4 address')


def _ipv6(text: str) -> Host:
    if "%" in text:
        raise _not_a_host(text, "it has a percent sign", "leave out the zone of the IPv6 address")
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    from ipaddress import IPv6Address  # rare, and slow to import

    try:
        address = IPv6Address(bare)
    except ValueError:
        raise _not_a_host(text, "it is no IPv6 address") from None
    if address.ipv4_mapped is not None:
        return Host(str(address.ipv4_mapped), HostKind.IPV4)
    return Host(address.compressed, HostKind.IPV6)

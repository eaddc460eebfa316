"""What the owner of a session and its proxy process say to each other.

The owner: settings (first), listeners, publish, add, revoke, update, answer. The proxy: refused, question, withdrawn.

Rules: pure; the same type writes and reads. What a proxy says is read as if a stranger had said it: numbers within
bounds, reasons from the known ones, texts cut and made safe to show. What cannot be read raises ``ValueError``, or
the error of the text that is wrong.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.escape import legible
from stockade.network.environment import Credential
from stockade.network.link import Message, pack, unpack
from stockade.policy.decision import Reason
from stockade.policy.domain_pattern import DomainPattern
from stockade.policy.host import Host
from stockade.policy.network_rules import NetworkRules
from stockade.settings.layer import Layer, Origin, Sourced
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stockade.policy.decision import NetworkDecision

SETTINGS: Final = b"s"
LISTEN: Final = b"l"
PUBLISH: Final = b"p"
ADD: Final = b"a"
REVOKE: Final = b"r"
UPDATE: Final = b"u"
ANSWER: Final = b"y"
REFUSED: Final = b"R"
QUESTION: Final = b"Q"
WITHDRAWN: Final = b"W"

HTTP: Final = b"h"
SOCKS: Final = b"s"
TRANSPARENT: Final = b"t"
NAME_UDP: Final = b"u"
NAME_TCP: Final = b"n"
HOST: Final = b"o"

#: What of the environment says which proxy stands between this host and the world.
UPSTREAM_VARIABLES: Final = frozenset(
    spelt for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy") for spelt in (name, name.upper())
) | {"REQUEST_METHOD"}
_LONGEST_TEXT: Final = 2048
_LARGEST_PORT: Final = 65535
_MOST_DIGITS: Final = 18
_BRACKETS: Final = str.maketrans({"<": "\\x3c", ">": "\\x3e"})


class ProxySettings(Value):
    """What a proxy is to do.

    ``environment`` says which proxies stand between this host and the world, and is not shown. ``name_servers`` are
    asked instead of the system's resolver. With ``http_port`` or ``socks_port`` what connects to that listener is
    carried to this port of the host, where somebody else's proxy listens, and is not judged.
    """

    rules: NetworkRules = NetworkRules()
    can_ask: bool = False
    environment: Mapping[str, str] = {}
    name_servers: tuple[str, ...] = ()
    http_port: int | None = None
    socks_port: int | None = None
    ask_seconds: float = 120.0

    def __repr__(self) -> str:
        """Show all but the environment, in which passwords stand."""
        shown = self.__dict__ | {"environment": ...}
        return f"ProxySettings({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    def message(self) -> Message:
        """Write it."""
        variables = {name: value for name, value in self.environment.items() if name in UPSTREAM_VARIABLES and value}
        fields = (
            _rules_field(self.rules),
            b"1" if self.can_ask else b"",
            pack(_bytes(text) for pair in variables.items() for text in pair),
            pack(map(_bytes, self.name_servers)),
            b"" if self.http_port is None else b"%d" % self.http_port,
            b"" if self.socks_port is None else b"%d" % self.socks_port,
            repr(float(self.ask_seconds)).encode(),
        )
        return Message(SETTINGS, fields)

    @classmethod
    def read(cls, message: Message) -> ProxySettings:
        """Read it."""
        rules, can_ask, environment, name_servers, http_port, socks_port, ask_seconds = message.fields
        texts = [_text(field) for field in unpack(environment)]
        return cls(
            _rules(rules),
            bool(can_ask),
            dict(zip(texts[::2], texts[1::2], strict=True)),
            tuple(_text(field) for field in unpack(name_servers)),
            _number(http_port, _LARGEST_PORT) if http_port else None,
            _number(socks_port, _LARGEST_PORT) if socks_port else None,
            float(ask_seconds),
        )


class Listeners(Value):
    """Sockets that listen (or, for ``name_udp``, are bound), by their descriptors.

    ``host`` is what leads to a port of the host: descriptor, address and port there.
    """

    http: int | None = None
    socks: int | None = None
    transparent: tuple[int, ...] = ()
    name_udp: tuple[int, ...] = ()
    name_tcp: tuple[int, ...] = ()
    host: tuple[tuple[int, str, int], ...] = ()

    def messages(self) -> Iterator[Message]:
        """Write them, each in a message of its own: a frame cannot carry very many."""
        for role, descriptors in (
            (HTTP, () if self.http is None else (self.http,)),
            (SOCKS, () if self.socks is None else (self.socks,)),
            (TRANSPARENT, self.transparent),
            (NAME_UDP, self.name_udp),
            (NAME_TCP, self.name_tcp),
        ):
            for descriptor in descriptors:
                yield Message(LISTEN, (role,), (descriptor,))
        for descriptor, address, port in self.host:
            yield Message(LISTEN, (HOST, _bytes(address), b"%d" % port), (descriptor,))


class Refused(Value):
    """A refusal, told by the proxy. Every text is one line and safe to show.

    ``reason`` is the name of a ``Reason``, empty where several are told together; ``rule`` and its ``origin`` are empty
    where no rule decided; ``host`` is empty if the request was malformed, and ``port`` 0 if it was about a name alone;
    ``command`` is the id of the command, empty if nobody knows; ``words`` say all of it.
    """

    asked: str
    reason: str
    host: str = ""
    port: int = 0
    rule: str = ""
    origin: str = ""
    detail: str = ""
    remedy: str = ""
    command: str = ""
    times: int = 1
    words: str = ""

    @classmethod
    def of(cls, decision: NetworkDecision, command: str, times: int) -> Refused:
        """Describe a denial."""
        there, rule = decision.destination, decision.rule
        return cls(
            decision.asked,
            decision.reason.name,
            "" if there is None else there.host.text,
            there.port.number if there is not None and decision.asked == str(there) else 0,
            "" if rule is None else str(rule.value),
            "" if rule is None else str(rule.origin),
            decision.detail,
            decision.remedy,
            command,
            times,
            str(decision),
        )

    def message(self) -> Message:
        """Write it."""
        texts = (value if isinstance(value, str) else str(value) for value in self.__dict__.values())
        return Message(REFUSED, tuple(_bytes(text[:_LONGEST_TEXT]) for text in texts))

    @classmethod
    def read(cls, message: Message) -> Refused:
        """Read it."""
        asked, reason, host, port, rule, origin, detail, remedy, command, times, words = message.fields
        reason_name = _shown(reason)
        if reason_name and reason_name not in Reason.__members__:
            raise ValueError(reason_name)
        return cls(
            _shown(asked),
            reason_name,
            _shown(host),
            _number(port, _LARGEST_PORT),
            _shown(rule),
            _shown(origin),
            _shown(detail),
            _shown(remedy),
            _text(command),
            max(1, _number(times)),
            _shown(words),
        )


class Question(Value):
    """Somebody is to be asked whether a command may connect; ``number`` is for the answer."""

    number: int
    host: str
    port: int
    command: str = ""

    def message(self) -> Message:
        """Write it."""
        return Message(QUESTION, (b"%d" % self.number, _bytes(self.host), b"%d" % self.port, _bytes(self.command)))

    @classmethod
    def read(cls, message: Message) -> Question:
        """Read it."""
        number, host, port, command = message.fields
        canonical = Host.parse(_text(host)).text
        return cls(_number(number), canonical, _number(port, _LARGEST_PORT), _text(command))


class Withdrawn(Value):
    """A question needs no answer any more: a rule has settled it, its time is over, or nobody waits."""

    number: int

    def message(self) -> Message:
        """Write it."""
        return Message(WITHDRAWN, (b"%d" % self.number,))

    @classmethod
    def read(cls, message: Message) -> Withdrawn:
        """Read it."""
        (number,) = message.fields
        return cls(_number(number))


def add_message(credential: Credential, command: str) -> Message:
    """Let a credential mean a command."""
    return Message(ADD, (_bytes(credential.user), _bytes(credential.token), _bytes(command)))


def read_add(message: Message) -> tuple[Credential, str]:
    """Read whose credential it is."""
    user, token, command = map(_text, message.fields)
    return Credential(user, token), command


def revoke_message(credential: Credential) -> Message:
    """Let a credential mean nobody."""
    return Message(REVOKE, (_bytes(credential.user), _bytes(credential.token)))


def read_revoke(message: Message) -> Credential:
    """Read which credential."""
    user, token = map(_text, message.fields)
    return Credential(user, token)


def update_message(rules: NetworkRules) -> Message:
    """Use other rules."""
    return Message(UPDATE, (_rules_field(rules),))


def read_update(message: Message) -> NetworkRules:
    """Read the rules."""
    (field,) = message.fields
    return _rules(field)


def answer_message(number: int, choice: str, reason: str) -> Message:
    """Answer a question; the choice is the name of one of ``gate.Choice``."""
    return Message(ANSWER, (b"%d" % number, _bytes(choice), _bytes(reason[:_LONGEST_TEXT])))


def read_answer(message: Message) -> tuple[int, str, str]:
    """Read number, name of the choice, and reason."""
    number, choice, reason = message.fields
    return _number(number), _text(choice), _text(reason)


def publish_message(listener: int, port: int, porter: int) -> Message:
    """Carry what connects to a listener to a port inside."""
    return Message(PUBLISH, (b"%d" % port,), (listener, porter))


def read_publish(message: Message) -> tuple[int, int, int]:
    """Read listener, port and porter."""
    (port,), (listener, porter) = message.fields, message.descriptors
    return listener, _number(port, _LARGEST_PORT), porter


def read_listener(message: Message) -> tuple[bytes, int, str, int]:
    """Read what a listener is for, its descriptor, and the address and port that it leads to, if to one."""
    role, *place = message.fields
    (descriptor,) = message.descriptors
    if role != HOST:
        return role, descriptor, "", 0
    address, port = place
    return role, descriptor, _text(address), _number(port, _LARGEST_PORT)


def _rules_field(rules: NetworkRules) -> bytes:
    return pack((_patterns_field(rules.allowed), _patterns_field(rules.denied)))


def _patterns_field(patterns: Iterable[Sourced[DomainPattern]]) -> bytes:
    return pack(
        field
        for rule in patterns
        for field in (
            _bytes(rule.value.text),
            b"%d" % rule.origin.layer,
            _bytes(rule.origin.file),
            _bytes(rule.origin.path),
        )
    )


def _rules(field: bytes) -> NetworkRules:
    allowed, denied = unpack(field)
    return NetworkRules(_patterns(allowed), _patterns(denied))


def _patterns(field: bytes) -> tuple[Sourced[DomainPattern], ...]:
    texts = [_text(part) for part in unpack(field)]
    rows = zip(texts[::4], texts[1::4], texts[2::4], texts[3::4], strict=True)
    # Which list takes which pattern was judged when the policy was made.
    return tuple(
        Sourced(DomainPattern.parse(pattern, deny=True), Origin(Layer(int(layer)), file, path))
        for pattern, layer, file, path in rows
    )


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(field: bytes) -> str:
    return field.decode("utf-8", "surrogatepass")


def _shown(field: bytes) -> str:
    """Return a stranger's text as one line that is safe to show."""
    return legible(field.decode("utf-8", "replace")[:_LONGEST_TEXT]).translate(_BRACKETS)


def _number(field: bytes, largest: int | None = None) -> int:
    if not field.isdigit() or len(field) > _MOST_DIGITS or (largest is not None and int(field) > largest):
        message = "a number is none, or too large"
        raise ValueError(message)
    return int(field)

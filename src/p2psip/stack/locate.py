"""Finding servers: from a URI to addresses to try, in order.

Implements RFC 3263 §4, with the weights of RFC 2782 §"The format of the SRV RR".

A machine without clock or socket: it gives questions for the DNS, takes their answers, and may
then have further questions.  The edge keeps the time-outs; an empty answer stands for none.

    >>> locator = Locator.of_uri(Uri.parse("sip:alice@example.com"), random=bytes)
    >>> print(*locator.questions)
    example.com NAPTR
    >>> locator.answer([[]])
    >>> print(*locator.questions, sep=", ")
    _sip._udp.example.com SRV, _sip._tcp.example.com SRV
    >>> locator.answer([[], [Srv(0, 1, 5070, "pbx.example.com")]])
    >>> locator.answer([["192.0.2.7"]])
    >>> locator.hops
    (Hop(transport='TCP', host='192.0.2.7', port=5070, domain='example.com'),)

Each hop is tried when the one before has failed, as §4.3 says.  Names here have no final dot;
the root is "".  Not done: RFC 3263 §4.4: nothing here is a stateless proxy.  Not done: RFC 3263 §5:
a response that finds no way back is not looked up, see `fallback_flow` in `routing`.
"""

import ipaddress
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Self

from p2psip.errors import LocalError
from p2psip.sip.known import Known
from p2psip.sip.uri import Uri
from p2psip.transaction.flow import SECURE, WEB, Flow
from p2psip.transaction.key import default_port

MAX_HOPS: Final = 16  # Own design: a domain with more servers than this has them for others

# What the service field of a NAPTR record offers: §4.1.
SERVICES: Final = {"SIP+D2U": "UDP", "SIP+D2T": "TCP", "SIPS+D2T": "TLS"}
# The labels before the domain in an SRV question: §4.1, §4.2.
LABELS: Final = {"UDP": "_sip._udp", "TCP": "_sip._tcp", "TLS": "_sips._tcp"}


@dataclass(frozen=True, slots=True)
class Question:
    """One question to the DNS: `type` is "NAPTR", "SRV", "A" or "AAAA" (§4)."""

    name: str
    type: str

    def __str__(self) -> str:
        """Give name and type, for logs.  Own design."""
        return f"{self.name} {self.type}"


@dataclass(frozen=True, slots=True)
class Naptr:
    """A transport that a domain offers, and its preference: RFC 3403 §4.1."""

    order: int
    preference: int
    flags: str
    service: str
    regexp: str
    replacement: str


@dataclass(frozen=True, slots=True)
class Srv:
    """One server of a service: RFC 2782 §"The format of the SRV RR"."""

    priority: int
    weight: int
    port: int
    target: str


Record = Naptr | Srv | str  # an address record is the address
Answer = Sequence[Record]


@dataclass(frozen=True, slots=True)
class Hop:
    """Where to send: transport in upper case, numeric `host`, `port` (§4.2).

    `domain` is the name that the server's certificate must be good for: §4.1.
    """

    transport: str
    host: str
    port: int
    domain: str = ""

    @property
    def flow(self) -> Flow:
        """Give the same as the stack wants it: RFC 3261 §18.1.1."""
        domain = self.domain if self.transport in SECURE else ""
        return Flow(self.transport, (self.host, self.port), domain=domain)


Random = Callable[[int], bytes]
_Steps = Generator[tuple[Question, ...], Sequence[Answer], tuple[Hop, ...]]
_Server = tuple[str, str, int]  # transport, name, port


class Locator:
    """One search: answer its `questions` until it has its `hops` (§4)."""

    def __init__(self, steps: _Steps) -> None:
        self.questions: tuple[Question, ...] = ()
        self.hops: tuple[Hop, ...] | None = None
        self._steps = steps
        self._advance(None)

    @classmethod
    def of_uri(
        cls,
        uri: Uri,
        *,
        random: Random,
        transports: Sequence[str] = ("UDP", "TCP"),
        families: Sequence[str] = ("A",),
    ) -> Self:
        """Search for the servers of a SIP or SIPS URI: §4.

        `transports` are ours, in upper case and order of preference; `families` the kinds of
        address we can reach.  `random(n)` gives n random bytes.
        """
        return cls(_client(uri, _Capabilities(transports, families, random)))

    def answer(self, answers: Sequence[Answer]) -> None:
        """Take one answer for each of `questions`, in their order: §4.

        An empty one stands for a failure or for no such record.  Raises LocalError if the
        numbers differ, or nothing was asked.
        """
        if not self.questions or len(answers) != len(self.questions):
            raise LocalError("give one answer for each question")
        self._advance(answers)

    def _advance(self, answers: Sequence[Answer] | None) -> None:
        try:
            self.questions = next(self._steps) if answers is None else self._steps.send(answers)
        except StopIteration as end:
            self.questions, self.hops = (), end.value


@dataclass(frozen=True, slots=True)
class _Capabilities:
    """The transports and address families that we have, and the source of chance."""

    transports: Sequence[str]
    families: Sequence[str]
    random: Random


def _client(uri: Uri, means: _Capabilities) -> _Steps:
    """Follow §4.1 and §4.2 from top to bottom."""
    target = (uri.param("maddr") or uri.host).strip("[]").lower()
    usable = [
        each for each in means.transports
        if each in LABELS and (uri.scheme == "sip" or (uri.scheme == "sips" and each == "TLS"))
    ]  # fmt: skip
    named = _named(uri)
    if named in WEB:
        return (yield from _web(uri, target, named, means))
    if not target or not usable or (named and named not in usable):
        return ()
    # §4.1 [named-transport]
    transport = named or _default(usable)
    if is_numeric(target):
        return (Hop(transport, target, uri.port or default_port(transport), target),)
    if uri.port is not None:
        return (yield from _addresses([(transport, target, uri.port)], target, means))
    if named:
        services = [(named, _srv_name(named, target))]
    else:
        (records,) = yield (Question(target, "NAPTR"),)  # §4.1 [asks-naptr]
        services = _offered(records, usable) or [
            (each, _srv_name(each, target))
            for each in usable
            if uri.scheme == "sips" or each != "TLS"  # "_sip" for SIP URIs: §4.1
        ]
    servers = yield from _servers(services, means.random)
    if servers is None:
        servers = [(transport, target, default_port(transport))]
    return (yield from _addresses(servers, target, means))


def _web(uri: Uri, target: str, named: str, means: _Capabilities) -> _Steps:
    """Find a server of WebSockets by its address: RFC 7118 §5.5.

    Not done: RFC 7118 §5.5: the DNS is not asked for services, as clients in browsers cannot do.
    """
    if not target or named not in means.transports:
        return ()
    port = uri.port or default_port(named)
    if is_numeric(target):
        return (Hop(named, target, port, target),)
    return (yield from _addresses([(named, target, port)], target, means))


def _named(uri: Uri) -> str | None:
    """Give the transport that the URI itself names: §4.1.

    For SIPS "tcp" means TLS over it: RFC 3261 §26.2.2; so does "ws": RFC 7118 §5.5.
    """
    name = (uri.param("transport") or "").upper()
    if uri.scheme == "sips":
        name = {"TCP": "TLS", "WS": "WSS"}.get(name, name)
    return name or None


def _default(usable: Sequence[str]) -> str:
    """Choose UDP for SIP, if we have it; SIPS leaves no choice: §4.1.

    Departs from RFC 3261 §26.3.1 [tls-first]: TLS is used where the URI or DNS says so, since most
    servers of phones have no certificate that could be checked.
    """
    # §4.1 [number-by-udp] [port-by-udp] [udp-without-srv]
    return "UDP" if "UDP" in usable else usable[0]


def _offered(records: Answer, usable: Collection[str]) -> list[tuple[str, str]]:
    """Give (transport, SRV name) of the NAPTR records that we can follow: §4.1.

    Only the lowest order among them counts; preference sorts the rest (RFC 3403 §4.1).
    """
    mine = [
        record
        for record in records
        if isinstance(record, Naptr)
        and record.flags.lower() == "s"
        and not record.regexp  # RFC 3403 §4.1 [not-both]
        and record.replacement
        # §4.1 [sips-wants-sips] [sip-takes-sips] [only-our-transports]
        and SERVICES.get(record.service.upper()) in usable
    ]
    # RFC 3403 §4.1 [by-order] [only-what-we-speak], §8 [in-their-order]
    first = min((record.order for record in mine), default=0)
    # RFC 3403 §4.1 [then-by-preference] [one-order-alone], §8 [not-the-first-that-fits]
    mine = sorted((r for r in mine if r.order == first), key=lambda r: r.preference)
    return [(SERVICES[record.service.upper()], record.replacement) for record in mine][:MAX_HOPS]


def _servers(
    services: Sequence[tuple[str, str]], random: Random
) -> Generator[tuple[Question, ...], Sequence[Answer], list[_Server] | None]:
    """Ask for SRV records and sort them, one service after the other: §4.2.

    None if there are none at all.  A target of "." takes a service away for good:
    RFC 2782 §"The format of the SRV RR".
    """
    if not services:
        return None
    # RFC 3403 §4.2.2 [needs-no-additions]
    answers = yield tuple(Question(name, "SRV") for _, name in services)
    found = [[record for record in answer if isinstance(record, Srv)] for answer in answers]
    if not any(found):
        return None
    return [
        (transport, record.target, record.port)
        for (transport, _), records in zip(services, found, strict=True)
        for record in in_order(records, random)
        if record.target not in ("", ".") and record.port
    ][:MAX_HOPS]


def in_order(records: Iterable[Srv], random: Random) -> list[Srv]:
    """Sort by priority, and by weighted lot within one: RFC 2782 §"The format of the SRV RR"."""
    result: list[Srv] = []
    # RFC 2782 §"The format of the SRV RR" [lowest-first]
    by_priority = sorted(records, key=lambda record: (record.priority, record.weight))
    for _, group in groupby(by_priority, key=lambda record: record.priority):
        rest = list(group)  # the lightest first, so those of weight 0 are in front
        while rest:
            # RFC 2782 §"The format of the SRV RR" [by-weight] [in-proportion] [by-lot]
            lot = int.from_bytes(random(8), "big") % (sum(each.weight for each in rest) + 1)
            for index, record in enumerate(rest):
                lot -= record.weight
                if lot <= 0:
                    result.append(rest.pop(index))
                    break
    return result


def _addresses(servers: Sequence[_Server], domain: str, means: _Capabilities) -> _Steps:
    """Ask for the addresses of every server, and line them up: §4.2."""
    names = list(dict.fromkeys(name for _, name, _ in servers if not is_numeric(name)))
    questions = [Question(name, family) for name in names for family in means.families]
    known: dict[str, list[str]] = {name: [name] for _, name, _ in servers if is_numeric(name)}
    if questions:
        answers = yield tuple(questions)  # RFC 2782 §"Notes:" [asks-for-addresses]
        for question, answer in zip(questions, answers, strict=True):
            mine = [each for each in answer if isinstance(each, str) and is_numeric(each)]
            known.setdefault(question.name, []).extend(mine)
    hops = [
        Hop(transport, address, port, domain)
        for transport, name, port in servers
        for address in known[name]
    ]
    return tuple(dict.fromkeys(hops))[:MAX_HOPS]


def _srv_name(transport: str, domain: str) -> str:
    return f"{LABELS[transport]}.{domain}"


def is_numeric(host: str) -> bool:
    """Whether `host` is an IP address, which needs no DNS: §4.1."""
    return _NUMERIC.of(host)


def _is_numeric(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


_NUMERIC: Final = Known(_is_numeric)

"""SIP messages for testing any implementation: valid ones, odd spellings of them, broken ones.

Implements RFC 3261 §25.1 in reverse: it draws all that the grammar allows.

`messages()` draws values; `spellings(message)` draws octets that must be read as that
same value; `broken_requests()` draws octets with the status that they deserve, and
`broken_responses()` what is to be dropped.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from string import ascii_letters, digits
from typing import Any, Final, TypeAlias
from zlib import crc32

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from p2psip.sip.address import STAR, Address
from p2psip.sip.build import REASONS
from p2psip.sip.headers import Headers
from p2psip.sip.message import METHODS, CSeq, Message, Request, Response
from p2psip.sip.uri import Uri
from p2psip.sip.via import Via
from p2psip.strategies.faults import Drawn, MediaFault, broken
from p2psip.strategies.sip_parts import addresses as addresses
from p2psip.strategies.sip_parts import branches as branches
from p2psip.strategies.sip_parts import free_text as free_text
from p2psip.strategies.sip_parts import header_params as header_params
from p2psip.strategies.sip_parts import header_text as header_text
from p2psip.strategies.sip_parts import hosts as hosts
from p2psip.strategies.sip_parts import ports as ports
from p2psip.strategies.sip_parts import reasons as reasons
from p2psip.strategies.sip_parts import sip_uris as sip_uris
from p2psip.strategies.sip_parts import tel_uris as tel_uris
from p2psip.strategies.sip_parts import tokens as tokens
from p2psip.strategies.sip_parts import uris as uris
from p2psip.strategies.sip_parts import vias as vias

_COMPACT: Final = {"Via": "v", "From": "f", "To": "t", "Call-ID": "i", "Contact": "m"} | {
    "Subject": "s",
    "Content-Type": "c",
    "Content-Length": "l",
    "Supported": "k",
}
_NOT_FOR_PARTIES: Final = ("transport", "maddr", "ttl", "lr")  # Source: RFC 3261 §19.1.1, Table 1
_DIALOGS: Final = frozenset({"INVITE", "SUBSCRIBE", "REFER"})  # they need one Contact: §8.1.1.8


def _for_party(uri: Uri) -> Uri:
    return uri.replace(port=None).without_params(*_NOT_FOR_PARTIES)


_Plan: TypeAlias = SearchStrategy[list[SearchStrategy[Any]]]


def _up_to(
    most: int, plain: SearchStrategy[Any], odd: SearchStrategy[Any], least: int = 0
) -> _Plan:
    """A plan for headers of one name, in one choice: how many there are, and which is odd."""
    plans = [[plain] * count for count in range(least, most + 1)]
    odd_ones = [[*plan[:at], odd, *plan[at + 1 :]] for plan in plans for at in range(len(plan))]
    return st.sampled_from([*plans, *plans, *odd_ones])


_BOB: Final = Address.parse("Bob <sip:bob@biloxi.com>")
_PLACES: Final = st.sampled_from([_BOB, Address.parse("sip:p1.example.com:5070")])
_VIAS: Final = st.sampled_from(
    [
        Via.parse("SIP/2.0/UDP pc33;branch=z9hG4bK776"),
        Via.parse("SIP/2.0/TCP a:5070;branch=z9hG4bK"),
    ]
)
_PARTY: Final = st.just(_BOB)
_ODD_PARTY: Final = addresses(sip_uris().map(_for_party))


@st.composite
def _tagged(draw: DrawFn, party: SearchStrategy[Address]) -> Address:
    return draw(party).with_tag(draw(tokens()))


_TAGGED: Final = _tagged(_PARTY)
_ODD_TAGGED: Final = _tagged(_ODD_PARTY)
_BARE: Final = "sip:bob@biloxi.com"  # what is behind it is the header's: §20
_BARE_PARTY: Final = st.just(_BARE)
_BARE_TAGGED: Final = tokens().map(f"{_BARE};tag={{}}".format)
_WORDS: Final = st.text(
    ascii_letters + digits + "-.!%*_+`'~()<>:\\\"/[]?{}", min_size=1, max_size=12
)
_CALL_ID: Final = st.just("a84b4c76e66710@pc33")
_ODD_CALL_ID: Final = _WORDS | st.builds("{}@{}".format, _WORDS, _WORDS)
_HOPS: Final = st.sampled_from(range(256))
_FROM: Final[_Plan] = st.sampled_from([[_TAGGED], [_ODD_TAGGED], [_BARE_TAGGED]])
_TO: Final[_Plan] = st.sampled_from(
    [[_PARTY], [_TAGGED], [_ODD_PARTY], [_ODD_TAGGED], [_BARE_PARTY]]
)
_HEADERS: Final = (
    ("Via", _up_to(3, _VIAS, vias(), 1)),
    ("Max-Forwards", st.just([_HOPS])),
    ("Route", _up_to(2, _PLACES, addresses(sip_uris()))),
    ("From", _FROM),
    ("To", _TO),
    ("Call-ID", _up_to(1, _CALL_ID, _ODD_CALL_ID, 1)),
    ("Subject", st.sampled_from([[], [header_text()]])),
)
_CONTACTS: Final = _up_to(2, _PLACES, addresses())
_ONE_CONTACT: Final = _up_to(1, _PLACES, addresses(sip_uris()), 1)
_OTHERS: Final = st.sampled_from([0, 0, 1, 2])
_SEQUENCE: Final = st.sampled_from(range(2**31))  # Source: RFC 3261 §8.1.1.5
_BODIES: Final = st.binary(max_size=40)


def _headers(draw: DrawFn, method: str, typed: bool) -> Headers:
    """The headers that any message has, and some more (RFC 3261 §8.1.1); `typed` for a body."""
    fields: list[tuple[str, object]] = [
        (name, draw(value)) for name, plan in _HEADERS for value in draw(plan)
    ]
    fields.append(("CSeq", CSeq(draw(_SEQUENCE), method)))
    contacts = draw(_ONE_CONTACT if method in _DIALOGS else _CONTACTS)
    fields += [("Contact", draw(value)) for value in contacts]
    for _ in range(draw(_OTHERS)):
        fields.append(("X-" + draw(tokens()), draw(header_text())))
    if typed:  # §20.15
        fields.append(("Content-Type", "application/octet-stream"))
    return Headers(fields)


@cache
def methods() -> SearchStrategy[str]:
    """Methods of the RFCs, and other tokens (RFC 3261 §7.1)."""
    return st.sampled_from(sorted(METHODS)) | tokens()


_REMOVES_ALL: Final = st.booleans()
_TARGETS: Final = st.just(Uri(user="bob", host="biloxi.com")) | sip_uris()


@cache
@st.composite
def requests(draw: DrawFn) -> Request:
    """Requests that every element must accept (RFC 3261 §8.1.1)."""
    method = draw(methods())
    body = draw(_BODIES)
    headers = _headers(draw, method, bool(body))
    if method == "REGISTER" and draw(_REMOVES_ALL):
        headers = headers.with_("Contact", STAR).with_("Expires", 0)  # §10.2.2
    return Request(method, draw(_TARGETS), headers, body)


_STATUSES: Final = st.sampled_from([*REASONS, *range(100, 700)])


@cache
@st.composite
def responses(draw: DrawFn) -> Response:
    """Responses that every element must accept (RFC 3261 §7.2)."""
    body = draw(_BODIES)
    headers = _headers(draw, draw(methods()), bool(body)).without("Max-Forwards")  # §20, Table 2
    return Response(draw(_STATUSES), draw(reasons()), headers, body)


@cache
def messages() -> SearchStrategy[Message]:
    """Requests and responses (RFC 3261 §7)."""
    return st.one_of(requests(), responses())


_SINGLE_SPACE: Final = re.compile(rb"(?<!^) (?=[^ \t])")  # all that a fold may stand for
_FOLDS: Final = st.sampled_from([b" ", b"\r\n\t", b"\r\n   "])
_BEFORE_COLON: Final = st.sampled_from([b"", b" ", b"\t "])
_AFTER_COLON: Final = st.sampled_from([b"", b" ", b"  \t", b"\r\n "])
_AT_THE_END: Final = st.sampled_from([b"", b" "])


@st.composite
def spellings(draw: DrawFn, message: Message) -> bytes:
    """The same message as a peer may also write it (RFC 3261 §7.3.1, §7.3.3).

    Names in other capitals or short, white space around colons, lines folded at spaces,
    Content-Length anywhere or nowhere, empty lines in front.
    """
    head, _, body = bytes(message).partition(b"\r\n\r\n")
    start, *lines = head.split(b"\r\n")
    length = lines.pop()
    if draw(st.booleans()):
        lines.insert(draw(st.integers(0, len(lines))), length)
        body += draw(st.sampled_from([b"", b"junk behind the body"]))
    odd = [draw(_odd_line(line)) for line in lines]
    lead = draw(st.sampled_from([b"", b"\r\n", b"\r\n\r\n"]))
    return lead + b"\r\n".join([start, *odd, b"", b""]) + body


@st.composite
def _odd_line(draw: DrawFn, line: bytes) -> bytes:
    name, _, value = line.partition(b": ")
    known = name.decode("ascii")
    if not known.startswith("X-"):
        choices = [known, known.upper(), known.lower(), _COMPACT.get(known, known)]
        name = draw(st.sampled_from(choices)).encode()
    folds = [found.end() for found in _SINGLE_SPACE.finditer(value)]
    if folds:
        place = draw(st.sampled_from(folds))
        value = value[: place - 1] + draw(_FOLDS) + value[place:]
    return name + draw(_BEFORE_COLON) + b":" + draw(_AFTER_COLON) + value + draw(_AT_THE_END)


_SEPARATORS: Final = st.sampled_from([("Via", "{},"), ("Via", ""), ("To", "{};"), ("Contact", "")])


def separators() -> SearchStrategy[Message]:
    """Messages that a reader may forgive a separator: Field §"Separators too many"."""
    return st.builds(_with_separator, messages(), _SEPARATORS)


def _with_separator(message: Message, edit: tuple[str, str]) -> Message:
    name, shape = edit
    first, *others = message.headers.values(name) or ("",)
    if not shape:
        others = [first, *others]
    return message.replace(headers=message.headers.with_(name, shape.format(first), *others))


@dataclass(frozen=True, slots=True)
class Fault:
    """One way to spoil a request (RFC 4475 §3): where it is forbidden, and the status it deserves.

    A fault against §25.1 is one of form: no grammar of SIP derives such a request.
    """

    name: str
    clause: str
    status: int
    spoil: Callable[[Request], bytes]


def _without(name: str) -> Fault:
    return Fault(
        f"no {name}",
        "RFC 3261 §8.1.1",
        400,
        lambda r: bytes(r.replace(headers=r.headers.without(name))),
    )


def _with(label: str, clause: str, name: str, *values: str) -> Fault:
    return Fault(
        label, clause, 400, lambda r: bytes(r.replace(headers=r.headers.with_(name, *values)))
    )


def _edited(label: str, clause: str, old: bytes, new: bytes, status: int = 400) -> Fault:
    return Fault(label, clause, status, lambda r: bytes(r).replace(old, new, 1))


def _to(label: str, value: str, clause: str = "RFC 3261 §25.1") -> Fault:
    return _with(label, clause, "To", value)


def _other_method(request: Request) -> bytes:
    method = "BYE" if request.method == "OPTIONS" else "OPTIONS"
    cseq = CSeq(8, request.method if request.method in METHODS else "INFO")
    return bytes(request.replace(method=method, headers=request.headers.with_("CSeq", cseq)))


_GRAMMAR: Final = "RFC 3261 §25.1"
_ONCE: Final = "RFC 3261 §7.3.1"
HEADER_FAULTS: Final = (
    *(_without(name) for name in ("Via", "From", "To", "Call-ID", "CSeq")),
    _with("two To", _ONCE, "To", "<sip:a@b>", "<sip:c@d>"),
    _with("two From", _ONCE, "From", "<sip:a@b>;tag=1", "<sip:c@d>;tag=1"),
    _with("two CSeq", _ONCE, "CSeq", "1 INVITE", "2 INVITE"),
    _with("two Call-ID", _ONCE, "Call-ID", "1@a", "2@a"),
    _with("two Max-Forwards", _ONCE, "Max-Forwards", "70", "70"),
)
"""Every fault of headers that are there too rarely or too often: §8.1.1, §7.3.1."""

ADDRESS_FAULTS: Final = (
    _to("open quote", '"no end <sip:a@b>'),
    _to("open bracket", "<sip:a@b"),
    _to("text behind bracket", "<sip:a@b> x"),
    _to("no URI", "<no uri>"),
    _to("host with a comma", "<sip:a@b,c>", "RFC 3261 §19.1.1"),
    _to("open IPv6", "<sip:a@[2001:db8::1>"),
    _to("long IPv6", "<sip:a@[1:2:3:4:5:6:7:8:9:g]>"),
    _to("IPv6 with a zone", "<sip:a@[fe80::1%eth0]>"),
    _to("half an escape", "<sip:a%4@b>"),
    _to("URI parameter without name", "<sip:a@b;=x>", "RFC 3261 §19.1.1"),
    _to("URI header without value", "<sip:a@b?x>", "RFC 3261 §19.1.1"),
    _to("port of letters", "<sip:a@b:x>", "RFC 3261 §19.1.1"),
)
"""Every fault of an address or its URI: §19.1.1, §25.1."""

VALUE_FAULTS: Final = (
    _with("port too large", "RFC 3261 §18.1.1", "Via", "SIP/2.0/UDP a:65536;branch=z9hG4bK1"),
    _with("quotes inside a name", _GRAMMAR, "From", 'Alex "Bell" <sip:bell@example.com>;tag=43'),
    _with("empty parameters", _GRAMMAR, "Contact", '"Joe" <sip:joe@example.org>;;;;'),
    _with("bare question mark", "RFC 3261 §20.10", "Contact", "sip:user@example.com?Route=x"),
    _with("empty value", _GRAMMAR, "Route", "<sip:a;lr>,,<sip:b;lr>"),
    _with("Via of separators", _GRAMMAR, "Via", "SIP/2.0/UDP 192.0.2.15;;,;,,"),
    _with("Via of another protocol", "RFC 3261 §8.1.1.7", "Via", "HTTP/2.0/UDP a;branch=z9hG4bK1"),
    _with("Via without transport", _GRAMMAR, "Via", "SIP/2.0 a;branch=z9hG4bK1"),
    _with("transport of no token", _GRAMMAR, "Via", "SIP/2.0/U@P a;branch=z9hG4bK1"),
    _with("Call-ID of two words", _GRAMMAR, "Call-ID", "one two"),
    _with("CSeq too large", "RFC 3261 §8.1.1.5", "CSeq", "36893488147419103232 REGISTER"),
    _with("CSeq without method", _GRAMMAR, "CSeq", "1"),
    Fault("CSeq of another method", "RFC 3261 §8.1.1.5", 400, _other_method),
    _with("Max-Forwards too large", "RFC 3261 §20.22", "Max-Forwards", "256"),
    _with("Max-Forwards of letters", _GRAMMAR, "Max-Forwards", "many"),
)
"""Every fault in the value of another header: §25.1, §20."""

LINE_FAULTS: Final = (
    _edited("length below zero", _GRAMMAR, b"Content-Length: ", b"Content-Length: -"),
    _edited("length too large", "RFC 3261 §18.3", b"Content-Length: ", b"Content-Length: 9999999"),
    _edited(
        "two lengths",
        _ONCE,
        b"Content-Length: ",
        b"Content-Length: 7\r\nContent-Length: 1",
    ),
    _edited("version 7.0", "RFC 3261 §21.5.6", b" SIP/2.0\r\n", b" SIP/7.0\r\n", 505),
    _edited("another protocol", _GRAMMAR, b" SIP/2.0\r\n", b" HTTP/1.1\r\n"),
    _edited("space behind the version", _GRAMMAR, b" SIP/2.0\r\n", b" SIP/2.0  \r\n"),
    _edited("two spaces", _GRAMMAR, b" ", b"  "),
    _edited("line without colon", _GRAMMAR, b"\r\n", b"\r\nno colon here\r\n"),
    _edited("bare line feed", _GRAMMAR, b"\r\n", b"\n"),
    _edited("no empty line", _GRAMMAR, b"\r\n\r\n", b"\r\n"),
    Fault(
        "unknown scheme",
        "RFC 3261 §8.2.2.1",
        416,
        lambda r: bytes(r.replace(uri=Uri("urn", opaque="a:b"))),
    ),
    Fault(
        "headers in the Request-URI",
        "RFC 3261 §19.1.1",
        400,
        lambda r: bytes(r.replace(uri=r.uri.replace(headers=(("Route", "x"),)))),
    ),
    Fault(
        "unknown method",
        "RFC 3261 §8.2.1",
        501,
        lambda r: bytes(r.replace(method="NEW-" + r.method)),
    ),
)
"""Every fault of the start line, of lines and of lengths: §7, §18.3, §25.1."""

FAULTS: Final = (*HEADER_FAULTS, *ADDRESS_FAULTS, *VALUE_FAULTS, *LINE_FAULTS)


def faults(among: Sequence[Fault] = FAULTS) -> SearchStrategy[tuple[Fault, bytes]]:
    """A fault, each as often as any other, and a request that has it alone (RFC 4475 §3)."""
    return requests().map(lambda request: _spoilt(request, among))


def _spoilt(request: Request, among: Sequence[Fault]) -> tuple[Fault, bytes]:
    """Choose by checksum: Hypothesis repeats its small choices, and some faults would be rare."""
    fault = among[crc32(bytes(request)) % len(among)]
    return fault, fault.spoil(request)


def broken_requests() -> SearchStrategy[tuple[bytes, int]]:
    """Octets of a request with one fault, and the status it deserves (RFC 4475 §3.1.2, §3.3)."""
    return faults().map(lambda pair: (pair[1], pair[0].status))


def _answered(name: str, clause: str, status: bytes) -> MediaFault:
    whole = responses().map(lambda r: bytes(r).replace(b" %d" % r.status, b" " + status, 1))
    return MediaFault(name, clause, whole)


RESPONSE_FAULTS: Final = (
    _answered("status below 100", "RFC 3261 §7.2", b"099"),
    _answered("status above 699", "RFC 3261 §7.2", b"700"),
    _answered("status of four digits", _GRAMMAR, b"2000"),
    _answered("status of letters", _GRAMMAR, b"all"),
)
"""Every fault of a status line: §7.2."""


def broken_responses() -> SearchStrategy[Drawn]:
    """Responses with one fault, which are to be dropped (RFC 3261 §8.1.3, RFC 4475 §3.1.2.19)."""
    return broken(RESPONSE_FAULTS)

"""SIP messages for testing any implementation: valid ones, odd spellings of them, broken ones.

Implements RFC 3261 §25.1 in reverse: it draws all that the grammar allows.

`messages()` draws values; `spellings(message)` draws octets that must be read as that
same value; `broken_requests()` draws octets with the status that they deserve.
"""

import re
from functools import cache
from ipaddress import IPv6Address
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from p2psip.sip.address import Address
from p2psip.sip.grammar import LWS
from p2psip.sip.headers import Headers
from p2psip.sip.message import METHODS, CSeq, Message, Request, Response
from p2psip.sip.params import put
from p2psip.sip.uri import Uri
from p2psip.sip.via import Via

_ALPHANUM: Final = "ABCXYZabcxyz0189"
_NO_BREAKS: Final = st.characters(exclude_categories=["Cs"], exclude_characters="\r\n")
_COMPACT: Final = {"Via": "v", "From": "f", "To": "t", "Call-ID": "i", "Contact": "m"} | {
    "Subject": "s",
    "Content-Type": "c",
    "Content-Length": "l",
    "Supported": "k",
}


@cache
def tokens() -> SearchStrategy[str]:
    """Any `token`, strange punctuation included (RFC 3261 §25.1)."""
    return st.text(_ALPHANUM + "-.!%*_+`'~", min_size=1, max_size=12)


@cache
def free_text() -> SearchStrategy[str]:
    """Any text a quoted string or an escaped part can stand for (RFC 3261 §25.1)."""
    return st.text(_NO_BREAKS, max_size=12)


@cache
def hosts() -> SearchStrategy[str]:
    """Names, IPv4 and IPv6 addresses as `Uri.host` holds them (RFC 3261 §25.1)."""
    label = st.text("abcxyz0189", min_size=1, max_size=8)
    names = st.builds(".".join, st.lists(label, min_size=1, max_size=3))
    v6 = st.integers(0, 2**128 - 1).map(lambda bits: str(IPv6Address(bits)))
    return st.sampled_from(["192.0.2.1", "10.1.1.1", "2001:db8::9:1", "::1"]) | names | v6


@cache
def ports() -> SearchStrategy[int | None]:
    """A port, or none written (RFC 3261 §19.1.1)."""
    return st.none() | st.integers(0, 65535)


@cache
@st.composite
def _uri_params(draw: DrawFn) -> tuple[tuple[str, str | None], ...]:
    names = draw(st.lists(tokens() | st.just("lr"), max_size=3, unique_by=str.lower))
    values = st.none() | st.text(_NO_BREAKS, min_size=1, max_size=8)
    return tuple((name, draw(values)) for name in names)


@cache
def sip_uris(*, headers: bool = False) -> SearchStrategy[Uri]:
    """SIP and SIPS URIs; with `headers`, some have the part behind "?" (RFC 3261 §19.1.1)."""
    some = st.text(_NO_BREAKS, min_size=1, max_size=8)
    user = st.none() | some
    pairs = st.lists(st.tuples(some, free_text()), max_size=2).map(tuple)
    return st.builds(
        lambda uri, password: uri if uri.user is None else uri.replace(password=password),
        st.builds(
            Uri,
            scheme=st.sampled_from(["sip", "sips"]),
            user=user,
            host=hosts(),
            port=ports(),
            params=_uri_params(),
            headers=pairs if headers else st.just(()),
        ),
        st.none() | free_text(),
    )


@cache
def uris() -> SearchStrategy[Uri]:
    """URIs of any scheme (RFC 3261 §19.1, RFC 3966 §3)."""
    digits = st.text("0123456789-.()", min_size=1, max_size=12)
    tel = st.builds(lambda n, p: Uri("tel", user=n, params=p, opaque=n), digits, _uri_params())
    other = st.builds(
        Uri,
        scheme=st.sampled_from(["isbn", "http", "soap.beep", "urn"]),
        opaque=st.text(_ALPHANUM + ":/.-@", min_size=1, max_size=12),
    )
    return st.one_of(sip_uris(), sip_uris(headers=True), tel, other)


@cache
@st.composite
def header_params(draw: DrawFn) -> tuple[tuple[str, str | None], ...]:
    """Parameters of a header value, quoted where they need it (RFC 3261 §7.3.1)."""
    params: tuple[tuple[str, str | None], ...] = ()
    for name in draw(st.lists(tokens(), max_size=3)):
        params = put(params, name, draw(st.none() | tokens() | free_text()))
    return params


@cache
def addresses(of: SearchStrategy[Uri] | None = None) -> SearchStrategy[Address]:
    """Addresses with all that may surround a URI (RFC 3261 §20.10)."""
    return st.builds(Address, uris() if of is None else of, free_text(), header_params())


@cache
def branches() -> SearchStrategy[str]:
    """Branch parameters with the magic cookie (RFC 3261 §8.1.1.7)."""
    return tokens().map("z9hG4bK".__add__)


@cache
@st.composite
def vias(draw: DrawFn) -> Via:
    """One hop, with rport and received as a server may have left them (RFC 3581 §4)."""
    transport = draw(st.sampled_from(["UDP", "TCP", "TLS", "SCTP", "WS", "X-ODD"]))
    via = Via(transport, draw(hosts()), draw(ports()), draw(header_params()))
    via = via.with_param("branch", draw(branches()))
    match draw(st.sampled_from(["none", "asked", "answered"])):
        case "asked":
            return via.with_param("rport", None)
        case "answered":
            via = via.with_param("received", draw(hosts()))
            return via.with_param("rport", str(draw(st.integers(0, 65535))))
        case _:
            return via


# Each header is plain as often as it is odd, which keeps examples small enough to read.
_PLAIN_PEOPLE: Final = st.sampled_from(
    [Address.parse("Bob <sip:bob@biloxi.com>"), Address.parse("sip:p1.example.com:5070")]
)
_PLAIN_VIAS: Final = st.sampled_from(
    ["SIP/2.0/UDP pc33;branch=z9hG4bK776", "SIP/2.0/TCP a:5070;branch=z9hG4bK"]
).map(Via.parse)
_PEOPLE: Final = _PLAIN_PEOPLE | addresses(sip_uris())
_TAGGED: Final = st.builds(Address.with_tag, _PEOPLE, tokens())
_CALL_IDS: Final = st.text(_ALPHANUM + "-.!%*_+`'~()<>:\\\"/[]?{}", min_size=1, max_size=20)
_VALUES: Final = free_text().map(lambda value: value.strip(LWS))
_PARTS: Final = st.fixed_dictionaries(
    {
        "Via": st.lists(_PLAIN_VIAS | vias(), min_size=1, max_size=3),
        "Max-Forwards": st.tuples(st.integers(0, 255)),
        "Route": st.lists(_PEOPLE, max_size=2),
        "From": st.tuples(_TAGGED),
        "To": st.tuples(_PEOPLE | _TAGGED),
        "Call-ID": st.tuples(st.just("a84b4c76e66710@pc33") | _CALL_IDS),
        "Contact": st.lists(_PLAIN_PEOPLE | addresses(), max_size=2),
        "Subject": st.lists(_VALUES, max_size=1),
    }
)
_EXTRAS: Final = st.lists(st.tuples(tokens().map("X-".__add__), _VALUES), max_size=2)
_SEQUENCE: Final = st.integers(0, 2**32 - 1)


@st.composite
def header_sections(draw: DrawFn, method: str) -> Headers:
    """The headers that any message has, and some more (RFC 3261 §8.1.1)."""
    parts = draw(_PARTS)
    fields: list[tuple[str, object]] = [(name, v) for name in parts for v in parts[name]]
    fields.append(("CSeq", CSeq(draw(_SEQUENCE), method)))
    fields += draw(_EXTRAS)
    return Headers(fields)


@cache
def methods() -> SearchStrategy[str]:
    """Methods of the RFCs, and tokens that are none (RFC 3261 §7.1)."""
    return st.sampled_from(sorted(METHODS)) | tokens()


@cache
@st.composite
def requests(draw: DrawFn) -> Request:
    """Requests that every element must accept (RFC 3261 §8.1.1)."""
    method = draw(methods())
    body = draw(st.binary(max_size=40))
    uri = draw(st.just(Uri(user="bob", host="biloxi.com")) | sip_uris())
    return Request(method, uri, draw(header_sections(method)), body)


@cache
@st.composite
def responses(draw: DrawFn) -> Response:
    """Responses that every element must accept (RFC 3261 §7.2)."""
    headers = draw(header_sections(draw(methods())))
    status, reason = draw(st.integers(100, 699)), draw(free_text())
    return Response(status, reason, headers, draw(st.binary(max_size=40)))


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


def _without(name: str) -> SearchStrategy[tuple[bytes, int]]:
    return requests().map(lambda r: (bytes(r.replace(headers=r.headers.without(name))), 400))


def _with(name: str, *values: str) -> SearchStrategy[tuple[bytes, int]]:
    return requests().map(lambda r: (bytes(r.replace(headers=r.headers.with_(name, *values))), 400))


def _edited(old: bytes, new: bytes, status: int = 400) -> SearchStrategy[tuple[bytes, int]]:
    return requests().map(lambda r: (bytes(r).replace(old, new, 1), status))


def broken_requests() -> SearchStrategy[tuple[bytes, int]]:
    """Octets of a request with one fault, and the status it deserves (RFC 4475 §3.1.2, §3.3)."""
    mandatory = ("Via", "From", "To", "Call-ID", "CSeq")
    other_scheme = requests().map(lambda r: (bytes(r.replace(uri=Uri("urn", opaque="a:b"))), 416))
    with_headers = requests().map(
        lambda r: (bytes(r.replace(uri=r.uri.replace(headers=(("Route", "x"),)))), 400)
    )
    unknown = requests().map(lambda r: (bytes(r.replace(method="NEW-" + r.method)), 501))
    return st.one_of(
        *(_without(name) for name in mandatory),
        _with("To", '"no end <sip:a@b>'),
        _with("To", "<sip:a@b>", "<sip:c@d>"),
        _with("From", "Bell, Alexander <sip:a.g.bell@example.com>"),
        _with("Contact", "sip:user@example.com?Route=%3Csip:sip.example.com%3E"),
        _with("Contact", '"Joe" <sip:joe@example.org>;;;;'),
        _with("Via", "SIP/2.0/UDP 192.0.2.15;;,;,,"),
        _with("CSeq", "36893488147419103232 REGISTER"),
        _with("CSeq", "8 ANOTHER").filter(lambda pair: pair[0].split(b" ")[0].decode() in METHODS),
        _with("Max-Forwards", "256"),
        _edited(b"Content-Length: ", b"Content-Length: -"),
        _edited(b"Content-Length: ", b"Content-Length: 9999999"),
        _edited(b"Content-Length: ", b"Content-Length: 1\r\nl: 99999999999999999999"),
        _edited(b" SIP/2.0\r\n", b" SIP/7.0\r\n", 505),
        _edited(b" SIP/2.0\r\n", b" HTTP/1.1\r\n"),
        _edited(b" SIP/2.0\r\n", b" SIP/2.0  \r\n"),
        _edited(b" ", b"  "),
        _edited(b"\r\n", b"\r\nno colon here\r\n"),
        _edited(b"\r\n", b"\n"),
        _edited(b"\r\n\r\n", b"\r\n"),
        other_scheme,
        with_headers,
        unknown,
    )

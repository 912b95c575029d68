"""The values of SIP's headers, part by part: URIs, addresses, Via and the others.

Own design: see `explain.fields.field`.  The codec splits a value, and the pieces are looked for
where they stand.

    >>> field = uri(Span.all(b"sip:bob@biloxi.example.com:5080;lr"))
    >>> [(each.name, each.value) for each in field.children]
    [('scheme', 'sip'), ('user', 'bob'), ('host', 'biloxi.example.com'), ('port', '5080'), \
('lr', '')]
    >>> [fault.reason for fault in via(Span.all(b"SIP/2.0/UDP host;;branch=1")).faults()]
    ['Bad Parameter']
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from p2psip.errors import RemoteError
from p2psip.sip import auth, values
from p2psip.sip.address import Address
from p2psip.sip.grammar import LWS, first_word, number, split, text_of
from p2psip.sip.message import MAX_BODY, content_length
from p2psip.sip.uri import Uri
from p2psip.sip.values import Reference, RetryAfter, Term, Timestamp, Warn
from p2psip.sip.via import Via
from p2psip.sip.views import CSeq, Views
from rtclab.explain.fields.field import Field, Span, plain
from rtclab.explain.fields.layout import Layout, explained

Part = Callable[[Span], Field]


def uri(span: Span, name: str = "uri") -> Field:
    """Describe a URI."""

    def walk(layout: Layout) -> str:
        text = text_of(bytes(span))
        scheme, _, rest = text.partition(":")
        layout.place("scheme", scheme)
        if scheme.lower() in ("sip", "sips"):
            _sip_uri(layout, rest)
        elif scheme.lower() == "tel":
            subscriber, *params = rest.split(";")
            layout.place("number", subscriber)
            _params(layout, params)
        return text

    return explained(name, span, Uri.parse, walk, Uri, gaps=True)


def _sip_uri(layout: Layout, rest: str) -> None:
    userinfo, at, tail = rest.partition("@")
    if at:
        user, colon, password = userinfo.partition(":")
        layout.place("user", user)
        if colon:
            layout.place("password", password)
    tail, _, headers = (tail if at else rest).partition("?")
    hostport, *params = tail.split(";")
    _host(layout, hostport)
    _params(layout, params)
    for each in headers.split("&"):
        layout.place("header", each)


def _host(layout: Layout, hostport: str) -> None:
    host, colon, port = hostport.rpartition(":")
    if not colon or hostport.endswith("]"):
        host, port = hostport, ""
    layout.place("host", host.strip(LWS))
    layout.place("port", port.strip(LWS))


def _params(layout: Layout, pieces: Sequence[str]) -> None:
    """Place parameters, each by its own name."""
    for piece in pieces:
        name, equals, value = piece.partition("=")
        found = layout.place(name.strip(LWS) or "parameter", piece, value.strip(LWS) or " ")
        if found is not None and not equals:
            layout.fields[-1] = Field(plain(name.strip(LWS)), found.start, found.end)


def address(span: Span, name: str = "address") -> Field:
    """Describe a URI with a display name and parameters."""

    def walk(layout: Layout) -> None:
        first, *params = split(text_of(bytes(span)), ";")
        display, bracket, rest = first.rpartition("<")
        layout.place("display name", display.strip(LWS))
        written = rest.partition(">")[0] if bracket else first
        if written not in ("", "*"):
            found = layout.place("uri", written)
            if found is not None:
                layout.fields[-1] = uri(found)
        _params(layout, params)

    return explained(name, span, Address.parse, walk, Address, gaps=True)


def via(span: Span, name: str = "via") -> Field:
    """Describe one hop."""

    def walk(layout: Layout) -> None:
        first, *params = split(text_of(bytes(span)), ";")
        protocol, version, rest = (*first.split("/", 2), "", "")[:3]
        layout.place("protocol", protocol.strip(LWS))
        layout.place("version", version.strip(LWS))
        transport, sent_by = first_word(rest)
        layout.place("transport", transport)
        _host(layout, sent_by)
        _params(layout, params)

    return explained(name, span, Via.parse, walk, Via, gaps=True)


def cseq(span: Span, name: str = "cseq") -> Field:
    """Describe the number of a request, and its method."""

    def walk(layout: Layout) -> None:
        digits, method = first_word(text_of(bytes(span)))
        layout.place("number", digits)
        layout.place("method", method)

    return explained(name, span, CSeq.parse, walk, CSeq, gaps=True)


def challenge(span: Span, name: str = "challenge") -> Field:
    """Describe a challenge of digest authentication."""
    return explained(name, span, auth.Challenge.parse, _auth, auth.Challenge, gaps=True)


def credentials(span: Span, name: str = "credentials") -> Field:
    """Describe the answer to a challenge."""
    return explained(name, span, auth.Credentials.parse, _auth, auth.Credentials, gaps=True)


def _auth(layout: Layout) -> None:
    scheme, _, rest = text_of(bytes(layout.span)).strip(LWS).partition(" ")
    layout.place("scheme", scheme)
    if scheme.lower() == "digest":
        _params(layout, split(rest, ","))


def _worded(parse: Callable[[bytes], object], of: object) -> Part:
    """A value that is a word with parameters, or text."""

    def describe(span: Span) -> Field:
        def walk(layout: Layout) -> None:
            word, *params = split(text_of(bytes(span)), ";")
            layout.place("value", word)
            _params(layout, params)

        return explained("value", span, parse, walk, of, gaps=True)

    return describe


def _plain(parse: Callable[[bytes], object], of: object) -> Part:
    def describe(span: Span) -> Field:
        return explained("value", span, parse, lambda _: text_of(bytes(span)), of, gaps=True)

    return describe


def _bounded(maximum: int) -> Callable[[bytes], object]:
    return lambda data: number(text_of(data).strip(LWS), maximum)


def _call_id(data: bytes) -> None:
    if not data or first_word(text_of(data))[1]:
        raise RemoteError("Bad Call-ID")


class Known(NamedTuple):
    """How a header is described: what its value is, and where its section is cited."""

    part: Part
    of: object


# Own design: the headers whose values have a form, by their canonical names.
KNOWN: Final[Mapping[str, Known]] = {
    "Via": Known(via, Views.vias),
    "From": Known(address, Views.from_),
    "To": Known(address, Views.to),
    "Contact": Known(address, Views.contacts),
    "Route": Known(address, Views.routes),
    "Record-Route": Known(address, Views.record_routes),
    **{
        name: Known(address, Address)
        for name in ("Refer-To", "Referred-By", "Reply-To", "Path", "Service-Route")
    },
    "P-Asserted-Identity": Known(address, Address),
    "CSeq": Known(cseq, Views.cseq),
    "Call-ID": Known(_plain(_call_id, Views.call_id), Views.call_id),
    "Max-Forwards": Known(_plain(_bounded(255), Views.max_forwards), Views.max_forwards),
    "Content-Length": Known(_plain(_bounded(MAX_BODY), content_length), content_length),
    "Content-Type": Known(_worded(text_of, Views.content_type), Views.content_type),
    "Expires": Known(_plain(text_of, Views.expires), Views.expires),
    "WWW-Authenticate": Known(challenge, auth.Challenge),
    "Proxy-Authenticate": Known(challenge, auth.Challenge),
    "Authorization": Known(credentials, auth.Credentials),
    "Proxy-Authorization": Known(credentials, auth.Credentials),
    **{
        name: Known(_worded(Term.parse, Term), Term)
        for name in ("Accept", "Accept-Encoding", "Accept-Language", "Content-Disposition")
    },
    **{
        name: Known(_worded(Reference.parse, Reference), Reference)
        for name in ("Alert-Info", "Call-Info", "Error-Info")
    },
    "Retry-After": Known(_worded(RetryAfter.parse, RetryAfter), RetryAfter),
    "Timestamp": Known(_plain(Timestamp.parse, Timestamp), Timestamp),
    "Warning": Known(_plain(Warn.parse, Warn), Warn),
    "Date": Known(
        _plain(lambda data: values.date_of(text_of(data)), values.date_of), values.date_of
    ),
}

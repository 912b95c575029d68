"""Requests and responses: read from a datagram, written to the wire.

Implements RFC 3261 §7 and §18.3.

    >>> request = parse_message(
    ...     b"OPTIONS sip:bob@biloxi.com SIP/2.0\\r\\n"
    ...     b"v: SIP/2.0/UDP pc33.atlanta.com;branch=z9hG4bKhjhs8ass877\\r\\n"
    ...     b"CSeq: 63104 OPTIONS\\r\\n\\r\\n"
    ... )
    >>> request.uri.host, request.via.host, request.cseq.number
    ('biloxi.com', 'pc33.atlanta.com', 63104)

Content-Length belongs to framing, not to meaning: reading removes it from the headers,
and writing always adds the right one.
"""

import re
from dataclasses import dataclass
from typing import Final

from p2psip.errors import LocalError, RemoteError
from p2psip.sip.grammar import LWS, bytes_of, is_token, number, text_of
from p2psip.sip.headers import NO_HEADERS, Headers
from p2psip.sip.message_limits import check_head
from p2psip.sip.uri import Uri
from p2psip.sip.views import CSeq, Views

__all__ = [
    "CSeq",
    "Message",
    "Request",
    "Response",
    "check_request",
    "check_response",
    "parse_message",
    "remote_target",
    "salvage",
]

VERSION: Final = "SIP/2.0"
MAX_BODY: Final = 2**31 - 1  # octets that any Content-Length may announce; framing sets less

# The methods of the RFCs: of any other, a CSeq that disagrees proves nothing but that
# the method is unknown (RFC 4475 §3.1.2.18).
METHODS: Final = frozenset(
    {"INVITE", "ACK", "BYE", "CANCEL", "OPTIONS", "REGISTER", "PRACK", "SUBSCRIBE", "NOTIFY"}
    | {"PUBLISH", "INFO", "REFER", "MESSAGE", "UPDATE"}
)
SCHEMES: Final = frozenset({"sip", "sips", "tel"})  # §7.1 [tel-is-read]

# What a response copies from its request (§8.2.6), in all spellings, lower case; and how far into
# an overlong head to look for it.
_COPIED: Final = frozenset(
    {"via", "v", "from", "f", "to", "t", "call-id", "i", "cseq", "timestamp"}
)
_GLANCE: Final = 1024  # octets: they hold neither too many lines nor too many marks

_FOLD: Final = re.compile(r"\r\n[ \t]++")
_VERSION: Final = re.compile(r"(?i:SIP)/[0-9]++\.[0-9]++")


@dataclass(frozen=True, slots=True, init=False)
class Request(Views):
    """A request (§7.1); its typed headers are the properties of `Views`."""

    method: str
    uri: Uri
    headers: Headers = NO_HEADERS
    body: bytes = b""

    def __init__(
        self,
        method: str,
        uri: Uri,
        headers: Headers = NO_HEADERS,
        body: bytes = b"",
    ) -> None:
        object.__setattr__(self, "method", method)
        object.__setattr__(self, "uri", uri)
        object.__setattr__(self, "headers", headers)
        object.__setattr__(self, "body", body)

    def __bytes__(self) -> bytes:
        """The message on the wire; raises LocalError where a value holds a line break."""
        start = f"{self.method} {self.uri} {VERSION}"  # §7.1 [says-2-0] [version-in-capitals]
        # §7.1 [no-spaces-in-the-uri]
        if not is_token(self.method) or start.count(" ") != 2:
            raise LocalError(f"not a request line: {start!r}")
        return _write(start, self.headers, self.body)

    def replace(
        self,
        *,
        method: str | None = None,
        uri: Uri | None = None,
        headers: Headers | None = None,
        body: bytes | None = None,
    ) -> "Request":
        """Return a copy with other fields (§7.1)."""
        return Request(
            self.method if method is None else method,
            self.uri if uri is None else uri,
            self.headers if headers is None else headers,
            self.body if body is None else body,
        )


@dataclass(frozen=True, slots=True, init=False)
class Response(Views):
    """A response (§7.2), `status` 100 to 699; typed headers are the properties of `Views`."""

    status: int
    reason: str
    headers: Headers = NO_HEADERS
    body: bytes = b""

    def __init__(
        self,
        status: int,
        reason: str,
        headers: Headers = NO_HEADERS,
        body: bytes = b"",
    ) -> None:
        object.__setattr__(self, "status", status)
        object.__setattr__(self, "reason", reason)
        object.__setattr__(self, "headers", headers)
        object.__setattr__(self, "body", body)

    def __bytes__(self) -> bytes:
        """The message on the wire; raises LocalError where a value holds a line break."""
        if not 100 <= self.status <= 699:
            raise LocalError(f"{self.status} is not a SIP status code")
        # §7.1 [says-2-0] [version-in-capitals]
        # RFC 4475 §3.1.1.13 [space-before-no-reason]
        return _write(f"{VERSION} {self.status} {self.reason}", self.headers, self.body)

    @property
    def _skips_unreadable(self) -> bool:
        return True

    def replace(
        self,
        *,
        status: int | None = None,
        reason: str | None = None,
        headers: Headers | None = None,
        body: bytes | None = None,
    ) -> "Response":
        """Return a copy with other fields (§7.2)."""
        return Response(
            self.status if status is None else status,
            self.reason if reason is None else reason,
            self.headers if headers is None else headers,
            self.body if body is None else body,
        )


Message = Request | Response
"""What a datagram may hold (RFC 3261 §7)."""


def parse_message(data: bytes | memoryview) -> Message:
    """Read the one message of a datagram (§18.3).

    Octets after the announced body are dropped; without Content-Length the body is all
    the rest.  Raises RemoteError: 400, or 505 for another version of SIP, or 513 (§21.5.7).
    """
    head, end, body = bytes(data).lstrip(b"\r\n").partition(b"\r\n\r\n")
    if not end:  # §7 [empty-line]
        raise RemoteError("Missing Empty Line")
    check_head(head)
    start, *lines = unfold(head)
    if start[:4].upper() == "SIP/":
        return Response(*_status_line(start), *_content(lines, body))
    return Request(*_request_line(start), *_content(lines, body))


def content_length(headers: Headers) -> int | None:
    """Return the announced size of the body, None where there is none (§20.14).

    Raises RemoteError for what is no number, and for two that differ (RFC 4475 §3.3.9).
    """
    size: int | None = None
    for value in headers.values("Content-Length"):
        if size not in (None, number(value, MAX_BODY)):
            raise RemoteError("Two Content-Lengths")  # RFC 4475 §3.3.9 [two-lengths-refused]
        size = number(value, MAX_BODY)
    return size


def unfold(head: bytes) -> list[str]:
    """Split a head into its start line and header lines, continued ones joined (§7.3.1).

    Raises RemoteError for a line break that is not CRLF: others might read another
    header there.
    """
    text = text_of(head)
    lines = text.split("\r\n")
    is_folded = False
    for line in lines:
        if "\r" in line or "\n" in line:  # §7 [lines-end-in-crlf]
            raise RemoteError("Bare Line Break")
        is_folded = is_folded or line.startswith(" ") or line.startswith("\t")
    if is_folded:
        # §25.1 [folds-are-spaces], §7.3.1 [lines-are-folded]; RFC 4475 §3.1.1.1 [tortuous-is-read]
        return _FOLD.sub(" ", text).split("\r\n")
    return lines


def check_request(request: Request, schemes: frozenset[str] = SCHEMES) -> None:
    """Refuse a request that no element could serve; every typed view of it is then safe.

    Raises RemoteError: 400 for mandatory headers (§8.1.1) that are missing, repeated or
    malformed, for URI headers in the Request-URI (§19.1.1) and for a CSeq of another
    method; 501 if that method is unknown as well; 416 for a scheme not in `schemes`
    (§8.2.2.1).  Max-Forwards and tags may be missing: RFC 4475 §3.4.1.
    Departs from RFC 3261 §19.1.1 [disallowed-ignored]: headers in a Request-URI are not ignored but
    refused: no element that formed the request as it should has left them there.
    """
    _touch(request)  # §20 [mandatory-are-read]
    _ = request.max_forwards, request.routes
    if request.cseq.method != request.method:
        if request.method not in METHODS:
            # RFC 4475 §3.1.2.18 [501-for-an-unknown-method]
            raise RemoteError("Not Implemented", 501)
        raise RemoteError("CSeq Of Another Method")
    if request.uri.headers:
        raise RemoteError("Headers In Request-URI")
    if request.uri.scheme not in schemes:
        # RFC 3261 §16.3 [416-for-schemes], §8.2.2.1 [416-for-the-scheme]
        raise RemoteError("Unsupported URI Scheme", 416)


def check_response(response: Response) -> None:
    """Refuse a response that cannot be used and so is to be dropped (§8.1.3).

    Raises RemoteError; afterwards every typed view of the response is safe.
    """
    # Route and Max-Forwards are no matter here: RFC 3261 §7.3.2 [other-category-ignored]
    _touch(response)  # §20 [mandatory-of-a-response]


def remote_target(request: Request) -> Uri:
    """Where the sender of a request that begins a dialog wants later requests (§12.1.1).

    A client of RFC 2543, which has no tag in its From, need not have a Contact: it is reached by
    its From (RFC 4475 §3.4.1).  Raises RemoteError if any other has none (§8.1.1.8).
    """
    if request.contacts and not request.contacts[0].is_star:
        return request.contacts[0].uri
    if request.contacts or request.from_.tag is not None:
        raise RemoteError("Missing Contact")
    sender = request.from_.uri  # RFC 4475 §3.4.1 [2543-is-taken]
    return sender.replace(headers=()).without_params("method")


def salvage(data: bytes | memoryview) -> Request | None:
    """Read as much of a refused request as it takes to answer it.

    Own design: §8.2.6 copies five headers into a response, and RFC 4475 wants broken
    requests answered.  Header lines that make no sense are left out; the body is empty,
    the URI is "sip:invalid" if it was the broken part.  Of a head that is too large only the first
    lines are looked at.  Its Via may be what is broken.  None for a response, for an ACK, which is
    never answered, and where there is no Via, by which the client would know the answer.
    """
    head = bytes(data).lstrip(b"\r\n").partition(b"\r\n\r\n")[0]
    try:
        check_head(head)
    except RemoteError:
        head = head[:_GLANCE].rpartition(b"\r\n")[0]
    try:
        start, *lines = unfold(head)
        method, _, rest = start.partition(" ")
        if not (is_token(method) and rest) or method == "ACK":
            return None  # §18.3 [short-response-dropped]
        kept = [line for line in lines if _is_for_a_reply(line)]
        request = Request(method, _uri_or_stand_in(rest), Headers.parse_lines(kept))
    except RemoteError:
        return None
    return request if "Via" in request.headers else None


def _touch(message: Message) -> None:
    """Parse the views that any element relies on."""
    _ = message.vias, message.via, message.from_, message.to, message.call_id, message.cseq
    _ = message.contacts, message.record_routes


def _is_for_a_reply(line: str) -> bool:
    return line.partition(":")[0].rstrip(LWS).lower() in _COPIED


def _uri_or_stand_in(rest: str) -> Uri:
    try:
        return Uri.parse(rest.split(" ", 1)[0])
    except RemoteError:
        return Uri(host="invalid")


def _request_line(line: str) -> tuple[str, Uri]:
    """Method and URI of §7.1, single spaces between: RFC 4475 §3.1.2.8 to §3.1.2.10."""
    parts = line.split(" ", 3)
    if len(parts) != 3 or not is_token(parts[0]):
        raise RemoteError("Bad Request Line")  # RFC 4475 §3.1.2.8 [space-in-the-uri]
    method, uri, version = parts
    _check_version(version)
    return method, Uri.parse(uri)


def _status_line(line: str) -> tuple[int, str]:
    """Status and reason of §7.2; a missing space before no reason is let pass."""
    version, _, rest = line.partition(" ")
    _check_version(version)
    status = number(rest[:3], 699)
    if status < 100 or rest[3:4].strip(" "):
        raise RemoteError("Bad Status Line")  # RFC 4475 §3.1.2.19 [huge-status-dropped]
    # RFC 4475 §3.1.1.12 [any-reason-is-read], §3.1.1.13 [no-reason-is-read]
    return status, rest[4:]


def _check_version(version: str) -> None:
    if version.upper() != VERSION:  # §7.1 [version-in-capitals]
        if _VERSION.fullmatch(version):
            # RFC 4475 §3.1.2.16 [505-for-another-version]
            raise RemoteError("Version Not Supported", 505)
        raise RemoteError("Bad SIP Version")


def _content(lines: list[str], rest: bytes) -> tuple[Headers, bytes]:
    headers = Headers.parse_lines(lines)
    length = content_length(headers)
    if length is None:
        return headers, rest  # §18.3 [body-to-the-end]
    if length > len(rest):
        # RFC 4475 §3.1.2.2 [longer-than-its-datagram]
        raise RemoteError("Body Shorter Than Content-Length")  # §18.3 [short-request-400]
    # RFC 4475 §3.1.1.8 [rest-is-noise], §3.1.1.11 [framed-by-its-length]
    # RFC 3261 §7.4 [requests-with-bodies] [responses-with-bodies]
    return headers.without("Content-Length"), rest[:length]  # §18.3 [rest-is-dropped]


def _write(start: str, headers: Headers, body: bytes) -> bytes:
    """Join a message; a line break inside of anything would forge a header: §7.3.1."""
    # §7 [lines-end-in-crlf]
    pairs: tuple[tuple[str, ...], ...] = headers.fields  # objects that need not be taken apart
    lines = [f"{pair[0]}: {pair[1]}\r\n" for pair in pairs if pair[0] != "Content-Length"]
    # RFC 3261 §16.6 [stream-needs-a-length]
    # §7 [empty-line]
    # §18.3 [length-on-streams]
    # §20.14 [length-is-told] [stream-tells-the-length] [zero-for-no-body]
    # §20 [stream-tells-the-length], §7.4.2 [never-chunked]
    head = f"{start}\r\n{''.join(lines)}Content-Length: {len(body)}\r\n\r\n"
    if not head.count("\r") == head.count("\n") == len(lines) + 3:
        raise LocalError("a line break inside of a header")
    try:
        return bytes_of(head) + body
    except UnicodeEncodeError as error:
        raise LocalError("a header that no octets stand for") from error

"""As much as our readers take, and more than that: lines, values, parameters, streams, blocks.

Own design, apart from the other strategies, since each draw costs more.  The limits are those of
our readers, which bound time and memory: another reader may have wider ones, or none.

`messages()` and `sessions()` draw what is just within them; `excessive_requests()`, `SDP_EXCESSES`
and `RTCP_EXCESSES` have well-formed input with one thing too much.
"""

from struct import pack
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from p2psip.rtp.extended_report import MAX_BLOCKS
from p2psip.rtp.source_description import MAX_ITEMS
from p2psip.sdp.session import MAX_FORMATS, MAX_LINES, MAX_MEDIA, SessionDescription
from p2psip.sip.grammar import MAX_VALUES
from p2psip.sip.headers import MAX_HEADERS
from p2psip.sip.message import Request
from p2psip.sip.params import MAX_PARAMS
from p2psip.strategies.faults import MediaFault
from p2psip.strategies.sip import Fault, requests

_VIA: Final = "SIP/2.0/UDP a;branch=z9hG4bK1"
_TOO_LARGE: Final = "RFC 3261 §21.5.7"


def _with(header: str, *values: str) -> "SearchStrategy[Request]":
    return requests().map(lambda r: r.replace(headers=r.headers.with_(header, *values)))


_WIDEST: Final = (
    _with("X-Line", *["x"] * (MAX_HEADERS // 2)),
    _with("Via", *[_VIA] * MAX_VALUES),
    _with("Route", ", ".join(["<sip:a;lr>"] * MAX_VALUES)),
    _with("To", "<sip:a@b>" + "".join(f";x{each}" for each in range(MAX_PARAMS))),
    _with("Contact", "<sip:a@b" + "".join(f";x{each}" for each in range(MAX_PARAMS)) + ">"),
    _with("Contact", "<sip:a@b?" + "&".join(["x=1"] * MAX_VALUES) + ">"),
)


def messages() -> SearchStrategy[Request]:
    """Requests with as many lines, hops, values or parameters as ours reads: RFC 3261 §7.3.1."""
    return st.sampled_from(_WIDEST).flatmap(lambda drawn: drawn)


def _excess(name: str, status: int, header: str, *values: str) -> Fault:
    return Fault(
        f"too many {name}",
        _TOO_LARGE,
        status,
        lambda r: bytes(r.replace(headers=r.headers.with_(header, *values))),
    )


SIP_EXCESSES: Final = (
    _excess("octets", 513, "Subject", "x" * 33_000),
    _excess("lines", 513, "X-Line", *["x"] * 600),
    _excess("marks", 513, "Subject", ";" * 2_000),
    _excess("headers", 513, "X-Line", *["x"] * (MAX_HEADERS + 1)),
    _excess("hops", 513, "Via", *[_VIA] * (MAX_VALUES + 1)),
    _excess("values of a line", 513, "Route", ", ".join(["<sip:a;lr>"] * (MAX_VALUES + 1))),
    _excess("values", 513, "Route", *[", ".join(["<sip:a;lr>"] * (MAX_VALUES // 2 + 1))] * 2),
    _excess("pieces of a value", 513, "Via", _VIA + ";x" * MAX_VALUES),
    _excess("parameters", 400, "To", "<sip:a@b>" + ";x" * (MAX_PARAMS + 1)),
    _excess("URI parameters", 400, "To", "<sip:a@b" + ";x" * (MAX_PARAMS + 1) + ">"),
    _excess("URI headers", 400, "To", "<sip:a@b?" + "&".join(["x=1"] * (MAX_VALUES + 1)) + ">"),
)
"""Every excess of a request, with the status that ours answers: RFC 3261 §21.5.7."""


def excessive_requests() -> SearchStrategy[tuple[Fault, bytes]]:
    """Requests that are well-formed, and more than ours takes: RFC 3261 §21.5.7."""
    return st.builds(
        lambda excess, request: (excess, excess.spoil(request)),
        st.sampled_from(SIP_EXCESSES),
        requests(),
    )


_TOP: Final = "v=0\r\no=me 7 7 IN IP6 2001:db8::7\r\ns=large\r\nc=IN IP6 2001:db8::8\r\n"
_TIME: Final = "t=0 0\r\n"
_STREAM: Final = "m=audio 9 RTP/AVP"
_WIDEST_SESSIONS: Final = (
    _TOP + _TIME + "a=x\r\n" * (MAX_LINES - 5),
    _TOP + _TIME + f"{_STREAM} 0\r\n" * MAX_MEDIA,
    _TOP + _TIME + _STREAM + " 0" * (MAX_FORMATS - 2) + "\r\n",
)


def sessions() -> SearchStrategy[SessionDescription]:
    """Descriptions with as many lines, streams or formats as ours reads: RFC 8866 §9."""
    return st.sampled_from(_WIDEST_SESSIONS).map(
        lambda text: SessionDescription.parse(text.encode())
    )


def _too_many(name: str, text: str) -> MediaFault:
    return MediaFault(f"too many {name}", "RFC 8866 §9", st.just(text.encode()))


SDP_EXCESSES: Final = (
    _too_many("lines", _TOP + _TIME + "a=x\r\n" * MAX_LINES),
    _too_many("streams", _TOP + _TIME + f"{_STREAM} 0\r\n" * (MAX_MEDIA + 1)),
    _too_many("formats", _TOP + _TIME + _STREAM + " 0" * (MAX_FORMATS + 1) + "\r\n"),
    _too_many("formats of all streams", _TOP + _TIME + (_STREAM + " 0" * 100 + "\r\n") * 10),
    _too_many("digits", f"{_TOP}b=AS:{'9' * 5_000}\r\n{_TIME}"),
)
"""Descriptions that are well-formed, and more than ours takes: RFC 8866 §9."""


def _rtcp(kind: int, count: int, body: bytes) -> bytes:
    return pack("!BBH", 0x80 | count, kind, len(body) // 4) + body


RTCP_EXCESSES: Final = (
    MediaFault(
        "too many report blocks",
        "RFC 3611 §3",
        st.just(_rtcp(207, 0, bytes(4) + b"\x01\0\0\0" * (MAX_BLOCKS + 1))),
    ),
    MediaFault(
        "too many items",
        "RFC 3550 §6.5",
        st.just(_rtcp(202, 1, bytes(4) + b"\x01\x02ab" * (MAX_ITEMS + 1) + bytes(4))),
    ),
)
"""Packets that are well-formed, and more than ours takes: RFC 3611 §3, RFC 3550 §6.5."""

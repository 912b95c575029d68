"""How much of a message is read: whatever a stranger sends, the work is bounded and linear.

Work is counted in calls, of Python's functions and of those in C, not in time.
"""

import sys

import pytest

from p2psip.errors import RemoteError
from p2psip.sdp.codec import Codec
from p2psip.sdp.line import Origin
from p2psip.sdp.offer_answer import LocalMedia, LocalTransport, make_answer
from p2psip.sdp.session import SessionDescription
from p2psip.sip.framing import Malformed, StreamFramer
from p2psip.sip.message import check_request, parse_message, salvage
from p2psip.sip.message_limits import MAX_HEAD, MAX_LINES, MAX_MARKS

OCTETS = 60_000
FEW_CALLS = 16_000  # some microseconds each hundred; 60,000 octets one by one would be more


def calls(work):
    """How many calls `work()` makes; what it refuses counts as well."""
    seen = 0

    def count(frame, event, argument):
        nonlocal seen
        seen += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    except RemoteError:
        pass
    finally:
        sys.setprofile(before)
    return seen


def request(extra="", uri="sip:bob@home", frm="<sip:a@b>;tag=1", via="", to="<sip:bob@home>"):
    text = (
        f"INVITE {uri} SIP/2.0\r\nMax-Forwards: 70\r\n"
        f"Via: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK1{via}\r\n"
        f"From: {frm}\r\nTo: {to}\r\nCSeq: 1 INVITE\r\nCall-ID: c1\r\n"
        f"{extra}Content-Length: 0\r\n\r\n"
    )
    return text.encode("utf-8", "surrogateescape")


def read(data):
    """All that is done with a datagram before any core sees it."""
    try:
        check_request(parse_message(data))
    except RemoteError:
        found = salvage(data)
        if found is not None:
            _ = found.via
        raise


# Each makes a request with n of something.
HEADS = {
    "escapes": lambda n: request(uri=f"sip:{'%61' * n}@home"),
    "escapes that are no text": lambda n: request(to=f"<sip:{'%ff' * n}@home>"),
    "octets that are no text": lambda n: request(frm='"' + "\udcff" * n + '" <sip:a@b>;tag=1'),
    "quoted pairs": lambda n: request(frm='"' + "\\a" * n + '" <sip:a@b>;tag=1'),
    "quotes": lambda n: request(frm='""' * n),
    "an unclosed quote": lambda n: request(frm='"' + "a" * n),
    "an unclosed quote behind pairs": lambda n: request(frm='"' + "\\" * (n | 1)),
    "brackets": lambda n: request(frm="<>" * n + ";tag=1"),
    "unclosed brackets": lambda n: request(frm="<" * n),
    "commas": lambda n: request(extra="Contact: " + "," * n + "\r\n"),
    "contacts": lambda n: request(extra="Contact: " + ",".join(["<sip:a@b>"] * n) + "\r\n"),
    "lines of contacts": lambda n: request(extra="Contact: <sip:a@b>\r\n" * n),
    "hops": lambda n: request(extra="Via: SIP/2.0/UDP 192.0.2.1;branch=z9\r\n" * n),
    "hops in a line": lambda n: request(via=", SIP/2.0/UDP 192.0.2.1" * n),
    "parameters": lambda n: request(via=";a=b" * n),
    "quoted parameters": lambda n: request(frm="<sip:a@b>" + ';a="b"' * n),
    "parameters of a URI": lambda n: request(uri="sip:bob@home" + ";a=b" * n),
    "headers of a URI": lambda n: request(uri="sip:bob@home?" + "&".join(["a=b"] * n)),
    "routes": lambda n: request(extra="Route: <sip:192.0.2.1;lr>\r\n" * n),
    "routes recorded": lambda n: request(extra="Record-Route: <sip:192.0.2.1;lr>\r\n" * n),
    "folds": lambda n: request(extra="Subject: a" + "\r\n a" * n + "\r\n"),
    "lines": lambda n: request(extra="X: a\r\n" * n),
    "bad lines": lambda n: request(extra="?\r\n" * n),
    "sizes": lambda n: request(extra="Content-Length: 0\r\n" * n),
    "white space": lambda n: request(frm="<sip:a@b>" + " " * n + ";tag=1"),
    "zeros": lambda n: request(uri=f"sip:bob@home:{'0' * n}"),
    "colons": lambda n: request(uri=f"sip:[{':' * n}]"),
    "digests": lambda n: request(extra="Authorization: Digest a=b" + ",a=b" * n + "\r\n"),
    "line breaks before": lambda n: b"\r\n" * n + request(),
}


@pytest.mark.parametrize("kind", HEADS)
def test_reading_a_head_is_linear(kind):
    """Covers RFC 3261 §21.5.7: twice as much of anything is at most twice the work."""
    once, twice = (calls(lambda n=n: read(HEADS[kind](n))) for n in (300, 600))
    building = calls(lambda: HEADS[kind](600))
    assert twice <= 2 * once + building + 50


@pytest.mark.parametrize("kind", HEADS)
def test_no_head_takes_long(kind):
    """Covers RFC 3261 §21.5.7: whatever fills a datagram, and whatever fills the limits."""
    unit = len(HEADS[kind](2)) - len(HEADS[kind](1)) or 1
    for octets in (OCTETS, MAX_HEAD - 1000, 3 * MAX_MARKS, MAX_MARKS):
        data = HEADS[kind](octets // unit)
        assert calls(lambda data=data: read(data)) < FEW_CALLS


@pytest.mark.parametrize(
    "data",
    [
        request(extra="Subject: " + "x" * MAX_HEAD + "\r\n"),
        request(extra="Subject: x" + "\r\n x" * MAX_LINES + "\r\n"),
        request(extra="Subject: " + ";" * MAX_MARKS + "\r\n"),
    ],
)
def test_what_is_not_read_is_refused_with_513(data):
    """Covers RFC 3261 §21.5.7: the first lines are enough to answer it."""
    with pytest.raises(RemoteError) as refusal:
        parse_message(data)
    assert refusal.value.status == 513
    assert salvage(data).via.branch == "z9hG4bK1" and salvage(data).call_id == "c1"
    (malformed,) = StreamFramer().feed(data)
    assert isinstance(malformed, Malformed) and malformed.error.status == 513


def test_a_long_way_is_no_large_message():
    """Covers RFC 3261 §8.1.1.6: 70 hops, each of which recorded itself, and a body of any size."""
    hops = "".join(
        f"Via: SIP/2.0/TCP edge{i}.example.com:5060;branch=z9hG4bK{i:032x};received=192.0.2.1"
        ";rport=9\r\n"
        f"Record-Route: <sip:edge{i}.example.com:5060;transport=tcp;lr;ftag=0815;did={i:08x}>\r\n"
        for i in range(70)
    )
    data = request(extra=hops).replace(b"Length: 0", b"Length: 50000") + b"," * 50_000
    message = parse_message(data)
    check_request(message)
    assert len(message.vias) == 71 and len(message.body) == 50_000


TOP = "\r\n".join(("v=0", "o=- 7 7 IN IP4 192.0.2.9", "s=-", "c=IN IP4 192.0.2.9", "t=0 0", ""))
AUDIO = "m=audio 4000 RTP/AVP 0 97\r\n"
BODIES = {
    "lines": lambda n: TOP + AUDIO + "a=x\r\n" * n,
    "times": lambda n: TOP + "t=0 0\r\n" * n,
    "connections": lambda n: TOP + AUDIO + "c=IN IP4 192.0.2.1\r\n" * n,
    "media": lambda n: TOP + AUDIO * n,
    "formats": lambda n: TOP + "m=audio 4000 RTP/AVP" + " 97" * n + "\r\n",
    "white space": lambda n: TOP + "m=audio" + " " * n + "4000 RTP/AVP 0\r\n",
    "mappings": lambda n: TOP + AUDIO + "a=rtpmap:97 speex/8000\r\n" * n,
    "events": lambda n: (
        f"{TOP}{AUDIO}a=rtpmap:97 telephone-event/8000\r\na=fmtp:97 {'0-255,' * n}\r\n"
    ),
    "parameters": lambda n: (
        f"{TOP}m=video 4000 RTP/AVP 97\r\na=rtpmap:97 H264/90000\r\n"
        f"a=fmtp:97 {'a=b;' * n}packetization-mode=1\r\n"
    ),
    "pictures": lambda n: (
        f"{TOP}m=video 4000 RTP/AVP {' '.join(map(str, range(96, 128)))}\r\n"
        + "".join(f"a=rtpmap:{i} H264/90000\r\n" for i in range(96, 128))
        + "".join(f"a=fmtp:{96 + i % 32} packetization-mode=0;a={i}\r\n" for i in range(n))
    ),
    "zeros": lambda n: f"{TOP}m=audio {'0' * n} RTP/AVP 0\r\n",
    "empty lines": lambda n: TOP + "\r\n" * n,
}
OURS = [
    LocalMedia("audio", (Codec("speex", 16000), Codec("PCMU", 8000)), LocalTransport(5004)),
    LocalMedia("video", (Codec("H264", 90000, fmtp="packetization-mode=1"),), LocalTransport(5006)),
]


def negotiate(data):
    """What an offer costs, from its octets to the answer."""
    offer = SessionDescription.parse(data.encode())
    make_answer(offer, OURS, Origin.at("192.0.2.2", 1), "192.0.2.2")


@pytest.mark.parametrize("kind", BODIES)
def test_reading_a_description_is_linear(kind):
    """Own design: twice as much of anything is at most twice the work."""
    once, twice = (calls(lambda n=n: negotiate(BODIES[kind](n))) for n in (200, 400))
    building = calls(lambda: BODIES[kind](400))
    assert twice <= 2 * once + building + 50


@pytest.mark.parametrize("kind", BODIES)
def test_no_description_takes_long(kind):
    """Own design: 2000 lines are refused before they are looked at."""
    unit = len(BODIES[kind](2)) - len(BODIES[kind](1))
    for octets in (OCTETS, 500 * unit):
        data = BODIES[kind](octets // unit)
        assert calls(lambda data=data: negotiate(data)) < FEW_CALLS

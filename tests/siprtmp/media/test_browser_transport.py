"""The transport of a browser, between a port that a test drives and two lines that it reads."""

from itertools import count
from types import SimpleNamespace

import pytest

from p2psip.errors import LocalError
from p2psip.nat.demultiplexing import kind_of
from p2psip.nat.ice_credentials import IceType
from p2psip.nat.ice_lite import IceLite
from p2psip.nat.stun import BINDING, StunClass, StunMessage, StunType
from p2psip.rtp.arrivals import INTERVAL
from p2psip.rtp.packet import Extension, RtpPacket
from p2psip.rtp.transport_feedback import TransportFeedback
from p2psip.sdp.jsep import BrowserEnd, BrowserOffer
from p2psip.sdp.rate_feedback import TRANSPORT_WIDE
from p2psip.sdp.session import SessionDescription
from p2psip.srtp.srtp import SrtpReceiver, SrtpSender
from siprtmp.media.browser_transport import SETUP_SECONDS, BrowserLeg, BrowserTransport
from siprtmp.media.transport import MediaAddress

BROWSER, MOVED = ("192.0.2.7", 4000), ("198.51.100.7", 5000)
PASSWORD = "the password of the browser"
TRANSACTIONS = count()
OURS, THEIRS = (bytes(16), bytes(14)), (b"k" * 16, b"s" * 14)
ANSWER = SessionDescription.parse(b"""v=0
o=- 1 2 IN IP4 127.0.0.1
s=-
c=IN IP4 127.0.0.1
t=0 0
m=audio 9 X 111
m=video 9 X 96 97
""")


def rtp(payload_type, sequence=1):
    return bytes((0x80, payload_type)) + sequence.to_bytes(2, "big") + bytes(8) + b"media"


RTCP = bytes.fromhex("80c90001 0000cafe")


class Port:
    """The port, the timer and the handshake of one transport."""

    def __init__(self):
        self.sent, self.gone = [], []
        self.handshake = SimpleNamespace(
            keys=None, failed="", closed=False, deadline=None, received=self.shake,
            tick=lambda now: [b"\x16again"], close=lambda: [b"\x15bye"],
        )  # fmt: skip
        self.alarms = 0
        self.transport = BrowserTransport(
            MediaAddress("127.0.0.1", 8189, 8189),
            IceLite(lambda octets: bytes(octets), 0.0),
            self.make,
            lambda data, to: self.sent.append((data, to)),
            lambda machine: SimpleNamespace(set=lambda: None, cancel=lambda: None),
            lambda octets: bytes(octets),
            0.0,
        )
        self.transport.fingerprint = "AB:CD"
        self.transport.ice.theirs = "x", PASSWORD
        self.transport.on_gone = lambda reason, now: self.gone.append((reason, now))
        self.lines = [self.transport.open()[0] for _ in range(2)]
        self.heard = []
        for name, line in zip(("audio", "video"), self.lines, strict=True):
            line.on_rtp = lambda data, now, name=name: self.heard.append((name, data))
            line.on_rtcp = lambda data, now, name=name: self.heard.append((f"{name} rtcp", data))
        self.transport.route(ANSWER)
        self.browser = SrtpSender(*THEIRS)

    def make(self, fingerprint):
        self.fingerprint = fingerprint
        return self.handshake

    def shake(self, data, now):
        if data == b"\x16last":
            self.handshake.keys = OURS, THEIRS
        return [b"\x16flight"]

    def check(self, source, now=1.0, nominates=True):
        ice = self.transport.ice
        name = f"{ice.ufrag}:x".encode()
        request = StunMessage.write(
            StunClass.REQUEST, BINDING, next(TRANSACTIONS).to_bytes(12, "big"),
            [(StunType.USERNAME, name), *((IceType.USE_CANDIDATE, b""),) * nominates],
            key=ice.password.encode(), fingerprint=True,
        )  # fmt: skip
        self.transport.check(request, source, now)

    def take(self, data, now=1.0):
        self.transport.received(kind_of(data), data, now)

    def connect(self):
        self.check(BROWSER)
        self.take(b"\x16last")
        self.sent.clear()


@pytest.fixture
def port():
    return Port()


def test_media_goes_neither_way_before_the_handshake_is_done(port):
    """Covers RFC 5764 §5.1 [no-media-before-the-keys]."""
    ready = []
    port.lines[0].on_ready = lambda: ready.append(1)
    port.check(BROWSER)
    port.sent.clear()
    port.lines[0].send_rtp(rtp(111))
    port.take(port.browser.protect_rtp(rtp(111)))
    assert port.sent == [] and port.heard == [] and not port.lines[0].is_ready
    port.take(b"\x16last")
    assert port.sent == [(b"\x16flight", BROWSER)] and port.fingerprint == "AB:CD"
    assert ready == [1] and port.lines[1].is_ready
    port.lines[0].send_rtp(rtp(111))
    assert SrtpReceiver(*OURS).open_rtp(port.sent[-1][0]) == rtp(111)


def test_what_is_watched_is_told_as_it_is_on_the_wire(port):
    """Own design: for the capture of one call; DTLS and SRTP, with our address for the browser."""
    told, here = [], ("127.0.0.1", 8189)
    port.connect()
    port.lines[0].watch(lambda *each: told.append(each))
    coming = port.browser.protect_rtp(rtp(111))
    port.take(coming)
    port.lines[1].send_rtp(rtp(97))
    assert told == [(BROWSER, here, coming), (here, BROWSER, port.sent[-1][0])]
    assert port.transport.keys == (OURS, THEIRS)
    port.lines[0].watch(None)
    port.take(port.browser.protect_rtp(rtp(111, 2)))
    assert len(told) == 2 and len(port.heard) == 2


def test_packets_find_their_line_by_their_type_and_reports_reach_both(port):
    """Covers RFC 9725 §4.4.1 [bundled-media]."""
    port.connect()
    for number, kind in enumerate((111, 97, 100)):
        port.take(port.browser.protect_rtp(rtp(kind, number)))
    assert port.heard == [("audio", rtp(111, 0)), ("video", rtp(97, 1))]
    port.heard.clear()
    port.take(port.browser.protect_rtcp(RTCP))
    assert port.heard == [("audio rtcp", RTCP), ("video rtcp", RTCP)]


def test_forged_and_replayed_packets_are_counted_and_not_heard(port):
    port.connect()
    packet = port.browser.protect_rtp(rtp(111))
    port.take(packet)
    port.take(packet)
    port.take(packet[:-1] + bytes((packet[-1] ^ 1,)))
    port.take(b"\x80")
    assert len(port.heard) == 1 and port.transport.refused == 3


def test_media_follows_a_browser_that_moves(port):
    port.connect()
    port.check(MOVED, 2.0)
    port.lines[0].send_rtp(rtp(111))
    (_, (question, asked), (_, media)) = port.sent
    assert (asked, media) == (MOVED, BROWSER)  # it has not answered there yet
    answer = StunMessage.write(
        StunClass.SUCCESS, BINDING, StunMessage.parse(question).transaction_id,
        key=PASSWORD.encode(), fingerprint=True,
    )  # fmt: skip
    port.transport.check(answer, MOVED, 2.1)
    port.sent.clear()
    port.lines[1].send_run([rtp(96, 1), rtp(96, 2)])
    port.lines[0].send_rtcp(RTCP)
    assert [to for _, to in port.sent] == [MOVED] * 3


def test_a_handshake_settles_where_a_browser_is(port):
    """Own design: its flights have arrived there; a check alone may come from anywhere."""
    port.check(BROWSER, nominates=False)
    port.take(b"\x16last")
    port.check(MOVED, nominates=False)
    assert port.transport.ice.remote == BROWSER


def test_a_browser_that_never_connects_is_given_up(port):
    assert port.transport.deadline == SETUP_SECONDS
    port.transport.tick(SETUP_SECONDS - 0.1)
    assert port.gone == []
    port.transport.tick(SETUP_SECONDS)
    assert port.gone == [("no media path: is the port of --webrtc reachable?", SETUP_SECONDS)]


def test_a_browser_whose_consent_is_lost_has_gone(port):
    """Covers RFC 7675 §5.1 [consent-ends-after-30-s]."""
    port.connect()
    assert port.transport.deadline == 31.0
    port.transport.tick(31.0)
    assert port.gone == [("the browser has gone", 31.0)]


def test_a_handshake_that_fails_or_ends_says_why(port):
    port.check(BROWSER)
    port.handshake.failed = "no common cipher"
    port.take(b"\x16hello")
    assert port.gone == [("DTLS: no common cipher", 1.0)]
    port.handshake.failed, port.handshake.closed = "", True
    port.take(b"\x15bye")
    assert port.gone[-1] == ("ended by the browser", 1.0)


def test_a_flight_is_sent_again_when_that_is_due(port):
    port.check(BROWSER)
    port.handshake.deadline = 2.0
    port.take(b"\x16hello")
    port.sent.clear()
    assert port.transport.deadline == 2.0
    port.transport.tick(2.0)
    assert port.sent == [(b"\x16again", BROWSER)]


def test_after_the_end_nothing_is_sent_or_heard(port):
    """Covers RFC 9725 §4.2 [ends-at-once]."""
    port.connect()
    port.transport.close()
    port.transport.close()
    assert port.sent == [(b"\x15bye", BROWSER)] and port.transport.deadline is None
    port.lines[0].send_rtp(rtp(111))
    port.lines[0].send_rtcp(RTCP)
    port.take(port.browser.protect_rtp(rtp(111)))
    assert len(port.sent) == 1 and port.heard == [] and not port.transport.is_ready
    port.transport.tick(1000.0)
    assert port.gone == []


def test_there_are_two_lines_and_one_that_is_closed_hears_nothing(port):
    with pytest.raises(LocalError, match="one line of audio"):
        port.transport.open()
    port.connect()
    port.lines[1].close()
    port.transport.release(port.lines[1])
    port.take(port.browser.protect_rtp(rtp(97)))
    port.take(port.browser.protect_rtcp(RTCP))
    assert port.heard == [("audio rtcp", RTCP)]


WIDE = SessionDescription.parse(
    bytes(ANSWER).replace(
        b"m=video 9 X 96 97\r\n",
        f"m=video 9 X 96 97\r\na=extmap:4 {TRANSPORT_WIDE}\r\n".encode()
        + b"a=rtcp-fb:96 transport-cc\r\n",
    )
)


def numbered(payload_type, number, octets=2):
    """A packet with a transport-wide number in its header."""
    data = bytes((0x40 | octets - 1,)) + number.to_bytes(octets, "big") + bytes(3 - octets)
    extension = Extension(0xBEDE, data)
    return bytes(RtpPacket(payload_type, number, 0, 0xCAFE, b"media", extension=extension))


def test_a_browser_is_told_when_its_packets_came(port):
    """Covers Transport-wide CC 01 §2.2 [two-octets]: whatever line they belong to, or none."""
    port.transport.route(WIDE)
    port.connect()
    for number, kind in ((1, 111), (2, 97), (4, 120)):
        port.take(port.browser.protect_rtp(numbered(kind, number)), 1.0 + number / 1000)
    port.take(port.browser.protect_rtp(numbered(97, 9, octets=1)), 1.01)
    assert [name for name, _ in port.heard] == ["audio", "video", "video"]
    assert port.transport.deadline == 1.001 + INTERVAL
    port.transport.tick(1.051)
    [(data, to)] = [each for each in port.sent if each[0] != b"\x16again"]
    read = TransportFeedback.parse(SrtpReceiver(*OURS).open_rtcp(data))
    assert to == BROWSER and read.media_ssrc == 0xCAFE
    assert [number for number, _ in read.arrivals()] == [1, 2, 4]
    assert port.transport.deadline > 2


def test_a_browser_whose_packets_have_no_numbers_is_told_nothing(port):
    port.connect()
    port.take(port.browser.protect_rtp(numbered(96, 1)))
    assert port.transport.deadline == 31.0


DESCRIPTION = b"""v=0
o=- 1 2 IN IP4 127.0.0.1
s=-
c=IN IP4 0.0.0.0
t=0 0
a=group:BUNDLE sound
m=audio 9 UDP/TLS/RTP/SAVPF 111
a=rtpmap:111 opus/48000/2
a=mid:sound
a=rtcp-mux
a=setup:active
a=ice-ufrag:them
a=ice-pwd:secret-of-the-browser
a=fingerprint:sha-256 12:34
"""
PLAIN = b"""v=0
o=- 1 2 IN IP4 127.0.0.1
s=-
c=IN IP4 127.0.0.1
t=0 0
m=audio 8189 RTP/AVP 96
a=rtpmap:96 opus/48000/2
"""


class Leg(Port):
    """What a call has of the port of browsers."""

    def __init__(self):
        super().__init__()
        self.transport.fingerprint, self.transport._lines, self.detached = "", [], 0
        self.lost = []
        self.leg = BrowserLeg(self, lambda now, reason: self.lost.append((now, reason)), 0.0)
        self.line, _ = self.leg.open()

    def attach(self, now):
        return self.transport, BrowserEnd("ours", "password", "AB:CD", (("127.0.0.1", 8189),))

    def detach(self, transport):
        self.detached += 1


@pytest.fixture
def leg():
    return Leg()


def test_a_browser_has_time_for_its_answer_and_then_must_come(leg):
    """Own design: it may ring for a minute; what it sends before its answer proves nothing."""
    assert b"setup:actpass" in leg.leg.offer(PLAIN)
    leg.check(BROWSER)
    leg.take(b"\x16hello")
    assert leg.transport.deadline is None and leg.handshake.keys is None
    leg.transport.tick(100.0)
    assert leg.lost == [] and not hasattr(leg, "fingerprint")
    leg.leg.take(DESCRIPTION)
    leg.leg.begin(100.0)
    assert leg.transport.deadline == 100.0 + SETUP_SECONDS
    assert leg.transport.ice.theirs == ("them", "secret-of-the-browser")
    leg.transport.tick(100.0 + SETUP_SECONDS)
    assert [now for now, _ in leg.lost] == [100.0 + SETUP_SECONDS]


def test_a_call_of_a_browser_is_answered_in_its_words_and_offered_again_by_its_names(leg):
    """Covers RFC 9725 §4.4.1 [bundled-media]: the types are those that we have said."""
    heard = []
    leg.line.on_rtp = lambda data, now: heard.append(data)
    leg.leg.take(DESCRIPTION)
    answer = SessionDescription.parse(leg.leg.answer(PLAIN))
    assert answer.media[0].attribute("mid") == "sound"
    assert answer.media[0].attribute("setup") == "passive"
    leg.leg.begin(1.0)
    leg.connect()
    assert leg.fingerprint == "12:34"
    leg.take(leg.browser.protect_rtp(rtp(96)))
    assert heard == [rtp(96)]
    again = BrowserOffer.read(leg.leg.offer(PLAIN).replace(b"a=ice-lite\r\n", b""), "127.0.0.1")
    assert again.bundled == ("sound",)


def test_the_last_line_ends_the_flow(leg):
    """Covers RFC 9725 §4.2 [ends-at-once]: nothing is kept of a call that is over."""
    leg.leg.take(DESCRIPTION)
    leg.leg.begin(1.0)
    leg.connect()
    second, _ = leg.leg.open()
    leg.leg.release(second)
    assert leg.detached == 0 and leg.sent == []
    leg.leg.release(leg.line)
    assert leg.detached == 1 and leg.sent == [(b"\x15bye", BROWSER)]
    assert leg.transport.deadline is None

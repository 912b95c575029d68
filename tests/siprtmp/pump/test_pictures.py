"""The packet pump gathers pictures as the annotated Python does: the same traffic through both."""

import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.gateway.video_rig import PPS, SPS, idr, inter
from support.pump.side import Pumps
from support.pump.video_side import PHONE, VideoSide

from p2psip.rtp.payload.h264 import pack_h264
from p2psip.rtp.rtcp import Bye, ReceiverReport, SenderReport, compound, ntp_time

pytestmark = pytest.mark.needs("gcc")

TICKS = 3600
SEI, DELIMITER = b"\x06\x05\x01\x80", b"\x09\x10"
PICTURES = {
    "usual": [inter(1, 500)],
    "long": [inter(2, 4000)],
    "slices": [inter(3, 300), b"\x41\x42" + bytes(400)],
    "key": [SPS, PPS, idr(4, 900)],
    "sei": [DELIMITER, SEI, inter(5, 60)],
    "no slice": [SEI],
    "no beginning": [b"\x41\x42" + bytes(100)],
    "forbidden": [b"\xc1\x9a" + bytes(30)],
    "other sets": [SPS[:-1] + b"\x90", PPS, idr(6, 50)],
}
OTHERS = (("192.0.2.9", 6002), ("198.51.100.1", 6000))
PAYLOADS = (
    b"\x00\x01", b"\x1e\x01", b"\x1f", b"\x18", b"\x18\x00", b"\x18\x00\x05abc", b"\x18\x00\x00",
    b"\x18\x00\x02\x41\x9a\x00\x02\x41\x42", b"\x18\x00\x02\x1c\x01", b"\x1c", b"\x1c\x81",
    b"\x1c\x41", b"\x1c\x01x", b"\x7c\x85abc", b"\x5c\x81\x9a", b"\x5c\xc1\x9aabc", b"\x5c\x1fx",
    b"\x1b\x01\x02", b"\xe1\x9a", b"\x41", b"\x41\x9a",
)  # fmt: skip


class Film:
    """What a phone sends, and what may be wrong with it."""

    def __init__(self):
        self.sequence, self.timestamp, self.ssrc = 65_500, 1 << 31, 7

    def packet(self, payload, marker, *, first=0x80, number=99, step=1):
        self.sequence = self.sequence + step & 0xFFFF
        head = struct.pack("!BBHII", first, number | marker << 7, self.sequence, self.timestamp,
                           self.ssrc)  # fmt: skip
        return head + payload

    def picture(self, kind, ticks=TICKS, octets=200, marks="last", **options):
        self.timestamp = self.timestamp + ticks & 0xFFFFFFFF
        packets = pack_h264(PICTURES[kind], octets)
        return [
            self.packet(payload, marker if marks == "last" else marks == "all", **options)
            for payload, marker in packets
        ]


class Pair:
    """Both sides, and the phone that they see."""

    def __init__(self, feedback=()):
        self.film, self.time, self.pumps = Film(), 0.0, Pumps()
        self.sides = VideoSide(feedback=feedback), VideoSide(pump=self.pumps, feedback=feedback)
        self.show("key")
        self.show("usual")
        self.show("usual")

    def each(self, do):
        for side in self.sides:
            side.now = self.time
            do(side)
        self.time = self.sides[0].now

    def hear(self, data, source=PHONE):
        self.each(lambda side: side.take(data, source))

    def show(self, kind, *, gap=0.0005, lost=(), twice=(), swapped=False, **options):
        """A picture comes, some of its packets never, twice, or in the other order."""
        self.each(lambda side: side.wait(0.04))
        packets = self.film.picture(kind, **options)
        count = len(packets)
        places = [place for place in range(count) if place not in {each % count for each in lost}]
        places += [each % count for each in twice]
        for place in reversed(places) if swapped else places:
            self.each(lambda side: side.wait(gap))
            self.hear(packets[place])

    def do(self, what, value):
        film = self.film
        match what:
            case "show":
                self.show(**value)
            case "payload":
                self.hear(film.packet(*value))
            case "header":
                self.hear(film.packet(b"\x41\x9a123", 1, **value))
            case "cut":
                self.hear(film.packet(b"\x41\x9a123", 1)[:value])
            case "stranger":
                self.hear(film.packet(b"\x41\x9a123", 1), value)
            case "ssrc":
                film.ssrc = self.sides[0].stream._sender.ssrc if value == "ours" else value
            case "wait":
                self.each(lambda side: side.wait(value))
            case "rtcp":
                self.rtcp(value)
            case "ask":
                self.each(lambda side: side.stream.ask_key_frame(side.now))
            case "answer":
                self.each(lambda side: side.start(**value))
            case "look":
                self.compare()

    def rtcp(self, kind):
        packets = {
            "report": [ReceiverReport(7)],
            "sender": [SenderReport(7, ntp_time(500.0), self.film.timestamp, 1, 1)],
            "bye": [ReceiverReport(7), Bye((7, 8))],
            "collision": [ReceiverReport(self.sides[0].stream._sender.ssrc)],
        }[kind]
        data = compound(*packets)
        self.each(lambda side: side.stream.on_rtcp(data, side.now))

    def compare(self):
        plain, pumped = self.sides
        assert pumped.output() == plain.output()
        assert pumped.state() == plain.state()

    def close(self):
        self.each(VideoSide.close)
        plain, pumped = self.sides
        assert pumped.output() == plain.output()


few = st.lists(st.integers(0, 9), max_size=2)
pictures = st.fixed_dictionaries(
    {"kind": st.sampled_from(sorted(PICTURES))},
    optional={
        "ticks": st.sampled_from((0, 1, -TICKS, TICKS, 900_000, -900_000)),
        "octets": st.sampled_from((30, 200, 5000)),
        "marks": st.sampled_from(("none", "all")),
        "lost": few,
        "twice": few,
        "swapped": st.just(value=True),
    },
)
HEADERS = ({"first": 0x90}, {"first": 0xA0}, {"first": 0x81}, {"number": 72}, {"number": 8},
           {"step": 2}, {"step": 0}, {"step": -1}, {"step": 5000})  # fmt: skip
events = st.one_of(
    st.tuples(st.just("show"), pictures),
    st.tuples(st.just("show"), pictures),
    st.tuples(st.just("payload"), st.tuples(st.sampled_from(PAYLOADS), st.booleans())),
    st.tuples(st.just("payload"), st.tuples(st.binary(max_size=40), st.booleans())),
    st.tuples(st.just("header"), st.sampled_from(HEADERS)),
    st.tuples(st.just("cut"), st.integers(0, 14)),
    st.tuples(st.just("stranger"), st.sampled_from(OTHERS)),
    st.tuples(st.just("ssrc"), st.sampled_from((7, 8, "ours"))),
    st.tuples(st.just("wait"), st.sampled_from((0.0, 0.01, 0.07, 0.6, 6.0))),
    st.tuples(st.just("rtcp"), st.sampled_from(("report", "sender", "bye", "collision"))),
    st.tuples(st.just("ask"), st.none()),
    st.tuples(st.just("answer"), st.sampled_from(({}, {"port": 6002}, {"direction": "recvonly"}))),
    st.tuples(st.just("look"), st.none()),
)
steps = st.lists(st.tuples(st.integers(0, 4), events), max_size=25)


@pytest.mark.parametrize("feedback", [(), ("nack", "nack pli")])
@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps)
def test_both_show_the_same(feedback, drawn):
    """Own design: losses, other orders, markers, sources, answers and payloads of any kind."""
    pair = Pair(feedback)
    for count, (what, value) in drawn:
        for _ in range(count):
            pair.show("usual")
        pair.do(what, value)
        assert pair.sides[1].output() == pair.sides[0].output()
    pair.show("key")
    pair.show("long")
    pair.compare()
    pair.close()


@pytest.mark.parametrize("payload", PAYLOADS, ids=bytes.hex)
def test_one_odd_payload(payload):
    """Covers RFC 6184 §5: each payload that is not usual, alone and inside a picture."""
    for marker in (0, 1):
        pair = Pair()
        pair.show("usual")
        pair.hear(pair.film.packet(payload, marker))
        pair.show("key")
        pair.show("usual")
        pair.show("long")
        pair.hear(pair.film.packet(payload, marker))
        pair.show("usual")
        pair.compare()
        pair.close()


@pytest.mark.parametrize("kind", PICTURES)
def test_one_odd_picture(kind):
    """Own design: each make of a picture, whole and with one packet lost or late."""
    for more in ({}, {"lost": [1]}, {"lost": [-1]}, {"swapped": True}, {"marks": "all"}):
        pair = Pair(("nack", "nack pli"))
        pair.show("usual")
        pair.show(kind, octets=100, **more)
        pair.show("usual")
        pair.show("key")
        pair.show("usual")
        pair.compare()
        pair.close()


def test_a_picture_that_is_looked_at_halfway():
    """Own design: what waits for the rest of its access unit is counted, and not lost."""
    pair = Pair()
    first, *rest = pair.film.picture("long")
    pair.hear(first)
    pair.compare()
    for data in rest:
        pair.hear(data)
    pair.compare()
    pair.close()


def test_pictures_stay_in_c():
    """Own design: all packets but those of the first pictures, and one behind each look."""
    pair = Pair()
    for _ in range(100):
        pair.show("long")
    pumps = pair.pumps
    assert pumps.passed > 0.95 * (pumps.passed + pumps.handed)
    pair.compare()
    pair.close()


def test_a_picture_may_be_too_long():
    """Own design: more than the pump gathers is for Python, packet by packet."""
    pair = Pair()
    PICTURES["huge"] = [inter(7, 2_100_000)]
    try:
        pair.show("huge", octets=1000, gap=0.0)
    finally:
        del PICTURES["huge"]
    pair.show("usual")
    pair.compare()
    pair.close()

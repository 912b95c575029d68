"""The packet pump does what the annotated Python does: the same traffic through both."""

import struct
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.gateway.audio_rig import ALAW, SPEEX, ULAW
from support.pump.side import AUDIO, EVENTS, PEER, Pumps, Side

from p2psip.rtp.rtcp import Bye, ReceiverReport, SenderReport, compound, ntp_time
from siprtmp.media.sink import MediaSink
from siprtmp.media.translate.audio_formats import NARROWBAND, OPUS, PCMA, PCMU, WIDEBAND

pytestmark = pytest.mark.needs("gcc")

CODECS = {"pcmu": PCMU, "pcma": PCMA, "speex": NARROWBAND, "wideband": WIDEBAND, "opus": OPUS}
LIKE_RTCP = replace(PCMA, payload_type=72)  # with a marker, its packets look so: RFC 5761 §4
# One frame of narrowband mode 3, and one of mode 4 with a layer of mode 3: RFC 5574 §3.3.
NARROW, WIDE = b"\x18" + bytes(19), b"\x20" + bytes(26) + b"\x0b" + bytes(23) + b"\x07"
SOUND = {
    "pcmu": b"u" * 160,
    "pcma": b"a" * 160,
    "speex": NARROW,
    "wideband": WIDE,
    "opus": b"\x08opus",
}
# What a publisher's tags of them are: the same with other numbers, so that no comment may begin.
TAGS = {
    "pcmu": b"\x82" + b"u" * 160,
    "pcma": b"\x72" + b"a" * 160,
    "speex": b"\xb2" + NARROW[:1] + b"\1" * 19,
    "wideband": b"\xb6" + b"\x20" + b"\1" * 26 + b"\x0b" + b"\1" * 23 + b"\x07",
    "opus": b"\x91Opus\x08opus",
}
OTHERS = (("192.0.2.9", 6000), ("198.51.100.1", 5004), ("127.0.0.1", 5004))
OTHER_BYTES = (
    b"", b"\x00", b"\xff" * 9, SPEEX[1:] * 2, b"\x0bx", b"\x0b\x00", b"p" * 4096,
    b"p" * 4095, ULAW, NARROW[:-1], WIDE[:-1],
    WIDE[:27] + b"\x0f" + bytes(24), WIDE[:27] + b"\x03" + bytes(24),
    b"\x48" + bytes(19),
    b"\x79" + bytes(4), NARROW + b"\x0f", NARROW[:-1] + b"\x01",
)  # fmt: skip


class Phone:
    """What a phone sends: numbers that go on, and what may be wrong with them."""

    def __init__(self, kind):
        self.codec, self.sound = CODECS[kind], SOUND[kind]
        self.sequence, self.timestamp, self.ssrc = 65_500, 1 << 31, 7

    def packet(self, step=1, ticks=None, first=0x80, payload_type=None, payload=None, marker=0):
        self.sequence = self.sequence + step & 0xFFFF
        ticks = step * self.codec.clock_rate // 50 if ticks is None else ticks
        self.timestamp = self.timestamp + ticks & 0xFFFFFFFF
        number = self.codec.payload_type if payload_type is None else payload_type
        second = number | marker << 7
        head = struct.pack("!BBHII", first, second, self.sequence, self.timestamp, self.ssrc)
        return head + (self.sound if payload is None else payload)


class Publisher:
    """What a publisher sends: times that go on, and what may be wrong with them."""

    def __init__(self, kind):
        self.tag, self.timestamp = TAGS[kind], 1000

    def message(self, ms=20, tag=None, cut=None, type_id=AUDIO):
        self.timestamp = self.timestamp + ms & 0xFFFFFFFF
        return type_id, self.timestamp, (self.tag if tag is None else tag)[:cut]


ANSWERS = (5004, 5006, "hold", "law", "both", "speex", "mux")  # ports, and other changes

ODDITIES = {
    "step": (2, 3, 0, -1, -2, 12, 5000),
    "ticks": (0, 160, -160, 1 << 20, -(1 << 20), 1 << 31, 40_000, 40_001, 240_001, 7, -7),
    "first": (0x81, 0x90, 0xA0, 0x00, 0x40),
    "payload_type": (0, 8, 13, 72, EVENTS, 96, 98, 111),
    "payload": OTHER_BYTES,
    "marker": (1,),
}
odd_values = {name: st.sampled_from(values) for name, values in ODDITIES.items()}
odd_values["payload"] |= st.binary(max_size=40)
one_oddity = st.one_of([st.fixed_dictionaries({name: of}) for name, of in odd_values.items()])
odd_packet = st.tuples(
    st.just("packet"), one_oddity | st.fixed_dictionaries({}, optional=odd_values)
)
MESSAGES = {
    "ms": (0, 10, 19, 21, 40, 60, 61, 62, 100, 6000, 20_000, -1, -20, -22, -6000, 1 << 31),
    "tag": (
        b"", b"\x82", b"\x82" + b"u" * 161, b"\x82" + b"u" * 320, b"\x82" + b"u" * 66_000,
        b"\x72" + b"a" * 160, b"\x83" + b"u" * 160, b"\xb2" + SPEEX[1:], b"\xb2" + SPEEX[1:] * 2,
        *TAGS.values(), b"\xb2" + TAGS["wideband"][1:], b"\xb2" + NARROW,
        b"\xb6Speex   " + bytes(72), b"\x91Opus",
        b"\x91Opus\x0b\x00", b"\x90OpusOpusHead", b"\x92Opus", b"\xaf\x01aac",
    ),
    "cut": (0, 1, 2, 5, 6, -1),
    "type_id": (9, 18),
}  # fmt: skip
message_values = {name: st.sampled_from(values) for name, values in MESSAGES.items()}
one_message = st.one_of([st.fixed_dictionaries({name: of}) for name, of in message_values.items()])
messages = st.one_of(
    st.tuples(st.just("message"), one_message),
    st.tuples(st.just("message"), one_message),
    st.tuples(st.just("burst"), st.integers(2, 40)),
    st.tuples(st.just("pace"), st.sampled_from((0.0199, 0.02, 0.0201, 0.019))),
    st.tuples(st.just("press"), st.sampled_from(("1", "23"))),
    st.tuples(st.just("hush"), st.booleans()),
    st.tuples(st.just("listen"), st.none()),
    st.tuples(st.just("unpublish"), st.none()),
)
packets = st.one_of(
    odd_packet,
    odd_packet,
    odd_packet,
    st.tuples(st.just("cut"), st.integers(0, 13)),
    st.tuples(st.just("stranger"), st.sampled_from(OTHERS)),
    st.tuples(st.just("bytes"), st.binary(max_size=60)),
    st.tuples(st.just("ssrc"), st.sampled_from((7, 8, "ours"))),
    st.tuples(st.just("key"), st.integers(0, 15)),
)
events = st.one_of(
    st.tuples(st.just("rtcp"), st.sampled_from(("report", "sender", "bye", "broken", "collision"))),
    st.tuples(st.just("wait"), st.sampled_from((0.0, 0.001, 0.06, 0.3, 4.0, 40.0))),
    st.tuples(st.just("look"), st.none()),
    st.tuples(st.just("join"), st.integers(1, 2)),
    st.tuples(st.just("leave"), st.none()),
    st.tuples(st.just("pause"), st.booleans()),
    st.tuples(st.just("mute"), st.booleans()),
    st.tuples(st.just("slow"), st.sampled_from((0, 1, 100, 10_000_000))),
    st.tuples(st.just("tap"), st.none()),
    st.tuples(st.just("end"), st.none()),
    st.tuples(st.just("picture"), st.booleans()),
    st.tuples(st.just("text"), st.none()),
    st.tuples(
        st.just("answer"), st.sampled_from((5004, 5006, "hold", "law", "both", "speex", "mux"))
    ),
    st.tuples(st.just("publish"), st.sampled_from((ULAW, ALAW, b"\xb2" + SPEEX[1:]))),
    st.tuples(st.just("timeline"), st.none()),
    st.tuples(st.just("elsewhere"), st.none()),
)
# how many usual packets come first, and then what
steps = st.tuples(
    st.integers(0, 14), st.one_of(packets, packets, packets, messages, messages, events)
)


class Pair:
    """Both sides, and the phone that they hear."""

    def __init__(self, kind, nat=False):
        self.phone, self.publisher = Phone(kind), Publisher(kind)
        self.time, self.pace = 0.0, 0.0201
        codec, self.pump = CODECS[kind], Pumps()
        self.sides = (Side(codec, nat=nat), Side(codec, nat=nat, pump=self.pump))

    def each(self, do):
        for side in self.sides:
            side.now = self.time
            do(side)
        self.time = self.sides[0].now

    def hear(self, data, source=PEER):
        self.each(lambda side: side.take(data, source))

    def say(self, **what):
        message = self.publisher.message(**what)
        self.each(lambda side: side.publish(*message))

    def usual(self, count):
        for _ in range(count):
            self.each(lambda side: side.wait(self.pace))
            self.hear(self.phone.packet())
            self.say()

    @property
    def sent(self):
        """How many packets the pump has sent to the phone."""
        return sum(each.passed for each in self.pump.outlets)

    def do(self, what, value):
        phone, each = self.phone, self.each
        match what:
            case "packet":
                self.hear(phone.packet(**value))
            case "cut":
                self.hear(phone.packet()[:value])
            case "stranger":
                self.hear(phone.packet(), value)
            case "bytes":
                self.hear(value)
            case "ssrc":
                ours = self.sides[0].stream._session.ssrc
                phone.ssrc = ours if value == "ours" else value
            case "key":
                event = struct.pack("!BBH", value, 0x80, 800)
                self.hear(phone.packet(payload_type=EVENTS, payload=event))
            case "message":
                each(lambda side: side.wait(self.pace))
                self.say(**value)
            case "burst":
                for _ in range(value):
                    self.say()
            case "pace":
                self.pace = value
            case "rtcp":
                self.rtcp(value)
            case "wait":
                each(lambda side: side.wait(value))
            case "look":
                self.compare()
            case "answer":
                self.answer(value)
            case "publish":
                at = int(self.time * 1000)
                each(lambda side: side.stream.publish(AUDIO, at, value, side.now))
            case "timeline":
                each(lambda side: side.told.append(side.stream.shared.timeline.arrival(side.now)))
            case _:
                each(lambda side: self.happen(side, what, value))

    def rtcp(self, kind):
        source = 0xBAD if kind != "collision" else self.sides[0].stream._session.ssrc
        packets = {
            "report": [ReceiverReport(7)],
            "sender": [SenderReport(7, ntp_time(500.0), self.phone.timestamp, 1, 1)],
            "bye": [ReceiverReport(7), Bye((7, 8))],
            "broken": None,
            "collision": [ReceiverReport(source)],
        }[kind]
        data = b"\x80\xc9" if packets is None else compound(*packets)
        self.each(lambda side: side.stream.on_rtcp(data, side.now))

    def answer(self, how):
        codecs = {
            "law": (PCMA,),
            "both": (PCMU, PCMA),
            "speex": (WIDEBAND,),
            "mux": (PCMU, LIKE_RTCP),
        }.get(how, (self.phone.codec,))
        if how == "law":
            self.phone.codec, self.phone.sound = PCMA, SOUND["pcma"]
        elif how == "mux":
            self.phone.codec, self.phone.sound = LIKE_RTCP, SOUND["pcma"]
        elif how == "speex":
            self.phone.codec, self.phone.sound = WIDEBAND, SOUND["wideband"]
        options = {"direction": "sendonly"} if how == "hold" else {}
        if isinstance(how, int):
            options["port"] = how
        self.each(lambda side: side.start(*codecs, **options))

    @staticmethod
    def happen(side, what, value):
        live, players, now, stream = side.live, side.players, side.now, side.stream
        match what:
            case "join":
                side.join(value)
            case "leave":
                side.leave()
            case "pause" if players:
                players[0].select(paused=value)
            case "mute" if players:
                players[0].select(audio=value)
            case "slow":
                side.outlets[-1].wait(value)
            case "tap" if live.publishing:
                side.tap()
            case "end":
                live.end(now)
            case "picture":
                live.write(
                    9, int(now * 1000), b"\x17\x01\x00\x00\x00key" if value else b"\x27x", now
                )
            case "text":
                live.write(18, 0, b"\x02\x00\x0aonMetaData\x05", now)
            case "press":
                side.told.append(stream.press(value, now))
            case "hush":
                stream.mute("test", value)
            case "listen":
                stream.tap(lambda codec, payload: side.told.append((codec, payload)))
            case "unpublish":
                stream.publish_ended(now)
            case "elsewhere":
                sink = MediaSink()
                sink.takes_opus, sink.on_tag = True, lambda *tag: side.told.append(tag)
                side.stream.give_to(sink)

    def compare(self):
        plain, pumped = self.sides
        assert pumped.output() == plain.output()
        assert pumped.state() == plain.state()

    def close(self):
        self.each(Side.close)
        plain, pumped = self.sides
        assert pumped.output() == plain.output()


@pytest.mark.parametrize("nat", [False, True])
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(sorted(CODECS)), st.lists(steps, max_size=40))
def test_both_do_the_same(nat, kind, drawn):
    """Own design: loss, strangers, keys, reports, new answers, players that come and go."""
    pair = Pair(kind, nat)
    pair.usual(5)
    for count, (what, value) in drawn:
        pair.usual(count)
        pair.do(what, value)
        assert pair.sides[1].output() == pair.sides[0].output()
    pair.usual(5)
    pair.compare()
    pair.close()


@pytest.mark.parametrize("kind", CODECS)
@pytest.mark.parametrize("name", ODDITIES)
def test_one_odd_packet(name, kind):
    """Own design: each value that a header or a payload may have among usual packets."""
    for value in ODDITIES[name]:
        pair = Pair(kind)
        pair.usual(5)
        pair.hear(pair.phone.packet(**{name: value}))
        pair.usual(3)
        pair.hear(pair.phone.packet(**{name: value}))
        pair.usual(20)
        pair.compare()
        pair.close()


@pytest.mark.parametrize("what", ["cut", "answer", "stranger"])
def test_other_oddities(what):
    """Own design: datagrams that end early, new answers, and other sources."""
    values = {"cut": range(14), "answer": ANSWERS, "stranger": OTHERS}[what]
    for value in values:
        pair = Pair("pcmu")
        pair.usual(5)
        pair.do(what, value)
        pair.usual(5)
        pair.do("packet", {"marker": 1})
        pair.usual(5)
        pair.compare()
        pair.close()


@pytest.mark.parametrize("kind", CODECS)
@pytest.mark.parametrize("name", MESSAGES)
def test_one_odd_message(name, kind):
    """Own design: each time and body that a message may have among usual ones."""
    for value in MESSAGES[name]:
        pair = Pair(kind)
        pair.usual(5)
        pair.do("message", {name: value})
        pair.usual(3)
        pair.do("message", {name: value})
        pair.usual(20)
        pair.compare()
        pair.close()


def test_time_ends():
    """Own design: beyond what 24 bits say, a header has more octets (RTMP 1.0 §5.3.1.3)."""
    pair = Pair("pcmu")
    for at in (16_777.0, 16_777.3, 16_778.0):
        pair.time = at
        pair.usual(5)
        pair.phone.ssrc += 1  # another source, which begins at the time of its arrival
    pair.usual(5)
    pair.compare()
    pair.close()


@pytest.mark.parametrize("kind", CODECS)
def test_usual_packets_stay_in_c(kind):
    """Own design: both ways, but the first two, and one behind each look and each report."""
    pair = Pair(kind)
    pair.usual(500)
    pair.compare()
    pair.usual(500)
    assert pair.pump.passed + pair.pump.handed == 1000
    assert pair.pump.passed > 985 and pair.sent > 985
    pair.compare()
    pair.close()


def test_a_loss_costs_no_packets_of_python():
    """Own design: with one packet of a hundred lost, or in another order, all wait in C."""
    pair = Pair("pcmu")
    for number in range(50):
        pair.usual(98)
        lost = pair.phone.packet()
        if number % 2:
            pair.hear(pair.phone.packet())
            pair.hear(lost)
        else:
            pair.usual(1)
        pair.each(lambda side: side.wait(0.0))
    pair.compare()
    assert pair.pump.passed > 0.98 * (pair.pump.passed + pair.pump.handed)
    pair.close()


@pytest.mark.parametrize("count", [9, 10, 11, 40])
def test_many_early_packets_at_once(count):
    """Own design: more than may wait give up the lost one before its time is over."""
    pair = Pair("pcmu")
    pair.usual(5)
    pair.phone.packet()
    for _ in range(count):
        pair.hear(pair.phone.packet())
        assert pair.sides[1].output() == pair.sides[0].output()
    assert pair.pump.passed > count
    pair.usual(5)
    pair.compare()
    pair.close()


def test_the_last_report_counts_what_stayed_in_c():
    """Own design: the report before a BYE (RFC 3550 §6.6) tells of all packets."""
    pair = Pair("pcmu")
    pair.do("publish", ULAW)
    pair.usual(20)
    assert pair.pump.passed
    pair.close()
    pair.compare()

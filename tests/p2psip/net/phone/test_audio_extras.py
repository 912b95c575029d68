"""Comfort noise and redundant audio of a phone: silence, and sound that a lost packet had."""

import pytest

from p2psip.errors import RemoteError
from p2psip.net.media.port_pool import PortPool
from p2psip.net.phone.audio import WRAP, AudioStream
from p2psip.net.phone.audio_codecs import audio_codec
from p2psip.rtp import fast
from p2psip.rtp.payload.comfort_noise import ComfortNoise
from p2psip.rtp.payload.red import RedundantPayload
from p2psip.sdp.session import SessionDescription

LOOPBACK = "127.0.0.1"


class End:
    """One phone's sound; what it sends is kept in `sent`, what it hears in `heard`."""

    def __init__(self, *codecs):
        self.heard, self.sent = [], []
        self.stream = AudioStream(
            LOOPBACK,
            [audio_codec(name) for name in codecs],
            PortPool(),
            lambda payload, timestamp: self.heard.append((payload, timestamp)),
            lambda event, rate: None,
            lambda: None,
        )
        self.stream._transport.send_rtp = self.sent.append


@pytest.fixture
def ends():
    """Makes two phones with these codecs that have agreed."""
    made = []

    def make(*codecs):
        made.extend([End(*codecs), End(*codecs)])
        alice, bob = made[-2:]
        answer = bob.stream.answer(alice.stream.offer())
        alice.stream.conclude(answer)
        return alice, bob

    yield make
    for each in made:
        each.stream.close()


def test_a_lost_packet_is_heard_by_the_next_one(ends):
    """Covers RFC 2198 §3 [same-clock] [copy-of-the-primary] [no-more-bandwidth]: each packet has
    the sound before it as well, with its time.
    """
    alice, bob = ends("PCMU", "red")
    frames = [bytes([number]) * 160 for number in range(6)]
    for frame in frames:
        assert alice.stream.send(frame)
    kinds = [fast.unpack(datagram)[0] for datagram in alice.sent]
    assert set(kinds) == {kinds[0]} and kinds[0] >= 96
    *_, start, end = fast.unpack(alice.sent[-1])
    whole = RedundantPayload.parse(alice.sent[-1][start:end])
    assert [(each.payload_type, each.data) for each in whole.older] == [(0, frames[-2])]
    assert whole.payload_type == 0
    now = 1.0
    for number, datagram in enumerate(alice.sent):
        if number not in (2, 4):
            bob.stream._on_rtp(datagram, now)
        now += 0.1
        bob.stream.tick(now)
    assert [payload for payload, _ in bob.heard] == frames
    times = [timestamp for _, timestamp in bob.heard]
    assert [time - times[0] & 0xFFFFFFFF for time in times] == [160 * n for n in range(6)]


def test_two_in_a_row_are_lost_and_nothing_comes_twice(ends):
    alice, bob = ends("PCMU", "red")
    frames = [bytes([number]) * 160 for number in range(6)]
    for frame in frames:
        alice.stream.send(frame)
    now = 1.0
    for number, datagram in enumerate(alice.sent):
        if number not in (2, 3):
            bob.stream._on_rtp(datagram, now)
        now += 0.1
        bob.stream.tick(now)
    assert [payload for payload, _ in bob.heard] == [frames[n] for n in (0, 1, 3, 4, 5)]


def test_the_offer_names_what_is_redundant(ends):
    """Covers RFC 2198 §5."""
    alice, _ = ends("PCMA", "red")
    [line] = SessionDescription.parse(alice.stream.offer()).media
    fmtps = [each.value for each in line.attributes if each.name == "fmtp"]
    assert any(value.endswith(" 8/8") for value in fmtps)


def test_comfort_noise_is_silence(ends):
    """Covers RFC 3389 §5: it is no sound of the codec, and sound goes on after it."""
    alice, bob = ends("PCMU", "CN")
    session = alice.stream._session
    bob.stream._on_rtp(session.send(0, b"a" * 160, 0, True, 0.0), 0.0)
    bob.stream._on_rtp(session.send(13, bytes(ComfortNoise(60)), 160, False, 0.0), 0.0)
    bob.stream._on_rtp(session.send(0, b"b" * 160, 1600, True, 0.0), 0.0)
    assert [payload[:1] for payload, _ in bob.heard] == [b"a", b"b"]


@pytest.fixture
def clock(monkeypatch):
    """The time of a phone's sound, which `clock[0]` sets."""
    now = [1000.0]
    monkeypatch.setattr("p2psip.net.phone.audio.monotonic", lambda: now[0])
    return now


def run(end, clock, until):
    """Let a phone do what is due; [(time, payload type, marker, timestamp, payload)] it sent."""
    said = []
    while (at := end.stream.deadline) is not None and at <= until:
        clock[0] = max(clock[0], at)
        end.sent.clear()
        end.stream.tick(clock[0])
        for datagram in end.sent:
            kind, marker, _, timestamp, _, start, stop = fast.unpack(datagram)
            said.append((clock[0], kind, marker, timestamp, datagram[start:stop]))
    clock[0] = until
    return said


def talk(end, clock, count=5):
    """Send packets of 20 ms in time; the timestamp of the end of the last one, and its marker."""
    end.sent.clear()
    for _ in range(count):
        end.stream.send(b"a" * 160)
        clock[0] += 0.02
    return fast.unpack(end.sent[-1])[3] + 160 & WRAP, bool(fast.unpack(end.sent[0])[1])


def test_a_pause_of_ours_is_told_by_comfort_noise(clock, ends):
    """Covers RFC 3389 §4 [as-a-codec-of-its-own] [no-marker] [type-13-at-8000]."""
    alice, _bob = ends("PCMU", "CN")
    alice.stream._transport.send_rtcp = lambda data: None
    assert run(alice, clock, clock[0] + 3.0) == []  # nobody has spoken yet
    end, begins = talk(alice, clock)
    paused = clock[0]
    said = run(alice, clock, paused + 3.0)
    assert begins and [(kind, bool(marker)) for _, kind, marker, *_ in said] == [(13, False)] * 3
    assert {payload for *_, payload in said} == {bytes(ComfortNoise(70))}
    times = [at - paused for at, *_ in said]
    assert times == pytest.approx([0.18, 1.18, 2.18])
    assert [stamp - end & WRAP for *_, stamp, _ in said] == pytest.approx([0, 9600, 17600], abs=2)
    _end, begins = talk(alice, clock, 1)
    assert begins  # a talk spurt


def test_without_an_agreement_a_pause_is_nothing(clock, ends):
    alice, _bob = ends("PCMU")
    alice.stream._transport.send_rtcp = lambda data: None
    talk(alice, clock)
    assert run(alice, clock, clock[0] + 3.0) == []


def test_keys_and_hold_are_no_pauses(clock, ends):
    alice, bob = ends("PCMU", "CN")
    for each in (alice, bob):
        each.stream._transport.send_rtcp = lambda data: None
    talk(alice, clock)
    assert alice.stream.press("1", 3.0)
    assert 13 not in {kind for _, kind, *_ in run(alice, clock, clock[0] + 2.0)}
    run(alice, clock, clock[0] + 3.0)
    bob.stream.direction = "inactive"
    alice.stream.answer(bob.stream.offer())
    assert alice.stream.held and run(alice, clock, clock[0] + 3.0) == []


def test_broken_redundancy_is_passed_over(ends):
    alice, bob = ends("PCMU", "red")
    kind = bob.stream._media.receive_payload_types[1]
    session = alice.stream._session
    for number, payload in enumerate((b"", b"\x80", b"\x85\x02\x80\xff\x00", bytes([kind]) + b"x")):
        bob.stream._on_rtp(session.send(kind, payload, 160 * number, False, 0.0), 0.0)
    assert bob.heard == []


def test_without_a_codec_of_sound_there_is_no_call(ends):
    """Covers RFC 3264 §6: noise and redundancy say nothing alone."""
    offer = End("CN", "red")
    answer = End("CN", "red", "PCMU")
    with pytest.raises(RemoteError) as refused:
        answer.stream.answer(offer.stream.offer())
    assert refused.value.status == 488
    for each in (offer, answer):
        each.stream.close()


def test_sound_comes_first_whatever_the_order(ends):
    alice, bob = ends("CN", "PCMU")
    assert alice.stream.codec.name == bob.stream.codec.name == "PCMU"
    alice.stream.send(b"a" * 160)
    assert fast.unpack(alice.sent[0])[0] == 0

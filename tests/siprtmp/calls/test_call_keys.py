"""Keys that a client presses, and keys of its phone, by either way of sending them."""

import struct
import time
from itertools import pairwise

import pytest
from support.gateway.gateway_world import AUDIO, BOB, PCMU, sdp

from p2psip.errors import RemoteError
from p2psip.rtp import fast
from p2psip.rtp.payload.dtmf import TelephoneEvent
from siprtmp.calls.call_info import MEDIA_CONTROL
from siprtmp.media.dtmf import key_of

EVENTS = sdp(PCMU, "101", maps=("101 telephone-event/8000",), more=("fmtp:101 0-15",))
RELAY = "application/dtmf-relay"


def packets(world):
    """(payload type, marker, sequence, timestamp, payload, time) of all that the phone was sent."""
    found = []
    for at, data in world.gateway.media.sent:
        kind, marker, sequence, stamp, _, start, end = fast.unpack(data)
        found.append((kind, marker, sequence, stamp, data[start:end], at))
    return found


def report(number, digit, duration, stamp, end=False):
    """A report of an event as the phone sends it."""
    event = bytes(TelephoneEvent.of(digit, duration, end=end))
    return struct.pack("!BBHII", 0x80, 101, number, stamp, 7) + event


def refusals(desk):
    """The refusals of the phone's requests, from now on."""
    found = []
    desk.on_refused = lambda call, request, response, now: found.append(response)
    return found


@pytest.fixture
def talking(world, desk, alice):
    """Alice's call to a phone that has agreed on telephone events, with sound."""
    desk.answers = EVENTS
    alice.call("invite", BOB, "pcmu", "dtmf")
    world.wait()
    assert alice.heard() == [("accepted", "pcmu", None)]
    return alice.peer.publish("local")


def talk(world, alice, local, start, count):
    """Publish so many packets of sound in their time."""
    for i in range(start, start + count):
        alice.peer.write(AUDIO, 20 * i, local, b"\x82" + bytes(160))
        world.wait(0.02)


def test_keys_leave_in_the_stream_of_the_sound(world, alice, talking):
    """Covers RFC 4733 §2.5.1.2 [same-base-as-audio] and §2.5.1.1 [only-events-listed]."""
    talk(world, alice, talking, 0, 10)
    alice.call("sendDTMF", "5#")
    talk(world, alice, talking, 10, 40)
    sent = packets(world)
    numbers = [number for _, _, number, *_ in sent]
    assert {(b - a) & 0xFFFF for a, b in pairwise(numbers)} == {1}
    events = [each for each in sent if each[0] == 101]
    keys = [TelephoneEvent.parse(payload) for *_, payload, _ in events]
    assert [key.digit for key in keys if key.end] == ["5"] * 3 + ["#"] * 3
    assert max(key.duration for key in keys) == 800
    first, second = dict.fromkeys(stamp for _, _, _, stamp, *_ in events)
    assert second - first & 0xFFFFFFFF > 800  # two keys, not one
    before, after = sent[9], next(each for each in sent[10:] if each[0] == 0)
    # the keys have the time at which sound was left out, and sound goes on in its own time
    late = after[5] - before[5]
    assert (after[3] - before[3]) & 0xFFFFFFFF == round(8000 * late)
    assert after[1] and 160 <= (first - before[3]) & 0xFFFFFFFF <= 320
    assert (after[3] - second) & 0xFFFFFFFF > 800 and world.is_clean()


def test_keys_are_as_long_by_the_clock_that_the_phone_agreed_on(world, desk, alice):
    """Covers Field §"Events by one clock or the other"."""
    desk.answers = sdp("96", "103", maps=("96 speex/16000", "103 telephone-event/16000"))
    alice.call("invite", BOB, "wideband", "dtmf")
    world.wait()
    alice.call("sendDTMF", "5")
    world.wait(1.0)
    keys = [TelephoneEvent.parse(payload) for kind, *_, payload, _ in packets(world) if kind == 103]
    assert [key.duration for key in keys if key.end] == [1600] * 3 and world.is_clean()


def test_sound_is_left_out_while_a_key_is_down(world, alice, talking):
    """Covers RFC 4733 §2.5.1.2.

    Covers Field §"Sound under a key".
    """
    talk(world, alice, talking, 0, 5)
    alice.call("sendDTMF", "1")
    talk(world, alice, talking, 5, 30)
    kinds = [kind for kind, *_ in packets(world)]
    first, last = kinds.index(101), len(kinds) - kinds[::-1].index(101)
    assert set(kinds[first:last]) == {101} and kinds[last:].count(0) > 10
    assert alice.heard() == [] and world.is_clean()


def test_keys_without_any_sound(world, alice, talking):
    """Covers RFC 4733 §2.5.1.2: a listener presses keys too."""
    alice.call("sendDTMF", "12")
    world.wait(2.0)
    sent = packets(world)
    assert {kind for kind, *_ in sent} == {101}
    assert len({stamp for _, _, _, stamp, *_ in sent}) == 2 and world.is_clean()


def test_a_phone_that_knows_no_events_gets_an_info_for_each_key(world, desk, alice):
    """Covers RFC 6086 §4.2.1: one at a time, in their order.

    Covers Field §"Keys by INFO".
    """
    alice.call("invite", BOB, "pcmu", "dtmf")
    world.wait()
    alice.call("sendDTMF", "5 *x")
    world.wait(0.1)
    assert desk.log[-1][2:] == (RELAY, b"Signal=5\r\nDuration=100\r\n")
    world.wait(1.0)
    bodies = [body for name, *_, body in desk.log if name == "info"]
    assert bodies == [b"Signal=5\r\nDuration=100\r\n", b"Signal=*\r\nDuration=100\r\n"]
    assert world.is_clean()


def test_a_key_that_the_phone_has_not_listed_goes_by_info(world, desk, alice):
    """Covers RFC 4733 §2.5.1.1 [only-events-listed]."""
    desk.answers = EVENTS.replace(b"0-15", b"0-11")
    alice.call("invite", BOB, "pcmu", "dtmf")
    world.wait()
    alice.call("sendDTMF", "A")
    world.wait(1.0)
    assert [each[0] for each in packets(world)] == []
    assert desk.log[-1][3].startswith(b"Signal=A") and world.is_clean()


@pytest.mark.parametrize("digits", [(), (None,), (7.0,), ("",), ("x",)])
def test_no_keys_at_all(world, alice, talking, digits):
    """Own design: what is no key is left out."""
    alice.call("sendDTMF", *digits)
    world.wait(1.0)
    assert packets(world) == [] and world.is_clean()


def test_keys_before_and_after_a_call_are_dropped(world, desk, alice):
    """Covers RFC 6086 §4.2.1: there is a call, or there is no INFO."""
    alice.call("sendDTMF", "1")
    desk.answers = b""
    alice.call("invite", BOB, "pcmu")
    world.wait()
    alice.call("sendDTMF", "1")
    world.wait(1.0)
    alice.call("bye")
    world.wait(1.0)
    assert "info" not in desk.events() and world.is_clean()


def test_no_end_of_keys_is_bounded(world, alice, desk):
    """Own design: more keys than anybody waits for."""
    alice.call("invite", BOB, "pcmu")
    world.wait()
    alice.call("sendDTMF", "1" * 1000)
    world.wait(60.0)
    assert desk.events().count("info") == 64 and world.is_clean()


def test_each_key_of_the_phone_is_told_once(world, alice, talking):
    """Covers RFC 4733 §2.5.2.2: at its beginning, whatever is repeated or lost."""
    leg = world.gateway.audio
    for number, data in enumerate([("1", 160, 0), ("1", 320, 0), ("1", 800, 0, True)]):
        leg.on_rtp(report(number, *data), world.now)
    world.run()
    assert alice.heard() == [("dtmf", "1")]
    leg.on_rtp(report(3, "1", 800, 0, True), world.now)
    leg.on_rtp(report(4, "1", 160, 4000), world.now)
    leg.on_rtp(report(5, "D", 160, 9000), world.now)
    leg.on_rtp(report(6, "D", 160, 9000) + b"odd", world.now)
    world.run()
    assert alice.heard() == [("dtmf", "1"), ("dtmf", "D")] and world.is_clean()


@pytest.mark.parametrize(
    ("kind", "body", "told"),
    [
        (RELAY, b"Signal=5\r\nDuration=160\r\n", ["5"]),
        (RELAY, b"Signal= #\nDuration= 160\n", ["#"]),
        (RELAY, b"Duration=160\r\nSignal=a", ["A"]),
        ("application/DTMF-relay; x=y", b"Signal=*\r\n", ["*"]),
        ("application/dtmf", b"7\r\n", ["7"]),
        (RELAY, b"Signal=10\r\nDuration=160\r\n", ["*"]),
        (RELAY, b"Signal=11\r\n", ["#"]),
        (RELAY, b"signal=5\r\nduration=100\r\n", ["5"]),
        (RELAY, b"SIGNAL = 12\r\n", ["A"]),
        (RELAY, b'Signal="5"\r\n', ["5"]),
        (RELAY, b"Signal=16\r\n", []),  # a flash
        ("application/dtmf", b"10", ["*"]),
        ("application/dtmf", b"d=5", ["5"]),
        ("application/dtmf", b"Signal=5\r\nDuration=100", ["5"]),
        ("application/vnd.nortelnetworks.digits", b"p=Digit-Collection\r\ny=D\r\nd=#\r\n", ["#"]),
        ("audio/telephone-event", bytes.fromhex("0b0a0320"), ["#"]),
        ("audio/telephone-event", b"\0\x0a\x03\x20", ["0"]),
        ("audio/telephone-event", bytes.fromhex("100a0320"), []),
        ("audio/telephone-event", b"5\r\n", ["5"]),
        (RELAY, b"", []),
        ("", b"", []),
    ],
)
def test_keys_that_come_by_info(world, desk, alice, talking, kind, body, told):
    """Covers RFC 6086 §4.2.2: of a phone that sends no events.

    Covers Field §"Keys by INFO".
    """
    refused = refusals(desk)
    desk.calls[-1].info(kind, body, world.now)
    world.wait()
    assert alice.heard() == [("dtmf", digit) for digit in told]
    assert refused == [] and world.is_clean()


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        (RELAY, b"Signal=17\r\n", 400),
        (RELAY, b"Signal=\r\n", 400),
        (RELAY, b"\xff\xfe", 400),
        ("application/dtmf", b"\xb5", 400),
        ("application/dtmf", b"55", 400),
        ("audio/telephone-event", b"\x11\x0a\x03\x20", 400),
        ("text/plain", b"5", 415),
        ("application/x-unheard-of", b"Signal=5", 415),
    ],
)
def test_what_is_not_understood_is_refused(world, desk, alice, talking, kind, body, status):
    """Covers RFC 3261 §8.2.3 [415-for-the-body] [415-says-accept]: the phone may try another way.

    Covers Field §"Keys by INFO".
    """
    refused = refusals(desk)
    desk.calls[-1].info(kind, body, world.now)
    world.wait()
    [response] = refused
    assert response.status == status
    accepted = response.headers.get("Accept", "")
    assert (RELAY in accepted and MEDIA_CONTROL in accepted) == (status == 415)
    assert alice.heard() == [] and desk.calls[-1].is_up and world.is_clean()


@pytest.mark.parametrize("unit", [b" ", b"\t", b"\n", b"Signal=", b"d= ", b'1 "', b"1"])
def test_no_body_takes_long(unit):
    """Own design: each octet is looked at a few times, whatever a phone sends."""
    data = unit * (60_000 // len(unit)) + b"x"
    deadline = time.process_time() + 5  # a search in square time takes minutes
    with pytest.raises(RemoteError):
        key_of(data)
    assert time.process_time() < deadline


def test_what_is_optional_is_passed_over(world, desk, alice, talking):
    """Covers RFC 3261 §8.2.3 [415-for-the-body]: but not what its sender calls optional."""
    phone, refused = desk.calls[-1], refusals(desk)
    request = phone.leg.shared.new_request("INFO", b"5", "text/plain")
    optional = request.headers.append("Content-Disposition", "render;handling=optional")
    phone.exchange(request.replace(headers=optional), world.now)
    world.wait()
    assert refused == [] and phone.is_up and world.is_clean()

"""Packets of the startup: one datagram, or several in good time, and never too many."""

import pytest
from support.rtmfp.pair import PlainCipher

from rtmplite.errors import RemoteError
from rtmplite.rtmfp.endpoint.rate_limiter import KEY_BYTES
from rtmplite.rtmfp.endpoint.startup_packets import StartupPackets
from rtmplite.rtmfp.wire.chunks import encode_chunk
from rtmplite.rtmfp.wire.control_chunks import Fragment, Ping
from rtmplite.rtmfp.wire.packet import Mode, Packet, scramble, unscramble
from rtmplite.rtmfp.wire.startup_chunks import InitiatorHello, ResponderHello

NEAR, FAR = ("192.0.2.1", 1935), ("198.51.100.7", 40000)
HELLO = InitiatorHello(b"epd", b"tag")


def packets(secret=bytes(KEY_BYTES)):
    return StartupPackets(PlainCipher(), secret, 8)


def large(size):
    return ResponderHello(b"tag", b"cookie", bytes(size))


def exchanged(sender, receiver, now=0.0):
    """The chunks that come of what `sender` has to send."""
    chunks = []
    for datagram, _ in sender.take():
        session_id, encrypted = unscramble(datagram)
        chunks += receiver.open(encrypted, NEAR, session_id, now)
    return [chunk for chunk in chunks if not isinstance(chunk, Fragment)]


def test_a_chunk_travels_in_a_packet_of_the_startup_with_the_default_key():
    """Covers RFC 7016 §3.3 [default-key-for-zero], §2.2.2 [session-0]."""
    near = packets()
    assert near.send(HELLO, FAR, 100.0)
    assert near.send(HELLO, FAR, 100.0, session_id=5)
    (first, to), (second, _) = near.take()
    assert to == FAR
    session_id, encrypted = unscramble(first)
    packet = Packet.parse(PlainCipher().open(encrypted))
    assert (session_id, packet) == (0, Packet(Mode.STARTUP, (HELLO,), timestamp=25_000))
    assert unscramble(second)[0] == 5
    assert near.take() == []


def test_packets_of_sessions_are_no_startup():
    """Covers RFC 7016 §3.3 [default-key-for-zero]: neither other modes nor other keys."""
    receiver = packets()
    session = PlainCipher().seal(Packet(Mode.INITIATOR, (Ping(),)).encode())
    assert receiver.open(session, NEAR, 0, 0.0) == ()
    with pytest.raises(RemoteError):
        receiver.open(b"other keys", NEAR, 0, 0.0)


def test_what_is_too_large_for_a_datagram_is_cut_and_put_together():
    """Covers RFC 7016 §3.4 [only-unavoidable] [startup-only] [fragment-mode].

    Covers RFC 7016 §2.3.1 [first-is-0].
    """
    near, far = packets(), packets()
    assert near.send(large(1000), FAR, 0.0)
    assert len(near.take()) == 1
    near = packets()
    assert near.send(large(1167), FAR, 0.0)  # the largest that fits
    assert [len(datagram) for datagram, _ in near.take()] == [1192]
    near, far = packets(), packets()
    assert near.send(large(3000), FAR, 0.0)
    datagrams = near.take()
    assert len(datagrams) == 3
    numbers = []
    assert max(len(datagram) for datagram, _ in datagrams) <= 1192
    for datagram, _ in datagrams:
        packet = Packet.parse(PlainCipher().open(unscramble(datagram)[1]))
        assert packet.mode == Mode.STARTUP
        assert all(isinstance(chunk, Fragment) for chunk in packet.chunks)
        numbers += [chunk.fragment_number for chunk in packet.chunks]
    assert numbers == [0, 1, 2]
    near = packets()
    near.send(large(3000), FAR, 0.0)
    assert exchanged(near, far) == [large(3000)]
    assert far.reassembling == 0


def test_packets_cut_one_after_the_other_have_ids_of_their_own():
    """Covers RFC 7016 §3.4 [by-address-and-id]."""
    near, far = packets(), packets()
    near.send(large(2000), FAR, 0.0)
    near.send(large(2001), ("198.51.100.8", 1), 0.0)
    sent = near.take()
    for datagram, _ in sent[::2] + sent[1::2]:
        assert len(sent) == 4
        found = far.open(unscramble(datagram)[1], NEAR, 0, 0.0)
    assert found[-1] == large(2001)


def test_no_more_than_four_packets_each_fifth_of_a_second():
    """Covers RFC 7016 §3.4 [rate-limited]."""
    near = packets()
    sent = [near.send(HELLO, FAR, at * 0.01) for at in range(40)]
    assert [number for number, each in enumerate(sent) if each] == [0, 1, 2, 3, 20, 21, 22, 23]
    assert near.send(HELLO, NEAR, 0.0)  # to somebody else


def test_no_more_than_4380_bytes_each_fifth_of_a_second():
    """Covers RFC 7016 §3.4 [rate-limited]."""
    near = packets()
    for _ in range(3):
        assert near.send(large(1150), FAR, 0.0)
    assert not near.send(large(1150), FAR, 0.0)
    for size in range(1030, 1150, 4):
        near = packets()
        for _ in range(4):
            near.send(large(size), FAR, 0.0)
        assert sum(len(datagram) for datagram, _ in near.take()) <= 4380


def test_a_packet_of_many_fragments_takes_its_time():
    """Covers RFC 7016 §3.4 [rate-limited]."""
    near, far = packets(), packets()
    assert near.send(large(10_000), FAR, 0.0)
    times, chunks, now = [], [], 0.0
    while True:
        out = near.take()
        times += [now] * len(out)
        assert sum(len(datagram) for datagram, _ in out) <= 4380
        for datagram, _ in out:
            chunks += far.open(unscramble(datagram)[1], NEAR, 0, now)
        if near.deadline is None:
            break
        now = near.deadline
        near.tick(now)
    assert [round(at, 2) for at in times] == [0, 0, 0, 0.2, 0.2, 0.2, 0.4, 0.4, 0.4]
    assert chunks[-1] == large(10_000)
    assert not near.send(HELLO, FAR, 0.45)  # all that has to be paid for
    assert near.send(HELLO, FAR, 0.61)


def test_what_nobody_fetches_is_dropped():
    """Own design: an edge that is stuck does not cost us our memory."""
    near = packets()
    sent = sum(near.send(HELLO, (f"10.0.{n >> 8}.{n & 255}", 1), 0.0) for n in range(2000))
    assert sent == len(near.take()) == 512


def test_damaged_packets_within_fragments_are_no_packets():
    """Covers RFC 7016 §3.4 [packet-mode]."""
    receiver = packets()
    for piece in (b"\x0b", b"\x00\x00\x00", b"\x0c\x00\x00"):
        fragment = Fragment(1, 0, piece)
        plain = Packet(Mode.STARTUP, (fragment,)).encode()
        assert receiver.open(PlainCipher().seal(plain), NEAR, 0, 0.0) == (fragment,)
        assert receiver.reassembling == 0


def test_fragments_without_content_are_discarded():
    """Covers RFC 7016 §3.4 [empty-discarded]."""
    receiver = packets()
    whole = Packet(Mode.STARTUP, (HELLO,)).encode()
    empty = bytes.fromhex("0b 7f 00 03 80 01 00".replace("0b", "03"))
    rest = Packet(Mode.STARTUP, (Fragment(1, 0, whole),)).encode()
    assert receiver.open(PlainCipher().seal(empty), NEAR, 0, 0.0) == ()
    assert receiver.reassembling == 0
    assert receiver.open(PlainCipher().seal(rest), NEAR, 0, 0.0)[-1] == HELLO
    assert encode_chunk(Fragment(1, 0, b"x"))[0] == empty[1]
    assert len(scramble(0, b"")) == 4

"""The handshake: versions, packets, and how they may arrive.

Implements RTMP 1.0 §5.2, from the client's side, with RTMP Errata §3.
"""

import os
from functools import partial
from typing import Final

from rtclab.conform.case import Cases, NotApplicable, Unmet
from rtclab.conform.checks import expect_equal
from rtclab.conform.rtmp.line import PACKET, VERSION, RtmpLine, packet_1
from rtclab.conform.rtmp.peer import RtmpPeer, expect_quiet
from rtmplite.rtmp.wire import digest

cases: Cases[RtmpPeer] = Cases()
must = partial(cases.case, role="server")
should = partial(cases.case, role="server", level="SHOULD")
may = partial(cases.case, role="server", level="MAY")
CLOCK: Final = 10_000  # ms that two readings of one clock may be apart


@must("RTMP 1.0 §5.2.2", "version-3")
def version_is_3(peer: RtmpPeer) -> None:
    """C0 with version 3 is answered by S0 with version 3 (§5.2.2)."""
    expect_equal("S0", VERSION, _opened(peer)[0].take(1))


@should("RTMP 1.0 §5.2.2", "answer-3")
def later_version_is_answered_by_3(peer: RtmpPeer) -> None:
    """A version that nobody knows yet is answered by version 3 (§5.2.2)."""
    line = peer.line()
    line.send(b"\x1f" + packet_1())
    expect_equal("S0", VERSION, line.take(1))


@must("RTMP 1.0 §5.2.2", "not-text")
def text_is_no_handshake(peer: RtmpPeer) -> None:
    """A text protocol has no S0 (§5.2.2)."""
    line = peer.line()
    line.send(b"GET / HTTP/1.1\r\nHost: conform\r\n\r\n".ljust(1 + PACKET, b" "))
    if line.all_within()[:1] == VERSION:
        raise Unmet("no S0 after a line of HTTP", "version 3")


@must("RTMP 1.0 §5.2.1", "s0-s1-after-c0")
def server_waits_for_c0(peer: RtmpPeer) -> None:
    """The server says nothing before C0 (§5.2.1)."""
    expect_quiet(peer.line(), "nothing before C0")


@must("RTMP 1.0 §5.2.1", "s2-after-c1")
def s2_waits_for_c1(peer: RtmpPeer) -> None:
    """S2 does not come before C1 is whole (§5.2.1)."""
    line = peer.line()
    line.send(VERSION + packet_1()[:-1])
    if len(found := line.all_within()) > 1 + PACKET:
        raise Unmet("S0 and S1 at most", f"{len(found)} bytes")


@must("RTMP 1.0 §5.2.1", "data-after-c2")
def nothing_else_before_c2(peer: RtmpPeer) -> None:
    """After S2 the server waits for C2 (§5.2.1)."""
    line, _ = _opened(peer)
    line.take(1 + 2 * PACKET)
    expect_quiet(line, "nothing before C2")


@must("RTMP 1.0 §5.2.3", "packet-1536")
def packets_have_1536_bytes(peer: RtmpPeer) -> None:
    """S0, S1 and S2 are 3073 bytes, and chunks come after (§5.2.3)."""
    expect_equal("length", 1 + 2 * PACKET, len(_opened(peer)[0].all_within()))
    peer.connected()


@must("RTMP 1.0 §5.2.3", "zero-field")
def second_field_of_s1_is_zero(peer: RtmpPeer) -> None:
    """Bytes 4 to 7 of S1 are zero, as they are in C1 (§5.2.3)."""
    line, _ = _opened(peer)
    expect_equal("bytes", bytes(4).hex(), line.take(1 + PACKET)[5:9].hex())


@should("RTMP 1.0 §5.2.3", "random-data")
def s1_tells_one_from_another(peer: RtmpPeer) -> None:
    """The random bytes of S1 are neither those of C1 nor those of another S1 (§5.2.3)."""
    (first, c1), (second, _) = _opened(peer), _opened(peer)
    s1, other = (line.take(1 + PACKET)[9:] for line in (first, second))
    if s1 in (c1[8:], other):
        raise Unmet("random bytes", "those of C1" if s1 == c1[8:] else "the same for two clients")


@must("RTMP 1.0 §5.2.4", "echo-time")
def s2_has_the_time_of_c1(peer: RtmpPeer) -> None:
    """S2 begins with the time of C1 (§5.2.4)."""
    line, c1 = _opened(peer)
    line.take(1 + PACKET)
    expect_equal("time", c1[:4].hex(), line.take(4).hex())


@must("RTMP 1.0 §5.2.4", "echo-time2")
def s2_has_the_time_of_reading(peer: RtmpPeer) -> None:
    """Bytes 4 to 7 of S2 are when C1 was read, by the clock of S1 (§5.2.4)."""
    line, _ = _opened(peer)
    epoch = int.from_bytes(line.take(1 + PACKET)[1:5], "big")
    read = int.from_bytes(line.take(PACKET)[4:8], "big")
    if (read - epoch + CLOCK) % 2**32 > 2 * CLOCK:
        raise Unmet(f"a time near that of S1, {epoch}", str(read))


@must("RTMP 1.0 §5.2.4", "echo-random")
def s2_echoes_the_random_bytes(peer: RtmpPeer) -> None:
    """S2 repeats the random bytes of C1 (§5.2.4)."""
    line, c1 = _opened(peer)
    line.take(1 + PACKET)
    if line.take(PACKET)[8:] != c1[8:]:
        raise Unmet("the random bytes of C1", "others")


@must("RTMP 1.0 §5.2.3", "packet-1536")
def handshake_comes_byte_by_byte(peer: RtmpPeer) -> None:
    """Each byte of C0, C1 and C2 may come alone (§5.2)."""
    line, c1 = peer.line(), packet_1()
    line.send(*(bytes((each,)) for each in VERSION + c1))
    s1 = line.take(1 + PACKET)[1:]
    line.take(PACKET)
    line.send(*(bytes((each,)) for each in s1))
    _expect_connected(line)


@must("RTMP 1.0 §5.2.1", "data-after-s2")
def c2_and_connect_in_one_piece(peer: RtmpPeer) -> None:
    """The first chunk may follow C2 at once (§5.2.1)."""
    line, _ = _opened(peer)
    s1 = line.take(1 + PACKET)[1:]
    line.take(PACKET)
    line.send(s1 + _connect(line))
    line.answer(1)


@should("RTMP Errata §3", "echo-may-differ")
def wrong_echo_ends_nothing(peer: RtmpPeer) -> None:
    """A C2 that is no echo of S1 is accepted (RTMP Errata §3)."""
    line, _ = _opened(peer)
    line.take(1 + 2 * PACKET)
    line.send(os.urandom(PACKET))
    _expect_connected(line)


@should("RTMP 1.0 §5.2.3", "time-is-epoch")
def any_time_of_c1_will_do(peer: RtmpPeer) -> None:
    """The time of C1 may be 0 or any other (§5.2.3)."""
    for time in (bytes(4), b"\xff" * 4):
        line = peer.line()
        line.send(VERSION + time + packet_1()[4:])
        s1 = line.take(1 + PACKET)[1:]
        expect_equal("time in S2", time.hex(), line.take(PACKET)[:4].hex())
        line.send(s1)
        _expect_connected(line)


@may('Field §"Digest handshake"', "answered-in-kind")
def signed_packets_are_answered_in_kind(peer: RtmpPeer) -> None:
    """A C1 with a digest gets an S1 and an S2 with digests (Field §"Digest handshake")."""
    for scheme in digest.SCHEMES:
        line = peer.line()
        c1 = bytes(4) + bytes((9, 0, 124, 2)) + os.urandom(PACKET - 8)
        c1 = digest.sign(c1, scheme, digest.PLAYER_TEXT)
        line.send(VERSION + c1)
        s1, s2 = line.take(1 + PACKET)[1:], line.take(PACKET)
        found = digest.find(s1, digest.SERVER_TEXT)
        if found is None:
            raise NotApplicable("S1 is not signed")
        own = digest.find(c1, digest.PLAYER_TEXT)
        if own is None or not digest.answers(s2, own[1], digest.SERVER_KEY):
            raise Unmet(f"an S2 that signs the digest of C1, {scheme.name}", "another")
        line.send(digest.answer(os.urandom(PACKET - 32), found[1], digest.PLAYER_KEY))
        _expect_connected(line)


def _opened(peer: RtmpPeer) -> tuple[RtmpLine, bytes]:
    """A connection that has sent C0 and C1, and that C1."""
    line, c1 = peer.line(), packet_1()
    line.send(VERSION + c1)
    return line, c1


def _connect(line: RtmpLine) -> bytes:
    return line.writer.write(line.connect_command().message(), 3)


def _expect_connected(line: RtmpLine) -> None:
    expect_equal("answer to connect", "_result", line.connect().name)

"""The handshake keeps its order, speaks both dialects, and gives garbage no answer."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.corpus_lines import readme_lines
from support.sip.tcp_streams import tcp_streams

from rtmplite.errors import LocalError, RemoteError
from rtmplite.rtmp.handshake import TIME_LIMIT, ClientHandshake, ServerHandshake, State
from rtmplite.rtmp.wire import digest

SIZE = digest.PACKET_SIZE


def counting(count):
    """Bytes that differ from place to place."""
    return bytes(i % 251 for i in range(count))


def pair(**options):
    return ServerHandshake(counting, 0.0), ClientHandshake(bytes, 0.0, **options)


def test_the_diagram():
    """Covers RTMP 1.0 §5.2.1 [c2-after-s1] [data-after-s2] [s0-s1-after-c0] [s2-after-c1].

    And §5.2.1 [data-after-c2], §5.2.2 [version-3], §5.2.3 [packet-1536], RTMP 1.0 §5.2.5.
    """
    server, client = pair()
    assert server.state is client.state is State.UNINITIALIZED
    c0_c1 = client.start(0.0)
    assert len(c0_c1) == 1 + SIZE and c0_c1[0] == 3 and client.state is State.VERSION_SENT
    assert server.receive(c0_c1[:1], 1.0) == b"" and server.state is State.VERSION_SENT
    assert server.receive(c0_c1[1:-1], 1.0) == b""
    s0_s1_s2 = server.receive(c0_c1[-1:], 1.0)
    assert len(s0_s1_s2) == 1 + 2 * SIZE and s0_s1_s2[0] == 3 and server.state is State.ACK_SENT
    assert client.receive(s0_s1_s2[:SIZE], 2.0) == b""
    c2 = client.receive(s0_s1_s2[SIZE : SIZE + 1], 2.0)
    assert len(c2) == SIZE and client.state is State.ACK_SENT and not client.done
    assert client.receive(s0_s1_s2[SIZE + 1 :], 2.0) == b"" and client.done
    assert not server.done and server.rest == b""
    assert server.receive(c2 + b"chunks", 3.0) == b"" and server.done
    assert (client.rest, server.rest) == (b"", b"chunks")


def test_what_the_plain_packets_hold():
    """Covers RTMP 1.0 §5.2.3 [time-is-epoch] [zero-field] [random-data].

    And §5.2.4 [echo-time] [echo-time2] [echo-random].
    """
    server = ServerHandshake(counting, 100.0)
    c1 = b"\0\0\1\2" + bytes(4) + b"c" * (SIZE - 8)
    s0_s1_s2 = server.receive(b"\3" + c1, 102.25)
    s1, s2 = s0_s1_s2[1 : 1 + SIZE], s0_s1_s2[1 + SIZE :]
    assert s1 == (2250).to_bytes(4, "big") + bytes(4) + counting(SIZE - 8)
    assert s2 == b"\0\0\1\2" + (2250).to_bytes(4, "big") + b"c" * (SIZE - 8)
    client = ClientHandshake(counting, 7.0)
    assert client.start(7.0)[1:9] == bytes(8)
    c2 = client.receive(b"\3" + c1, 7.5)
    assert c2 == b"\0\0\1\2" + (500).to_bytes(4, "big") + b"c" * (SIZE - 8)


@given(st.integers(1, 2000), st.booleans())
def test_pieces_make_no_difference(step, sign):
    """Covers RTMP 1.0 §5.2.1 [c2-after-s1] [s2-after-c1] [data-after-c2]."""
    server, client = pair(digest=sign)
    upward, downward = client.start(0.0), b""
    while not server.done:
        for start in range(0, len(upward), step):
            downward += server.receive(upward[start : start + step], 0.0)
        upward, replies = b"", downward
        downward = b""
        for start in range(0, len(replies), step):
            upward += client.receive(replies[start : start + step], 0.0)
    assert client.done and server.scheme == client.scheme == ("digest0" if sign else "simple")


@pytest.mark.parametrize("scheme", digest.SCHEMES)
def test_a_signed_packet_is_answered_in_kind(scheme):
    """Covers Field §"Digest handshake" [answered-in-kind], Field §"Digest offset schemes"."""
    plain = bytes(4) + b"\x80\0\7\2" + counting(SIZE - 8)
    c1 = digest.sign(plain, scheme, digest.PLAYER_TEXT)
    server = ServerHandshake(counting, 0.0)
    answer = server.receive(b"\3" + c1, 0.0)
    s1, s2 = answer[1 : 1 + SIZE], answer[1 + SIZE :]
    assert server.scheme == scheme.name and s1[4] >= 3
    assert digest.find(s1, digest.SERVER_TEXT)[0] == scheme
    _, ours = digest.find(c1, digest.PLAYER_TEXT)
    assert digest.answers(s2, ours, digest.SERVER_KEY)


def test_a_signing_client_bears_a_plain_server():
    """Covers Field §"Digest handshake", RTMP Errata §3."""
    client = ClientHandshake(counting, 0.0, digest=True)
    c0_c1 = client.start(0.0)
    assert digest.find(c0_c1[1:], digest.PLAYER_TEXT)
    s1 = bytes(8) + b"s" * (SIZE - 8)
    assert client.receive(b"\3" + s1, 0.0) == s1
    client.receive(bytes(SIZE), 0.0)
    assert client.done and client.scheme == "simple"


def test_a_false_echo_is_no_reason_to_hang_up():
    """Covers RTMP Errata §3 [echo-may-differ]."""
    server, client = pair()
    client.receive(server.receive(client.start(0.0), 0.0)[: 1 + SIZE] + b"?" * SIZE, 0.0)
    server.receive(b"?" * SIZE, 0.0)
    assert client.done and server.done


@pytest.mark.parametrize("version", [0, 2, 3, 4, 7, 31])
def test_an_unknown_version_is_answered_with_3(version):
    """Covers RTMP 1.0 §5.2.2 [answer-3] [version-3]."""
    server = ServerHandshake(bytes, 0.0)
    assert server.receive(bytes([version]) + bytes(SIZE), 0.0)[0] == 3


@pytest.mark.parametrize("version", [6, 8, 32, ord("G"), 255])
def test_other_protocols_are_refused_at_the_first_byte(version):
    """Covers RTMP 1.0 §5.2.2 [not-text], Field §"RTMPE version byte"."""
    with pytest.raises(RemoteError):
        ServerHandshake(bytes, 0.0).receive(bytes([version]), 0.0)


@pytest.mark.parametrize("version", [0, 6, 72])
def test_the_client_accepts_3_alone(version):
    """Covers RTMP 1.0 §5.2.2 [client-abandons]."""
    client = ClientHandshake(bytes, 0.0)
    client.start(0.0)
    with pytest.raises(RemoteError):
        client.receive(bytes([version]), 0.0)


def test_nobody_waits_for_ever():
    """Covers RTMP 1.0 §5.2.1."""
    server, client = pair()
    assert server.deadline == TIME_LIMIT
    server.tick(TIME_LIMIT - 0.1)
    with pytest.raises(RemoteError):
        server.tick(TIME_LIMIT)
    server.receive(client.receive(server.receive(client.start(0.0), 0.0), 0.0), 0.0)
    assert server.deadline is None
    server.tick(1e9)


def test_the_caller_keeps_the_order_too():
    """Covers RTMP 1.0 §5.2.1."""
    server, client = pair()
    with pytest.raises(LocalError):
        client.receive(b"\3", 0.0)
    first = client.start(0.0)
    with pytest.raises(LocalError):
        client.start(0.0)
    server.receive(client.receive(server.receive(first, 0.0), 0.0), 0.0)
    for machine in (server, client):
        with pytest.raises(LocalError):
            machine.receive(b"", 0.0)


@given(st.lists(st.binary(max_size=2000), max_size=4), st.binary(max_size=1) | st.just(b"\3"))
def test_nothing_else_ever_happens(pieces, first):
    """Covers RTMP 1.0 §5.2."""
    client = ClientHandshake(counting, 0.0, digest=True)
    client.start(0.0)
    for machine in (ServerHandshake(counting, 0.0), client):
        try:
            for piece in [first, *pieces]:
                if not machine.done:
                    machine.receive(piece, 0.0)
        except RemoteError:
            event("refused")
        else:
            event("went on")


@pytest.mark.parametrize(
    "name", [row[0] for row in readme_lines("RTMP\n") if not row[0].endswith("pcap")]
)
def test_old_packets_are_plain(corpus, name):
    """Covers RTMP 1.0 §5.2.3 [packet-1536]: what Red5 recorded carries no signature."""
    packet = (corpus / "rtmp" / name).read_bytes()
    assert len(packet) == SIZE
    assert not digest.find(packet, digest.PLAYER_TEXT)
    server = ServerHandshake(counting, 0.0)
    answer = server.receive(b"\3" + packet, 0.0)
    assert server.scheme == "simple" and answer[1 + SIZE + 8 :] == packet[8:]


@pytest.mark.parametrize(
    ("name", "schemes"),
    [
        ("ffmpeg_publish_play_nginx_h264_speex_port19401.pcap", ["digest0", "digest0"]),
        ("rtmpdump_vod_play_nginx_port19401.pcap", ["simple"]),
        ("ndpi_rtmp.pcap", ["simple"]),
    ],
)
def test_real_peers(corpus, name, schemes):
    """Covers Field §"Digest handshake": both ends of real conversations verify."""
    port = 1935 if name.startswith("ndpi") else 19401
    talks = tcp_streams(corpus / "pcap/rtmp" / name, port)
    found = []
    for client_port in sorted(number for number, upward in talks if upward):
        up, down = talks[client_port, True], talks[client_port, False]
        if len(up) < 1 + 2 * SIZE:
            continue
        server = ServerHandshake(counting, 0.0)
        server.receive(up, 0.0)
        assert server.done and server.rest == up[1 + 2 * SIZE :]
        found.append(server.scheme)
        c1, s1, s2 = up[1 : 1 + SIZE], down[1 : 1 + SIZE], down[1 + SIZE : 1 + 2 * SIZE]
        if server.scheme == "simple":
            assert s2[8:] == c1[8:]
        else:
            _, theirs = digest.find(c1, digest.PLAYER_TEXT)
            assert digest.find(s1, digest.SERVER_TEXT)
            assert digest.answers(s2, theirs, digest.SERVER_KEY)
    assert found == schemes

"""Packets, and the session ID before them."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations, peak

from rtmplite.errors import LocalError, RemoteError
from rtmplite.rtmfp.wire.address import SocketAddress
from rtmplite.rtmfp.wire.chunks import (
    BufferProbe,
    DataAckBitmap,
    DataAckRanges,
    FlowException,
    ForwardedInitiatorHello,
    Fragment,
    InitiatorHello,
    InitiatorInitialKeying,
    NextUserData,
    Ping,
    PingReply,
    ResponderHello,
    ResponderInitialKeying,
    ResponderRedirect,
    RHelloCookieChange,
    SessionClose,
    SessionCloseAck,
    UnknownChunk,
    UserData,
    encode_chunk,
)
from rtmplite.rtmfp.wire.packet import Mode, Packet, scramble, unscramble
from rtmplite.strategies.rtmfp import packets, received_packets

ANY_ID = st.integers(0, (1 << 32) - 1)


@given(packets(), st.sampled_from([bytes, memoryview]))
def test_reading_undoes_writing(packet, kind):
    """Covers RFC 7016 §2.2.4 [packet-layout]."""
    assert Packet.parse(kind(packet.encode())) == packet


@given(received_packets())
def test_a_receiver_passes_by_all_that_means_nothing(drawn):
    """Covers RFC 7016 §2.3 [inappropriate-ignored], §2.2.4 [padding-told]."""
    packet, data = drawn
    assert Packet.parse(data) == packet


@pytest.mark.parametrize(
    ("data", "packet"),
    [
        ("01", Packet(Mode.INITIATOR, ())),
        ("02", Packet(Mode.RESPONDER, ())),
        ("03", Packet(Mode.STARTUP, ())),
        ("0b 1234", Packet(Mode.STARTUP, (), timestamp=0x1234)),
        ("05 1234", Packet(Mode.INITIATOR, (), timestamp_echo=0x1234)),
        ("0e 0001 ffff", Packet(Mode.RESPONDER, (), timestamp=1, timestamp_echo=0xFFFF)),
        ("81", Packet(Mode.INITIATOR, (), time_critical=True)),
        ("42", Packet(Mode.RESPONDER, (), time_critical_reverse=True)),
        ("c1 01 0001 21", Packet(Mode.INITIATOR, (Ping(b"!"),), None, None, True, True)),
    ],
)
def test_each_flag_has_its_bit(data, packet):
    """Covers RFC 7016 §2.2.4 [packet-layout] [modes]."""
    assert packet.encode() == bytes.fromhex(data)
    assert Packet.parse(bytes.fromhex(data)) == packet


@pytest.mark.parametrize("reserved", [0x10, 0x20, 0x30])
def test_reserved_bits_are_ignored_and_left_clear(reserved):
    """Covers RFC 7016 §2 [reserved-ignored] [reserved-clear]."""
    for flags, critical, reverse in ((0x81, True, False), (0x41, False, True)):
        packet = Packet.parse(bytes((flags | reserved,)))
        assert packet == Packet(Mode.INITIATOR, (), None, None, critical, reverse)
        assert packet.encode() == bytes((flags,))


@pytest.mark.parametrize("data", ["00", "f0", "fc 0001 0002 01 0000"])
def test_mode_0_is_forbidden(data):
    """Covers RFC 7016 §2.2.4 [mode-0-discarded] [modes]."""
    with pytest.raises(RemoteError):
        Packet.parse(bytes.fromhex(data))
    with pytest.raises(LocalError):
        Packet(Mode.FORBIDDEN, ()).encode()


@pytest.mark.parametrize("data", ["", "09", "09 00", "05", "05 00", "0d 0000", "0d 0000 00"])
def test_what_is_cut_off_in_its_times_is_refused(data):
    """Covers RFC 7016 §2 [truncation-noticed] [errors-abort]."""
    with pytest.raises(RemoteError):
        Packet.parse(bytes.fromhex(data))


OF_STARTUP = [
    InitiatorHello(b"epd", b"tag"),
    ResponderHello(b"tag", b"cookie", b"certificate"),
    ResponderRedirect(b"tag"),
    RHelloCookieChange(b"old", b"new"),
    InitiatorInitialKeying(1, b"cookie", b"certificate", b"skic", b"X"),
    ResponderInitialKeying(1, b"skrc", b"X"),
]
OF_SESSIONS = [
    ForwardedInitiatorHello(b"epd", SocketAddress("192.0.2.7", 1935), b"tag"),
    *(Ping(), PingReply(), UserData(2, 5, 3, b"!"), NextUserData(b"!"), DataAckBitmap(2, 1, 4)),
    *(DataAckRanges(2, 1, 4), BufferProbe(2), FlowException(2), SessionClose(), SessionCloseAck()),
]


@pytest.mark.parametrize(
    ("mode", "chunk"),
    [
        *((Mode.STARTUP, chunk) for chunk in OF_STARTUP),
        *((Mode.INITIATOR, chunk) for chunk in OF_SESSIONS),
        *((Mode.RESPONDER, chunk) for chunk in OF_SESSIONS),
    ],
)
def test_chunks_go_with_their_modes_alone(mode, chunk):
    """Covers RFC 7016 §2.3 [inappropriate-ignored], §2.2.4 [startup-chunks] [session-chunks]."""
    packet = Packet(mode, (chunk,))
    assert Packet.parse(packet.encode()) == packet
    wrong = Mode.INITIATOR if mode is Mode.STARTUP else Mode.STARTUP
    for others in ((), (Fragment(0, 0, b"!"),)):
        with pytest.raises(LocalError):
            Packet(wrong, (*others, chunk)).encode()
    data = bytes((wrong,)) + encode_chunk(chunk) + encode_chunk(UnknownChunk(0xEC, b"\0"))
    assert Packet.parse(data) == Packet(wrong, (UnknownChunk(0xEC, b"\0"),))


@pytest.mark.parametrize("mode", [Mode.INITIATOR, Mode.RESPONDER, Mode.STARTUP])
def test_fragments_go_with_every_mode(mode):
    """Covers RFC 7016 §2.3 [inappropriate-ignored]."""
    packet = Packet(mode, (Fragment(0, 0, b"!"),))
    assert Packet.parse(packet.encode()) == packet


@pytest.mark.parametrize("time", [-1, 0x10000])
def test_a_time_beyond_16_bits_is_our_own_bug(time):
    """RFC 7016 §2.2.4."""
    for times in ((time, None), (None, time)):
        with pytest.raises(LocalError):
            Packet(Mode.STARTUP, (), *times).encode()


@given(mutations(packets().map(Packet.encode)))
def test_any_bytes_are_read_or_refused(data):
    """Covers RFC 7016 §2 [truncation-noticed]."""
    try:
        packet = Packet.parse(data)
    except RemoteError:
        event("refused")
        return
    event("read" if packet.chunks else "nothing within")
    assert Packet.parse(packet.encode()) == packet


def test_memory_is_bounded():
    """Covers RFC 7016 §2.2.4 [packet-layout]: thousands of tiny chunks take no more than that."""
    for chunk in (Ping(), UserData(2, 5, 3, b"!"), UserData(2, 5, 3, b"", options=())):
        data = b"\x01" + encode_chunk(chunk) * 2500
        assert peak(lambda data=data: Packet.parse(data)) <= 32 * len(data) + 65536


@given(ANY_ID, st.binary(max_size=20), st.sampled_from([bytes, memoryview]))
def test_unscrambling_undoes_scrambling(session_id, encrypted, kind):
    """Covers RFC 7016 §2.2.2 [multiplex-layout] [short-is-padded]."""
    datagram = scramble(session_id, encrypted)
    assert datagram[4:] == encrypted
    assert unscramble(kind(datagram)) == (session_id, encrypted)


@pytest.mark.parametrize(
    ("session_id", "encrypted", "first"),
    [
        (0, "", "00000000"),
        (0x01020304, "", "01020304"),
        (0x01020304, "11", "10020304"),
        (0x01020304, "00000000 ff", "fe020304"),
        (0x01020304, "10203040 01020304 ffff", "10203040"),
    ],
)
def test_two_words_of_the_packet_scramble_the_session_id(session_id, encrypted, first):
    """Covers RFC 7016 §2.2.2 [scrambled] [short-is-padded], §2.1.1 [big-endian]."""
    datagram = scramble(session_id, bytes.fromhex(encrypted))
    assert datagram[:4] == bytes.fromhex(first)
    assert unscramble(datagram)[0] == session_id


def test_session_ids_have_32_bits():
    """Covers RFC 7016 §2.2.2 [multiplex-layout], §2 [truncation-noticed]."""
    for session_id in (-1, 1 << 32):
        with pytest.raises(LocalError):
            scramble(session_id, b"")
    for length in range(4):
        with pytest.raises(RemoteError):
            unscramble(bytes(length))
    assert unscramble(b"\1\2\3\4") == (0x01020304, b"")

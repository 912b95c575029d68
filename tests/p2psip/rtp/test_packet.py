"""RTP packets survive the round trip, and nothing on the wire makes the reader fall over."""

from itertools import pairwise

import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st
from support.mutations import mutations, peak

from p2psip.errors import LocalError, RemoteError
from p2psip.rtp import fast
from p2psip.rtp.packet import Extension, RtpPacket
from p2psip.strategies.rtp import rtp_packets


@given(rtp_packets(), st.sampled_from([bytes, memoryview]))
def test_reading_undoes_writing(packet, kind):
    """Covers RFC 3550 §5.1 [version-2] [padding-counts-itself] [csrc-count].

    Covers RFC 3550 §5.1 [extension-when-x] and §5.3.1 [extension-behind-csrcs].
    """
    assert RtpPacket.parse(kind(bytes(packet))) == packet


def read_twice(data):
    """Read with both readers, who must agree; tell whether they could."""
    header = fast.unpack(data)
    try:
        packet = RtpPacket.parse(data)
    except RemoteError:
        assert header is None
        return False
    payload_type, marker, sequence, timestamp, ssrc, start, end = header
    assert packet.payload == data[start:end] and packet.marker is marker
    assert (payload_type, sequence, timestamp, ssrc) == (
        packet.payload_type,
        packet.sequence,
        packet.timestamp,
        packet.ssrc,
    )
    return True


@given(mutations(rtp_packets().map(bytes)) | st.binary(max_size=64))
@example(b"\x90\x00" + bytes(12))
@example(b"\xb0\x00" + bytes(10) + b"\xbe\xde\x00\x01" + b"\x00\x00\x00\x05")
def test_any_octets_are_read_or_refused_by_both_readers_alike(data):
    """Covers RFC 3550 §A.1: the media path's reader is the codec's equal."""
    event("read" if read_twice(data) else "refused")


def test_a_header_that_lies_is_refused():
    """Covers RFC 3550 §A.1 [header-checks]: another version, and lengths beyond the end."""
    good = bytes(RtpPacket(0, 1, 2, 3, b"\1"))
    assert RtpPacket.parse(good).payload == b"\1"
    for first in (0x00, 0x40, 0xC0, 0x81, 0x90):
        with pytest.raises(RemoteError):
            RtpPacket.parse(bytes((first,)) + good[1:])
    assert RtpPacket.parse(b"\xa0" + good[1:]).payload == b""
    for padding in (b"\0", b"\2"):
        with pytest.raises(RemoteError):
            RtpPacket.parse(b"\xa0" + good[1:-1] + padding)


@pytest.mark.parametrize("first", [0x8F, 0x9F, 0xBF, 0xA0])
def test_memory_is_bounded(first):
    """Covers RFC 3550 §A.1: no count on the wire allocates more than the packet holds."""
    for data in (bytes([first]) + b"\xff" * 65535, bytes([first]) + b"\xff" * 20):
        assert peak(lambda data=data: read_twice(data)) <= 32 * len(data) + 65536


@pytest.mark.parametrize(
    "field",
    [
        {"payload_type": 128},
        {"sequence": -1},
        {"timestamp": 1 << 32},
        {"ssrc": 1 << 32},
        {"csrcs": (0,) * 16},
        {"csrcs": (1 << 32,)},
        {"padding": 256},
    ],
)
def test_a_field_that_does_not_fit_is_our_own_bug(field):
    """Covers RFC 3550 §5.1."""
    good = {"payload_type": 0, "sequence": 0, "timestamp": 0, "ssrc": 0, "payload": b""}
    with pytest.raises(LocalError):
        RtpPacket(**(good | field))
    with pytest.raises(LocalError):
        Extension(0, b"odd")


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("rtp", {"payload_type": 0, "sequence": 15743, "payload": bytes([0xFF]) * 160}),
        ("rtp_dtmf", {"payload_type": 101, "marker": True, "payload": b"\x01\x8a\x03\xc0"}),
        ("rtp_with_csrc", {"csrcs": (0xABCDEF01, 0xDEADBEEF), "payload": bytes([0xFF]) * 160}),
        ("rtp_only_padding", {"payload": b"", "padding": 224}),
        ("rtp_only_padding_with_header_extensions", {"payload": b"", "padding": 224}),
        ("rtp_with_sdes_mid", {"extension": Extension(0xBEDE, bytes.fromhex("90300000"))}),
    ],
)
def test_single_packets_of_the_corpus(corpus, name, want):
    """Covers RFC 3550 §5.3.1."""
    data = (corpus / "rtp" / "aiortc" / f"{name}.bin").read_bytes()
    packet = RtpPacket.parse(data)
    got = {field: getattr(packet, field) for field in want}
    assert got == want
    if not packet.padding:  # whose other octets are the sender's choice
        assert bytes(packet) == data


@pytest.mark.parametrize("number", range(8))
def test_fuzz_corpus_does_no_harm(corpus, number):
    """Covers RFC 3550 §A.1: none is read beyond its end, wherever that is."""
    data = (corpus / "rtp" / "janus_webrtc" / f"rtp-{number}").read_bytes()
    for end in {*range(min(len(data), 64)), len(data)}:
        read_twice(data[:end])


def test_a_capture_that_crashed_a_decoder(capture):
    """Covers RFC 3550 §A.1: not RTP, and dropped."""
    [datagram] = capture("rtp/tcpdump_rtp_segfault_1.pcapng")
    assert fast.unpack(datagram.data) is None
    with pytest.raises(RemoteError):
        RtpPacket.parse(datagram.data)


# name, port, payload type: packets; then the step of timestamps, and the sizes of payloads
CAPTURES = [
    ("rtp/g711a.pcap", 2006, {8: 236}, 240, {240}),
    ("rtp/asterisk_ulaw_dtmf.pcap", 10866, {0: 854, 101: 120}, None, None),
    ("rtp/asterisk_opus_dtmf.pcap", 12906, {96: 725, 101: 40}, None, None),
    ("rtp/alaw_40ms.pcap", 18390, {8: 826}, 320, {320}),
    ("rtp/h264_fua_stapa_4slices.pcap", 20000, {96: 317}, None, None),
    ("rtp/h264_single_nal_multislice.pcap", 20004, {96: 383}, None, None),
    ("rtp/speex16k.pcap", 20008, {97: 784}, 320, {70}),
    ("rtp/pcma_with_rtcp.pcap", 20012, {8: 702}, None, None),
    ("rtp/opus.pcap", 20016, {97: 301}, 960, None),
    ("sip/sip_rtp_calls_2005.pcap", 40392, {8: 9}, 160, {160}),
    ("sip/sipp_call_g711a_dtmf.pcap", 21000, {8: 236, 101: 10}, None, None),
    ("sip/sipp_call_g711a_dtmf.pcap", 21050, {8: 236, 101: 10}, None, None),
    ("sip/sip_call_av_speex16k_h264.pcap", 23200, {97: 496}, 320, {70}),
    ("sip/sip_call_av_speex16k_h264.pcap", 23202, {96: 326}, None, None),
]


@pytest.mark.parametrize(("name", "port", "types", "step", "sizes"), CAPTURES)
def test_captured_streams(capture, name, port, types, step, sizes):
    """Covers RFC 3550 §5.1: counts, time steps and sizes are those that the corpus states."""
    data = [datagram.data for datagram in capture(name) if datagram.port == port]
    packets = [RtpPacket.parse(each) for each in data]
    seen = [packet.payload_type for packet in packets]
    assert {kind: seen.count(kind) for kind in set(seen)} == types
    assert [bytes(packet) for packet in packets] == data
    for each in data:
        assert read_twice(each)
    if step:
        gaps = [b.timestamp - a.timestamp for a, b in pairwise(packets)]
        assert max(set(gaps), key=gaps.count) == step
    if sizes:
        assert {len(packet.payload) for packet in packets} == sizes


@pytest.mark.parametrize("csrcs", [(), (1, 2)])
@pytest.mark.parametrize("words", [0, 1, 3])
def test_a_header_extension_is_skipped(csrcs, words):
    """Covers RFC 3551 §2 [extension-is-expected] [extension-is-skipped]."""
    extension = Extension(0xBEDE, bytes(4 * words))
    data = bytes(RtpPacket(0, 1, 2, 3, b"sound", csrcs=csrcs, extension=extension))
    *_, start, end = fast.unpack(data)
    assert data[start:end] == RtpPacket.parse(data).payload == b"sound"
    plain = bytes(RtpPacket(0, 1, 2, 3, b"sound", csrcs=(1, 2)))  # with no such thing to skip
    *_, start, end = fast.unpack(plain)
    assert plain[start:end] == RtpPacket.parse(plain).payload == b"sound"
    plain = bytes(RtpPacket(0, 1, 2, 3, b"sound", csrcs=(1,)))
    *_, start, end = fast.unpack(plain)
    assert plain[start:end] == b"sound"


def test_frames_end_with_a_marker(capture):
    """Covers RFC 3550 §5.1: 72 pictures, 72 timestamps, one marker each, no gap."""
    stream = [
        RtpPacket.parse(datagram.data)
        for datagram in capture("rtp/h264_fua_stapa_4slices.pcap")
        if datagram.port == 20000
    ]
    assert len({packet.timestamp for packet in stream}) == 72
    assert sum(packet.marker for packet in stream) == 72
    numbers = [packet.sequence for packet in stream]
    assert numbers == list(range(numbers[0], numbers[0] + 317))

"""Opus, L16, comfort noise and redundant audio: what is written is read, and nothing else."""

from array import array

import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st
from support.mutations import mutations

from p2psip.errors import LocalError, RemoteError
from p2psip.rtp.packet import RtpPacket
from p2psip.rtp.payload.comfort_noise import ComfortNoise
from p2psip.rtp.payload.duration import ticks
from p2psip.rtp.payload.l16 import decode_l16, encode_l16
from p2psip.rtp.payload.opus import OpusPacket, total_ticks
from p2psip.rtp.payload.red import RedundantBlock, RedundantPayload
from p2psip.strategies.audio import comfort_noises, opus_packets, redundant_payloads


@given(opus_packets())
def test_reading_opus_undoes_writing(packet):
    """Covers RFC 6716 §3 [framing-is-read], §3.2.1 [frame-may-be-empty], §3.2.5
    [padding-length-goes-on] and RFC 7587 §4.2.
    """
    data = bytes(packet)
    event(f"code {data[0] & 3}")
    assert OpusPacket.parse(data) == packet
    assert total_ticks(data) == packet.ticks == ticks("opus", data, 48000, 2)


@given(mutations(opus_packets().map(bytes)) | st.binary(max_size=40))
def test_any_octets_are_an_opus_packet_or_refused(data):
    """Covers RFC 6716 §3.4 [malformed-refused]."""
    try:
        packet = OpusPacket.parse(data)
    except RemoteError:
        event("refused")
        total_ticks(data)
        return
    event("read")
    assert 1 + sum(map(len, packet.frames)) + packet.padding <= len(data)
    assert OpusPacket.parse(bytes(packet)) == packet
    assert total_ticks(data) == packet.ticks <= 5760


@pytest.mark.parametrize(
    "data",
    [
        "",  # R1
        "f8" + 1276 * "00", "fa00" + 1276 * "00",  # R2
        "f901",  # R3
        "fa", "fafc", "fa01", "fafb00",  # R4
        "fb00", "fb31" + 49 * "00", "1b0300", "1b03",  # R5
        "fb", "fb0201", "fb41", "fb41ff", "fb4105aa", "fb42020000aa",  # R6
        "fb82", "fb8205", "fb83fc", "fbc2010100", "fbc20501ff",  # R7
    ],
)  # fmt: skip
def test_malformed_opus(data):
    """Covers RFC 6716 §3.4 [malformed-refused], §3.1 [one-octet-at-least], §3.2.1 [frame-limit],
    §3.2.3 [code-1-even], §3.2.4 [code-2-fits] [code-2-has-a-length] and §3.2.5 [some-frames]
    [cbr-is-even] [vbr-fits] [code-3-has-two-octets] [padding-length-goes-on] [padding-fits]
    [whole-fits].
    """
    assert OpusPacket.parse(bytes.fromhex("fa01aa")).frames == (b"\xaa", b"")
    assert OpusPacket.parse(bytes.fromhex("fb01")).frames == (b"",)
    assert [OpusPacket.parse(bytes.fromhex(each)).ticks for each in ("1b02", "fb06")] == [5760] * 2
    assert OpusPacket.parse(b"\xf8" + bytes(1275)).frames == (bytes(1275),)
    with pytest.raises(RemoteError):
        OpusPacket.parse(bytes.fromhex(data))


def test_an_opus_frame_may_be_empty():
    """Covers RFC 6716 §3.2.5 [vbr-fits]: the first one takes all there is."""
    assert OpusPacket.parse(bytes.fromhex("0b8201aa")).frames == (b"\xaa", b"")
    with pytest.raises(RemoteError, match="beyond"):
        OpusPacket.parse(bytes.fromhex("0b8202aa"))


def test_padding_is_written_as_zeros_and_read_as_anything():
    """Covers RFC 6716 §3.2.5 [padding-is-zero] [padding-is-anything]."""
    packet = OpusPacket(1, False, (b"\xaa",), padding=4)
    assert bytes(packet).hex() == "0b4103aa000000"
    assert OpusPacket.parse(bytes.fromhex("0b4103aa123456")) == packet


@pytest.mark.parametrize(
    ("data", "configuration", "stereo", "sizes", "ms", "bandwidth"),
    [
        ("08aabb", 1, False, [2], 20, "NB"),  # Figure 8
        ("e9aabb", 29, False, [1, 1], 10, "FB"),  # Figure 9, 5 ms each
        ("7a01aabbcc", 15, False, [1, 2], 40, "FB"),  # Figure 10
        ("ff04aabbccdd", 31, True, [1, 1, 1, 1], 80, "FB"),  # Figure 11
    ],
)
def test_the_examples_of_the_rfc(data, configuration, stereo, sizes, ms, bandwidth):
    """Covers RFC 6716 §3.3."""
    packet = OpusPacket.parse(bytes.fromhex(data))
    assert (packet.configuration, packet.stereo) == (configuration, stereo)
    assert [len(frame) for frame in packet.frames] == sizes
    assert (packet.ticks, packet.bandwidth) == (48 * ms, bandwidth)


@pytest.mark.parametrize(
    ("name", "port", "payload_type"), [("opus", 20016, 97), ("asterisk_opus_dtmf", None, 96)]
)
def test_captured_opus(capture, name, port, payload_type):
    """Covers RFC 7587 §4.2: timestamps go on by the length of each packet."""
    at, read = {}, 0
    for datagram in capture(f"rtp/{name}.pcap"):
        packet = RtpPacket.parse(datagram.data) if port in (None, datagram.port) else None
        if packet is None or packet.payload_type != payload_type:
            continue
        opus = OpusPacket.parse(packet.payload)
        assert bytes(opus) == packet.payload
        if name == "opus" and read:
            assert packet.timestamp == at[packet.ssrc]
        at[packet.ssrc] = packet.timestamp + opus.ticks & 0xFFFFFFFF
        read += 1
    assert read > 300


@pytest.mark.parametrize(
    "wrong",
    [
        (32, False, (b"",)),
        (1, False, ()),
        (3, False, (b"",) * 3),
        (1, False, (bytes(1276),)),
        (1, False, (b"", bytes(1276))),
    ],
)
def test_no_such_opus_packet(wrong):
    """Covers RFC 6716 §3.2.1 [frame-limit] and §3.2.5."""
    with pytest.raises(LocalError):
        OpusPacket(*wrong)


@given(st.lists(st.integers(-32768, 32767)))
def test_l16(samples):
    """Covers RFC 3551 §4.5.11 [network-order]."""
    data = encode_l16(samples)
    assert decode_l16(data) == array("h", samples)
    assert [
        int.from_bytes(data[at : at + 2], "big", signed=True) for at in range(0, len(data), 2)
    ] == samples
    with pytest.raises(RemoteError):
        decode_l16(data + b"\0")
    with pytest.raises(RemoteError):
        decode_l16(b"\0\0\0\0\0\0", channels=2)


@pytest.mark.parametrize(
    ("format_", "octets", "count"),
    [
        (("PCMU", 8000), 161, 161), (("g722", 8000), 80, 80), (("L16", 44100, 2), 80, 20),
        (("speex", 16000), 0, 320), (("GSM", 8000), 33, 160), (("opus", 48000, 2), 0, 960),
    ],
)  # fmt: skip
def test_how_long_a_payload_is(format_, octets, count):
    """Covers RFC 3551 §4.5.2 [g722-clock] and §4.5."""
    name, rate, *channels = format_
    assert ticks(name, bytes(octets), rate, *channels) == count


@given(comfort_noises())
def test_reading_comfort_noise_undoes_writing(noise):
    """Covers RFC 3389 §3.3 [level-first] and §3 [model-of-any-order]."""
    data = bytes(noise)
    assert ComfortNoise.parse(data) == noise and data[0] == noise.level
    assert all(-1 < each < 1.01 for each in noise.coefficients)


@given(st.binary(max_size=80))
def test_any_octets_are_comfort_noise_or_refused(data):
    """Covers RFC 3389 §3.1 and §3.2: the unused bit is ignored, a reserved index ends the model."""
    try:
        noise = ComfortNoise.parse(data)
    except RemoteError:
        assert not 0 < len(data) <= 65
        return
    assert noise.level == data[0] & 0x7F and bytes(noise)[1:] == data[1:].partition(b"\xff")[0]


@pytest.mark.parametrize("wrong", [(128,), (-1,), (1, (255,)), (1, (-1,)), (1, (0,) * 65)])
def test_no_such_noise(wrong):
    """Covers RFC 3389 §3.1 and §3.2."""
    with pytest.raises(LocalError):
        ComfortNoise(*wrong)


@given(redundant_payloads())
def test_reading_redundant_audio_undoes_writing(payload):
    """Covers RFC 2198 §3 [last-header-is-short]."""
    data = bytes(payload)
    assert RedundantPayload.parse(data) == payload
    assert len(data) == 1 + len(payload.data) + sum(4 + len(each.data) for each in payload.older)


@given(mutations(redundant_payloads().map(bytes)) | st.binary(max_size=40))
@example(b"\x80\0\0\0")
def test_any_octets_are_redundant_audio_or_refused(data):
    """Covers RFC 2198 §3 [last-header-is-short]."""
    try:
        assert bytes(RedundantPayload.parse(data)) == data
        event("read")
    except RemoteError:
        event("refused")


@pytest.mark.parametrize(
    "make",
    [
        lambda: RedundantBlock(128, 0, b""), lambda: RedundantBlock(0, 1 << 14, b""),
        lambda: RedundantBlock(0, 0, bytes(1024)), lambda: RedundantPayload(128, b""),
        lambda: RedundantPayload(0, b"", (RedundantBlock(0, 0, b""),) * 33),
    ],
)  # fmt: skip
def test_no_such_block(make):
    """Covers RFC 2198 §3."""
    with pytest.raises(LocalError):
        make()

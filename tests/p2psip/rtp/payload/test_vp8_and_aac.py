"""Frames of VP8 and AAC come out of packets whole or not at all, and what is missing is told."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations

from p2psip.errors import LocalError, RemoteError
from p2psip.rtp.payload.aac import FMTP, AacDamage, AacFrame, AacUnpacker, pack_aac, read_aac
from p2psip.rtp.payload.vp8 import Vp8Damage, Vp8Descriptor, Vp8Frame, Vp8Unpacker, pack_vp8
from p2psip.sdp.attributes import parameters
from p2psip.strategies.video import vp8_descriptors

frames = st.lists(st.binary(min_size=1, max_size=60), min_size=1, max_size=5)


def through(unpacker, packets):
    """What an unpacker makes of (sequence, timestamp, marker, payload)."""
    return [each for packet in packets for each in unpacker.push(*packet)]


def numbered(packets_of_frames):
    """Sequence numbers, and a timestamp for each frame."""
    sequence, packets = 0xFFF0, []
    for at, each in enumerate(packets_of_frames):
        for payload, marker in each:
            packets.append((sequence, 3000 * at, marker, payload))
            sequence += 1
    return packets


@given(vp8_descriptors(), st.binary(max_size=8))
def test_reading_descriptors_undoes_writing(descriptor, rest):
    """Covers RFC 7741 §4.2 [picture-id-of-15-bits] [extension-follows] [no-extension-no-fields]
    [picture-id-with-i] [no-picture-id-without-i] [base-with-l] [no-base-without-l]
    [no-layers-without-t-or-k].
    """
    data = bytes(descriptor)
    assert Vp8Descriptor.parse(data + rest) == (descriptor, len(data))
    for end in range(len(data)):
        with pytest.raises(RemoteError):
            Vp8Descriptor.parse(data[:end])


@given(st.binary(max_size=10))
def test_any_octets_are_a_descriptor_or_refused(data):
    """Covers RFC 7741 §4.2 [partition-of-three-bits] [tid-ignored-without-t]
    [keyidx-ignored-without-k].
    """
    try:
        descriptor, at = Vp8Descriptor.parse(data)
    except RemoteError:
        event("refused")
        assert Vp8Descriptor.parse(data + bytes(6))[1] >= len(data)  # it was cut short
        return
    assert 0 < at <= min(len(data), 6) and descriptor.partition == data[0] & 7
    extended = data[1] if data[0] & 0x80 else 0
    assert (descriptor.temporal_layer is None) == (not extended & 0x20)
    assert (descriptor.key_index is None) == (not extended & 0x10)
    assert descriptor.temporal_layer in (None, data[at - 1] >> 6)
    assert descriptor.key_index in (None, data[at - 1] & 0x1F)


@pytest.mark.parametrize(
    ("octets", "descriptor"),
    [
        ("10", Vp8Descriptor(True)),
        ("50", Vp8Descriptor(True)),  # the reserved bits are set
        ("98 0f", Vp8Descriptor(True)),
        ("80 80 7f", Vp8Descriptor(picture_id=127)),
        ("80 80 8123", Vp8Descriptor(picture_id=0x123, long_picture_id=True)),
        ("80 60 07 e0", Vp8Descriptor(temporal_base=7, temporal_layer=3, layer_sync=True)),
        ("80 20 80", Vp8Descriptor(temporal_layer=2)),
        ("80 10 3f", Vp8Descriptor(layer_sync=True, key_index=31)),
        ("80 30 5f", Vp8Descriptor(temporal_layer=1, key_index=31)),
    ],
)
def test_the_bits_of_a_descriptor(octets, descriptor):
    """Covers RFC 7741 §4.2 [reserved-bits] [picture-id-of-any-size] [layer-bits] [key-index-bits]
    [base-with-l] [layers-with-t] [layers-with-k] [picture-id-with-i].
    """
    data = bytes.fromhex(octets)
    assert Vp8Descriptor.parse(data) == (descriptor, len(data))
    if octets not in ("50", "98 0f"):
        assert bytes(descriptor) == data


def test_an_index_of_the_base_layer_is_written_beside_a_layer():
    """Covers RFC 7741 §4.2 [base-has-a-layer]: and read without."""
    descriptor, _ = Vp8Descriptor.parse(bytes.fromhex("80 40 07"))
    assert descriptor == Vp8Descriptor(temporal_base=7)
    with pytest.raises(LocalError):
        bytes(descriptor)


@given(frames, st.integers(5, 40), st.none() | st.integers(0, 0x7FFF))
def test_unpacking_vp8_undoes_packing(pictures, size, number):
    """Covers RFC 7741 §4.4 [start-on-first-alone] [marker-on-last] [partitions-in-order]
    [one-frame-in-a-payload], §4.5.1 [frame-begins-with-s] [frame-ends-with-marker], §4.1
    [marker-on-last] and §4.2 [start-at-a-partition] [start-on-first] [first-partition-is-0]
    [one-start] [unknown-reference].
    """
    packets = numbered(pack_vp8(frame, size, number) for frame in pictures)
    assert all(len(payload) <= size for *_, payload in packets)
    out = through(Vp8Unpacker(), packets)
    assert [(each.data, each.timestamp) for each in out] == [
        (frame, 3000 * at) for at, frame in enumerate(pictures)
    ]
    assert all(each.descriptor.picture_id == number for each in out)
    heads = [(at, Vp8Descriptor.parse(payload)[0]) for _, at, _, payload in packets]
    assert {(each.partition, each.non_reference) for _, each in heads} == {(0, False)}
    starts = [3000 * at for at in range(len(pictures))]
    assert [at for at, each in heads if each.start] == starts
    ends = [at for _, at, marker, _ in packets if marker]
    assert ends == starts and [at for at, _ in heads] == sorted(at for at, _ in heads)
    assert [each.is_key for each in out] == [not frame[0] & 1 for frame in pictures]


@given(frames, frames, st.randoms(use_true_random=False))
def test_a_frame_that_lacks_a_packet_does_not_come_out(pictures, sounds, chance):
    """Covers RFC 7741 §4.5.1 [frame-begins-with-s] and RFC 3640 §3.2.3.1 [never-half-a-frame]."""
    for unpacker, whole, damage, packets in (
        (Vp8Unpacker(), Vp8Frame, Vp8Damage, numbered(pack_vp8(each, 9) for each in pictures)),
        (AacUnpacker(), AacFrame, AacDamage, numbered(pack_aac([each], 9) for each in sounds)),
    ):
        kept = [packet for packet in packets if chance.random() > 0.2]
        lost = {packet[1] for packet in packets} - {
            at for at in {packet[1] for packet in packets}
            if all(packet in kept for packet in packets if packet[1] == at)
        }  # fmt: skip
        out = through(unpacker, [packet for packet in kept for _ in range(chance.choice([1, 2]))])
        contents = pictures if whole is Vp8Frame else sounds
        for each in out:
            if isinstance(each, whole):
                assert each.timestamp not in lost and each.data == contents[each.timestamp // 3000]
        missing = sum(each.lost for each in out if isinstance(each, damage))
        assert not kept or missing == kept[-1][0] - kept[0][0] + 1 - len(kept)
        event(f"{whole.__name__}: {'some' if lost else 'none'} lost")


@given(
    st.lists(
        st.tuples(
            st.integers(0, 30),
            st.integers(0, 3),
            st.booleans(),
            mutations(
                frames.map(lambda each: pack_aac(each, 40)[0][0])
                | frames.map(lambda each: pack_vp8(each[0], 40, 5)[0][0])
            ),
        ),
        max_size=30,
    )
)
def test_any_packets_make_frames_of_what_came(packets):
    """Covers RFC 7741 §4.5.1 and RFC 3640 §3.2.3.1."""
    came = sum(len(payload) for *_, payload in packets)
    for unpacker, whole in ((Vp8Unpacker(), Vp8Frame), (AacUnpacker(), AacFrame)):
        out = through(unpacker, packets)
        assert sum(len(each.data) for each in out if isinstance(each, whole)) <= came


@given(frames, st.integers(5, 80))
def test_unpacking_aac_undoes_packing(sounds, size):
    """Covers RFC 3640 §3.2.1.1 [size-before-index], §3.2.3 [decoding-order]
    [fits-the-path] [sizes-are-told] [size-in-the-header], §3.2.3.1 [whole-or-one-fragment],
    §3.3.6 [length-precedes] [no-auxiliary-section] and
    §3.2.3.2 [index-by-time] [duration-is-constant].
    """
    assert [len(pack_aac([b"a", b"b"], room)) for room in (8, 7)] == [1, 2]
    packets, timestamp = [], 0
    for sequence, (payload, marker) in enumerate(pack_aac(sounds, size)):
        read = read_aac(payload)
        event(f"{len(read)} frames" if len(read) < 3 else "more frames")
        packets.append((sequence, timestamp, marker, payload))
        timestamp += 1024 * len(read) if marker else 0
        assert len(payload) <= size
    assert through(AacUnpacker(), packets) == [
        AacFrame(frame, 1024 * at) for at, frame in enumerate(sounds)
    ]


def test_frames_behind_their_headers():
    """Covers RFC 3640 §3.2.1 [length-in-bits], §3.2.1.1 [size-before-index]
    [deltas-after-the-first] and §3.3.6 [header-for-each] [length-precedes] [no-auxiliary-section].
    """
    assert pack_aac([b"one", b"three"], 1400) == [
        (bytes.fromhex("0020 0018 0028") + b"onethree", True)
    ]


def test_the_format_tells_its_layout():
    """Covers RFC 3640 §3.3.6 [lengths-in-fmtp], §3.3.1 [mode-is-told] and §4.1
    [one-way-to-tell-sizes].
    """
    said = parameters(FMTP)
    layout = [said[f"{name}length"] for name in ("size", "index", "indexdelta")]
    assert layout == ["13", "3", "3"] and "constantsize" not in said and said["mode"] == "AAC-hbr"
    assert read_aac(pack_aac([bytes(8191)], 9000)[0][0]) == ((8191, bytes(8191)),)


@pytest.mark.parametrize(
    "payload",
    ["", "00", "0000", "000f0018", "00100018", "0010001961", "00200018001861",
     "00200018001861616262", "0010000861626364", "00200000001861616161", "ffff",
     "000061", "002000000018616161", "0410" + 65 * "0008" + 65 * "61"],
)  # fmt: skip
def test_malformed_aac(payload):
    """Covers RFC 3640 §3.2.1 [length-in-bits], §2.11 [some-data] and §3.3.6
    [no-auxiliary-section].
    """
    assert read_aac(bytes.fromhex("0010000861")) == ((1, b"a"),)
    assert len(read_aac(bytes.fromhex("0400" + 64 * "0008" + 64 * "61"))) == 64
    with pytest.raises(RemoteError):
        read_aac(bytes.fromhex(payload))
    assert AacUnpacker().push(1, 7, True, bytes.fromhex(payload)) == [AacDamage(7, 0)]


@pytest.mark.parametrize("headers", ["000f0008", "0009000f", "000a0008"])
def test_interleaved_aac(headers):
    """Covers RFC 3640 §3.3.6 [index-is-zero] and §3.2.1.1 [deltas-after-the-first]."""
    assert read_aac(bytes.fromhex("002000080008" + "6162")) == ((1, b"a"), (1, b"b"))
    with pytest.raises(RemoteError, match="interleaved"):
        read_aac(bytes.fromhex("0020" + headers + "6162"))


def test_a_part_of_aac_says_the_size_of_the_whole():
    """Covers RFC 3640 §3.2.1.1 [size-is-of-the-whole]."""
    assert read_aac(bytes.fromhex("00100018" + "6162")) == ((3, b"ab"),)
    assert read_aac(bytes.fromhex("00100018" + "616263")) == ((3, b"abc"),)
    with pytest.raises(RemoteError, match="other sizes"):
        read_aac(bytes.fromhex("00100008" + "6162"))
    with pytest.raises(RemoteError, match="other sizes"):
        read_aac(bytes.fromhex("002000180008" + "6162"))


def test_an_end_that_comes_too_early_is_told():
    """Covers RFC 3640 §3.2.3.1 [never-half-a-frame]."""
    part = bytes.fromhex("00100018" + "61")
    assert AacUnpacker().push(1, 7, True, part) == [AacDamage(7, 0)]
    unpacker = AacUnpacker()
    assert unpacker.push(1, 7, False, part) == []
    assert unpacker.push(2, 7, True, part) == [AacDamage(7, 0)]


def test_a_frame_never_grows_without_end(monkeypatch):
    """Own design: a forged stream of parts is cut off."""
    monkeypatch.setattr("p2psip.rtp.payload.vp8.MAX_FRAME_OCTETS", 100)
    unpacker = Vp8Unpacker()
    for at in range(100):
        unpacker.push(at, 0, False, bytes(Vp8Descriptor(at == 0)) + bytes(10))
        assert unpacker._octets <= 100


@pytest.mark.parametrize(
    "make",
    [
        lambda: pack_vp8(b"", 9), lambda: pack_vp8(b"a", 1), lambda: pack_aac([b""], 9),
        lambda: pack_aac([bytes(8192)], 9), lambda: pack_aac([b"a"], 4),
        lambda: Vp8Descriptor(partition=8), lambda: Vp8Descriptor(picture_id=0x8000),
        lambda: Vp8Descriptor(key_index=32), lambda: Vp8Descriptor(temporal_layer=-1),
    ],
)  # fmt: skip
def test_what_cannot_be_packed(make):
    """Covers RFC 7741 §4.2 and RFC 3640 §3.2.1.1 [bits-enough]."""
    assert pack_aac([b"a"], 5) and pack_aac([bytes(8191)], 9000)
    with pytest.raises(LocalError):
        make()

"""Speex frames are found and cut where Flash, GStreamer and libspeex itself put them."""

import ctypes
import ctypes.util
import math
from contextlib import suppress

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations, peak

from p2psip.errors import RemoteError
from p2psip.rtp.payload import speex
from p2psip.rtp.payload.speex import is_comment, is_header, is_metadata, narrowband, split
from p2psip.strategies.rtp import speex_payloads

payloads = speex_payloads()
spoiled = mutations(payloads.map(lambda made: made.payload))


@given(payloads)
def test_frames_come_out_as_they_went_in(made):
    """Covers RFC 5574 §3.3, and §3.5 by the count.

    Covers RFC 5574 §3.3 [whole-octets], RFC 3551 §4.4 [splits-frames].
    """
    assert split(made.payload) == made.frames
    assert split(memoryview(made.payload), wideband=False) == made.narrow
    assert speex.count(made.payload) == len(made.frames)
    for frame, narrow in zip(made.frames, made.narrow, strict=True):
        assert split(frame) == [frame] and narrowband(frame) == narrow == narrowband(narrow)
    if len(made.frames) > 1:
        with pytest.raises(RemoteError):
            narrowband(made.payload)


@given(speex_payloads(1).map(lambda made: made.payload) | spoiled, st.booleans())
def test_the_short_cut_cuts_as_the_long_way_does(data, wideband):
    """Covers RFC 5574 §3.3: for one frame, whole, cut down, spoiled or none at all."""

    def outcome():
        try:
            return split(data, wideband)
        except RemoteError:
            return None

    short = outcome()
    event("one frame" if speex.one_frame(data)[0] else "another")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(speex, "one_frame", lambda data: (0, False))
        assert outcome() == short


@given(spoiled | spoiled | spoiled | st.binary(max_size=100))
def test_any_octets_are_split_or_refused(data):
    """Covers RFC 5574 §3.3: what comes out is shorter or equal, and splits into itself."""
    is_metadata(data)
    if data and (data[0] >> 3 in speex.NARROWBAND_BITS or data[0] >> 3 in (13, 14)):
        event("passed the first field")
    try:
        frames = split(data)
    except RemoteError:
        event("refused")
        return
    event("split")
    assert all(split(frame) == [frame] for frame in frames)
    assert sum(map(len, split(data, wideband=False))) <= sum(map(len, frames))


@pytest.mark.parametrize("data", [bytes(31), bytes(8192), b"\x73\xff" * 4096, bytes(1 << 20)])
def test_memory_is_bounded(data):
    """Covers RFC 5574 §3.3, even of a payload that is nothing but the shortest frames."""

    def read():
        with suppress(RemoteError):
            split(data)

    assert peak(read) <= 32 * len(data) + 65536


@pytest.mark.parametrize(
    "bad", [b"", b"\x7f", b"\x9f\xff", b"\x0f" * 3, b"\x48\x00", b"\x0c", b"\x6f\xff"]
)
def test_what_is_no_speex_is_refused(bad):
    """Covers RFC 5574 §3.3: nothing, terminator alone, a layer without a frame, cut short."""
    with pytest.raises(RemoteError):
        split(bad)


def test_metadata_is_recognised():
    """Covers RFC 5574 §3.2: a comment packet's lengths must add up, a frame's never do."""
    vendor = b"\x04\x00\x00\x00gst!"
    tag = b"\x03\x00\x00\x00A=B"
    assert is_comment(vendor + b"\x01\x00\x00\x00" + tag)
    assert is_comment(vendor + b"\x00\x00\x00\x00\x01")
    assert not is_comment(vendor + b"\x02\x00\x00\x00" + tag)
    assert not is_comment(vendor) and not is_comment(b"\xff" * 8) and not is_comment(b"\x01")
    assert not is_comment(vendor + b"\xff\xff\xff\x7f")
    assert is_header(b"Speex   1.2".ljust(80, b"\0")) and not is_header(b"Speex   ")


# file: how many audio tags, metadata tags, frames, and the octets of narrowband frames
RECORDINGS = [
    ("seed_320x240_12fps_h264_speex16k_10s.flv", 500, 0, 500, {46}),
    ("h264_slices4_speex16k.flv", 300, 0, 300, {46}),
    ("audio_speex16k.flv", 784, 0, 784, {46}),
    ("red5_h264_speex.flv", 1362, 0, 1362, {62}),
    ("red5_flashContent1.flv", 453, 0, 906, {38, 6}),
    ("mona_Audio.flv", 210, 2, 208, {6}),
]


@pytest.mark.parametrize(("name", "tags", "metadata", "frames", "sizes"), RECORDINGS)
def test_recordings(flv_audio, name, tags, metadata, frames, sizes):
    """Covers RFC 5574 §3.5: Flash puts up to two frames in a tag, GStreamer a header first."""
    found = flv_audio(name)
    assert len(found) == tags and {tag >> 4 for tag, _ in found} == {11}
    sound = [data for _, data in found if not is_metadata(data)]
    assert len(found) - len(sound) == metadata
    assert [is_header(found[0][1]), is_comment(found[1][1])] == [metadata > 0] * 2
    cut = [frame for data in sound for frame in split(data)]
    assert len(cut) == frames == sum(map(speex.count, sound))
    assert {len(narrowband(frame)) for frame in cut} == sizes


@pytest.mark.parametrize(
    ("name", "port", "count"),
    [("rtp/speex16k.pcap", 20008, 784), ("sip/sip_call_av_speex16k_h264.pcap", 23200, 496)],
)
def test_captured_packets(capture, name, port, count):
    """Covers RFC 5574 §3.3: one frame a packet, padded as we pad it."""
    sound = [datagram.data[12:] for datagram in capture(name) if datagram.port == port]
    assert len(sound) == count and all(split(data) == [data] for data in sound)
    assert all(len(narrowband(data)) == 46 for data in sound)


# -- libspeex itself, through ctypes ------------------------------------------------------


class _Bits(ctypes.Structure):
    _fields_ = [
        ("chars", ctypes.c_void_p),
        *((name, ctypes.c_int) for name in ("nbits", "char_at", "bit_at", "owner", "overflow")),
        *((name, ctypes.c_int) for name in ("size", "reserved")),
        ("reserved2", ctypes.c_void_p),
    ]


class Libspeex:
    """The few calls of libspeex that the tests need."""

    def __init__(self, library):
        self.library = library
        library.speex_lib_get_mode.restype = ctypes.c_void_p
        for name in ("encoder", "decoder"):
            init = getattr(library, f"speex_{name}_init")
            init.restype, init.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
            for verb in ("ctl", "destroy"):
                getattr(library, f"speex_{name}_{verb}").argtypes = None

    def _bits(self):
        bits = _Bits()
        self.library.speex_bits_init(ctypes.byref(bits))
        return bits

    def encode(self, samples, mode, frames_a_packet=1, **settings):
        """Encode samples; `mode` 0 narrowband, 1 wide, 2 ultra-wide; answer the payloads."""
        lib, size = self.library, 160 << mode
        state = ctypes.c_void_p(lib.speex_encoder_init(lib.speex_lib_get_mode(mode)))
        for request, value in settings.items():
            code = {"quality": 4, "vbr": 12, "vad": 30, "dtx": 34}[request]
            lib.speex_encoder_ctl(state, code, ctypes.byref(ctypes.c_int(value)))
        bits, out, payloads = self._bits(), ctypes.create_string_buffer(2000), []
        step = size * frames_a_packet
        for at in range(0, len(samples) - step + 1, step):
            lib.speex_bits_reset(ctypes.byref(bits))
            for frame in range(at, at + step, size):
                pcm = (ctypes.c_short * size)(*samples[frame : frame + size])
                lib.speex_encode_int(state, pcm, ctypes.byref(bits))
            written = lib.speex_bits_write(ctypes.byref(bits), out, 2000)
            payloads.append(out.raw[:written])
        lib.speex_encoder_destroy(state)
        return payloads

    def decode(self, payloads, mode, frames_a_packet=1):
        """Decode payloads; answer the samples, and the results of all calls."""
        lib, size = self.library, 160 << mode
        state = ctypes.c_void_p(lib.speex_decoder_init(lib.speex_lib_get_mode(mode)))
        bits, pcm, samples, results = self._bits(), (ctypes.c_short * size)(), [], set()
        for payload in payloads:
            lib.speex_bits_read_from(ctypes.byref(bits), bytes(payload), len(payload))
            for _ in range(frames_a_packet):
                results.add(lib.speex_decode_int(state, ctypes.byref(bits), pcm))
                samples.extend(pcm)
        lib.speex_decoder_destroy(state)
        return samples, results


@pytest.fixture(scope="module")
def libspeex():
    name = ctypes.util.find_library("speex")
    if not name:
        pytest.skip("the Debian package libspeex1 is not installed")
    return Libspeex(ctypes.CDLL(name))


def tone(frequency, rate, seconds=0.6):
    return [
        int(8000 * math.sin(2 * math.pi * frequency * i / rate)) for i in range(int(rate * seconds))
    ]


def share_of_tone(samples, frequency, rate):
    """How much of the energy is at one frequency, 1.0 being all of it (Goertzel)."""
    turn = 2 * math.pi * frequency / rate
    real = sum(sample * math.cos(turn * i) for i, sample in enumerate(samples))
    imaginary = sum(sample * math.sin(turn * i) for i, sample in enumerate(samples))
    return 2 * (real**2 + imaginary**2) / len(samples) / sum(s * s for s in samples)


@pytest.mark.parametrize("quality", range(11))
@pytest.mark.parametrize("mode", [1, 2])
def test_libspeex_hears_the_same_in_what_we_cut(libspeex, mode, quality):
    """Covers RFC 5574 §3.3: its narrowband decoder skips the layers itself, to equal effect."""
    rate = 8000 << mode
    whole = libspeex.encode(tone(440, rate), mode, quality=quality)
    cut = [narrowband(frame) for frame in whole]
    assert all(len(after) < len(before) for before, after in zip(whole, cut, strict=True))
    reference, _ = libspeex.decode(whole, 0)
    heard, results = libspeex.decode(cut, 0)
    assert heard == reference and results == {0}
    if quality >= 6:
        assert share_of_tone(heard[1600:], 440, 8000) > 0.9
        loudness = math.sqrt(sum(s * s for s in heard[1600:]) / len(heard[1600:]))
        assert 0.7 < loudness / (8000 / math.sqrt(2)) < 1.3


@pytest.mark.parametrize("settings", [{"quality": 8}, {"vbr": 1}, {"vad": 1, "dtx": 1}])
@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("frames", [2, 3, 7])
def test_libspeex_hears_the_same_in_packets_we_split(libspeex, mode, frames, settings):
    """Covers RFC 5574 §3.5, with changing modes and the empty frames of silence too."""
    rate = 8000 << mode
    sound = tone(700, rate, 0.4) + [0] * int(rate * 0.4)
    packets = libspeex.encode(sound, mode, frames, **settings)
    assert {speex.count(packet) for packet in packets} == {frames}
    single = [frame for packet in packets for frame in split(packet)]
    reference, _ = libspeex.decode(packets, mode, frames)
    heard, results = libspeex.decode(single, mode)
    assert heard == reference and results == {0}


def test_libspeex_hears_speech_of_flash_at_8_khz(libspeex, flv_audio):
    """Covers RFC 5574 §3.3: a real Flash Player's wideband, cut for a narrowband phone."""
    sound = [data for _, data in flv_audio("red5_h264_speex.flv")][:300]
    reference, _ = libspeex.decode(sound, 0)
    heard, results = libspeex.decode([narrowband(data) for data in sound], 0)
    assert heard == reference and results == {0} and max(heard) > 500

"""Packets of the length that a phone asks for, and Opus within the phone's own limits."""

import random
from array import array
from fractions import Fraction

import pytest

pytest.importorskip("av")

from p2psip.rtp.payload import speex
from p2psip.rtp.payload.opus import OpusPacket
from p2psip.sdp.opus_parameters import BANDWIDTHS
from siprtmp.media.transcode import libspeex
from siprtmp.media.transcode.to_rtp import TranscodedToRtp, can_encode, encoder
from siprtmp.media.transcode.to_samples import payload_decoder
from siprtmp.media.translate.audio_formats import (
    AAC_CODECS,
    AUDIO_CODECS,
    G722,
    L16,
    L16_44,
    NARROWBAND,
    OPUS,
    PCMA,
    PCMU,
    WIDEBAND,
)

ULAW = b"\x82" + b"u" * 160


def noise(samples):
    """Sound of all frequencies."""
    dice = random.Random(1)
    return array("h", (dice.randint(-8000, 8000) for _ in range(samples)))


@pytest.mark.parametrize(
    ("codec", "ptime", "packet_ms", "octets"),
    [
        *((PCMU, 20, 20, 160), (PCMA, 30, 30, 240), (PCMU, 5, 10, 80), (PCMU, 500, 200, 1600)),
        *((G722, 20, 20, 160), (G722, 10, 10, 80), (G722, 30, 20, 160), (G722, 15, 10, 80)),
        *((G722, 60, 60, 480), (L16, 20, 20, 640), (L16, 60, 40, 1280), (L16_44, 20, 10, 882)),
        *((OPUS, 20, 20, None), (OPUS, 10, 10, None), (OPUS, 50, 40, None), (OPUS, 3, 10, None)),
        (OPUS, 200, 60, None),
    ],
)
def test_packets_are_never_longer_than_a_phone_wants(codec, ptime, packet_ms, octets):
    """Covers RFC 8866 §6.5 and RFC 3551 §4.2: between 10 and 200 ms, in whole frames."""
    made = encoder(codec, ptime, "")
    assert made.samples / made.parts == codec.sample_rate * packet_ms / 1000
    for _ in range(3):
        payloads = made.encode(noise(made.samples))
        assert len(payloads) == made.parts
        if octets:
            assert {len(payload) for payload in payloads} == {octets}
        else:
            assert [OpusPacket.parse(each).ticks for each in payloads] == [48 * packet_ms]
    assert TranscodedToRtp(codec, ptime).packet_seconds == packet_ms / 1000


@pytest.mark.parametrize(("rate", "bandwidth"), [(8000, "NB"), (16000, "WB"), (48000, "FB")])
def test_opus_has_no_more_than_the_phone_plays(rate, bandwidth):
    """Covers RFC 7587 §7.1 [no-more-bandwidth-than-played] [mono-unless-asked], §6.1
    [no-more-bandwidth-than-said] and §4.2 [one-packet-in-a-payload].
    """
    made = encoder(OPUS, 20, f"maxplaybackrate={rate}")
    seen = [OpusPacket.parse(made.encode(noise(960))[0]) for _ in range(10)]
    assert {(packet.bandwidth, packet.stereo, packet.ticks) for packet in seen} == {
        (bandwidth, False, 960)
    }


@pytest.mark.parametrize(
    ("layout", "options", "widest"),
    [
        *(("mono", {"cutoff": str(hertz)}, name) for hertz, name in
          [(4000, "NB"), (8000, "WB"), (12000, "SWB"), (20000, "FB")]),
        ("mono", {"application": "voip", "cutoff": "6000", "b": "16000"}, "WB"),
        ("stereo", {"b": "96000"}, "FB"),
        ("mono", {"application": "voip", "fec": "1", "packet_loss": "20", "b": "24000"}, "FB"),
    ],
)  # fmt: skip
def test_any_opus_is_decoded(layout, options, widest):
    """Covers RFC 7587 §6.1 [any-bandwidth-is-decoded] [stereo-is-decoded] [fec-is-no-harm] and §7.1
    [any-rate-is-decoded] [any-signal-is-decoded].
    """
    import av

    context = av.CodecContext.create("libopus", "w")
    context.sample_rate, context.format, context.layout = 48000, "s16", layout
    context.time_base, context.options = Fraction(1, 48000), options
    context.open()
    channels, decode, samples = len(context.layout.channels), payload_decoder(OPUS), 0
    names = [name for name, _ in BANDWIDTHS]
    for _ in range(10):
        frame = av.AudioFrame("s16", layout, 960)
        frame.planes[0].update(noise(960 * channels).tobytes())
        frame.sample_rate = 48000
        for packet in context.encode(frame):
            read = OpusPacket.parse(bytes(packet))
            assert read.stereo == (layout == "stereo")
            assert names.index(read.bandwidth) <= names.index(widest)
            samples += len(decode(bytes(packet)))
    assert samples == 960 * 10


def test_opus_takes_no_more_bits_than_the_phone_asks_for():
    """Covers RFC 7587 §7.1 [no-more-bits-than-said] and §3.1.2 [usual-bitrate]."""
    seconds = []
    for fmtp in ("", "maxaveragebitrate=12000", "maxaveragebitrate=12000;cbr=1"):
        made = encoder(OPUS, 20, fmtp)
        packets = [made.encode(noise(960))[0] for _ in range(50)]
        seconds.append(8 * sum(map(len, packets)))
        assert fmtp[-5:] != "cbr=1" or len({len(packet) for packet in packets}) == 1
    full, less, constant = seconds
    assert full > 35_000 and less < 16_000 and constant <= 12_000


def test_a_gap_of_the_publisher_is_a_gap_for_the_phone():
    """Covers RFC 3551 §4.1 [marker-opens-talkspurt], and RFC 3550 §5.1 for the time it takes."""
    made = TranscodedToRtp(G722, 20)
    packets = [packet for at in (0, 20, 40) for packet in made.convert(ULAW, at)]
    packets += made.convert(ULAW[:81], 60)
    packets += made.convert(ULAW, 1060)  # what waits is filled up and sent
    packets += made.convert(ULAW, 1080)
    assert [packet.marker for packet in packets[:5]] == [True, False, False, False, True]
    assert [packet.ticks for packet in packets[:4]] == [0, 160, 320, 480]
    assert abs(packets[4].ticks - 8 * 1060) <= 160


def test_a_gap_within_a_packet_is_filled():
    """Covers RFC 3551 §4.2."""
    made = TranscodedToRtp(PCMU, 100)
    packets = made.convert(ULAW, 0) + made.convert(ULAW, 70) + made.convert(ULAW, 90)
    assert [(packet.ticks, packet.marker) for packet in packets] == [(0, True)]
    assert packets[0].payload[160 + 40 : 160 + 360] == b"\xff" * 320


def test_speex_is_made_where_its_library_is(monkeypatch):
    """Own design: a phone of Speex alone is told of nothing that cannot be made."""
    monkeypatch.setattr(libspeex, "NAME", "libspeex.so.none")
    libspeex._library.cache_clear()
    try:
        unmade = [codec for codec in AUDIO_CODECS.values() if not can_encode(codec)]
        assert [each.name for each in unmade if not each.is_aac] == ["wideband", "narrowband"]
        assert [each for each in unmade if each.is_aac] == list(AAC_CODECS)
    finally:
        monkeypatch.undo()
        libspeex._library.cache_clear()


@pytest.mark.skipif(not libspeex.is_available(), reason="apt install libspeex1")
@pytest.mark.parametrize("codec", [WIDEBAND, NARROWBAND], ids=["wideband", "narrowband"])
def test_a_packet_of_speex_has_one_whole_frame(codec):
    """Covers RFC 5574 §3.3 [frames-whole]."""
    made = encoder(codec, 60, "")
    assert made.samples == codec.sample_rate // 50
    for _ in range(20):
        [payload] = made.encode(noise(made.samples))
        assert speex.split(payload, wideband=True) == [payload]
        narrow_end, has_layer = speex.one_frame(payload)
        assert narrow_end and has_layer == (codec is WIDEBAND)

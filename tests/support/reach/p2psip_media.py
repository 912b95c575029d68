"""What the strategies draw for parsers of payloads and of SRTP."""

from contextlib import suppress

from hypothesis import strategies as st
from support.reach.reading import Reading, asked, first, octets, second

from p2psip.errors import RemoteError
from p2psip.rtp import srtp
from p2psip.rtp.payload import (
    aac,
    comfort_noise,
    duration,
    h264,
    h265,
    l16,
    opus,
    red,
    speex,
    vp8,
)
from p2psip.strategies import audio, payload_faults, rtp, video
from p2psip.strategies import srtp as protected

MEDIA_PARSERS = (
    *(h264, h265, vp8, aac, opus, red, comfort_noise, l16, speex, duration),
    srtp,
)


def _receiver():
    return srtp.SrtpReceiver(protected.KEY, protected.SALT, protected.TAG_OCTETS)


def _opened(datagrams):
    """Open what arrives by one key; what is refused ends nothing."""
    receiver = _receiver()
    for each in datagrams:
        with suppress(RemoteError):
            receiver.open_rtp(each)


def _lengths(payload):
    return [duration.ticks(name, payload, 48000) for name in ("PCMU", "L16", "Opus", "Speex", "x")]


_SPEEX = rtp.speex_payloads().map(lambda each: each.payload) | second(
    payload_faults.broken_speex() | payload_faults.excessive_speex()
)
_OPUS = octets(audio.opus_packets()) | second(payload_faults.broken_opus())
MEDIA = (
    Reading(
        "H.264",
        video.h264_payloads()
        | first(video.odd_h264_payloads())
        | second(payload_faults.broken_h264()),
        h264.read_h264,
    ),
    Reading(
        "H.265",
        video.h265_payloads()
        | first(video.odd_h265_payloads())
        | second(payload_faults.broken_h265()),
        h265.read_h265,
    ),
    Reading(
        "VP8",
        octets(video.vp8_descriptors()) | second(payload_faults.broken_vp8()),
        vp8.Vp8Descriptor.parse,
    ),
    Reading("AAC", audio.aac_payloads() | second(payload_faults.broken_aac()), aac.read_aac),
    Reading("Opus", _OPUS, opus.OpusPacket.parse),
    Reading(
        "redundant audio",
        octets(audio.redundant_payloads()) | second(payload_faults.broken_red()),
        red.RedundantPayload.parse,
    ),
    Reading(
        "comfort noise",
        octets(audio.comfort_noises()) | second(payload_faults.broken_noise()),
        lambda data: asked(comfort_noise.ComfortNoise.parse(data)),
    ),
    Reading("L16", st.binary() | second(payload_faults.broken_l16()), l16.decode_l16),
    Reading("Speex", _SPEEX, speex.split),
    Reading("Speex at 8 kHz", _SPEEX, speex.narrowband),
    Reading("lengths of payloads", _OPUS | _SPEEX, _lengths),
)
SRTP = (
    Reading("SRTP", protected.streams() | protected.many_sources(), _opened),
    Reading(
        "broken SRTP",
        second(protected.broken_srtp()),
        lambda data: _receiver().open_rtp(data),
    ),
    Reading(
        "SRTCP",
        protected.srtcp() | second(protected.broken_srtcp()),
        lambda data: _receiver().open_rtcp(data),
    ),
)

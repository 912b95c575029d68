"""What the strategies draw for parsers of payloads and of SRTP."""

from contextlib import suppress

from hypothesis import strategies as st
from support.reach.reading import Reading, asked, first, octets, second

from p2psip.errors import RemoteError
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
from p2psip.srtp import srtp
from p2psip.srtp.suites import AEAD_AES_128_GCM
from p2psip.strategies import audio, faults, payload_faults, rtp, video
from p2psip.strategies import srtp as protected

MEDIA_PARSERS = (
    *(h264, h265, vp8, aac, opus, red, comfort_noise, l16, speex, duration),
    srtp,
)


def _receiver():
    return srtp.SrtpReceiver(protected.KEY, protected.SALT)


def _opened(datagrams):
    """Open what arrives by one key; what is refused ends nothing."""
    receiver = _receiver()
    for each in datagrams:
        with suppress(RemoteError):
            receiver.open_rtp(each)


def _opened_by_gcm(datagram):
    srtp.SrtpReceiver(protected.KEY, protected.SALT[:12], AEAD_AES_128_GCM).open_rtp(datagram)


def _lengths(payload):
    return [duration.ticks(name, payload, 48000) for name in ("PCMU", "L16", "Opus", "Speex", "x")]


_SPEEX = rtp.speex_payloads().map(lambda each: each.payload) | second(
    faults.broken(payload_faults.SPEEX_FAULTS) | faults.broken(payload_faults.SPEEX_LIMITS)
)
_OPUS = octets(audio.opus_packets()) | second(faults.broken(payload_faults.OPUS_FAULTS))
MEDIA = (
    Reading(
        "H.264",
        video.h264_payloads()
        | first(video.odd_h264_payloads())
        | second(faults.broken(payload_faults.H264_FAULTS)),
        h264.read_h264,
    ),
    Reading(
        "H.265",
        video.h265_payloads()
        | first(video.odd_h265_payloads())
        | second(faults.broken(payload_faults.H265_FAULTS)),
        h265.read_h265,
    ),
    Reading(
        "VP8",
        octets(video.vp8_descriptors()) | second(faults.broken(payload_faults.VP8_FAULTS)),
        vp8.Vp8Descriptor.parse,
    ),
    Reading(
        "AAC", audio.aac_payloads() | second(faults.broken(payload_faults.AAC_FAULTS)), aac.read_aac
    ),
    Reading("Opus", _OPUS, opus.OpusPacket.parse),
    Reading(
        "redundant audio",
        octets(audio.redundant_payloads()) | second(faults.broken(payload_faults.RED_FAULTS)),
        red.RedundantPayload.parse,
    ),
    Reading(
        "comfort noise",
        octets(audio.comfort_noises()) | second(faults.broken(payload_faults.NOISE_FAULTS)),
        lambda data: asked(comfort_noise.ComfortNoise.parse(data)),
    ),
    Reading("L16", st.binary() | second(faults.broken(payload_faults.L16_FAULTS)), l16.decode_l16),
    Reading("Speex", _SPEEX, speex.split),
    Reading("Speex at 8 kHz", _SPEEX, speex.narrowband),
    Reading("lengths of payloads", _OPUS | _SPEEX, _lengths),
)
SRTP = (
    Reading("SRTP", protected.streams() | protected.many_sources(), _opened),
    Reading(
        "broken SRTP",
        second(faults.broken(protected.SRTP_FAULTS)),
        lambda data: _receiver().open_rtp(data),
    ),
    Reading("SRTP by another suite", octets(rtp.rtp_packets()), _opened_by_gcm),
    Reading(
        "SRTCP",
        protected.srtcp() | second(faults.broken(protected.SRTCP_FAULTS)),
        lambda data: _receiver().open_rtcp(data),
    ),
)

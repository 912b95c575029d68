"""Our readers of payloads refuse each fault of the strategies, and say what is wrong."""

import pytest
from hypothesis import given
from support.faults import refused

from p2psip.errors import RemoteError
from p2psip.rtp.payload import speex
from p2psip.rtp.payload.aac import read_aac
from p2psip.rtp.payload.comfort_noise import ComfortNoise
from p2psip.rtp.payload.h264 import read_h264
from p2psip.rtp.payload.h265 import read_h265
from p2psip.rtp.payload.l16 import decode_l16
from p2psip.rtp.payload.opus import OpusPacket
from p2psip.rtp.payload.red import RedundantPayload
from p2psip.rtp.payload.vp8 import Vp8Descriptor
from p2psip.strategies import faults, payload_faults, video
from p2psip.strategies.audio import aac_payloads

NO_UNIT = "NAL unit beyond the end, or of none"
H264 = {
    "nothing": "payload of nothing",
    "fragment cut": "fragment without a header",
    "fragment of a packet": "fragment of no NAL unit",
    "aggregate of nothing": "aggregate of nothing",
    "size cut": "cut in a size",
    "unit beyond the end": NO_UNIT,
    "unit of nothing": NO_UNIT,
    "aggregate of packets": "something else than NAL units",
    "interleaved packet": "payload of type",
}
H265 = {
    "header cut": "payload of [01] octets",
    "fragment header cut": "fragment of nothing",
    "fragment of nothing": "fragment of nothing",
    "fragment of a packet": "fragment of type",
    "aggregate of nothing": "aggregate of nothing",
    "size cut": "cut in a size",
    "unit beyond the end": NO_UNIT,
    "unit of one octet": NO_UNIT,
    "aggregate of packets": "something else than NAL units",
    "PACI cut": "PACI cut short",
    "PACI within a PACI": "PACI within a PACI",
    "PACI extension cut": "extension beyond the end",
}
VP8 = dict.fromkeys(("nothing", "descriptor cut"), "descriptor cut short")
SIZES, HEADERS = "AAC frames of other sizes", "AAC headers of"
AAC = {
    "length cut": "without headers",
    "half a header": HEADERS,
    "headers beyond the end": HEADERS,
    "no frame": HEADERS,
    "no header": SIZES,
    "interleaved frames": "interleaved",
    "octets behind the frame": SIZES,
    "frame of nothing": SIZES,
    "frames beyond the end": SIZES,
}
LENGTH, UNEQUAL, BEYOND = "frame without a length", "not equal", "beyond the end"
OPUS = {
    "nothing": "packet of nothing",
    "frame of 1276 octets": "frame too long",
    "two frames of odd length": UNEQUAL,
    "length missing": LENGTH,
    "length cut": LENGTH,
    "frame beyond the end": BEYOND,
    "count missing": "without a count",
    "no frames": "of no frames",
    "padding without a length": "padding without a length",
    "padding beyond the end": ".",
    "frames that are not equal": UNEQUAL,
    "lengths missing": LENGTH,
    "frames beyond the end": BEYOND,
    "more than 120 ms": "more than 120 ms",
}
RED = {
    "header cut": "redundant blocks beyond the end",
    "no primary payload": "without a primary one",
    "block beyond the end": "redundant block beyond the end",
}
SPEEX = {
    "nothing": "no Speex frame",
    "no frame": "no Speex frame",
    "frame cut": "beyond the end",
    "unknown mode": "of an unknown mode",
    "layer of an unknown mode": "of an unknown mode",
    "request cut": "beyond the end",
}
MUCH_SPEEX = dict.fromkeys(("too many frames", "too many octets"), "more than a second")


@pytest.mark.parametrize(
    ("broken", "read", "reasons"),
    [
        (faults.broken(payload_faults.H264_FAULTS), read_h264, H264),
        (faults.broken(payload_faults.H265_FAULTS), read_h265, H265),
        (faults.broken(payload_faults.VP8_FAULTS), Vp8Descriptor.parse, VP8),
        (faults.broken(payload_faults.AAC_FAULTS), read_aac, AAC),
        (faults.broken(payload_faults.OPUS_FAULTS), OpusPacket.parse, OPUS),
        (faults.broken(payload_faults.RED_FAULTS), RedundantPayload.parse, RED),
        (
            faults.broken(payload_faults.NOISE_FAULTS),
            ComfortNoise.parse,
            {"nothing": "of 0 octets"},
        ),
        (
            faults.broken(payload_faults.L16_FAULTS),
            decode_l16,
            {"half a sample": "within a sample"},
        ),
        (faults.broken(payload_faults.SPEEX_FAULTS), speex.split, SPEEX),
        (faults.broken(payload_faults.SPEEX_LIMITS), speex.count, MUCH_SPEEX),
    ],
    ids=["H.264", "H.265", "VP8", "AAC", "Opus", "RED", "noise", "L16", "Speex", "much-Speex"],
)
def test_each_fault_is_refused(broken, read, reasons):
    """Covers RFC 6184 §5 and §6.3, RFC 7798 §4.4, RFC 7741 §4.2, RFC 3640 §3.2.1 and §3.3.6.

    Covers RFC 6716 §3.2, RFC 2198 §3, RFC 3389 §3.3, RFC 3551 §4.5.11 and RFC 5574 §3.3.
    """
    refused(broken, read, RemoteError, reasons)


@given(video.odd_h264_payloads())
def test_reserved_types_of_h264_are_left_out(drawn):
    """Covers RFC 6184 §5.4 [reserved-types-ignored]."""
    payload, units = drawn
    assert read_h264(payload) == units


@given(video.odd_h265_payloads())
def test_unknown_types_of_h265_are_left_out(drawn):
    """Covers RFC 7798 §6 [other-types-are-kept-back]."""
    payload, units = drawn
    assert read_h265(payload) == units


@given(aac_payloads())
def test_payloads_of_aac_are_read(payload):
    """Covers RFC 3640 §3.3.6."""
    assert read_aac(payload)

"""Our readers of enhanced media refuse each fault of the strategies, and say what is wrong."""

import pytest
from support.faults import refused

from rtmplite.errors import RemoteError
from rtmplite.flv.enhanced_audio import ExAudioTag, MultichannelConfig
from rtmplite.flv.enhanced_video import ExVideoTag
from rtmplite.strategies import enhanced_faults
from rtmplite.strategies.faults import broken

CUT = "cut short"
BOTH = {
    "codec cut": CUT,
    "modifier cut": CUT,
    "offset of less than three bytes": "offset of [12] bytes",
    "layout missing": CUT,
    "unknown layout": "multitrack type",
    "tracks within a track": "within a multitrack packet",
    "modifier within a track": "packet type 7 within",
    "track id missing": CUT,
    "track cut": CUT,
    "codec of a track cut": CUT,
}
AUDIO = BOTH | {"not enhanced": "has no ExAudioTagHeader"}
VIDEO = BOTH | {
    "no header": CUT,
    "not enhanced": "has no ExVideoTagHeader",
    "composition time cut": "composition time is cut short",
    "no command": "a video command has one byte",
    "command with a body": "a video command has one byte",
}
MULTICHANNEL = {
    "header cut": CUT,
    "unknown order": "channel order",
    "channels of no order": "configuration of",
    "flags cut": "configuration of",
    "mapping cut": "configuration of",
}


@pytest.mark.parametrize(
    ("broken", "read", "reasons"),
    [
        (broken(enhanced_faults.AUDIO_FAULTS), ExAudioTag.parse, AUDIO),
        (broken(enhanced_faults.VIDEO_FAULTS), ExVideoTag.parse, VIDEO),
        (
            broken(enhanced_faults.MULTICHANNEL_FAULTS),
            MultichannelConfig.parse,
            MULTICHANNEL,
        ),
    ],
    ids=["audio", "video", "multichannel"],
)
def test_each_fault_is_refused(broken, read, reasons):
    """Covers E-RTMP v2 §"Enhanced Audio" and E-RTMP v2 §"Enhanced Video"."""
    refused(broken, read, RemoteError, reasons)

"""Our readers of FLV and of parameter sets refuse each fault, and say what is wrong."""

import pytest
from support.faults import refused

from rtmplite.errors import RemoteError
from rtmplite.flv import metadata
from rtmplite.flv.audio import AudioTag
from rtmplite.flv.avc import AvcConfig, SequenceParameters
from rtmplite.flv.file import read_flv
from rtmplite.flv.hevc import HevcConfig, HevcParameters
from rtmplite.flv.tag import Tag
from rtmplite.flv.video import VideoTag
from rtmplite.strategies import avc_faults, flv_faults, hevc_faults
from rtmplite.strategies.faults import broken

FILES = {
    "another signature": "no FLV file",
    "header cut": "no FLV file",
    "header of less than nine bytes": "header of [0-8] bytes",
    "tag cut": "cut short|that announces",
}
TAGS = {"header cut": "tag of [0-9]+ bytes", "data cut": "that announces"}
AUDIO = {
    "empty audio": "empty audio",
    "reserved format": "enhanced audio",
    "AAC without its type": "AAC tag of one byte",
}
VIDEO = {
    "empty video": "empty video",
    "no type of frame": "enhanced video",
    "AVC header cut": "AVC tag of [1-4] bytes",
}
DESCRIPTIONS = {"no properties": "without properties", "description cut": "AMF"}
H264_RECORDS = {
    "record cut": "record of [0-5] octets|empty or cut short|without picture parameter sets",
    "another version": "of version",
    "no picture parameter sets": "without picture parameter sets",
    "empty set": "empty or cut short",
}
MOST, CUT = "in a parameter set, where", "parameter set is cut short"
H264_SETS = {
    "no parameter set": "no sequence parameter set",
    "set cut": f"no sequence parameter set|{CUT}",
    "id of the set": MOST,
    "chroma format": MOST,
    "depth of luma": MOST,
    "depth of chroma": MOST,
    "kind of order": MOST,
    "number without an end": "number without an end",
    "cropped to nothing": "cropped to nothing",
    "cropped to no lines": "cropped to nothing",
}
H265_RECORDS = {
    "record cut": "record of [0-9]+ octets|cut short",
    "another version": "of version",
    "empty set": "empty or cut short",
}
H265_SETS = {
    "no parameter set": "no sequence parameter set",
    "set cut": CUT,
    "eight layers": "8 temporal layers",
    "id of the set": MOST,
    "chroma format": MOST,
    "depth of luma": MOST,
    "depth of chroma": MOST,
    "too many to reorder": MOST,
    "no width": "cropped to nothing",
    "cropped to no lines": "cropped to nothing",
}


@pytest.mark.parametrize(
    ("broken", "read", "reasons"),
    [
        (broken(flv_faults.FILE_FAULTS), read_flv, FILES),
        (broken(flv_faults.TAG_FAULTS), Tag.parse, TAGS),
        (broken(flv_faults.AUDIO_FAULTS), AudioTag.parse, AUDIO),
        (broken(flv_faults.VIDEO_FAULTS), VideoTag.parse, VIDEO),
        (broken(flv_faults.DESCRIPTION_FAULTS), metadata.read, DESCRIPTIONS),
        (broken(avc_faults.CONFIG_FAULTS), AvcConfig.parse, H264_RECORDS),
        (broken(avc_faults.SPS_FAULTS), SequenceParameters.parse, H264_SETS),
        (broken(hevc_faults.CONFIG_FAULTS), HevcConfig.parse, H265_RECORDS),
        (broken(hevc_faults.SPS_FAULTS), HevcParameters.parse, H265_SETS),
    ],
    ids=["file", "tag", "audio", "video", "description", "avcC", "H.264", "hvcC", "H.265"],
)
def test_each_fault_is_refused(broken, read, reasons):
    """Covers FLV 10.1 §E.2, §E.3, §E.4 and §E.5, E-RTMP v2 §"Enhanced Video"."""
    refused(broken, read, RemoteError, reasons)

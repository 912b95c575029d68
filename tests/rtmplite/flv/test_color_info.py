"""Colors that are told ahead of the pictures."""

import pytest
from hypothesis import event, given
from support.mutations import mutations, peak

from rtmplite.amf import amf0
from rtmplite.amf.values import UNDEFINED
from rtmplite.errors import LocalError, RemoteError
from rtmplite.flv import file
from rtmplite.flv.color_info import ColorInfo
from rtmplite.flv.enhanced_video import ExVideoTag, VideoFourCc, VideoPacketType
from rtmplite.strategies.enhanced import color_infos


@given(color_infos())
def test_colors_survive(info):
    """Covers E-RTMP v2 §"Metadata Frame" [name-and-value] [color-info-members].

    Covers E-RTMP v1 §"Metadata Frame" [name-and-value].
    """
    assert ColorInfo.parse(bytes(info)) == info


def test_nothing_resets():
    """Covers E-RTMP v2 §"Metadata Frame" [reset-by-undefined].

    Covers E-RTMP v1 §"Metadata Frame" [reset-by-undefined].
    """
    assert bytes(ColorInfo()) == amf0.encode("colorInfo", UNDEFINED)
    for value in (UNDEFINED, {}, None, 1.0):
        assert ColorInfo.parse(amf0.encode("colorInfo", value)) == ColorInfo()


def test_what_else_there_may_be_is_left_out():
    """Covers E-RTMP v2 §"Metadata Frame" [name-and-value], E-RTMP v1 §"Metadata Frame"
    [name-and-value]: names that come later, and members that are no numbers.
    """
    told = {"colorConfig": {"bitDepth": 10.0, "depth": 1.0, "colorPrimaries": "9"}, "hdrCll": 1.0}
    info = ColorInfo.parse(amf0.encode("other", 1.0, "colorInfo", told))
    assert info == ColorInfo({"bitDepth": 10.0})
    assert ColorInfo.parse(amf0.encode("other", {})) is None and ColorInfo.parse(b"") is None
    assert ColorInfo.parse(amf0.encode("other", 1.0, "colorInfo")) is None


@pytest.mark.parametrize(
    "info",
    [
        ColorInfo({"bitDepth": 16.0}),
        ColorInfo({"bitDepth": 9.0}),
        ColorInfo({"colorPrimaries": 256.0}),
        ColorInfo({"unknown": 1.0}),
        ColorInfo({}, {"maxCLL": 10001.0}),
        ColorInfo({}, {}, {"redX": 0.7401}),
        ColorInfo({}, {}, {"redY": 0.8401}),
        ColorInfo({}, {}, {"blueX": 0.00001}),
        ColorInfo({}, {}, {"minLuminance": 6.0}),
    ],
)
def test_numbers_out_of_bounds(info):
    """Covers E-RTMP v2 §"Metadata Frame" [bit-depth] [chromaticity-range] [color-info-members]."""
    with pytest.raises(LocalError):
        bytes(info)


def test_chromaticity_has_four_decimals():
    """Covers E-RTMP v2 §"Metadata Frame" [four-decimals]: what is finer is rounded."""
    info = ColorInfo(mastering={"redX": 0.70799999, "redY": 0.29204, "maxLuminance": 1000.00001})
    read = ColorInfo.parse(bytes(info))
    assert read.mastering == {"redX": 0.708, "redY": 0.292, "maxLuminance": 1000.00001}


def test_what_ffmpeg_writes(corpus):
    """A recording of AV1 has one such packet, which says nothing but the matrix."""
    tags = file.tags((corpus / "flv" / "enhanced_av1_opus_testsrc.flv").read_bytes())
    told = [
        ExVideoTag.parse(tag.data)
        for tag in tags
        if tag.tag_type == 9 and tag.data[0] & 15 == VideoPacketType.METADATA
    ]
    assert [ColorInfo.parse(tag.tracks[0].data) for tag in told] == [
        ColorInfo({"matrixCoefficients": 0.0})
    ]


@given(mutations(color_infos().map(bytes)))
def test_any_bytes_are_read_or_refused(raw):
    """Nothing but RemoteError, and no more memory than that."""
    try:
        ColorInfo.parse(raw)
        event("read")
    except RemoteError:
        event("refused")


def test_memory_is_bounded():
    """An object of many members."""
    raw = amf0.encode("colorInfo", {f"{number}": 1.0 for number in range(20_000)})
    assert peak(lambda: ColorInfo.parse(raw)) <= 32 * len(raw) + 64 * 1024


def test_colors_of_a_master_are_told_by_a_video_message():
    """Covers E-RTMP v2 §"Metadata Frame" [by-video-message] [indices-told] [mastering-told]."""
    screen = {"redX": 0.68, "redY": 0.32, "maxLuminance": 1000.0, "minLuminance": 0.005}
    info = ColorInfo.mastered(10, (9, 16, 10), screen, {"maxCLL": 400.0})
    assert info.config == {
        "bitDepth": 10.0,
        "colorPrimaries": 9.0,
        "transferCharacteristics": 16.0,
        "matrixCoefficients": 10.0,
    }
    assert (info.mastering, info.light) == (screen, {"maxCLL": 400.0})
    assert ColorInfo.mastered(8, (1, 1, 1), {}).light == {}
    tag = ExVideoTag.parse(info.payload(VideoFourCc.HEVC))
    assert (tag.packet_type, tag.command) == (VideoPacketType.METADATA, None)
    assert [track.four_cc for track in tag.tracks] == [VideoFourCc.HEVC]
    assert ColorInfo.parse(tag.tracks[0].data) == info


def test_colors_in_amf3_have_integers():
    """Covers E-RTMP v2 §"Metadata Frame" [name-and-value]: where both ends agreed on AMF3."""
    told = amf0.encode("colorInfo", {"colorConfig": {"bitDepth": 10, "x": True}}, avmplus=True)
    read = ColorInfo.parse(told)
    assert read == ColorInfo({"bitDepth": 10.0}) and type(read.config["bitDepth"]) is float

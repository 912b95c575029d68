"""onMetaData is found however encoders write it, and written as players want it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.mutations import mutations

from rtmplite.amf import amf0
from rtmplite.amf.values import EcmaArray
from rtmplite.errors import RemoteError
from rtmplite.flv import metadata
from rtmplite.flv.enhanced_audio import AudioFourCc
from rtmplite.flv.enhanced_video import VideoFourCc


def test_it_is_written_as_an_array():
    """Covers FLV 10.1 §E.5 [on-metadata], FLV 10.1 §E.4.4.1 [name-and-value]."""
    raw = metadata.build(width=320, height=240, video_codec_id=7, extra={"encoder": "x"})
    name, members = amf0.decode(raw)
    assert name == "onMetaData" and type(members) is EcmaArray
    assert members == {"width": 320, "height": 240, "videocodecid": 7, "encoder": "x"}


def test_every_property_has_its_name():
    """Covers FLV 10.1 §E.5 [properties]."""
    audio = {"audio_codec_id": 2, "audio_data_rate": 96, "audio_sample_rate": 44100}
    video = {"video_codec_id": 7, "video_data_rate": 500, "frame_rate": 25}
    rest = {"audio_sample_size": 16, "stereo": True, "width": 4, "height": 3, "duration": 1.5}
    wanted = {name.replace("_", ""): value for name, value in (audio | video | rest).items()}
    assert metadata.read(metadata.build(**audio, **video, **rest)) == wanted


@pytest.mark.parametrize("wrapper", [[], ["@setDataFrame"]])
@pytest.mark.parametrize("kind", [dict, EcmaArray])
def test_it_is_found_in_every_form(wrapper, kind):
    """Covers Field §"@setDataFrame"."""
    raw = amf0.encode(*wrapper, "onMetaData", kind(duration=1.0), "more")
    assert metadata.read(raw) == {"duration": 1.0}


@pytest.mark.parametrize("values", [[], ["onTextData", {}], [{}], [1.0, {}], ["@setDataFrame"]])
def test_other_data_is_something_else(values):
    """Covers FLV 10.1 §E.5."""
    assert metadata.read(amf0.encode(*values)) is None


@given(mutations(st.just(metadata.build(duration=1.0, width=2.0, stereo=True))) | st.binary())
def test_any_bytes_are_read_or_refused(raw):
    """Covers FLV 10.1 §E.5."""
    try:
        found = metadata.read(raw)
    except RemoteError:
        return
    assert found is None or isinstance(found, dict)


def test_a_description_must_describe():
    """Covers FLV 10.1 §E.5."""
    with pytest.raises(RemoteError):
        metadata.read(amf0.encode("onMetaData", "nothing"))


def test_codecs_by_fourcc():
    """Covers E-RTMP v2 §"Enhancing onMetaData" [four-cc-codec-ids] [on-meta-data-array].

    Covers E-RTMP v1 §"Enhancing onMetaData" [four-cc-codec-ids] [on-meta-data-tag].
    """
    raw = metadata.build(video_codec_id=VideoFourCc.AV1, audio_codec_id=AudioFourCc.OPUS)
    name, members = amf0.decode(raw)
    assert name == "onMetaData" and type(members) is EcmaArray
    assert members == {"videocodecid": 1635135537.0, "audiocodecid": 1332770163.0}


def test_amf3_becomes_amf0():
    """Covers FLV 10.1 §E.4.4.1 [name-and-value]; what AMF0 cannot say stays as it is."""
    said = {"width": 320, "height": 240.5, "stereo": True, "made": "by Flash"}
    name = amf0.encode("onMetaData")
    raw = name + amf0.encode(said, avmplus=True)
    assert metadata.read(raw) == said and b"\x11" in raw
    assert metadata.in_amf0(raw) == amf0.encode("onMetaData", EcmaArray(said))
    for other in (metadata.build(width=1.0), name, name + b"\x11\x0a", raw[1:], b""):
        assert metadata.in_amf0(other) == other


def test_tracks_beyond_the_first():
    """Covers E-RTMP v2 §"Enhancing onMetaData" [track-maps].

    Covers E-RTMP v2 §"Conventions" [array-or-object].
    """
    ladder = {1: {"width": 1024.0, "videocodecid": float(VideoFourCc.AV1)}, 2: {"width": 3840.0}}
    raw = metadata.build(width=640, video_tracks=ladder, audio_tracks={1: {"channels": 2.0}})
    members = metadata.read(raw)
    assert list(members["videoTrackIdInfoMap"]) == ["1", "2"]
    assert metadata.tracks(members, metadata.VIDEO_TRACKS) == ladder
    assert metadata.tracks(members, metadata.AUDIO_TRACKS) == {1: {"channels": 2.0}}
    members["audioTrackIdInfoMap"] = EcmaArray({"255": EcmaArray({"x": 1.0}), "4": None})
    assert metadata.tracks(members, metadata.AUDIO_TRACKS) == {255: {"x": 1.0}}


@pytest.mark.parametrize("maps", [None, 1.0, [], {"x": {}}, {"256": {}}, {"1": 2.0}, {"٣": {}}])
def test_tracks_that_are_none(maps):
    """Covers E-RTMP v2 §"Enhancing onMetaData" [track-maps]: whatever else there may be."""
    assert metadata.tracks({"videoTrackIdInfoMap": maps}, metadata.VIDEO_TRACKS) == {}
    assert "videoTrackIdInfoMap" not in metadata.read(metadata.build(width=1.0))

"""The script data of an FLV file, onMetaData above all.

Implements FLV 10.1 §E.4.4 and §E.5, from the reader's side.
"""

from functools import partial
from typing import Final

from rtclab.conform.case import Cases, NotApplicable, Unmet
from rtclab.conform.flv.peer import FlvData, RawTag
from rtmplite.amf import amf0
from rtmplite.amf.values import Value
from rtmplite.errors import RemoteError
from rtmplite.flv import metadata
from rtmplite.flv.avc import AvcConfig, SequenceParameters
from rtmplite.flv.tag import TagType

cases: Cases[FlvData] = Cases()
must = partial(cases.case, role="file")
should = partial(cases.case, role="file", level="SHOULD")
NEAR: Final = 1.0  # s by which a duration may be wrong: the last frame has a length of its own


@must("FLV 10.1 §E.4.4.1", "name-and-value")
def script_data_are_a_name_and_values(flv: FlvData) -> None:
    """Each tag of script data is a string and values, of AMF0 (§E.4.4.1)."""
    for tag in flv.of(TagType.SCRIPT):
        try:
            found = amf0.decode(tag.data)
        except RemoteError as error:
            raise Unmet("AMF0", f"{error}, in {tag}") from None
        if len(found) < 2 or not isinstance(found[0], str):
            raise Unmet("a name and a value", f"{len(found)} values in {tag}")


@should('Field §"Beginnings of streams"', "metadata-first")
def metadata_come_first(flv: FlvData) -> None:
    """onMetaData is the first tag (Field §"Beginnings of streams")."""
    if not flv.tags or flv.tags[0].kind != TagType.SCRIPT or not _said(flv.tags[0]):
        raise Unmet("onMetaData", f"type {flv.tags[0].kind}" if flv.tags else "no tag")


@must("FLV 10.1 §E.5", "properties")
def sound_is_as_described(flv: FlvData) -> None:
    """`audiocodecid` is the SoundFormat of the sound (§E.5)."""
    _expect_codec(flv, TagType.AUDIO, "audiocodecid")


@must("FLV 10.1 §E.5", "properties")
def pictures_are_as_described(flv: FlvData) -> None:
    """`videocodecid` is the CodecID of the pictures (§E.5)."""
    _expect_codec(flv, TagType.VIDEO, "videocodecid")


@must("FLV 10.1 §E.5", "properties")
def duration_is_that_of_the_tags(flv: FlvData) -> None:
    """`duration` is the time of the last tag, in seconds (§E.5)."""
    told = _metadata(flv).get("duration")
    if flv.is_cut or not isinstance(told, float | int) or not told:
        raise NotApplicable("no duration, or a stream")
    last = max(each.timestamp for each in flv.tags) / 1000
    if abs(told - last) > NEAR:
        raise Unmet(f"{last:.3f} s", f"{told:.3f} s")


@must("FLV 10.1 §E.5", "properties")
def size_of_the_file_is_told(flv: FlvData) -> None:
    """`filesize` is the number of octets (§E.5)."""
    told = _metadata(flv).get("filesize")
    if flv.is_cut or not isinstance(told, float | int) or not told:
        raise NotApplicable("no filesize, or a stream")
    if told != len(flv.data):
        raise Unmet(str(len(flv.data)), f"{told:g}")


@must("FLV 10.1 §E.5", "properties")
def size_of_the_pictures_is_told(flv: FlvData) -> None:
    """`width` and `height` are those of the AVC sequence header (§E.5)."""
    said = _metadata(flv)
    told = said.get("width"), said.get("height")
    headers = [each for each in flv.of(TagType.VIDEO) if each.is_avc and each.data[1] == 0]
    if not headers or not all(isinstance(each, float | int) and each for each in told):
        raise NotApplicable("no AVC, or no size")
    try:
        sps = SequenceParameters.parse(AvcConfig.parse(headers[0].data[5:]).sps[0])
    except (RemoteError, IndexError):
        raise NotApplicable("the sequence header makes no sense") from None
    if told != (sps.width, sps.height):
        raise Unmet(f"{sps.width} by {sps.height}", f"{told[0]!r} by {told[1]!r}")


def _said(tag: RawTag) -> dict[str, Value] | None:
    try:
        return metadata.read(tag.data)
    except RemoteError:
        return None


def _metadata(flv: FlvData) -> dict[str, Value]:
    for tag in flv.of(TagType.SCRIPT):
        if found := _said(tag):
            return found
    raise NotApplicable("no onMetaData")


def _expect_codec(flv: FlvData, kind: TagType, name: str) -> None:
    told = _metadata(flv).get(name)
    if not isinstance(told, float | int):
        raise NotApplicable(f"no {name}")
    first = next((each for each in flv.of(kind) if each.data and not each.is_enhanced), None)
    if first is None:
        raise NotApplicable("a codec with a FourCC")
    codec = first.data[0] >> 4 if kind == TagType.AUDIO else first.data[0] & 15
    if told != codec:
        raise Unmet(str(codec), f"{told:g}")

"""The header of an FLV file, and the fields of its tags.

Implements FLV 10.1 §E.2, §E.3 and §E.4.1, from the reader's side.
"""

from functools import partial
from itertools import pairwise
from typing import Final

from rtclab.conform.case import Cases, NotApplicable, Unmet
from rtclab.conform.flv.peer import FlvData
from rtmplite.flv.tag import HEADER_SIZE, TagType

cases: Cases[FlvData] = Cases()
must = partial(cases.case, role="file")
should = partial(cases.case, role="file", level="SHOULD")
HEADER: Final = 9  # octets
HAS_AUDIO, HAS_VIDEO = 4, 1  # in the octet of flags


@must("FLV 10.1 §E.2", "signature")
def signature_is_flv(flv: FlvData) -> None:
    """The first three octets are FLV (§E.2)."""
    if flv.data[:3] != b"FLV":
        raise Unmet("FLV", repr(flv.data[:3]))


@must("FLV 10.1 §E.2", "version")
def version_is_1(flv: FlvData) -> None:
    """The version is 1 (§E.2)."""
    if flv.data[3:4] != b"\x01":
        raise Unmet("version 1", flv.data[3:4].hex())


@must("FLV 10.1 §E.2", "reserved-zero")
def reserved_flags_are_0(flv: FlvData) -> None:
    """All flags but those of audio and video are 0 (§E.2)."""
    if _flags(flv) & ~(HAS_AUDIO | HAS_VIDEO):
        raise Unmet("flags 0, 1, 4 or 5", f"{_flags(flv):#x}")


@must("FLV 10.1 §E.2", "data-offset")
def data_offset_leads_to_the_body(flv: FlvData) -> None:
    """DataOffset is the length of the header, and the tags begin there (§E.2)."""
    offset = int.from_bytes(flv.data[5:9], "big")
    if offset < HEADER or not flv.tags:
        raise Unmet("9, and tags there", f"{offset}, and {len(flv.tags)} tags")


@must("FLV 10.1 §E.2", "type-flags")
def flags_tell_of_all_tags(flv: FlvData) -> None:
    """Sound or pictures that come were announced by the header's flags (§E.2)."""
    for kind, flag in ((TagType.AUDIO, HAS_AUDIO), (TagType.VIDEO, HAS_VIDEO)):
        if any(each.kind == kind for each in flv.tags) and not _flags(flv) & flag:
            raise Unmet(f"a flag for tags of type {int(kind)}", f"{_flags(flv):#x}")


@must("FLV 10.1 §E.2", "type-flags")
def flags_promise_nothing(flv: FlvData) -> None:
    """Sound or pictures that the flags announce do come (§E.2)."""
    for kind, flag in ((TagType.AUDIO, HAS_AUDIO), (TagType.VIDEO, HAS_VIDEO)):
        if _flags(flv) & flag and not any(each.kind == kind for each in flv.tags):
            if flv.is_cut:
                raise NotApplicable("what is announced may come later in a stream")
            raise Unmet(f"tags of type {int(kind)}", "none")


@must("FLV 10.1 §E.3", "first-size-zero")
def first_back_pointer_is_0(flv: FlvData) -> None:
    """PreviousTagSize0 is 0 (§E.3)."""
    offset = int.from_bytes(flv.data[5:9], "big")
    if (found := flv.data[offset : offset + 4]) != bytes(4):
        raise Unmet("0", found.hex(" "))


@must("FLV 10.1 §E.3", "previous-tag-size")
def back_pointers_count_their_tags(flv: FlvData) -> None:
    """Each PreviousTagSize is 11 and the DataSize of the tag before (§E.3)."""
    for tag in flv.tags:
        if tag.back not in (None, HEADER_SIZE + len(tag.data)):
            raise Unmet(f"{HEADER_SIZE + len(tag.data)} behind {tag}", str(tag.back))


@must("FLV 10.1 §E.3", "alternating")
def last_back_pointer_is_there(flv: FlvData) -> None:
    """Behind the last tag is its size too (§E.3)."""
    _whole(flv)
    if flv.tags and flv.tags[-1].back is None:
        raise Unmet(f"PreviousTagSize behind {flv.tags[-1]}", "the end")


@must("FLV 10.1 §E.3", "alternating")
def file_ends_with_a_whole_tag(flv: FlvData) -> None:
    """The file does not end within a tag (§E.3)."""
    _whole(flv)
    if flv.rest and flv.tags and flv.tags[-1].back is not None:
        raise Unmet("the end", f"{len(flv.rest)} octets that are no whole tag")


@must("FLV 10.1 §E.4.1", "tag-types")
def types_are_known(flv: FlvData) -> None:
    """Tags are of type 8, 9 or 18, or 15 as E-RTMP has it (§E.4.1)."""
    for tag in flv.tags:
        if tag.kind not in tuple(TagType):
            raise Unmet("8, 9, 15 or 18", f"{tag.kind} in {tag}")


@should("FLV 10.1 §E.4.1", "reserved-bits")
def reserved_bits_of_tags_are_0(flv: FlvData) -> None:
    """The two bits before Filter are 0 (§E.4.1)."""
    for tag in flv.tags:
        if tag.first >> 6:
            raise Unmet("0", f"{tag.first >> 6} in {tag}")


@must("FLV 10.1 §E.4.1", "stream-id-zero")
def stream_id_is_0(flv: FlvData) -> None:
    """StreamID of every tag is 0 (§E.4.1)."""
    for tag in flv.tags:
        if tag.stream_id:
            raise Unmet("0", f"{tag.stream_id} in {tag}")


@must("FLV 10.1 §E.4.1", "begins-at-0")
def first_timestamp_is_0(flv: FlvData) -> None:
    """The first tag is of the time 0 (§E.4.1)."""
    if flv.tags and flv.tags[0].timestamp:
        raise Unmet("0", f"{flv.tags[0].timestamp} ms")


@should("RTMP Errata §5.2", "not-backwards")
def times_do_not_go_back(flv: FlvData) -> None:
    """Tags of one type stand in the order of their times (RTMP Errata §5.2)."""
    for kind in (TagType.AUDIO, TagType.VIDEO):
        found = [each for each in flv.tags if each.kind == kind]
        for before, after in pairwise(found):
            if after.timestamp < before.timestamp:
                raise Unmet(f"{before.timestamp} ms or later", f"{after.timestamp} ms in {after}")


@should('Field §"Sound beside pictures"', "near-each-other")
def sound_and_pictures_stand_together(flv: FlvData) -> None:
    """Sound and pictures of one time are within two seconds (Field §"Sound beside pictures")."""
    last = dict.fromkeys((TagType.AUDIO, TagType.VIDEO), 0)
    if not all(any(each.kind == kind for each in flv.tags) for kind in last):
        raise NotApplicable("sound or pictures alone")
    for tag in flv.tags:
        if tag.kind in last:
            last[TagType(tag.kind)] = tag.timestamp
        if all(last.values()) and abs(last[TagType.AUDIO] - last[TagType.VIDEO]) > 2000:
            raise Unmet("2 s at most", f"{last[TagType.AUDIO]} and {last[TagType.VIDEO]} ms")


def _flags(flv: FlvData) -> int:
    return flv.data[4] if len(flv.data) > 4 else 0


def _whole(flv: FlvData) -> None:
    if flv.is_cut:
        raise NotApplicable("the end of a stream is where reading ended")

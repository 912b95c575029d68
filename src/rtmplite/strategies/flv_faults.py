"""FLV files, tags and their bodies that every reader must refuse, one fault at a time.

Own design, over FLV 10.1 §E.2, §E.3, §E.4 and §E.5: `rtmplite.strategies.faults` says why.
"""

from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from rtmplite.amf import amf0
from rtmplite.strategies.faults import Fault, Octets, cut
from rtmplite.strategies.flv import files, tags

_TAG: Final = tags().map(bytes)


FILE_FAULTS: Final = (
    Fault(
        "another signature",
        "FLV 10.1 §E.2",
        st.builds(
            lambda data, letters: letters + data[3:],
            files(),
            st.sampled_from([b"FLA", b"flv", b"F4V", b"\0\0\0"]),
        ),
    ),
    Fault("header cut", "FLV 10.1 §E.2", cut(files().map(lambda data: data[:9]))),
    Fault(
        "header of less than nine bytes",
        "FLV 10.1 §E.2",
        st.builds(
            lambda data, offset: data[:5] + offset.to_bytes(4, "big") + data[9:],
            files(),
            st.integers(0, 8),
        ),
    ),
    Fault(
        "tag cut", "FLV 10.1 §E.3", st.builds(lambda data, tag: data + tag, files(), cut(_TAG, 1))
    ),
)
"""Every fault of a file: FLV 10.1 §E.2, §E.3."""

TAG_FAULTS: Final = (
    Fault("header cut", "FLV 10.1 §E.4.1", cut(_TAG.map(lambda data: data[:11]))),
    Fault("data cut", "FLV 10.1 §E.4.1", cut(_TAG.filter(lambda data: len(data) > 11), 11)),
)
"""Every fault of a tag: FLV 10.1 §E.4.1."""


def _body(firsts: SearchStrategy[int], rest: Octets) -> Octets:
    return st.tuples(firsts.map(lambda first: bytes((first,))), rest).map(b"".join)


_DATA: Final = st.binary(max_size=9)
_DESCRIPTION: Final = amf0.encode("onMetaData", {"a": 1.5})  # the name has 13 octets

AUDIO_FAULTS: Final = (
    Fault("empty audio", "FLV 10.1 §E.4.2.1", st.just(b"")),
    Fault("reserved format", "FLV 10.1 §E.4.2.1", _body(st.integers(0x90, 0x9F), _DATA)),
    Fault(
        "AAC without its type", "FLV 10.1 §E.4.2.1", _body(st.integers(0xA0, 0xAF), st.just(b""))
    ),
)
"""Every fault of the body of an audio tag: FLV 10.1 §E.4.2.1."""

VIDEO_FAULTS: Final = (
    Fault("empty video", "FLV 10.1 §E.4.3.1", st.just(b"")),
    Fault("no type of frame", "FLV 10.1 §E.4.3.1", _body(st.integers(0x80, 0xFF), _DATA)),
    Fault(
        "AVC header cut",
        "FLV 10.1 §E.4.3.1",
        _body(st.sampled_from([0x17, 0x27, 0x37, 0x47]), st.binary(max_size=3)),
    ),
)
"""Every fault of the body of a video tag: FLV 10.1 §E.4.3.1."""

DESCRIPTION_FAULTS: Final = (
    Fault(
        "no properties",
        "FLV 10.1 §E.5",
        st.sampled_from([(), (None,), (1.5, {}), ("duration",)]).map(
            lambda values: amf0.encode("onMetaData", *values)
        ),
    ),
    Fault("description cut", "FLV 10.1 §E.4.4.1", cut(st.just(_DESCRIPTION), 14)),
)
"""Every fault of the description of a stream: FLV 10.1 §E.4.4.1, §E.5."""

"""FLV files and tags that every reader must refuse, one fault at a time.

Own design, over FLV 10.1 §E.2, §E.3 and §E.4.1: `rtmplite.strategies.faults` says why.
"""

from typing import Final, TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from rtmplite.strategies.faults import Drawn, Fault, broken, cut
from rtmplite.strategies.flv import files, tags

Octets: TypeAlias = SearchStrategy[bytes]

_TAG: Final = tags().map(bytes)


def broken_files() -> SearchStrategy[Drawn[bytes]]:
    """Files with one fault: FLV 10.1 §E.2, §E.3."""
    return broken(FILE_FAULTS)


def broken_tags() -> SearchStrategy[Drawn[bytes]]:
    """Tags with one fault: FLV 10.1 §E.4.1."""
    return broken(TAG_FAULTS)


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
        "tag cut",
        "FLV 10.1 §E.3",
        st.builds(lambda data, tag: data + tag, files(), cut(_TAG, 1)),
    ),
)
"""Every fault of a file: FLV 10.1 §E.2, §E.3."""

TAG_FAULTS: Final = (
    Fault("header cut", "FLV 10.1 §E.4.1", cut(_TAG.map(lambda data: data[:11]))),
    Fault(
        "data cut",
        "FLV 10.1 §E.4.1",
        cut(_TAG.filter(lambda data: len(data) > 11), 11),
    ),
)
"""Every fault of a tag: FLV 10.1 §E.4.1."""

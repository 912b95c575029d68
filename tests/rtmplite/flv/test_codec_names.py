"""The codecs that probes and logs name."""

import pytest

from rtmplite.flv.codec_names import codecs_of


@pytest.mark.parametrize(
    ("type_id", "payload", "found"),
    [
        (8, b"\xb2sound", [("SPEEX", 0, 6)]),
        (8, b"\xaf\0\x12\x10", [("AAC", 0, 4)]),
        (8, b"\xc2", [("codec 12", 0, 1)]),
        (9, b"\x17\1", [("AVC", 0, 2)]),
        (9, b"\x1f", [("codec 15", 0, 1)]),
        (8, b"", []),
        (9, b"\x91hvc1\0\0\0....", [("hvc1", 0, 4)]),
        (9, b"\x91", []),
    ],
)
def test_the_first_byte_names_an_old_codec(type_id, payload, found):
    """FLV 10.1 §E.4.2.1 and FLV 10.1 §E.4.3.1; a message that is cut off names none."""
    assert codecs_of(type_id, payload) == found

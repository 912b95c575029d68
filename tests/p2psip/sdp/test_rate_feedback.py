"""Transport-wide feedback in offers of browsers and in answers to them."""

import pytest

from p2psip.sdp.rate_feedback import TRANSPORT_WIDE, rate_feedback, wide_number_id
from p2psip.sdp.session import SessionDescription

LINE = f"""v=0
o=- 1 2 IN IP4 127.0.0.1
s=-
t=0 0
m=video 9 UDP/TLS/RTP/SAVPF 96 98
a=extmap:2 urn:ietf:params:rtp-hdrext:toffset
a=extmap:4/sendrecv {TRANSPORT_WIDE}
a=rtcp-rsize
a=rtcp-fb:96 goog-remb
a=rtcp-fb:96 transport-cc
a=rtcp-fb:98 transport-cc
"""


def line(*changes):
    text = LINE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return SessionDescription.parse(text.encode()).media[0]


def test_it_is_answered_for_the_formats_of_the_answer():
    """By the identifier of the offer."""
    assert [str(each) for each in rate_feedback(line(), ("96",))] == [
        f"extmap:4 {TRANSPORT_WIDE}", "rtcp-fb:96 transport-cc", "rtcp-rsize",
    ]  # fmt: skip
    starred = line(("fb:96 transport-cc", "fb:* transport-cc"))
    assert "rtcp-fb:* transport-cc" in map(str, rate_feedback(starred, ("96",)))


@pytest.mark.parametrize(
    "change",
    [
        ("transport-cc\n", "nack\n"),
        ("a=rtcp-rsize\n", ""),
        (TRANSPORT_WIDE, "urn:other"),
        ("extmap:4/sendrecv", "extmap:15"),
        ("extmap:4/sendrecv", "extmap:x"),
        ("extmap:4/sendrecv", "extmap:99999999999999999999"),
    ],
)
def test_it_is_left_out_where_a_part_is_missing(change):
    assert rate_feedback(line(change), ("96",)) == ()
    assert change[0].startswith("a=") or wide_number_id(line(change)) is None

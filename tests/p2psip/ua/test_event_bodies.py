"""What notifications say, read back and fed with damage."""

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2psip.errors import RemoteError
from p2psip.ua.event_bodies import NAMESPACE, DialogState, MessageSummary, dialog_info

TOO_MANY = b"Messages-Waiting: yes\r\nVoice-Message: 4294967296/0"
COUNTS = st.integers(0, 2**32 - 1)


@given(COUNTS, COUNTS, st.sampled_from(["", "sip:bob@b.com"]))
def test_a_summary_is_read_as_it_is_written(new, old, account):
    summary = MessageSummary(new, old, account)
    assert MessageSummary.parse(bytes(summary)) == summary


@given(st.binary(max_size=200) | st.binary(max_size=60).map(b"Messages-Waiting: yes\n".__add__))
def test_any_bytes_are_read_or_refused(data):
    try:
        assert MessageSummary.parse(data).new >= 0
    except RemoteError as error:
        assert error.status == 400


@pytest.mark.parametrize("body", [b"", b"Voice-Message: 1/2", b"Messages-Waiting: maybe", TOO_MANY])
def test_what_is_no_summary(body):
    """Covers RFC 3842 §5.2 [counts-of-32-bits]."""
    with pytest.raises(RemoteError):
        MessageSummary.parse(body)
    assert MessageSummary.parse(b"Messages-Waiting: no") == MessageSummary(0, 0)


TEXT = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=20)


@given(TEXT, st.lists(st.tuples(TEXT, st.booleans(), st.just("early"), TEXT), max_size=3))
def test_any_calls_are_well_formed_xml(entity, calls):
    """Covers RFC 4235 §4.1 [version-of-32-bits]."""
    assert b'version="0"' in dialog_info(entity, 2**31, [])
    body = dialog_info(entity, 7, [DialogState(*each) for each in calls])
    root = ElementTree.fromstring(body)
    assert (root.get("entity"), root.get("version")) == (entity, "7")
    found = root.findall(f"{{{NAMESPACE}}}dialog")
    assert [each.get("call-id") for each in found] == [each[0] for each in calls]

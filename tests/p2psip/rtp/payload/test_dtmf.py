"""Telephone events are read as they were written, and nothing else is read as one."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations

from p2psip.errors import LocalError, RemoteError
from p2psip.rtp.payload.dtmf import DIGITS, MAX_REPORTS, TelephoneEvent, parse_events
from p2psip.strategies.rtp import telephone_events


@given(telephone_events())
def test_reading_undoes_writing(report):
    """Covers RFC 4733 §2.3."""
    assert TelephoneEvent.parse(bytes(report)) == report
    assert parse_events(bytes(report) * 2) == (report, report)


def test_the_reserved_bit_is_ignored():
    """Covers RFC 4733 §2.3.3 [r-bit-zero]."""
    assert TelephoneEvent.parse(b"\x01\x4a\x00\xa0") == TelephoneEvent(1, 160)
    assert TelephoneEvent.parse(b"\x01\x41\x00\xa0") == TelephoneEvent(1, 160, False, 1)
    assert bytes(TelephoneEvent(1, 160)) == b"\x01\x0a\x00\xa0"
    assert bytes(TelephoneEvent(1, 160, True, 0)) == b"\x01\x80\x00\xa0"


@given(mutations(telephone_events().map(bytes)) | st.binary(max_size=20))
def test_any_octets_are_read_or_refused(data):
    """Covers RFC 4733 §2.5.1.5: whole reports, at least one, and not too many."""
    try:
        parse_events(data)
        event("read")
        assert 0 < len(data) <= 4 * MAX_REPORTS and len(data) % 4 == 0
    except RemoteError:
        event("refused")
        assert not 0 < len(data) <= 4 * MAX_REPORTS or len(data) % 4


def test_digits_have_codes():
    """Covers RFC 4733 §3.2."""
    assert [TelephoneEvent.of(digit, 80).event for digit in DIGITS] == list(range(16))
    assert TelephoneEvent.of("d", 80).digit == "D" and TelephoneEvent(16, 80).digit is None
    for wrong in ("", "12", "E"):
        with pytest.raises(LocalError):
            TelephoneEvent.of(wrong, 80)
    with pytest.raises(LocalError):
        TelephoneEvent(256, 0)
    with pytest.raises(RemoteError):
        TelephoneEvent.parse(b"\x01\x0a\x00")


@pytest.mark.parametrize("size", [MAX_REPORTS, MAX_REPORTS + 1, 1000 * MAX_REPORTS])
def test_one_packet_holds_no_more_keys_than_anybody_presses(size):
    """Own design: a forged datagram of 64 KiB would be sixteen thousand digits."""
    payload = bytes(TelephoneEvent.of("1", 1)) * size
    if size > MAX_REPORTS:
        with pytest.raises(RemoteError):
            parse_events(payload)
    else:
        assert len(parse_events(payload)) == MAX_REPORTS

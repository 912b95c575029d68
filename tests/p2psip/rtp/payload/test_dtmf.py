"""Keys pressed on telephones are heard once each, in order, whatever gets lost."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations

from p2psip.errors import LocalError, RemoteError
from p2psip.rtp.packet import RtpPacket
from p2psip.rtp.payload.dtmf import DIGITS, MAX_REPORTS, DigitReader, TelephoneEvent, parse_events
from p2psip.strategies.rtp import telephone_events, words


@given(telephone_events())
def test_reading_undoes_writing(report):
    """Covers RFC 4733 §2.3."""
    assert TelephoneEvent.parse(bytes(report)) == report
    assert parse_events(bytes(report) * 2) == (report, report)


def test_the_reserved_bit_is_ignored():
    """Covers RFC 4733 §2.3.3."""
    assert TelephoneEvent.parse(b"\x01\x4a\x00\xa0") == TelephoneEvent(1, 160)


@given(mutations(telephone_events().map(bytes)) | st.binary(max_size=20), words)
def test_any_octets_are_read_or_refused(data, timestamp):
    """Covers RFC 4733 §2.5.1.5: whole reports, at least one, and not too many."""
    try:
        DigitReader().read(timestamp, data)
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


@given(st.text(DIGITS, max_size=8), st.randoms(use_true_random=False), words)
def test_digits_come_once_and_in_order_whatever_is_lost(keys, chance, timestamp):
    """Covers RFC 4733 §2.5.1.4: one report of each key is enough."""
    reader, heard = DigitReader(), ""
    for key in keys:
        reports = [TelephoneEvent.of(key, 160 * n, end=n > 5) for n in (1, 2, 3, 6, 6, 6)]
        for report in chance.sample(reports, chance.randint(1, 6)):
            heard += reader.read(timestamp, bytes(report))
        timestamp = timestamp + 1600 & 0xFFFFFFFF
    assert heard == keys


def test_several_events_in_one_packet():
    """Covers RFC 4733 §2.5.1.5: each begins where the one before it ended."""
    payload = b"".join(bytes(TelephoneEvent.of(key, 400, end=True)) for key in "12")
    reader = DigitReader()
    assert reader.read(0xFFFFFFF0, payload) == "12"
    assert reader.read(0xFFFFFFF0, payload) == ""


@pytest.mark.parametrize(
    ("name", "payload_type", "digits"),
    [(f"dtmf_2833_{digit}", 101, str(digit)) for digit in range(6)]
    + [(f"asterisk_{codec}_dtmf", 101, "2013785496") for codec in ("ulaw", "opus")],
)
def test_captured_digits(capture, name, payload_type, digits):
    """Covers RFC 4733 §2.5.2.2."""
    reader, heard = DigitReader(), ""
    for datagram in capture(f"rtp/{name}.pcap"):
        packet = RtpPacket.parse(datagram.data)
        if packet.payload_type == payload_type:
            heard += reader.read(packet.timestamp, packet.payload)
    assert heard == digits


def test_a_digit_in_a_captured_call(capture):
    """Covers RFC 4733 §2.5.2.2, in a SIPp call that echoes the digit."""
    reader, heard = DigitReader(), ""
    for datagram in capture("sip/sipp_call_g711a_dtmf.pcap"):
        if datagram.port == 21000 and datagram.data[1] & 0x7F == 101:
            packet = RtpPacket.parse(datagram.data)
            heard += reader.read(packet.timestamp, packet.payload)
    assert heard == "1"


def test_one_packet_holds_no_more_keys_than_anybody_presses():
    """Own design: a forged datagram of 64 KiB would be sixteen thousand digits."""
    keys = [bytes(TelephoneEvent.of("1", 1)) for _ in range(MAX_REPORTS)]
    reader = DigitReader()
    with pytest.raises(RemoteError):
        reader.read(0, b"".join(keys) * 1000)
    with pytest.raises(RemoteError):
        reader.read(0, b"".join([*keys, keys[0]]))
    assert reader.read(0, b"".join(keys)) == "1" * MAX_REPORTS

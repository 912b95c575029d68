"""What a listener tells of a voice is read, and blocks of other types are passed over."""

import random

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations

from p2psip.errors import LocalError, RemoteError
from p2psip.rtp.extended_report import MAX_BLOCKS, ExtendedReport, OtherBlock, VoipMetrics
from p2psip.rtp.feedback import RateLimit, Tmmb
from p2psip.rtp.rtcp import ReceiverReport, compound, parse_compound
from p2psip.rtp.session import RtpSession
from p2psip.strategies.rtp import extended_reports, rate_limits, voip_metrics


@given(voip_metrics())
def test_the_layout_of_voip_metrics(metrics):
    """Covers RFC 3611 §4.7 [unknown-has-a-value] [reserved-is-zero] [all-fields-have-values].

    Covers RFC 3611 §4.7.6 [reserved-octet-is-zero].
    """
    data = bytes(metrics)
    assert len(data) == 36 and data[:4] == bytes((7, 0, 0, 8)) and data[29] == 0
    assert data[8:12] == bytes(
        (metrics.loss_rate, metrics.discard_rate, metrics.burst_density, metrics.gap_density)
    )
    assert int.from_bytes(data[12:14], "big") == metrics.burst_duration
    assert data[22] == (127 if metrics.echo_return_loss is None else metrics.echo_return_loss)
    assert data[23] == metrics.gmin
    assert data[26] == (127 if metrics.mos_lq is None else metrics.mos_lq)
    assert int.from_bytes(data[34:36], "big") == metrics.jitter_absolute
    assert ExtendedReport.parse(bytes(ExtendedReport(1, (metrics,)))).blocks == (metrics,)


@given(mutations(extended_reports().map(bytes)) | st.binary(max_size=60))
def test_any_octets_are_an_extended_report_or_refused(data):
    """Covers RFC 3611 §3 [unknown-blocks-skipped]."""
    try:
        report = ExtendedReport.parse(data)
    except RemoteError:
        event("refused")
        return
    event("read")
    assert sum(len(bytes(block)) for block in report.blocks) <= len(data)


def test_metrics_of_another_length_are_no_metrics_and_blocks_are_bounded():
    """Covers RFC 3611 §3 [unknown-blocks-skipped]."""
    odd = OtherBlock(7, 0, bytes(4))
    assert ExtendedReport.parse(bytes(ExtendedReport(1, (odd,)))).blocks == (odd,)
    many = bytes(ExtendedReport(1, (OtherBlock(1, 0),) * (MAX_BLOCKS + 1)))
    with pytest.raises(RemoteError):
        ExtendedReport.parse(many)
    with pytest.raises(LocalError):
        bytes(VoipMetrics(1, loss_rate=256))


def test_the_header_has_bits_that_nobody_reads_and_blocks_are_whole_words():
    """Covers RFC 3611 §2 [reserved-is-zero] [blocks-of-words] and §3 [contents-of-words]."""
    report = ExtendedReport(7, (OtherBlock(1, 2, b"word"), OtherBlock(3, 4)))
    data = bytes(report)
    assert data.hex(" ", -4) == "80cf0004 00000007 01020001 776f7264 03040000"
    assert ExtendedReport.parse(bytes((data[0] | 0x1F,)) + data[1:]) == report
    for octets in (1, 2, 3, 5):
        with pytest.raises(LocalError):
            OtherBlock(1, 2, bytes(octets))
    with pytest.raises(RemoteError):
        ExtendedReport.parse(bytes.fromhex("80cf0002 00000007 01020001"))


@pytest.mark.parametrize("name", ["r_factor", "external_r_factor", "mos_lq", "mos_cq"])
def test_qualities_have_a_range(name):
    """Covers RFC 3611 §4.7.5 [invalid-never-sent] [invalid-ignored]."""
    least, most = (0, 100) if name.endswith("factor") else (10, 50)
    place = 24 + ["r_factor", "external_r_factor", "mos_lq", "mos_cq"].index(name)
    for value in range(256):
        is_valid = least <= value <= most
        data = bytearray(bytes(VoipMetrics(7)))
        data[place] = value
        [read] = ExtendedReport.parse(
            bytes(ExtendedReport(1, (OtherBlock(7, 0, bytes(data[4:])),)))
        ).blocks
        assert getattr(read, name) == (value if is_valid else None)
        if is_valid:
            assert bytes(VoipMetrics(7, **{name: value})) == data
        else:
            with pytest.raises(LocalError):
                bytes(VoipMetrics(7, **{name: value}))


def test_a_session_keeps_what_the_peer_hears():
    """Covers RFC 3611 §4.7: of our own stream, and not of another; §4 [others-are-passed-on]."""
    ours = RtpSession(7, 8000, "a@b", random.Random(1).randbytes, 0.0)
    metrics = VoipMetrics(7, loss_rate=12, mos_lq=41)
    report = ExtendedReport(9, (VoipMetrics(8), metrics, OtherBlock(1, 0)))
    assert ours.received_rtcp(compound(ReceiverReport(9), report), 1.0) == []
    assert ours.reporter.remote_metrics == metrics


@given(rate_limits())
def test_limits_of_bit_rates(message):
    """Covers RFC 5104 §4.2.1.1 [rate-is-scaled]."""
    assert Tmmb.parse(bytes(message)) == message
    for limit in message.limits:
        assert limit.rate == limit.mantissa * 2**limit.exponent
    ours = RtpSession(7, 8000, "a@b", random.Random(1).randbytes, 0.0)
    about_us = Tmmb(9, (RateLimit.of(7, 300_000, 40),))
    data = compound(ReceiverReport(9), message, about_us)
    assert parse_compound(data)[1:] == [message, about_us]
    assert ours.received_rtcp(data, 1.0)[-1] == about_us


@given(st.integers(0, 1 << 70))
def test_a_rate_is_rounded_down_to_17_bits(rate):
    """Covers RFC 5104 §4.2.1.1 [rate-is-scaled]."""
    limit = RateLimit.of(1, rate)
    assert limit.rate <= rate <= limit.rate + (1 << limit.exponent) - 1


def test_a_request_for_nothing_is_refused():
    """Covers RFC 5104 §4.2.1 [request-has-entries].

    Covers RFC 5104 §4.2.1.1 [length-counts-entries], §4.2.2.1 [notice-length-counts-entries].
    """
    assert Tmmb.parse(bytes(Tmmb(1, (), notice=True))).limits == ()
    for wrong in (
        bytes(Tmmb(1, ())),
        bytes.fromhex("83cd0003") + bytes(12),
        b"\x85\xcd\0\2" + bytes(8),
    ):
        with pytest.raises(RemoteError):
            Tmmb.parse(wrong)
    for bits in ((64, 0, 0), (0, 1 << 17, 0), (0, 0, 512)):
        with pytest.raises(LocalError):
            RateLimit(1, *bits)

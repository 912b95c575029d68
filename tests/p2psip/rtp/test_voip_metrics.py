"""Bursts and gaps are those of their definition, and the peer reads what we tell of them."""

import random
import re

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from p2psip.rtp.extended_report import VoipMetrics
from p2psip.rtp.reorder import ReorderBuffer
from p2psip.rtp.session import RtpSession
from p2psip.rtp.voip_metrics import MISSED_KEPT, NOT_ADAPTIVE, BurstMeter

RECEIVED, LOST, DISCARDED = "10X"
FIRST = 65530  # the numbers of a pattern pass the end of a cycle
# Source: RFC 3611 §4.7.2, which counts 64 packets and draws 63, the last being added here; whose
# values are rounded before they are scaled; and whose gap duration is of both gaps, where the
# field's own definition asks for the mean
EXAMPLE = "11110111111111111111111X111X1011110111111111111111111X1111111111"
R16 = RECEIVED * 16


def metrics_of(pattern, packet_ms=10.0, **more):
    """Have a reorder buffer hear the pattern, whose discarded packets come too late."""
    meter = BurstMeter()
    order = ReorderBuffer(meter=meter)
    for place, kind in enumerate(pattern):
        if kind == RECEIVED:
            order.put(FIRST + place, kind, float(place))
            order.tick(place + 0.5)
            for late in re.finditer(DISCARDED, pattern[:place]):
                order.put(FIRST + late.start(), DISCARDED, place + 0.5)
    assert order.next == FIRST + len(pattern)
    return meter.metrics(7, order.next, packet_ms, **more)


def told(metrics):
    return (
        *(metrics.loss_rate, metrics.discard_rate, metrics.burst_density, metrics.gap_density),
        *(metrics.burst_duration, metrics.gap_duration),
    )


@pytest.mark.parametrize(
    ("pattern", "values"),
    [
        (EXAMPLE, (12, 12, 85, 9, 120, 260)),
        ("1", (0, 0, 0, 0, 0, 10)),
        (R16 + "0" + R16, (7, 0, 0, 7, 0, 330)),  # one alone is of the gap
        (R16 + "X" + R16, (0, 7, 0, 7, 0, 330)),
        ("1001", (128, 0, 255, 0, 20, 10)),
        ("10" + R16 + "01", (25, 0, 0, 25, 0, 200)),  # Gmin packets between: two gap losses
        ("10" + R16[1:] + "01", (26, 0, 30, 0, 170, 10)),  # one fewer: a burst
        ("100" + R16 + "X01", (34, 11, 255, 0, 20, 60)),  # two bursts
        ("1" + "0" * 2000 + "1", (255, 0, 255, 0, 20000, 10)),
    ],
)
def test_bursts_and_gaps_by_their_definition(pattern, values):
    """Covers RFC 3611 §4.7.1 [loss-by-expected] [discard-by-expected].

    Covers RFC 3611 §4.7.2 [gmin-16] [no-burst-no-duration] [durations-are-estimated], and
    §4.7.6 [gmin-is-constant].
    """
    metrics = metrics_of(pattern)
    assert told(metrics) == values and metrics.gmin == 16


def runs(pattern):
    """Part a pattern by the definition: the bursts, and what is left of it."""
    clusters = re.compile("[0X](?:1{0,15}[0X])+")
    return clusters.findall(pattern), clusters.split(pattern)


@given(
    st.lists(st.sampled_from(["1", "1", R16[1:], R16, R16 + "1", "0", "0", "X"]), max_size=40),
    st.floats(1.0, 100.0),
)
def test_any_pattern_is_measured_as_defined(parts, packet_ms):
    """Covers RFC 3611 §4.7.1 [rates-are-there] and §4.7.2 [densities-are-there]."""
    pattern = "1" + "".join(parts) + "1"
    metrics = metrics_of(pattern, packet_ms)
    bursts, gaps = runs(pattern)
    event(f"{min(len(bursts), 3)} bursts")
    inside, outside = "".join(bursts), "".join(gaps)

    def share(text, kinds, whole):
        return min(256 * sum(map(text.count, kinds)) // len(whole), 255) if whole else 0

    assert metrics.loss_rate == share(pattern, LOST, pattern)
    assert metrics.discard_rate == share(pattern, DISCARDED, pattern)
    assert metrics.burst_density == share(inside, LOST + DISCARDED, inside)
    assert metrics.gap_density == share(outside, LOST + DISCARDED, outside)
    mean = packet_ms * len(inside) / len(bursts) if bursts else 0
    assert metrics.burst_duration == min(round(mean), 0xFFFF)
    assert metrics.gap_duration == min(round(packet_ms * len(outside) / len(gaps)), 0xFFFF)
    assert len(bytes(metrics)) == 36  # each value fits its field


@given(st.integers(1, 5000), st.integers(0, 1 << 40))
def test_where_nothing_is_missing_there_is_no_burst(count, first):
    """Covers RFC 3611 §4.7.2 [no-burst-no-duration]."""
    meter = BurstMeter()
    meter.begin(first)
    assert told(meter.metrics(7, first + count, 20.0))[:5] == (0, 0, 0, 0, 0)


def test_before_any_packet_all_is_zero():
    """Covers RFC 3611 §4.7.1 [rates-are-there], §4.7.2 [densities-are-there] and
    §4.7.2 [no-gap-no-duration]."""
    assert told(BurstMeter().metrics(7, 0, 20.0)) == (0, 0, 0, 0, 0, 0)
    nothing = BurstMeter().metrics(7, 0, 20.0, codec="PCMU")
    assert nothing.round_trip == 0 and nothing.r_factor > 90  # as nothing is lost


def test_the_sizes_of_the_buffer_and_what_is_not_known():
    """Covers RFC 3611 §4.7.6 [sizes-with-the-mode], and §4.7.7 [nominal-is-there] [last-known]
    [maximum-is-there] [fixed-has-one-maximum] [too-long-is-65535], §4.7.3 [round-trip-once-known]
    [unknown-delay-is-zero]."""
    metrics = metrics_of("11", rtt=2.5, hold_seconds=6.0)
    assert metrics == VoipMetrics(
        7,
        gap_duration=20,
        round_trip=2500,
        rx_config=NOT_ADAPTIVE,
        jitter_nominal=0,
        jitter_maximum=6000,
        jitter_absolute=6000,
    )
    assert (metrics.end_system_delay, metrics_of("11").round_trip) == (0, 0)
    assert bytes(metrics)[16:20] == (2500).to_bytes(2, "big") + bytes(2)
    assert metrics.r_factor is metrics.mos_lq is metrics.mos_cq is metrics.signal_level is None
    longest = metrics_of("11", rtt=100.0, hold_seconds=100.0)
    assert (longest.round_trip, longest.jitter_maximum, longest.jitter_absolute) == (65535,) * 3


@pytest.mark.parametrize(
    ("codec", "packets", "rtt", "qualities"),
    [
        ("PCMU", "1" * 100, None, (93, 44, 44)),
        ("PCMU", "1" * 100, 0.5, (83, 44, 41)),  # delay costs in a conversation alone
        ("pcmu", "1" * 98 + "01", None, (90, 43, 43)),
        ("G729", "1" * 100, None, (82, 41, 41)),
        ("opus", "1" * 100, None, (93, 44, 44)),
    ],
)
def test_how_good_a_codec_is_with_such_loss_and_delay(codec, packets, rtt, qualities):
    """Covers RFC 3611 §4.7.5 [qualities-are-there]."""
    metrics = metrics_of(packets, rtt=rtt, codec=codec)
    assert (metrics.r_factor, metrics.mos_lq, metrics.mos_cq) == qualities
    assert bytes(metrics)


@given(st.text("01", min_size=1, max_size=60), st.none() | st.floats(0, 1000))
def test_any_qualities_can_be_told(packets, rtt):
    """Covers RFC 3611 §4.7.5: no figure is out of its range."""
    assert len(bytes(metrics_of("1" + packets + "1", rtt=rtt, codec="pcma"))) == 36


def test_late_packets_are_discarded_once_and_remembered_for_long():
    """Covers RFC 3611 §4.7.1 [loss-is-later-than-discard]."""
    meter = BurstMeter()
    meter.begin(0)
    meter.missed(1, 2)
    meter.missed(10, 10 + MISSED_KEPT - 1)
    for _ in range(2):  # the second comes twice
        meter.late(1)
    assert (meter.lost, meter.discarded) == (MISSED_KEPT - 1, 1)
    meter.missed(1000, 1002)
    meter.late(10)  # forgotten by now, it stays lost
    assert (meter.lost, meter.discarded) == (MISSED_KEPT + 1, 1)
    meter.begin(5000)
    assert (meter.lost, meter.discarded) == (0, 0)


def test_the_peer_reads_what_we_tell():
    """Covers RFC 3611 §4.7: with each report and with the last, and not before a packet came.

    Covers RFC 3611 §5 [without-signalling].
    """
    ours = RtpSession(7, 8000, "a@b", random.Random(1).randbytes, 0.0)
    peer = RtpSession(9, 8000, "c@d", random.Random(2).randbytes, 0.0)
    meter = BurstMeter()
    order = ReorderBuffer(meter=meter)

    def metrics():
        if order.next is None:
            return None
        return meter.metrics(ours.reception.ssrc, order.next, 20.0, ours.rtt)

    ours.reporter.local_metrics = metrics
    [early] = ours.tick(10.0)
    assert peer.received_rtcp(early, 10.0) == [] and peer.reporter.remote_metrics is None
    for place in range(40):
        sound = peer.send(0, b"sound", 160 * place, False, 10.0 + place)
        if place % 4 != 2:
            header = ours.received_rtp(sound, 10.0 + place)
            order.put(header[2], sound, 10.0 + place)
            order.tick(10.5 + place)
    [report] = ours.tick(60.0)
    peer.received_rtcp(report, 60.0)
    heard = peer.reporter.remote_metrics
    assert heard == metrics() and (heard.ssrc, heard.loss_rate) == (9, 64)
    meter.missed(order.next, order.next + 1)
    peer.received_rtcp(ours.bye(61.0), 61.0)
    assert peer.reporter.remote_metrics == metrics() != heard

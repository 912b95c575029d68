"""Two endpoints on links of many kinds, in virtual time: how much arrives, and how late."""

from pathlib import Path

import pytest

PERF = Path(__file__).resolve().parents[4] / "perf"


@pytest.fixture(autouse=True)
def perf_on_path(monkeypatch):
    monkeypatch.syspath_prepend(str(PERF))


def rate(seconds=5.0, **line):
    """The kB/s of a reliable flow on a link."""
    from rtmfp_link import Line, Link, Ours

    ends = Ours(opens=True), Ours(opens=False)
    Link(Line(**line), *ends).run(seconds)
    return ends[1].delivered / seconds / 1000


def test_the_link_is_what_it_claims_to_be():
    """A datagram takes its length and half a round trip; the queue is bounded; some are lost."""
    from random import Random

    from rtmfp_link import HEADERS, QUEUE_LEAST, Line, Way

    way = Way(Line(rate=0.8, round_trip=0.1), Random(1))  # 100 kB/s
    assert way.arrival(1000 - HEADERS, 0.0) == pytest.approx(0.06)
    assert way.arrival(1000 - HEADERS, 0.0) == pytest.approx(0.07)
    assert way.arrival(1000 - HEADERS, 1.0) == pytest.approx(1.06)
    taken = [way.arrival(1000 - HEADERS, 2.0) for _ in range(100)]
    assert sum(at is not None for at in taken) == QUEUE_LEAST // 1000 + 1
    way = Way(Line(rate=1000.0, loss=0.25), Random(1))
    lost = sum(way.arrival(100, at / 100) is None for at in range(10_000))
    assert 2400 < lost < 2600


def test_the_same_seed_gives_the_same_bytes():
    line = {"rate": 1.0, "round_trip": 0.05, "loss": 0.05}
    assert rate(seed=3, **line) == rate(seed=3, **line) != rate(seed=4, **line)


def test_a_slow_line_is_full():
    """RFC 7016 §3.5.2: nothing but the line holds the flow back."""
    assert 100 < rate(rate=1.0, round_trip=0.01) < 125


# kB/s; without loss, nine tenths of what the RTMFP author's library reaches with itself.
@pytest.mark.parametrize(
    ("loss", "round_trip", "mbits", "least"),
    [
        (0.0, 0.1, 10.0, 960),
        (0.0, 0.2, 10.0, 840),
        (0.0, 0.01, 10.0, 1050),
        (0.0, 0.2, 1.0, 70),
        (0.01, 0.05, 10.0, 200),
        (0.05, 0.05, 10.0, 90),
    ],
)
def test_a_flow_uses_the_link(loss, round_trip, mbits, least):
    """RFC 7016 §3.5.2, §3.5.2.3, §A.2: neither bursts nor losses leave the line idle."""
    assert rate(10.0, loss=loss, round_trip=round_trip, rate=mbits) > least


@pytest.mark.sources
def test_a_receiver_that_answers_a_burst_once_does_not_slow_the_flow(monkeypatch):
    """RFC 7016 §3.5.2.3: six packets a round trip would be 70 kB/s here."""
    from rtmplite.rtmfp.session import recv_flow, session

    monkeypatch.setattr(recv_flow, "RX_DATA_PACKETS", 1)
    monkeypatch.setattr(session.PacketAssembler, "fill", _at_the_end(session))
    assert rate(5.0, round_trip=0.1, rate=100.0) > 500


def _at_the_end(session):
    """A `fill` that does nothing while packets are being read, as where all are read at once."""
    import inspect

    fill = session.PacketAssembler.fill

    def wrapped(self, to, now):
        caller = inspect.currentframe().f_back
        if caller is None or caller.f_code.co_name != "_end_packet":
            fill(self, to, now)

    return wrapped


@pytest.mark.parametrize("moving", [0, 1])
def test_a_flow_goes_on_soon_after_an_end_has_moved(moving):
    """RFC 7016 §3.5.4.2: the receiver, which has nothing to send, tells of it by a Ping."""
    from rtmfp_link import HOST, Line, Link, Ours

    ends = Ours(opens=True), Ours(opens=False)
    link = Link(Line(rate=10.0, round_trip=0.1), *ends)
    link.run(5.0)
    link.addresses[moving] = HOST, 6000
    link.run(5.5)
    before = ends[1].delivered
    link.run(7.0)
    assert ends[1].delivered - before > 100_000
    assert ends[1 - moving].session.address == (HOST, 6000)


@pytest.mark.parametrize("seed", (1, 2, 3))
def test_live_video_on_a_path_with_loss(seed):
    """RFC 7016 §3.5.2: 1 Mb/s at 25 frames a second, 100 ms and 1 % of loss: all frames, soon.

    A loss is noticed by three acknowledgements, of the next frame for most: some 40 ms.  With a
    round trip for the repair 145 ms are the best that a sender without any window reaches.
    """
    from rtmfp_link import Line, Link, Ours

    flows, frames = [], 500

    def begin(session, now):
        flows.append(session.open_flow(b"video", now, time_critical=True))

    ends = Ours(opens=True, begin=begin), Ours(opens=False)
    ends[1].keeps = True
    link = Link(Line(rate=10.0, round_trip=0.1, loss=0.01, seed=seed), *ends)
    link.run(1.0)
    for number in range(frames):
        size = 16_000 if number % 50 == 0 else 4_700  # a key frame each two seconds
        flows[0].send(number.to_bytes(4) + bytes(size - 4), link.now)
        link.turn(0)
        link.run(1.0 + (number + 1) / 25)
    link.run(link.now + 3.0)
    assert [int.from_bytes(message[:4]) for _, message in ends[1].messages] == list(range(frames))
    late = sorted(at - 1.05 - number / 25 for number, (at, _) in enumerate(ends[1].messages))
    assert late[frames // 2] < 0.02
    assert late[frames * 99 // 100] < 0.2

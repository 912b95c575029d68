"""What comes out of the buffer is in order, is all that came in time, and is not delayed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2psip.rtp.reorder import ReorderBuffer
from p2psip.rtp.sequence import MAX_DROPOUT, Source


@given(st.integers(-5, 1 << 40), st.integers(1, 50))
def test_in_order_means_at_once(first, packets):
    """Covers RFC 3550 §5.1: nothing waits, nothing is kept."""
    buffer = ReorderBuffer()
    for number in range(first, first + packets):
        assert buffer.put(number, number, 0.0) == [number] and buffer.deadline is None


@given(st.lists(st.integers(0, 7), min_size=1, max_size=60))
def test_small_disorder_is_undone_without_loss(delays):
    """Covers RFC 3550 §5.1: no packet overtaken by fewer than the depth is lost."""
    buffer = ReorderBuffer(depth_packets=16, hold_seconds=1.0)
    order = sorted(range(1, len(delays) + 1), key=lambda i: (i + delays[i - 1], i))
    out = [item for number in [0, *order] for item in buffer.put(number, number, 0.0)]
    assert out == list(range(len(delays) + 1))
    assert buffer.late == buffer.skipped == 0 and buffer.deadline is None


@given(
    st.lists(st.tuples(st.integers(0, 80), st.floats(0.0, 0.2)), max_size=80),
    st.integers(0, 6),
    st.sampled_from([0.0, 0.05, 0.5]),
)
def test_any_arrival_keeps_the_promises(arrivals, depth, hold):
    """Covers RFC 3550 §5.1 and RFC 7587 §4.1 [duplicates-may-come] [duplicates-are-dropped]: in
    order, each once, few waiting, none longer than `hold`.
    """
    buffer, now, out, put_at = ReorderBuffer(depth, hold), 0.0, [], {}
    for number, gap in arrivals:
        while buffer.deadline is not None and buffer.deadline <= now + gap:
            now, gap = max(now, buffer.deadline), gap - max(buffer.deadline - now, 0.0)
            out += (released := buffer.tick(now))
            assert released and all(now - put_at[item] <= hold + 1e-9 for item in released)
        now += gap
        put_at.setdefault(number, now)
        out += buffer.put(number, number, now)
        assert len(buffer.early) <= depth
    if buffer.deadline is not None:
        out += buffer.tick(now + hold + 1.0)
    assert out == sorted(set(out)) and buffer.deadline is None
    assert len(out) + buffer.late == len(arrivals)
    if out:
        assert buffer.skipped == out[-1] - out[0] + 1 - len(out)


def test_what_came_already_is_not_given_again():
    """Covers RFC 7587 §4.1 [duplicates-may-come] [duplicates-are-dropped]: waiting or given."""
    buffer = ReorderBuffer(6, 0.5)
    given = [buffer.put(number, number, 0.0) for number in (1, 3, 3, 2, 2, 3)]
    assert given == [[1], [], [], [2, 3], [], []] and buffer.late == 3


def test_a_great_leap_is_another_stream():
    """Covers RFC 3550 §A.1: what waited goes first, and nothing counts as missing."""
    buffer = ReorderBuffer()
    assert [buffer.put(number, number, 0.0) for number in (1, 3)] == [[1], []]
    assert buffer.put(3 + MAX_DROPOUT, "new", 0.0) == [3, "new"]
    assert buffer.skipped == 0 and buffer.tick(9.0) == []


@pytest.mark.parametrize("first", [1, 1 << 16])
def test_a_leap_is_great_from_the_greatest_gap_on(first):
    """Covers RFC 3550 §A.1: up to there, packets are missing; wherever the numbers began."""
    buffer = ReorderBuffer(hold_seconds=1.0)
    buffer.put(first, first, 0.0)
    assert buffer.put(first + MAX_DROPOUT, "waits", 0.0) == []
    assert buffer.tick(1.0) == ["waits"] and buffer.skipped == MAX_DROPOUT - 1
    assert buffer.put(first + 2 * MAX_DROPOUT + 1, "new", 1.0) == ["new"]
    assert buffer.skipped == MAX_DROPOUT - 1


def test_as_many_may_wait_as_the_depth_says():
    """Covers RFC 3550 §5.1: one more, and what is missing is given up."""
    buffer = ReorderBuffer(depth_packets=2)
    assert [buffer.put(number, number, 0.0) for number in (1, 3, 4)] == [[1], [], []]
    assert buffer.put(5, 5, 0.0) == [3, 4, 5] and buffer.skipped == 1


def scenarios(corpus):
    """Yield (title, limits, events) of the file that pjmedia tests its jitter buffer with."""
    title, limits, events = "", {}, ""
    for line in (corpus / "rtp" / "jitter_buffer_pjmedia.txt").read_text().splitlines():
        line = line.strip()
        match line[:1]:
            case "" | "#" | "%":
                continue
            case "=":
                title, limits, events = line[1:].strip(), {}, ""
            case "!":
                name, limit = line[1:].split()[:2]
                limits[name] = int(limit)
            case ".":
                yield title, limits, events
            case _:
                events += line.replace(" ", "")


def play(events):
    """Play a scenario; a G, which takes a frame out, is 20 ms here: ours does not play out."""
    source, buffer, now, number, heard, out = Source(8000), ReorderBuffer(), 0.0, 0, [], []
    for event in events:
        match event:
            case "G":
                now += 0.02
                out += buffer.tick(now)
            case "L" | "J":
                number += 1 if event == "L" else 20
            case "R":
                number = 0
            case "P" | "D" | "O":
                sequence = number - {"P": 0, "D": 1, "O": 10}[event]
                number += event == "P"
                extended = source.heard(sequence & 0xFFFF, 0, now)
                if extended is not None:
                    heard.append(extended)
                    out += buffer.put(extended, extended, now)
    return heard, out + buffer.tick(now + 1.0), buffer


def test_scenarios_of_another_jitter_buffer(corpus):
    """Covers RFC 3550 §5.1: all that came is passed on once, in order, within the limits.

    A restart costs its first packet: only the second proves it, by RFC 3550 §A.1.
    """
    titles = set()
    for title, limits, events in scenarios(corpus):
        heard, out, buffer = play(events)
        assert out == sorted(set(out)) and len(heard) == len(out) + buffer.late, title
        assert set(out) == set(heard) and buffer.late <= limits["discard"], title
        assert len(heard) == sum(events.count(kind) for kind in "PDO") - events.count("R"), title
        assert buffer.skipped <= max(limits["lost"], events.count("L") + 20 * events.count("J"))
        titles.add(title)
    assert len(titles) == 15


@pytest.mark.parametrize("name", ["rtp/asterisk_ulaw_dtmf.pcap", "rtp/alaw_40ms.pcap"])
def test_captured_streams_pass_straight_through(capture, name):
    """Covers RFC 3550 §5.1."""
    buffer, source = ReorderBuffer(), Source(8000)
    for datagram in capture(name):
        sequence = int.from_bytes(datagram.data[2:4], "big")
        extended = source.heard(sequence, 0, datagram.time)
        assert buffer.put(extended, extended, datagram.time) == [extended]
    assert source.lost == buffer.late == 0

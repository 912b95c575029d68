"""A source is counted right, whatever order its packets come in."""

from hypothesis import given
from hypothesis import strategies as st

from p2psip.rtp.sequence import MAX_DROPOUT, MAX_MISORDER, MIN_SEQUENTIAL, Source
from p2psip.strategies.rtp import sequences, words


@given(sequences, st.lists(st.integers(-20, 20), max_size=60), words)
def test_numbers_grow_beyond_16_bits(first, shuffles, timestamp):
    """Covers RFC 3550 §A.1: order and wrap-around are undone."""
    source = Source(8000)
    true = sorted(range(len(shuffles)), key=lambda i: i + shuffles[i])
    true = [first + 100 + i for i in [0, *[i + 1 for i in true]]]
    heard = [source.heard(number & 0xFFFF, timestamp, 0.0) for number in true]
    offset = heard[0] - true[0]
    assert [number - offset for number in heard] == true
    assert source.highest == max(heard) and source.received == len(true)
    assert source.expected == len(true) and source.lost == 0


@given(sequences, st.sets(st.integers(1, 200)), st.integers(0, 5))
def test_loss_is_counted(first, missing, twice):
    """Covers RFC 3550 §A.3: a packet that comes twice hides one that did not come.

    Covers RFC 3550 §6.4.1 [lost-since-the-beginning] [fraction-since-the-last].
    And RFC 3550 §6.4.1 [highest-with-cycles].
    """
    source = Source(8000)
    sent = [number for number in range(202) if number not in missing]
    for number in [*sent, *[201] * twice]:
        source.heard(first + number & 0xFFFF, 0, 0.0)
    assert source.lost == len(missing) - twice
    assert source.extended_highest == first + 201
    expected = max(len(missing) - twice, 0) * 256 // 202
    assert (source.fraction_lost(), source.fraction_lost()) == (expected, 0)


def test_total_loss_of_an_interval_is_255():
    """Covers RFC 3550 §A.3: all that eight bits can say."""
    source = Source(8000)
    source.heard(0, 0, 0.0)
    source.fraction_lost()
    source.heard(2000, 0, 0.0)
    source.received = 1
    assert source.fraction_lost() == 255


@given(sequences, st.integers(0, 1 << 40))
def test_a_stray_is_dropped_and_a_restart_is_followed(first, after):
    """Covers RFC 3550 §A.1: two packets in sequence make a new start, higher than before."""
    source = Source(8000, after=after)
    start = source.heard(first, 0, 0.0)
    assert start > after and start & 0xFFFF == first
    assert source.heard(first + MAX_DROPOUT & 0xFFFF, 0, 0.0) is None
    assert source.heard(first + 1 & 0xFFFF, 0, 0.0) == start + 1
    far = first + 30000
    assert source.heard(far & 0xFFFF, 0, 0.0) is None
    again = source.heard(far + 1 & 0xFFFF, 0, 0.0)
    assert again > start + 1 and again & 0xFFFF == far + 1 & 0xFFFF
    assert source.lost == 0 and source.received == 1
    assert source.extended_highest == far + 1 & 0xFFFF


def test_how_far_is_far():
    """Covers RFC 3550 §A.1."""
    for ahead, accepted in [
        (MAX_DROPOUT - 1, True),
        (MAX_DROPOUT, False),
        (65536 - MAX_MISORDER, False),
        (65536 - MAX_MISORDER + 1, True),
    ]:
        source = Source(8000)
        source.heard(5000, 0, 0.0)
        heard = source.heard(5000 + ahead & 0xFFFF, 0, 0.0)
        assert (heard is not None) == accepted


@given(sequences, st.lists(st.booleans(), min_size=1, max_size=12))
def test_probation(first, steps):
    """Covers RFC 3550 §A.1: valid from the second packet of the first run of two."""
    source, number, run = Source(8000, probation=MIN_SEQUENTIAL), first, 0
    valid = False
    for in_sequence in steps:
        number = number + (1 if in_sequence else 7) & 0xFFFF
        run = run + 1 if in_sequence and run else 1
        valid = valid or run >= MIN_SEQUENTIAL
        heard = source.heard(number, 0, 0.0)
        assert (heard is not None) == valid


@given(words, st.lists(st.integers(0, 100), min_size=1, max_size=50))
def test_jitter_follows_its_formula(timestamp, lates):
    """Covers RFC 3550 §A.8: in ticks, unmoved by the wrap of the timestamp.

    Covers RFC 3550 §6.4.1 [jitter-of-each] [jitter-by-formula].
    """
    source, transit, jitter = Source(8000), None, 0.0
    for i, late in enumerate(lates):
        now = 1000.0 + i * 0.02 + late / 8000
        source.heard(i, timestamp + i * 160 & 0xFFFFFFFF, now)
        jitter += 0 if transit is None else (abs(late - transit) - jitter) / 16
        transit = late
    assert abs(source._jitter - jitter) < 0.001 and source.jitter == int(source._jitter)


def test_packets_of_one_timestamp_count_for_the_jitter():
    """Covers RFC 4733 §2.5.2.2 [jitter-of-all]: reports of a key, 50 ms apart."""
    source = Source(8000)
    for i in range(3):
        source.heard(i, 160, i * 0.05)
    assert source.jitter == int(25 + (400 - 25) / 16)


def test_a_steady_stream_has_none():
    """Covers RFC 3550 §A.8."""
    source = Source(8000)
    for i in range(200):
        source.heard(i, i * 160, i * 0.02)
    assert source.jitter == 0 and Source(8000).expected == 0

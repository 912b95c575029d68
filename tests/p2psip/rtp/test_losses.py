"""What is missing from a stream: asked for after a moment, again, and not for ever."""

from hypothesis import event, given
from hypothesis import strategies as st

from p2psip.rtp.losses import GIVE_UP_AFTER, GRACE, MAX_MISSING, Losses


def after(*numbers, now=0.0):
    losses = Losses()
    for number in numbers:
        losses.heard(number, now)
    return losses


def test_a_packet_that_is_only_late_is_not_asked_for():
    """Covers RFC 4585 §6.2.1: packets overtake each other."""
    losses = after(1, 2, 4)
    assert losses.due(GRACE / 2, 0.1) == []
    losses.heard(3, GRACE / 2)
    assert losses.deadline is None and losses.due(GRACE, 0.1) == [] and losses.recovered == 0


def test_a_missing_packet_is_asked_for_again_until_it_is_stale():
    """Covers RFC 4585 §6.2.1: a request may be lost as its packet was."""
    losses, asked, now = after(1, 5), [], 0.0
    while (at := losses.deadline) is not None:
        now = at
        asked.append((round(now, 2), losses.due(now, 0.1)))
    assert asked[0] == (GRACE, [2, 3, 4]) and asked[1] == (0.11, [2, 3, 4])
    assert (
        asked[-1][1] == [] and GIVE_UP_AFTER <= now <= GIVE_UP_AFTER + 0.1 and losses.given_up == 3
    )


def test_a_repeated_packet_counts_once():
    losses = after(1, 3)
    losses.due(GRACE, 0.1)
    losses.heard(2, 0.05)
    losses.heard(2, 0.06)
    assert (losses.recovered, losses.given_up, losses.deadline) == (1, 0, None)


def test_a_loss_that_is_too_long_is_not_asked_for():
    """Own design: all of it together is worth no more than a key frame."""
    losses = after(1, 3, MAX_MISSING + 5)
    assert losses.deadline is None and losses.given_up == MAX_MISSING + 2
    losses = after(1, MAX_MISSING + 2)
    assert len(losses.due(GRACE, 0.1)) == MAX_MISSING


def test_another_source_has_other_numbers():
    """Covers RFC 3550 §8.2."""
    losses = after(1, 3)
    losses.restart()
    losses.heard(70_000, 0.1)
    assert losses.deadline is None and losses.given_up == 1


@given(st.lists(st.tuples(st.integers(0, 400), st.floats(0, 0.2)), max_size=60))
def test_what_is_kept_is_bounded_and_what_came_is_not_asked_for(packets):
    """Covers RFC 4585 §6.2.1, whatever comes."""
    losses, now, came = Losses(), 0.0, set()
    for number, pause in packets:
        now += pause
        losses.heard(number, now)
        came.add(number)
        wanted = losses.due(now, 0.05)
        assert len(wanted) <= MAX_MISSING and not came.intersection(wanted)
        assert not wanted or max(wanted) < max(came)
        event(f"asks {bool(wanted)}")

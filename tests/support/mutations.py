"""Common to fuzz tests: damaged copies of good input, and the memory that a parse costs."""

import tracemalloc

from hypothesis import strategies as st

HUGE = (b"\xff" * 4, b"\x7f" + b"\xff" * 3, b"\x80\x00\x00\x00", b"4294967295", b"-1", b"9" * 500)


OCTETS = 6  # that say what a wound is: its kind, three for its place, its length, and a number
# As many strategies as there may be wounds: one choice each, however many numbers are in it.
WOUNDS = st.one_of([st.binary(min_size=n, max_size=n) for n in range(0, 5 * OCTETS, OCTETS)])
SPLICED = st.binary(max_size=16)


@st.composite
def _mutated(draw, base):
    """One good input with up to four wounds."""
    data, wounds = bytes(draw(base)), draw(WOUNDS)
    for at in range(0, len(wounds), OCTETS):
        kind, first, second, third, length, number = wounds[at : at + OCTETS]
        here = (first << 16 | second << 8 | third) * (len(data) + 1) >> 24
        there = here + length % (min(len(data) - here, 64) + 1)
        match kind % 6:
            case 0:  # cut
                data = data[:here]
            case 1:  # drop
                data = data[:here] + data[there:]
            case 2 if here < len(data):  # flip a bit
                data = data[:here] + bytes([data[here] ^ 1 << number % 8]) + data[here + 1 :]
            case 3:  # splice
                data = data[:here] + draw(SPLICED) + data[there:]
            case 4:  # repeat
                data = data[:here] + data[here:there] * (2 + number % 49) + data[there:]
            case 5:  # inflate
                data = data[:here] + HUGE[number % len(HUGE)] + data[there:]
    return data


def mutations(base):
    """Inputs of `base`, some whole, most of them cut, flipped, spliced, repeated or inflated."""
    return _mutated(base)


def peak(call):
    """The most bytes alive at once while `call()` ran, of those it allocated.

    What was alive before is not traced, so its collection need not be forced: in the middle of
    a whole suite that alone would cost a third of a second each time.
    """
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

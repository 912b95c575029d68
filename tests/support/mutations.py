"""Common to fuzz tests: damaged copies of good input, and the memory that a parse costs."""

import tracemalloc

from hypothesis import strategies as st

HUGE = (b"\xff" * 4, b"\x7f" + b"\xff" * 3, b"\x80\x00\x00\x00", b"4294967295", b"-1", b"9" * 500)


@st.composite
def _mutated(draw, base):
    """One good input with up to four wounds."""
    data = bytes(draw(base))
    for _ in range(draw(st.integers(0, 4))):
        here = draw(st.integers(0, len(data)))
        there = draw(st.integers(here, min(len(data), here + 64)))
        match draw(st.sampled_from(["cut", "drop", "flip", "splice", "repeat", "huge"])):
            case "cut":
                data = data[:here]
            case "drop":
                data = data[:here] + data[there:]
            case "flip" if here < len(data):
                flipped = data[here] ^ (1 << draw(st.integers(0, 7)))
                data = data[:here] + bytes([flipped]) + data[here + 1 :]
            case "splice":
                data = data[:here] + draw(st.binary(max_size=16)) + data[there:]
            case "repeat":
                data = data[:here] + data[here:there] * draw(st.integers(2, 50)) + data[there:]
            case "huge":
                data = data[:here] + draw(st.sampled_from(HUGE)) + data[there:]
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

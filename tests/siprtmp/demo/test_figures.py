"""The verdict of the demo: what it is about, and each way in which a call may fail it."""

import pytest

from siprtmp.demo.figures import Direction, bar, cost

FRAMES = 100
GOOD = {"missing": 0, "windows": 20, "right": 20, "loudest": 440}


def way(heard=FRAMES, **result):
    """A direction in which `heard` frames arrived 3 ms after they were sent."""
    direction = Direction("client", "phone", 440, FRAMES)
    direction.add_sent([n * 0.02 for n in range(FRAMES)])
    direction.add_heard([(n * 0.02 + 0.003, n * 160) for n in range(heard)])
    direction.result = GOOD | result
    return direction


def test_a_good_direction():
    direction = way()
    assert direction.fault() is None
    assert direction.latency == pytest.approx(3)
    assert "440 Hz in 20 of 20 windows, 100 of 100 frames, latency 3.0 ms" in direction.summary()


def test_frames_are_matched_by_place_whoever_tells_first():
    direction = Direction("client", "phone", 440, 3)
    direction.add_heard([(1.1, 0), (1.2, 320)])  # frame 1 was lost
    assert direction.latencies == [] and direction.heard == 2
    direction.add_sent([1.0])
    direction.add_sent([1.02, 1.04])
    assert direction.latencies == pytest.approx([0.1, 0.16])


@pytest.mark.parametrize(
    ("direction", "fault"),
    [
        (way(heard=0), "the phone heard nothing of 100 frames"),
        (way(heard=99), "the phone lost 1 of 100 frames"),
        (way(missing=320), "the phone lost 2 of 100 frames"),
        (way(heard=98, missing=160), "the phone lost 2 of 100 frames"),
        (way(right=19), "the phone heard 440 Hz in only 19 of 20 windows, else 440 Hz"),
        (way(right=0, loudest=0), "the phone heard 440 Hz in only 0 of 20 windows, else 0 Hz"),
        (way(windows=0, right=0), "the phone heard 440 Hz in only 0 of 20 windows, else 440 Hz"),
        (Direction("client", "phone", 440, 5), "the phone has no result"),
    ],
)
def test_what_is_wrong(direction, fault):
    assert direction.fault() == fault


def test_bar_and_cost():
    assert [bar(part, 4) for part in (-1, 0, 0.5, 1, 2)] == ["[----]"] * 2 + ["[##--]"] + [
        "[####]"
    ] * 2
    assert cost(0.021, 2500.0) == "52 MHz per call (2.1% of a core at 2500 MHz)"
    assert cost(0.021, None) == "2.1% of a core"

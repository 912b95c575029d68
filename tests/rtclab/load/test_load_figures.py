"""The figures of a load: one client, all of them, the verdict, and the course of a run."""

import json
import random
from dataclasses import replace

import pytest

from rtclab.load.figures import stamp
from rtclab.load.figures.course import SETTLE, Course, Ramp
from rtclab.load.figures.delays import Delays
from rtclab.load.figures.health import Health
from rtclab.load.figures.stamp import Stamp
from rtclab.load.figures.tally import AUDIO, VIDEO, State, Tally
from rtclab.load.figures.totals import Totals
from rtclab.load.figures.verdict import Exit, Limits, said


def connected(name="client_0", asked=0.0, at=0.1):
    tally = Tally(name)
    tally.begin(asked)
    tally.connect(at)
    return tally


def recorded_run(seed, seconds=10):
    """Arrivals of a stream: when, which kind, timestamp, size, and whether it is a key frame."""
    dice = random.Random(seed)
    video = [
        (n * 0.04, VIDEO, n * 40, dice.randint(500, 9000), n % 50 == 0) for n in range(25 * seconds)
    ]
    audio = [(n * 0.02, AUDIO, n * 20, 160, False) for n in range(50 * seconds)]
    late = [(at + 0.2 + dice.random() * 0.015, *rest) for at, *rest in video + audio]
    return sorted(late)


def by_oven_rtc_tester(run, seconds):
    """The figures of its report, by the formulas of its source."""
    start = run[0][0]
    first, found = {}, {"frames": 0, "keys": 0, "bytes": 0, "packets": 0}
    rates, last = [], (0, 0)
    ticks = iter(range(1, seconds))
    tick = next(ticks)
    for at, kind, timestamp, size, key in run:
        while tick is not None and at >= start + tick:
            frames, octets = found["frames"], found["bytes"]
            rates.append((frames - last[0], 8 * (octets - last[1])))
            found["avg_fps"], found["avg_bps"] = frames / tick, 8 * octets / tick
            last, tick = (frames, octets), next(ticks, None)
        first.setdefault(kind, timestamp)
        found["packets"] += 1
        found["bytes"] += size
        if kind == VIDEO:
            found["frames"] += 1
            found["keys"] += key
        found[kind] = abs(int(1000 * (at - start)) - (timestamp - first[kind]))
    fps, bps = zip(*rates, strict=True)
    return found | {"fps": (min(fps), max(fps)), "bps": (min(bps), max(bps))}


@pytest.mark.parametrize("seed", range(5))
def test_a_recorded_run_gives_the_figures_of_oven_rtc_tester(seed):
    run, tally = recorded_run(seed), connected()
    start, tick = run[0][0], 1
    for at, kind, timestamp, size, key in run:
        if tick < 10 and at >= start + tick:
            tally.second(start + tick)
            tick += 1
        tally.heard(kind, at, timestamp, size, None, key=key)
    theirs, near = by_oven_rtc_tester(run, 10), lambda value: pytest.approx(value, rel=0.05)
    assert (tally.packets, tally.bytes) == (theirs["packets"], theirs["bytes"])
    assert (tally.frames, tally.key_frames) == (theirs["frames"], theirs["keys"])
    assert tally.fps.average == near(theirs["avg_fps"])
    assert tally.bps.average == near(theirs["avg_bps"])
    assert (tally.fps.least, tally.fps.most) == near(theirs["fps"])
    assert (tally.bps.least, tally.bps.most) == near(theirs["bps"])
    assert tally.tracks[VIDEO].delay == near(theirs[VIDEO])
    assert tally.tracks[AUDIO].delay == near(theirs[AUDIO])
    spreads = Totals.of([tally, tally]).spreads
    assert spreads["video delay"].average == near(theirs[VIDEO])
    assert spreads["GOP"].average == near(theirs["frames"] / theirs["keys"])


def test_numbers_that_are_missing_are_lost():
    tally = connected()
    for number in (5, 6, 9, 10):
        tally.heard(AUDIO, 1.0, 0, 10, Stamp(number, 3.0))
    assert tally.lost == 2 and Totals.of([tally]).loss == pytest.approx(100 * 2 / 6)


def test_a_publisher_that_begins_again_has_lost_nothing():
    tally = connected()
    for number in (8, 9, 0, 1):
        tally.heard(VIDEO, 1.0, 0, 10, Stamp(number, 3.0))
    assert tally.lost == 0


def test_what_the_server_kept_for_those_who_join_is_no_delay():
    tally = connected(asked=10.0, at=10.1)
    tally.heard(VIDEO, 10.2, 0, 10, Stamp(1, 1900.0))
    tally.heard(VIDEO, 10.3, 40, 10, Stamp(2, 30.0))
    assert tally.delays[VIDEO].count == 1 and tally.delays[VIDEO].percentile(100) < 31


def test_a_second_of_silence_is_one_stall_however_long():
    tally = connected()
    tally.heard(AUDIO, 1.0, 0, 10, None)
    for now in (2.5, 3.5, 4.5):
        tally.second(now)
    assert (tally.stalls, tally.stalled) == (1, 0.0)
    tally.heard(AUDIO, 5.0, 20, 10, None)
    assert (tally.stalls, tally.stalled) == (1, 4.0)
    tally.heard(AUDIO, 5.5, 40, 10, None)
    tally.heard(AUDIO, 7.0, 60, 10, None)
    assert (tally.stalls, tally.stalled) == (2, 5.5)


def test_the_first_picture_and_sound_count_from_the_beginning_of_the_connection():
    tally = connected(asked=1.0, at=1.5)
    tally.heard(AUDIO, 1.75, 0, 10, None)
    tally.heard(VIDEO, 2.0, 0, 10, None)
    tally.heard(VIDEO, 3.0, 40, 10, None)
    found = {
        kind: tally.delays[kind].percentile(100)
        for kind in tally.delays
        if tally.delays[kind].count
    }
    assert found == {
        "set-up": pytest.approx(500, rel=0.02),
        "first sound": pytest.approx(750, rel=0.02),
        "first picture": pytest.approx(1000, rel=0.02),
    }


@pytest.mark.parametrize(("up", "state"), [(False, State.FAILED), (True, State.DISCONNECTED)])
def test_who_is_left_by_the_server_had_been_connected(up, state):
    tally = connected() if up else Tally("client_0")
    tally.fail("go away", refused=True)
    assert (tally.state, Totals.of([tally]).reasons) == (state, {"go away": 1})


def test_a_tally_survives_the_way_from_a_worker():
    tally = connected()
    tally.heard(VIDEO, 1.0, 0, 1000, Stamp(4, 3.0), key=True)
    tally.second(2.0)
    assert Tally.parse(json.loads(json.dumps(tally.as_json()))).as_json() == tally.as_json()
    health = Health(Delays({3: 4}), 50.0, 10, 20, 1)
    assert Health.parse(json.loads(json.dumps(health.as_json()))).as_json() == health.as_json()


@pytest.mark.parametrize("wrap", [lambda mark: b"\x27\1\0\0\0" + mark, lambda mark: mark])
def test_a_mark_is_found_in_a_picture_and_in_a_sound(wrap):
    body = wrap(stamp.sei_unit(77, 10**18)) + bytes(200)
    assert stamp.find(body, 10**18 + 5_000_000) == Stamp(77, 5.0)
    assert stamp.find(body[:40], 10**18) is None


def test_a_mark_has_nothing_like_a_start_code():
    assert b"\0\0" not in stamp.sei_unit(0, 0)


# -- the verdict ------------------------------------------------------------------------


def totals(clients=10, *, delay=5.0, lost=0, refused=0, failed=0):
    found = []
    for number in range(clients):
        tally = connected(f"client_{number}")
        for at in range(100):
            tally.heard(AUDIO, 1.0 + at / 50, at * 20, 10, Stamp(at, delay))
        tally.lost = lost
        if number < refused + failed:
            tally.fail("no room", refused=number < refused)
        found.append(tally)
    return Totals.of(found)


WELL, ILL = Health(), Health(cpu=99.0)


@pytest.mark.parametrize(
    ("seen", "health", "code"),
    [
        (totals(), WELL, Exit.HELD),
        (totals(), ILL, Exit.HELD),
        (totals(lost=5), WELL, Exit.BROKE),
        (totals(lost=5), ILL, Exit.UNJUDGED),
        (totals(delay=1500.0), WELL, Exit.BROKE),
        (totals(delay=1500.0), ILL, Exit.UNJUDGED),
        (totals(failed=1), WELL, Exit.BROKE),
        (totals(failed=1), ILL, Exit.UNJUDGED),
        (totals(refused=1), WELL, Exit.BROKE),
        (totals(refused=1), ILL, Exit.BROKE),
    ],
)
def test_no_server_is_blamed_for_what_a_late_generator_measured(seen, health, code):
    """A refusal is the server's own word, whoever hears it late."""
    assert Limits().judge(seen, health).code is code


def test_as_much_may_wait_as_comes_in_a_moment():
    """What many viewers get waits in many queues between two rounds of reading."""
    assert not Health(unread=2_000_000, room=3_000_000).complaints()
    assert Health(unread=3_000_001, room=3_000_000).complaints()


@pytest.mark.parametrize(
    ("health", "said"),
    [
        (Health(Delays({500: 100})), "timers"),
        (Health(cpu=95.0), "95% of a core"),
        (Health(unread=2_000_000), "2000000 bytes"),
        (Health(dropped=3), "3 datagrams"),
    ],
)
def test_the_generator_says_how_it_was_the_limit(health, said):
    [reason] = Limits().judge(totals(lost=5), health).reasons
    assert said in reason


def test_a_limit_may_be_taken_away():
    limits = Limits(loss=None, delay=None, refused=None)
    assert limits.judge(totals(lost=50, delay=5000.0, refused=3), WELL).code is Exit.HELD


# -- the course -------------------------------------------------------------------------


def climb(ramp, broken_from):
    """Run a ramp against a server that refuses the clients beyond a number."""
    course, now, aims = Course(10, Limits(), interval=0.1, life=None, ramp=ramp, dwell=5.0), 0.0, []
    while course.verdict is None and now < 1000:
        aim = course.tick(now, totals(course.aim, refused=max(0, course.aim - broken_from)), WELL)
        aims += [] if aims[-1:] == [aim] else [aim]
        now += 0.5
    return course, aims


def test_a_ramp_ends_where_the_server_breaks():
    course, aims = climb(Ramp(100, 10), 35)
    assert aims == [10, 20, 30, 40] and course.held == 30
    assert [each.verdict.code for each in course.steps] == [Exit.HELD] * 3 + [Exit.BROKE]
    assert course.steps[-1].verdict.reasons == ["5 of 40 clients refused: 5 x no room"]


def test_a_ramp_ends_at_its_top():
    course, aims = climb(Ramp(35, 10), 1000)
    assert aims == [10, 20, 30, 35]
    assert course.verdict is not None and course.verdict.code is Exit.HELD and course.held == 35


def test_a_step_is_judged_by_what_came_in_its_own_time():
    """The delays of clients that were settling are not those of the step."""
    limits = Limits(delay=500.0)
    course = Course(10, limits, interval=0.0, life=None, ramp=Ramp(10, 10), dwell=5.0)
    course.tick(0.0, Totals(), WELL)
    bad = totals(delay=900.0)
    assert limits.judge(bad, WELL).code is Exit.BROKE
    course.tick(SETTLE, bad, ILL)
    good = replace(bad, delays={kind: Delays(each.counts) for kind, each in bad.delays.items()})
    for _ in range(1000):
        good.delays[AUDIO].add(5.0)
    course.tick(SETTLE + 5.0, good, WELL)
    assert course.verdict is not None and course.verdict.code is Exit.HELD


def test_a_life_ends_a_run():
    course = Course(10, Limits(), interval=0.1, life=20.0)
    for now in (5.0, 24.0):
        assert course.tick(now, totals(), WELL) == 10 and course.verdict is None
    course.tick(25.0, totals(lost=9), WELL)
    assert course.verdict is not None and course.verdict.code is Exit.BROKE


def test_where_nobody_answers_there_is_nothing_to_judge():
    tally = Tally("client_0")
    tally.begin(0.0)
    tally.fail("Connection refused", refused=True)
    course = Course(1, Limits(), interval=0.1, life=5.0)
    assert course.finish(Totals.of([tally])).code is Exit.UNREACHABLE


def test_a_server_that_has_accepted_nobody_yet_has_held_nobody():
    tally = Tally("client_0")
    tally.begin(0.0)
    course = Course(1, Limits(), interval=0.1, life=5.0)
    found = Totals.of([tally])
    assert course.finish(found).code is Exit.UNREACHABLE
    assert said(found) == "no client was accepted in the time of the run"


@pytest.mark.parametrize("text", ["", "5", "5/", "/5", "5/0", "5/6", "x/y", "5/-1"])
def test_a_ramp_that_leads_nowhere_is_refused(text):
    with pytest.raises(ValueError, match=r"is no ramp|int"):
        Ramp.parse(text)

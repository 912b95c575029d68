"""What is kept of a live stream, so that late players show a picture at once."""

import pytest
from support.rtmp.theatre import AAC, AVC, CUE, INTER, KEY, SLOW, SOUND, Screen, theatre

from rtmplite.limits.memory_budget import MemoryBudget
from rtmplite.live.duration_limit import DurationLimit
from rtmplite.live.group_cache import KEEPING, GroupCache
from rtmplite.live.streams import Registry
from rtmplite.rtmp.wire.chunk_writer import ChunkFraming


def test_a_late_player_begins_with_the_last_key_frame():
    """Headers at its time, then all since, sound too, each at its own time, then what comes."""
    _, live, [first] = theatre()
    begin = [(9, 0, AVC), (8, 0, AAC), (9, 0, KEY), (9, 40, INTER), (18, 50, CUE)]
    group = [(9, 1000, KEY), (8, 1010, SOUND), (18, 1020, CUE), (9, 1040, INTER)]
    for message in (*begin, *group):
        live.write(*message, 0.0)
    late = Screen()
    late.player = live.join(late, ChunkFraming(1), None, 0.5)
    assert not late.player.waiting and live.starts_at == 1000
    live.write(9, 1080, INTER, 0.5)
    headers = [(8, 1000, AAC), (9, 1000, AVC)]
    assert late.read() == [*headers, *group, (9, 1080, INTER)]
    assert first.read() == [*begin, *group, (9, 1080, INTER)]  # nothing twice


def test_a_group_that_is_too_long_is_not_kept():
    """Own design: half of what a player may be behind, and ten seconds."""
    for step, size in ((10, 300), (1000, 0)):
        registry, live, _ = theatre(players=0)
        live.write(9, 0, KEY, 0.0)
        assert live.starts_at == 0 and registry.budget.used
        for number in range(1, 12):
            live.write(9, step * number, INTER + bytes(size), 0.0)
        late = Screen()
        late.player = live.join(late, ChunkFraming(1), None, 0.0)
        assert late.read() == [] and late.player.waiting and live.starts_at is None
        assert registry.budget.used == 0
        live.write(9, 12_000, KEY, 0.0)
        assert late.read() == [(9, 12_000, KEY)] and live.starts_at == 12_000


@pytest.mark.sources
def test_most_messages_are_kept_without_a_call(monkeypatch):
    """Own design: only what is to be paid, or may be too late, asks more; `write` is hot."""
    asked, put = [], GroupCache.put
    monkeypatch.setattr(
        GroupCache, "put", lambda group, *message: (asked.append(message[1]), put(group, *message))
    )
    registry, live, _ = theatre(players=0)
    for at in (0, 40, 80, 5000):
        live.write(9, at, INTER if at else KEY, 0.0)
    assert asked == [0] and [at for _, at, _ in live._group.messages] == [0, 40, 80, 5000]
    assert live._group.octets == len(KEY) + 3 * len(INTER) + 4 * KEEPING
    live.write(9, 5001, INTER + bytes(3000), 0.0)
    assert asked == [0, 5001] and live.starts_at is None and registry.budget.used == 0


def test_a_group_may_lie_across_the_wrap_of_time():
    """Ten seconds are ten seconds there too."""
    _, live, _ = theatre(players=0)
    begin = 2**32 - 5000
    for at, starts_at in ((begin, begin), (begin + 4000, begin), (4999, begin), (5001, None)):
        live.write(9, at, KEY if at == begin else INTER, 0.0)
        assert live.starts_at == starts_at


def test_a_group_costs_no_publisher_its_place():
    """Half of the memory is not for groups: players wait for a key frame rather."""
    needed = SLOW.limit // 2  # paid at once
    for total, is_kept in ((2 * needed, True), (2 * needed - 1, False)):
        registry = Registry(SLOW, MemoryBudget(total))
        live = registry.open("live", "demo")
        live.write(9, 0, KEY, 0.0)
        assert (live.starts_at is not None) is is_kept
        assert registry.budget.used == (needed if is_kept else 0)


def test_other_headers_end_a_group():
    """Its pictures need the headers before; the same ones again change nothing."""
    for type_id, header in ((9, AVC), (8, AAC)):
        _, live, _ = theatre(players=0)
        for message in ((9, 0, AVC), (9, 0, KEY), (8, 0, AAC), (9, 20, INTER), (9, 20, AVC)):
            live.write(*message, 0.0)
        assert live.starts_at == 0
        live.write(type_id, 30, header + b"other", 0.0)
        assert live.starts_at is None
        live.write(9, 40, INTER, 0.0)
        assert live.starts_at is None


def test_a_group_ends_with_its_publication():
    """Also when another publisher takes over, whose times go on after the last."""
    registry, live, _ = theatre(players=0)
    live.write(9, 0, KEY, 0.0)
    live.end(0.0)
    assert live.starts_at is None and registry.budget.used == 0
    live.begin(1.0)
    live.write(9, 500, KEY, 1.0)
    live.begin(2.0)
    assert live.starts_at is None and registry.budget.used == 0


def test_a_group_makes_no_player_slow():
    """Own design: it takes a while on a slow path, and what follows is not skipped for it."""
    _, live, _ = theatre(players=0)
    live.write(9, 0, KEY + bytes(1900), 0.0)
    late = Screen()
    late.stuck = True
    late.player = live.join(late, ChunkFraming(1), None, 0.0)
    assert late.output_size > SLOW.skip
    live.write(9, 40, INTER, 0.0)
    assert [at for _, at, _ in late.read()] == [0, 40] and not late.player.waiting
    late.output_size = 1
    live.write(9, 80, INTER, 0.0)  # it has caught up: from now on it is as any other
    late.output_size = SLOW.skip + 100
    live.write(9, 120, INTER, 0.0)
    assert late.player.waiting and [at for _, at, _ in late.read()] == [80]


def test_a_group_does_not_join_much_that_waits():
    """Own design: with it no more than `SlowConsumerPolicy.limit`; else a key frame is awaited."""
    _, live, _ = theatre(players=0)
    live.write(9, 0, AVC, 0.0)
    live.write(9, 40, KEY, 0.0)
    room = SLOW.limit - len(KEY) - KEEPING
    for queued, later in ((room, [(9, 40, KEY)]), (room + 1, [])):
        late = Screen()
        late.player = live.join(late, ChunkFraming(1), None, 0.0, queued)
        assert late.read() == [(9, 40, AVC), *later]
        assert late.player.waiting is not bool(later)
    live.write(9, 80, KEY, 0.0)
    assert late.read() == [(9, 80, KEY)]


def test_the_duration_of_a_player_counts_from_its_first_picture():
    """Covers RTMP 1.0 §7.2.2.1: the pictures before it came are part of it."""
    _, live, _ = theatre(players=0)
    for at, body in ((0, KEY), (40, INTER), (80, INTER)):
        live.write(9, at, body, 0.0)
    late = Screen()
    late.player = live.join(late, ChunkFraming(1), None, 0.0)
    limit = late.player.framing = DurationLimit(late.player, 100, live.starts_at)
    live.rearrange()
    live.write(9, 100, INTER, 0.0)
    assert not limit.is_over
    live.write(9, 120, INTER, 0.0)
    assert limit.is_over

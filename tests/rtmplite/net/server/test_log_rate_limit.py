"""How much a log has of a flood."""

import logging

from support.rtmp.rtmp_world import World

from rtmplite.cli.serve import PrintedLive, _Warnings
from rtmplite.net.server.log_rate_limit import (
    ALL_BURST,
    ALL_RATE,
    BURST,
    RATE,
    LimitedPrinter,
    LogRateLimit,
)


def test_a_flood_leaves_some_lines_and_a_count(caplog):
    """Own design: the first ones, then one now and then that tells of those between."""
    clock = [0.0]
    caplog.handler.addFilter(limit := LogRateLimit(lambda: clock[0]))
    try:
        for _ in range(1000):
            logging.getLogger("crowd").warning("refusing %s", "192.0.2.1")
        logging.getLogger("other").warning("100 % else")
        clock[0] += 1 / RATE
        logging.getLogger("crowd").warning("refusing %s", "192.0.2.2")
        logging.getLogger("crowd").warning("refusing %s", "192.0.2.3")
        clock[0] += 3600
        for _ in range(1000):
            logging.getLogger("crowd").warning("again")
    finally:
        caplog.handler.removeFilter(limit)
    assert caplog.messages[:BURST] == ["refusing 192.0.2.1"] * BURST
    assert caplog.messages[BURST : BURST + 3] == [
        "100 % else",
        f"refusing 192.0.2.2 ({1000 - BURST} more left out)",
        "again (1 more left out)",
    ]
    assert len(caplog.messages) == 2 * BURST + 2


def test_a_server_spares_what_strangers_can_cause():
    """Own design: warnings; recordings, and what goes wrong here, are told all."""
    spared = _Warnings(lambda: 0.0)
    for level, count in ((logging.INFO, 100), (logging.ERROR, 100), (logging.WARNING, BURST)):
        records = [logging.LogRecord("x", level, "", 0, "words", (), None) for _ in range(100)]
        assert sum(map(spared.filter, records)) == count


def test_lines_about_a_client_that_plays_without_end(capsys):
    """Own design: of one there are some, and its last one has the count; others keep theirs."""
    clock = [0.0]
    told = LimitedPrinter(lambda: clock[0])
    greedy, modest = told.client(), told.client()
    for _ in range(1000):
        told.say("a plays", greedy)
    told.say("b plays", modest)
    clock[0] += 1 / RATE
    told.say("a plays", greedy)
    told.say("a plays", greedy)
    told.say("b leaves", modest, last=True)
    told.say("a leaves", greedy, last=True)
    assert capsys.readouterr().out.splitlines() == ["a plays"] * BURST + [
        "b plays",
        f"a plays ({1000 - BURST} more left out)",
        "b leaves",
        "a leaves (1 more left out)",
    ]


def test_lines_about_all_clients_together(capsys):
    """Own design: who comes back all the time is always somebody new."""
    clock = [0.0]
    told = LimitedPrinter(lambda: clock[0])
    for _ in range(2 * ALL_BURST):
        told.say("plays", told.client())
    clock[0] += 1 / ALL_RATE
    told.say("plays", told.client())
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["plays"] * ALL_BURST + [f"plays ({ALL_BURST} more left out)"]


def test_a_server_tells_of_some_of_what_one_client_plays(capsys):
    """Own design: a player that changes its mind all the time fills no log."""
    world = World(PrintedLive())
    greedy, modest = world.client(), world.client()
    for n in range(BURST + 10):
        greedy.play(f"stream {n}")
    modest.play("demo")
    greedy.server.transport.connection_lost(world.now)
    *lines, other, last = capsys.readouterr().out.splitlines()
    assert BURST <= len(lines) < BURST + 10 and " playing demo, " in other
    assert f"Z disconnect {greedy.server.id} " in last and last.endswith(" more left out)")

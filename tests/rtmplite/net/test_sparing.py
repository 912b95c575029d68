"""How much a log has of a flood."""

import logging

from rtmplite.net.serve import _Warnings
from rtmplite.net.sparing import BURST, RATE, Sparing


def test_a_flood_leaves_some_lines_and_a_count(caplog):
    """Own design: the first ones, then one now and then that tells of those between."""
    clock = [0.0]
    caplog.handler.addFilter(sparing := Sparing(lambda: clock[0]))
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
        caplog.handler.removeFilter(sparing)
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

"""Log lines: one event a line, whatever a peer put into a name, and found by its ids."""

import io
import json
import logging
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtmplite.net.server.log_rate_limit import ALL_BURST, ALL_RATE, BURST
from siprtmp.edge.serve_command import FloodFilter
from siprtmp.operation import logs
from siprtmp.operation.logs import JsonFormatter, Log, TextFormatter


@pytest.fixture
def lines():
    """`lines(form, level)`: what is logged from then on, as a function of nothing."""
    root = logging.getLogger()
    before = root.handlers[:], root.level

    def start(form, level="info", *filters):
        logs.configure(level, form, *filters)
        stream = io.StringIO()
        root.handlers[0].setStream(stream)
        return lambda: stream.getvalue().splitlines()

    yield start
    root.handlers[:], _ = before[0], root.setLevel(before[1])


def test_text_is_time_level_logger_event_and_values(lines):
    read = lines("text")
    Log("siprtmp").event("call-start", call="a1@x", rtmp="9f", callee="sip:bob@x", reason="")
    Log("siprtmp").warning("odd", name='a "b" c\r\nd')
    first, second = read()
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z info    siprtmp "
        r'call-start call=a1@x rtmp=9f callee=sip:bob@x reason=""',
        first,
    )
    assert second.endswith(r'warning siprtmp odd name="a \"b\" c\r\nd"')


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a\udc85b", r"a\ufffdb"),
        ("\ud83d\udc85\udc85", r"\ud83d\udc85\ufffd"),
        ("\udc85\ud83d", r"\ufffd\ufffd"),
        ("\U0001f485", r"\ud83d\udc85"),
        (r"\udc85", r"\\udc85"),
        ("\\\udc85", r"\\\ufffd"),
    ],
)
def test_octets_that_are_no_text_are_replaced(lines, form, name, shown):
    """Own design: a surrogate alone is no character, and strict readers refuse it."""
    read = lines(form)
    Log("siprtmp").event("call-start", call=name)
    [line] = read()
    assert f'"{shown}"' in line
    if form == "json":
        json.loads(line)["call"].encode("utf-8")


def test_json_is_an_object_a_line(lines):
    read = lines("json")
    Log("siprtmp").event("call-end", seconds="1.0", sent=3)
    try:
        raise ValueError("no")
    except ValueError:
        logging.getLogger("other").exception("failed %s", "badly")
    first, second = map(json.loads, read())
    assert first.pop("time").endswith("Z")
    assert first == {
        "level": "info", "logger": "siprtmp", "event": "call-end", "seconds": "1.0", "sent": 3,
    }  # fmt: skip
    assert (second["event"], second["text"]) == ("library", "failed badly")
    assert "ValueError: no" in second["trace"]


def test_refusals_do_not_fill_the_log(lines):
    """Own design: anybody can be refused a thousand times a second; calls are all told of."""
    clock = [0.0]
    read = lines("text", "info", FloodFilter(lambda: clock[0]))
    for number in range(1000):
        Log("siprtmp").event("call-refused", call=f"a{number}")
        Log("siprtmp").event("call-start", call=f"b{number}")
    written = read()
    assert len([line for line in written if "call-start" in line]) == 1000
    assert len([line for line in written if "call-refused" in line]) == BURST
    clock[0] += 3600
    Log("siprtmp").warning("no-media-port")
    assert read()[-1].endswith(f"no-media-port left_out={1000 - BURST}")


@pytest.mark.parametrize("began, ended", [("call-start", "call-end"), ("registered",) * 2])
def test_what_comes_by_the_thousand_does_not_fill_the_log_either(lines, began, ended):
    """Own design: a busy client refuses as many a second as anybody cares to send."""
    clock = [0.0]
    read = lines("text", "info", FloodFilter(lambda: clock[0]))
    for number in range(20_000):
        Log("siprtmp").event(began, call=f"a{number}")
        Log("siprtmp").event(ended, call=f"a{number}")
        clock[0] += 0.0005  # 2,000 a second
    written = read()
    assert ALL_BURST <= len(written) <= ALL_BURST + 10 * ALL_RATE + 1
    assert "left_out=" in written[-1]


def test_other_refusals_hide_no_wrong_password(lines):
    """Own design: fail2ban counts those, and whoever guesses can be refused for other reasons."""
    read = lines("text", "info", FloodFilter(lambda: 0.0))
    for number in range(100):
        for _ in range(20):
            Log("siprtmp").event("call-refused", source="UDP:192.0.2.1")
        Log("siprtmp").event("login-refused", source=f"UDP:192.0.2.{number}")
    assert len([line for line in read() if "login-refused" in line]) == 100


def test_a_trace_follows_its_line(lines):
    read = lines("text")
    try:
        raise ValueError("no")
    except ValueError:
        logging.getLogger("other").exception("failed")
    assert read()[0].endswith("other failed") and read()[-1] == "ValueError: no"


def test_the_level_holds_but_for_what_was_asked_for(lines):
    read = lines("text", "error")
    log = Log("siprtmp")
    log.event("quiet")
    log.warning("quiet")
    log.report("status", calls=0)
    [line] = read()
    assert line.endswith("info    siprtmp status calls=0")


@given(st.dictionaries(st.sampled_from(["call", "name"]), st.text() | st.binary()), st.text())
def test_no_value_breaks_a_line(values, message):
    record = logging.makeLogRecord({"msg": message, "name": "x", "values": values})
    assert len(TextFormatter().format(record).splitlines()) == 1
    assert "\n" not in JsonFormatter().format(record)
    read = json.loads(JsonFormatter().format(record))
    name, is_given = read["event"], message == read["event"]
    assert is_given or (name == "library" and read["text"] == " ".join(message.splitlines()))
    assert not is_given or re.fullmatch("[a-z-]+", name)

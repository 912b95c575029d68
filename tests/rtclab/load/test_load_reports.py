"""What a run writes: each form has the figures, and can be read by what it is for."""

import csv
import io
import json
import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from rtclab.load import page, report
from rtclab.load.figures.course import Course, Ramp
from rtclab.load.figures.health import Health
from rtclab.load.figures.stamp import Stamp
from rtclab.load.figures.tally import AUDIO, VIDEO, Tally
from rtclab.load.figures.totals import Totals
from rtclab.load.figures.verdict import Limits
from rtclab.load.run import MOST, Record
from rtclab.load.screen import PlainScreen, screen_for


class Made:
    """Clients that are made up: half of them are refused."""

    def __init__(self, count):
        self.tallies = []
        for number in range(count):
            tally = Tally(f"client_{number}")
            tally.begin(0.0)
            if number % 2:
                tally.fail("no <room>", refused=True)
            else:
                tally.connect(0.1)
                for at in range(100):
                    tally.heard(
                        VIDEO, 0.2 + at / 25, at * 40, 5000, Stamp(at, 12.0), key=at % 50 == 0
                    )
                    tally.heard(AUDIO, 0.2 + at / 25, at * 40, 160, Stamp(at, 11.0))
                    if at % 25 == 24:
                        tally.second(0.2 + at / 25)
            self.tallies.append(tally)


@pytest.fixture
def record():
    course = Course(4, Limits(), interval=0.0, life=None, ramp=Ramp(8, 4), dwell=1.0)
    found = Record(course)
    clients = Made(4)
    totals = Totals.of(clients.tallies)
    for second in range(1, 10):
        course.tick(float(second), totals, Health())
        found.note(float(second), 4, totals, Health())
    found.end(clients, 10.0)
    return found


def test_the_summary_has_the_columns_of_oven_rtc_tester(record):
    text = "\n".join(report.summary_lines(10.0, record.totals, Health()))
    assert "10 s, 4 clients: new(0) checking(0) connected(2)" in text and "failed(2)" in text
    for name in ("video delay", "audio delay", "GOP", "FPS", "BPS"):
        assert re.search(rf"^  {name}: avg \S+.*, max \S+.*, min ", text, re.MULTILINE), name
    for name in ("bytes", "packets", "packet losses"):
        assert re.search(rf"^  {name}: total \S+.*, avg ", text, re.MULTILINE), name
    assert "GOP: avg 50.00" in text and "packets: total 400, avg 200" in text
    assert "  gone: 2 x no <room>" in text
    assert re.search("video by its stamps: p50 1[12]", text)


def test_a_client_has_the_columns_of_oven_rtc_tester(record):
    text = "\n".join(report.detail_lines(record.tallies[0]))
    for name in ("packets 200", "lost 0", "last video delay", "last audio delay", "avg GOP 50.0"):
        assert name in text
    assert re.search(r"516\.0 kB, avg \S+ \S+, min \S+ \S+, max ", text)
    assert re.search(r"frames 100, key frames 2, .*FPS avg \S+, min \S+, max \S+$", text)
    assert [*report.detail_lines(record.tallies[1])] == ["[client_1] 0 s, failed (no <room>)"]


def test_the_end_says_where_the_server_broke_and_why(record):
    assert [*report.end_lines(record)] == [
        "4 clients: broke: 2 of 4 clients refused: 2 x no <room>",
        "the most that was held: 0 clients; broke at 4",
    ]


def test_json_has_all_of_it(record):
    found = json.loads(report.as_json(record, "rtmp://host/live/x"))
    assert found["verdict"]["word"] == "broke" and found["verdict"]["code"] == 1
    assert found["summary"]["packets"] == 400 and found["summary"]["reasons"] == {"no <room>": 2}
    assert len(found["clients"]) == 4 and len(found["steps"]) == 1 and len(found["points"]) == 9
    assert found["summary"]["delays_ms"]["video"]["p99"] == pytest.approx(12, rel=0.02)


def test_csv_has_a_line_for_each_client(record):
    rows = [*csv.DictReader(io.StringIO(report.as_csv(record).decode()))]
    assert [row["state"] for row in rows] == ["connected", "failed"] * 2
    assert rows[0]["packets"] == "200" and rows[1]["reason"] == "no <room>"


def test_junit_has_a_test_for_each_step(record):
    suite = ElementTree.fromstring(report.as_junit(record, "rtmp://host/live/x"))
    assert suite.attrib["tests"] == suite.attrib["failures"] == "1"
    [case] = suite.findall("testcase")
    failure = case.find("failure")
    assert failure is not None and "no <room>" in failure.attrib["message"]


def test_prometheus_has_samples_and_nothing_else(record):
    text = report.as_prometheus(10.0, record.totals, Health()).decode()
    samples = dict(line.rsplit(" ", 1) for line in text.splitlines())
    assert all(
        re.fullmatch(r'[a-z_0-9]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})?', n) for n in samples
    )
    assert samples['rtclab_load_clients{state="connected"}'] == "2"
    assert samples["rtclab_load_packets_total"] == "400"


def test_the_page_needs_nothing_else(record):
    text = page.as_html(record, "rtmp://host/live/x").decode()
    assert "no &lt;room&gt;" in text and "http" not in text.replace("rtmp://host", "")
    for plot in re.findall("<svg.*?</svg>", text):
        ElementTree.fromstring(plot)
    assert text.count("<svg") >= 2


def test_a_long_run_keeps_few_points():
    found, totals = Record(Course(1, Limits(), interval=0.0, life=None)), Totals()
    for second in range(5 * MOST):
        found.note(float(second), 1, totals, Health())
    assert MOST // 2 - 1 <= len(found.points) <= MOST
    gaps = {after[0] - before[0] for before, after in pairwise(found.points)}
    assert len(gaps) == 1


def test_without_a_terminal_there_are_plain_lines(record, capsys):
    screen = screen_for(silent=False)
    assert isinstance(screen, PlainScreen)
    screen.show(10.0, 4, record.totals, Health())
    screen.close()
    assert capsys.readouterr().out.startswith("<Summary> 10 s, 4 clients")


def test_a_live_screen_draws_the_summary_again(record):
    console = pytest.importorskip("rich.console")
    from rtclab.load.screen import LiveScreen

    drawn = io.StringIO()
    screen = LiveScreen(console.Console(file=drawn, force_terminal=True, width=100))
    screen.show(10.0, 4, record.totals, Health())
    screen.show(20.0, 4, record.totals, Health())
    screen.close()
    text = drawn.getvalue()
    assert "2 of 4 clients" in text and "<Summary> 20 s" in text
    assert "\x1b[" in text.partition("<Summary> 20 s")[0]  # back to where it began

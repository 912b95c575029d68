"""What a run shows and writes: lines, JSON, CSV, JUnit XML and the text of Prometheus.

Own design: the lines have the columns of OvenRtcTester under its names, then what it has not.
"""

import csv
import io
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any
from xml.etree import ElementTree

from p2psip.sip import strict_json
from rtclab import __version__
from rtclab.load.figures.delays import Delays
from rtclab.load.figures.health import Health
from rtclab.load.figures.tally import AUDIO, KINDS, VIDEO, State, Tally
from rtclab.load.figures.totals import Totals
from rtclab.load.figures.verdict import Exit, said
from rtclab.load.run import Record

PERCENTILES = (50, 90, 99, 100)
VERDICTS = {
    Exit.HELD: "held",
    Exit.BROKE: "broke",
    Exit.UNREACHABLE: "nobody answers",
    Exit.UNJUDGED: "no verdict",
}


def decimal(value: float, unit: str) -> str:
    """Write a number with a decimal prefix.

    >>> decimal(4_100_000, "bps"), decimal(950, "B")
    ('4.1 Mbps', '950 B')
    """
    for prefix in ("", "k", "M", "G", "T"):
        if abs(value) < 1000 or prefix == "T":
            break
        value /= 1000
    return f"{value:.1f} {prefix}{unit}" if prefix else f"{value:.0f} {unit}"


def summary_lines(seconds: float, totals: Totals, health: Health) -> Iterator[str]:
    """The summary so far."""
    states = " ".join(f"{each.value}({totals.states[each]})" for each in State)
    yield f"<Summary> {seconds:.0f} s, {totals.clients} clients: {states}"
    for name, unit in (("video delay", " ms"), ("audio delay", " ms"), ("GOP", ""), ("FPS", "")):
        of_what = {"audio delay": "packets", "GOP": "GOP"}.get(name, "FPS")
        if totals.packets and totals.spreads[of_what].most:
            found = totals.spreads[name]
            average, most, least = (f"{value:.2f}{unit}" for value in found)
            yield f"  {name}: avg {average}, max {most}, min {least}"
    if totals.packets:
        average, most, least = (decimal(value, "bps") for value in totals.spreads["BPS"])
        yield f"  BPS: avg {average}, max {most}, min {least}"
        for name, text in (
            ("bytes", decimal(totals.bytes, "B")),
            ("packets", str(totals.packets)),
            ("packet losses", f"{totals.lost} ({totals.loss:.2f}%)"),
        ):
            average = decimal(totals.spreads[name].average, "").strip()
            yield f"  {name}: total {text}, avg {average}"
    if (jitter := totals.spreads["jitter"]).most:
        average, most, least = (f"{value:.2f} ms" for value in jitter)
        yield f"  jitter: avg {average}, max {most}, min {least}"
    for kind in KINDS:
        if totals.delays[kind].count:
            name = f"{kind} by its stamps" if kind in (VIDEO, AUDIO) else kind
            yield f"  {name}: {percentiles(totals.delays[kind])}"
    if totals.stalls:
        yield f"  stalls: {totals.stalls}, {totals.stalled:.1f} s"
    if totals.reasons:
        yield f"  gone: {said(totals)}"
    late = health.late.percentile(99)
    yield (
        f"  generator: timers {late:.1f} ms late (p99), {health.cpu:.0f}% of a core, "
        f"{health.unread} bytes unread, {health.dropped} datagrams dropped"
    )


def percentiles(delays: Delays) -> str:
    """The percentiles of some delays, in ms."""
    words = [f"p{each}" if each < 100 else "max" for each in PERCENTILES]
    found = [f"{delays.percentile(each):.1f}" for each in PERCENTILES]
    return ", ".join(f"{word} {ms} ms" for word, ms in zip(words, found, strict=True))


def detail_lines(tally: Tally) -> Iterator[str]:
    """The report of one client."""
    reason = f" ({tally.reason})" if tally.reason else ""
    yield f"[{tally.name}] {tally.running:.0f} s, {tally.state}{reason}"
    if not tally.packets:
        return
    delays = [tally.tracks[kind].delay for kind in (VIDEO, AUDIO)]
    yield (
        f"  packets {tally.packets}, lost {tally.lost}, last video delay {delays[0]:.1f} ms, "
        f"last audio delay {delays[1]:.1f} ms"
    )
    rates = [tally.bps.average, tally.bps.least or 0.0, tally.bps.most]
    average, least, most = (decimal(value, "bps") for value in rates)
    yield f"  {decimal(tally.bytes, 'B')}, avg {average}, min {least}, max {most}"
    if tally.frames:
        gop = f"{tally.frames / tally.key_frames:.1f}" if tally.key_frames else "-"
        yield (
            f"  frames {tally.frames}, key frames {tally.key_frames}, avg GOP {gop}, "
            f"FPS avg {tally.fps.average:.2f}, min {tally.fps.least or 0.0:.2f}, "
            f"max {tally.fps.most:.2f}"
        )


def end_lines(record: Record) -> Iterator[str]:
    """The verdict, step by step."""
    course = record.course
    for step in course.steps:
        reasons = f": {'; '.join(step.verdict.reasons)}" if step.verdict.reasons else ""
        yield f"{step.clients} clients: {VERDICTS[step.verdict.code]}{reasons}"
    assert course.verdict is not None
    if course.verdict.code is Exit.UNREACHABLE:
        yield f"{VERDICTS[Exit.UNREACHABLE]}: {said(record.totals)}"
    elif len(course.steps) > 1 or course.verdict.code is not Exit.HELD:
        broke = [each for each in course.steps if each.verdict.code is not Exit.HELD]
        where = f"; {VERDICTS[course.verdict.code]} at {broke[-1].clients}" if broke else ""
        yield f"the most that was held: {course.held} clients{where}"


def as_json(record: Record, url: str) -> bytes:
    """Write all figures as one JSON object."""
    verdict, totals = record.course.verdict, record.totals
    assert verdict is not None
    found: dict[str, Any] = {
        "rtclab": __version__,
        "url": url,
        "seconds": round(record.seconds, 3),
        "verdict": {
            "code": int(verdict.code),
            "word": VERDICTS[verdict.code],
            "reasons": [*verdict.reasons],
            "held": record.course.held,
        },
        "summary": _figures(totals),
        "generator": _health(record.health),
        "steps": [
            {
                "clients": each.clients,
                "verdict": VERDICTS[each.verdict.code],
                "reasons": [*each.verdict.reasons],
                "window": _figures(each.window),
                "generator": _health(each.health),
            }
            for each in record.course.steps
        ],
        "clients": [_client(each) for each in record.tallies],
        "points": [each._asdict() for each in record.points],
    }
    return strict_json.dumps(found, indent=1).encode() + b"\n"


def _figures(totals: Totals) -> dict[str, Any]:
    names = ("clients", "refused", "failed", "packets", "lost", "bytes", "stalls", "stalled")
    return {
        **{name: getattr(totals, name) for name in names},
        "states": {each.value: totals.states[each] for each in State},
        "reasons": dict(totals.reasons),
        "spreads": {
            name: {"avg": each.average, "max": each.most, "min": each.least}
            for name, each in totals.spreads.items()
        },
        "delays_ms": {
            kind: {f"p{each}": delays.percentile(each) for each in PERCENTILES}
            for kind, delays in totals.delays.items()
            if delays.count
        },
    }


def _health(health: Health) -> dict[str, Any]:
    return {
        "late_p99_ms": health.late.percentile(99),
        "cpu_percent": health.cpu,
        "unread_bytes": health.unread,
        "dropped_datagrams": health.dropped,
    }


def _client(tally: Tally) -> dict[str, Any]:
    names = ["name", "reason", "packets", "lost", "bytes", "frames", "key_frames", "stalls"]
    names += ["jitter"]  # in ms
    found = {name: getattr(tally, name) for name in names}
    found |= {"state": tally.state.value, "running": tally.running}
    found |= {
        "video_delay_ms": tally.tracks[VIDEO].delay,
        "audio_delay_ms": tally.tracks[AUDIO].delay,
    }
    found |= {"fps": asdict(tally.fps), "bps": asdict(tally.bps)}
    for kind in KINDS:
        found[f"{kind} p99 ms"] = tally.delays[kind].percentile(99)
    return found


def as_csv(record: Record) -> bytes:
    """Write a line for each client."""
    rows = []
    for each in record.tallies:
        row = _client(each)
        for name in ("fps", "bps"):
            row |= {f"{name}_{key}": value for key, value in row.pop(name).items()}
        rows.append(row)
    text = io.StringIO()
    writer = csv.DictWriter(text, [*rows[0]] if rows else ["name"])
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def as_junit(record: Record, url: str) -> bytes:
    """Write each step as a test: failed if the server broke, skipped without a verdict."""
    suite = ElementTree.Element(
        "testsuite", name=f"load {url}", tests=str(len(record.course.steps))
    )
    for step in record.course.steps:
        case = ElementTree.SubElement(
            suite, "testcase", classname="load", name=f"{step.clients} clients"
        )
        if step.verdict.code is not Exit.HELD:
            kind = "skipped" if step.verdict.code is Exit.UNJUDGED else "failure"
            reasons = "; ".join(step.verdict.reasons)
            message = "".join(char if char.isprintable() else "?" for char in reasons)
            ElementTree.SubElement(case, kind, message=message)
    for kind, plural in (("failure", "failures"), ("skipped", "skipped")):
        suite.set(plural, str(len(suite.findall(f"testcase/{kind}"))))
    written: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    return written


def as_prometheus(seconds: float, totals: Totals, health: Health) -> bytes:
    """Write the figures in the text format of Prometheus, for its node exporter's text files."""
    lines = []

    def add(name: str, value: float, labels: str = "") -> None:
        lines.append(f"rtclab_load_{name}{labels} {value:g}")

    add("seconds", seconds)
    for state in State:
        add("clients", totals.states[state], f'{{state="{state.value}"}}')
    for name in ("packets", "lost", "bytes", "stalls", "refused", "failed"):
        add(f"{name}_total", getattr(totals, name))
    for kind, delays in totals.delays.items():
        for each in PERCENTILES:
            labels = f'{{kind="{kind}",quantile="{each / 100:g}"}}'
            add("delay_seconds", delays.percentile(each) / 1000, labels)
    for name, value in _health(health).items():
        add(f"generator_{name}", value)
    return ("\n".join(lines) + "\n").encode()

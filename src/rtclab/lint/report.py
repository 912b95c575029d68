"""The findings as text and as JSON.

Own design: one line for each finding, so that `grep` and people read the same.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field

from p2psip.sip import strict_json
from rtclab import __version__
from rtclab.explain.fields.field import counted
from rtclab.lint.findings.finding import LintFinding
from rtclab.lint.findings.ladder import Diagram, text_rows
from rtclab.lint.rtp import RtpStream


@dataclass(slots=True)
class LintReport:
    """All that is known of a capture when it was judged.  Own design."""

    file: str
    packets: int
    seconds: float
    findings: list[LintFinding]
    diagrams: list[Diagram]
    streams: list[RtpStream]
    notes: dict[str, int] = field(default_factory=dict)
    fault: str = ""

    @property
    def marks(self) -> dict[int, str]:
        """The rules that are broken by packet, for the diagrams."""
        marks: dict[int, str] = {}
        for each in self.findings:
            before = marks.get(each.packet)
            marks[each.packet] = f"{before}, {each.rule}" if before else each.rule
        return marks

    def lines(self, *, ladder: bool) -> Iterator[str]:
        """Write the report for people."""
        for each in self.findings:
            yield line_of(each)
        for stream in self.streams:
            yield _figures(stream)
        for note, times in self.notes.items():
            yield f"note: {note}{f' ({times})' if times > 1 else ''}"
        if ladder:
            for diagram in self.diagrams:
                yield ""
                yield from text_rows(diagram, self.marks)
            yield ""
        found = counted(len(self.findings), "finding")
        yield f"{self.file}: {counted(self.packets, 'packet')}, {self.seconds:.1f} s: {found}"

    def json(self) -> str:
        """Write the report for programs."""
        about = {
            "siprtmp": __version__,
            "file": self.file,
            "packets": self.packets,
            "seconds": round(self.seconds, 6),
            "fault": self.fault,
            "notes": list(self.notes),
            "findings": [asdict(each) for each in self.findings],
            "streams": [_stream(each) for each in self.streams],
            "ladders": [asdict(each) for each in self.diagrams],
        }
        return strict_json.dumps(about, indent=1)


def line_of(each: LintFinding) -> str:
    """Write a finding as a line: packet, time, sender, what, and where it is specified."""
    times = f" ({each.times} times)" if each.times > 1 else ""
    place = f"#{each.packet}  {each.time:.6f}  {each.who}"
    return f"{place}  {each.rule}: {each.what}{times}  {each.citation}"


def _figures(stream: RtpStream) -> str:
    source, target = stream.way
    lost, jitter = stream.lost, 1000 * stream.jitter
    return f"{source} > {target}  {stream.label}, {lost} lost, jitter {jitter:.1f} ms"


def _stream(stream: RtpStream) -> dict[str, object]:
    source, target = stream.way
    return {
        "source": source,
        "target": target,
        "ssrc": stream.ssrc,
        "first_packet": stream.first.number,
        "packets": stream.packets,
        "payload_types": sorted(stream.types),
        "lost": stream.lost,
        "jitter_ms": round(1000 * stream.jitter, 3),
    }

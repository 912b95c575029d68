"""What is wrong in a capture: the packet, its sender, and the section that it breaks.

Own design: a finding that comes again and again, as with every packet of a stream, is one line with
a count.  So the others are not lost among it.

    >>> findings = Findings()
    >>> packet = SeenPacket(7, 1.5, "192.0.2.1:5060", "192.0.2.2:5060", b"")
    >>> findings.add("sip-bye-unanswered", packet, "no answer to BYE")
    >>> findings.add("sip-bye-unanswered", packet, "no answer to BYE")
    >>> [(each.rule, each.citation, each.times) for each in findings.sorted()]
    [('sip-bye-unanswered', 'RFC 3261 §15.1.2', 2)]
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from rtclab.explain.fields.field import plain
from rtclab.lint.findings.packet import SeenPacket
from rtclab.lint.findings.rules import RULES


@dataclass(frozen=True, slots=True)
class LintFinding:
    """One thing that is wrong; `time` is in seconds since the first packet of the capture."""

    rule: str
    packet: int
    time: float
    who: str
    what: str
    citation: str
    times: int = 1


class Findings:
    """Collects findings; the same rule, sender and text is one.  Own design."""

    def __init__(self) -> None:
        self._all: dict[tuple[str, str, str], LintFinding] = {}

    def add(
        self,
        rule: str,
        packet: SeenPacket,
        what: str,
        *,
        who: str = "",
        citation: str = "",
        once: str = "",
        times: int = 1,
    ) -> None:
        """Note what the sender of a packet, or `who`, did.

        `citation` is for rules that many sections have; findings with the same `once` count as the
        same, whatever their texts.  `times` is for packets that were counted already.
        """
        who = who or packet.source
        key = rule, who, once or what
        if (before := self._all.get(key)) is not None:
            self._all[key] = replace(before, times=before.times + times)
            return
        cited = citation or RULES[rule].citation
        place = rule, packet.number, packet.time, who
        self._all[key] = LintFinding(*place, plain(what), cited, times)

    def sorted(self) -> list[LintFinding]:
        """List the findings in the order of their packets."""
        return sorted(self._all.values(), key=lambda each: (each.packet, each.rule))

    def __iter__(self) -> Iterator[LintFinding]:
        return iter(self.sorted())

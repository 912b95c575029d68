"""Hold another implementation against our codecs: find disagreements, and make each one small.

Own design: an implementation is a function from a line of the protocol to its answer
(docs/5-reference/oracle-protocol.md), so that one engine compares programs and functions.
Disagreements that break the same rule in the same way are one finding; valid input that is refused
for different reasons is more than one.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from hypothesis.strategies import SearchStrategy

from rtclab.command_line.arguments import ConfigError
from rtclab.oracle.cases import Cases
from rtclab.oracle.codec import REFUSALS, Case, Codec, Kind
from rtclab.oracle.neutral import Json, Members, difference
from rtclab.oracle.search import drawn, smallest

MAX_FINDINGS: Final = 20  # of one class, beyond which the reader has enough to mend
REASON: Final = 4  # words of an error; later ones are often of the case
SECONDS: Final = 20.0  # for the search of a smaller case, of one finding
_WORD: Final = re.compile(r"[A-Za-z]+")
WORDS: Final = ("value", "octets", "error", "skip")


@dataclass(frozen=True, slots=True)
class Answer:
    """What an implementation says about one line: a word of `WORDS`, or `gone` without an answer.

    `content` is the JSON of a value, and text in all other cases.
    """

    word: Literal["value", "octets", "error", "skip", "gone"]
    content: Json = ""

    def __str__(self) -> str:
        shown = json.dumps(self.content) if self.word == "value" else self.content
        return f"{self.word} {shown}".rstrip()


Ask: TypeAlias = Callable[[str], Answer]


class ProtocolError(ConfigError):
    """The command does not speak the protocol; nothing that it says can be judged."""


def parse_answer(line: str) -> Answer:
    """Read one line of an answer.  Raises ProtocolError."""
    word, _, rest = line.rstrip("\r\n").partition(" ")
    match word:
        case "value":
            try:
                return Answer("value", json.loads(rest))
            except (ValueError, RecursionError) as error:
                raise ProtocolError(f"no JSON behind value: {rest[:80]!r} ({error})") from None
        case "octets" | "error" | "skip":
            return Answer(word, rest)
    raise ProtocolError(f"no answer of the protocol: {line[:80]!r}; it is {', '.join(WORDS)}")


def _reason(answer: Answer) -> str:
    """The first words of an error, which tell one fault of the program from another."""
    words = " ".join(_WORD.findall(str(answer.content))[:REASON])
    return words and f": {words}"


@dataclass(frozen=True, slots=True)
class Finding:
    """A disagreement: the clause and what is wrong, and the smallest case that shows it.

    `expected` and `answered` are what differs, the whole answer where it is not a value.  `place`
    are the members on the way there, and `octets` those that were read otherwise.
    """

    clause: str
    what: str
    case: Case
    asked: str
    expected: Json
    answered: Json
    octets: bytes
    place: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """The rule and the way it is broken, which make it one finding with others."""
        return self.clause, self.what


@dataclass(slots=True)
class Report:
    """The outcome of a comparison: its findings, and what could not be compared.

    `failed` counts the cases that show a finding.  `interrupted` is for a comparison that its user
    ended: its findings are those until then, and not all are small.
    """

    findings: list[Finding] = field(default_factory=list)
    cases: int = 0
    failed: int = 0
    skipped: int = 0
    interrupted: bool = False
    members: Members = field(default_factory=Members)


class Comparison:
    """One codec against one implementation, which is asked no line twice.

    `clock` tells the seconds by which the search for smaller cases ends in time.  A class of cases
    is left when `most` findings are there.  `tell` hears, in words, how far it is.
    """

    def __init__(
        self,
        codec: Codec,
        ask: Ask,
        clock: Callable[[], float],
        *,
        encode: bool = False,
        most: int = MAX_FINDINGS,
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.codec, self.report = codec, Report()
        self._ask, self._clock, self._encode, self._most = ask, clock, encode, most
        self._answers: dict[str, Answer] = {}
        self._tell = tell

    def run(self, cases: Cases, kinds: Sequence[Kind], count: int, seed: int) -> Report:
        """Compare `count` cases of each class; then look for a smaller case of each finding.

        Ctrl-C ends it with what there is.
        """
        for kind in kinds:
            found: dict[tuple[str, str], Finding] = {}
            try:
                self._draw(cases, kind, found, count, seed)
                self._shrink(cases, kind, found, count, seed)
            except KeyboardInterrupt:
                self.report.interrupted = True
            self.report.findings += found.values()
            if self.report.interrupted:
                break
        self.report.findings.sort(key=lambda finding: finding.key)
        return self.report

    def _draw(
        self, cases: Cases, kind: Kind, found: dict[tuple[str, str], Finding], count: int, seed: int
    ) -> None:
        """Ask about `count` cases, and note the first of each finding."""
        known, began = {finding.key for finding in self.report.findings}, self.report.cases

        def note(case: Case) -> bool:
            finding = self.judge(case)
            if finding and finding.key not in known:
                found.setdefault(finding.key, finding)
            self.report.cases += 1
            self.report.failed += finding is not None
            asked = f"{self.report.cases - began} of {count} {kind} cases"
            self._tell(f"{asked}, {len(self.report.findings) + len(found)} disagreements")
            return len(found) == self._most

        drawn(cases[kind], note, count, seed)

    def _shrink(
        self, cases: Cases, kind: Kind, found: dict[tuple[str, str], Finding], count: int, seed: int
    ) -> None:
        """Put a smaller case in the place of each finding."""
        for at, key in enumerate(found, 1):
            self._tell(f"{kind} cases: a smaller one of disagreement {at} of {len(found)}")
            small = self._smaller(cases[kind], key, count, seed)
            found[key] = (self.judge(small) if small else None) or found[key]

    def _smaller(
        self, cases: SearchStrategy[Case], key: tuple[str, str], count: int, seed: int
    ) -> Case | None:
        """Find the smallest case that shows this finding, in `SECONDS`."""
        end = self._clock() + SECONDS

        def shows(case: Case) -> bool:
            found = self.judge(case)
            return found is not None and found.key == key

        return smallest(cases, shows, count, seed, lambda: self._clock() > end)

    def judge(self, case: Case) -> Finding | None:
        """Ask about one case; return the disagreement, None if the answer is right."""
        asked = self._line(case)
        answer = self._answers.get(asked)
        if answer is None:
            answer = self._answers[asked] = self._ask(asked)
            self.report.skipped += answer.word == "skip"
        if answer.word == "skip" or answer.word in case.allowed:
            return None
        if answer.word == "gone":
            return self._wrong(f"gets no answer: {answer.content}", case, asked, answer)
        if case.refused:
            what = f"is accepted: {case.fault}"
            return None if answer.word == "error" else self._wrong(what, case, asked, answer)
        if answer.word == "error":
            return self._wrong(f"is refused{_reason(answer)}", case, asked, answer)
        return self._differs(case, asked, answer)

    def _line(self, case: Case) -> str:
        if self._encode:
            return f"encode {json.dumps(case.value)}"
        return f"decode {case.octets.hex()}"

    def _wrong(self, what: str, case: Case, asked: str, answer: Answer) -> Finding:
        expected = f"error {case.fault}" if case.refused else case.value
        answered = "nothing" if answer.word == "gone" else str(answer)
        return Finding(case.clause, what, case, asked, expected, answered, case.octets)

    def _differs(self, case: Case, asked: str, answer: Answer) -> Finding | None:
        value, way, octets = answer.content, "read", case.octets
        if self._encode:
            way = "written"
            try:
                if answer.word != "octets":
                    raise ValueError
                octets = bytes.fromhex(value)
            except ValueError:
                raise ProtocolError(
                    f"no octets behind {asked[:40]!r}: {str(answer)[:80]}"
                ) from None
            try:
                value = self.codec.to_neutral(self.codec.decode(octets))
            except REFUSALS as error:
                shown = f"{answer}, and this is refused: {error}"
                what = "is written as octets that cannot be read"
                return Finding(case.clause, what, case, asked, case.value, shown, octets)
        elif answer.word != "value":
            raise ProtocolError(f"{answer.word} is no answer to {asked[:40]!r}")
        found = difference(case.value, value, self.report.members)
        if found is None:
            return None
        where = ".".join(found.place) or "value"
        clause = self.codec.clause_of(found.names) if found.names else case.clause
        what = f"is {way} otherwise: {where}"
        differing = found.expected, found.answered, octets, found.names
        return Finding(clause, what, case, asked, *differing)

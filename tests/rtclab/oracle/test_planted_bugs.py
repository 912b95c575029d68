"""A comparison finds a bug that was planted in each of ten codecs, and makes its case small.

Own design: each implementation is our own codec behind a wrapper with one mistake; one of them is
a program of its own.
"""

import sys
from collections import defaultdict
from copy import deepcopy
from itertools import count
from pathlib import Path

import pytest

from rtclab.oracle import catalogue
from rtclab.oracle.codec import REFUSALS
from rtclab.oracle.compare import SECONDS, Answer, Comparison
from rtclab.oracle.program import Program

MANY = 1000  # cases, of which even a rare bug shows itself in some
EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "oracle" / "rtp.py"


class Implementation:
    """Our codec, whose value `wrong` spoils."""

    def __init__(self, name, wrong):
        self.codec, self.wrong = catalogue.find(name), wrong

    def ask(self, line):
        octets = bytes.fromhex(line.removeprefix("decode "))
        try:
            right = self.codec.to_neutral(self.codec.decode(octets))
        except REFUSALS as error:
            right = str(error)
        answer = Answer("error" if isinstance(right, str) else "value", deepcopy(right))
        return self.wrong(octets, answer)


class Noted(Comparison):
    """Notes the sizes of octets that show each finding; a class of cases may allow a refusal."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.sizes = defaultdict(list)

    def judge(self, case):
        finding = super().judge(case)
        if finding is not None:
            self.sizes[finding.key].append(len(case.octets))
        return finding


def found(name, ask, kind, calls):
    """The findings of a search that ends at the first bug, and then after so many `calls`.

    Each has the smallest octets that have shown it.
    """
    codec = catalogue.find(name)
    clock = count(step=SECONDS / calls).__next__
    comparison = Noted(codec, ask, clock, most=1)
    findings = comparison.run(catalogue.cases_of(codec), [kind], MANY, seed=1).findings
    assert all(len(each.case.octets) == min(comparison.sizes[each.key]) for each in findings)
    return findings


def value_of(wrong):
    """A mistake in a value."""

    def spoil(octets, answer):
        if answer.word == "value":
            return Answer("value", wrong(octets, answer.content))
        return answer

    return spoil


def long_names_alone(octets, answer):
    head = octets.lstrip(b"\r\n").partition(b"\r\n\r\n")[0].lower()
    return answer if b"\nvia" in head else Answer("error", "no Via")


@value_of
def one_port(octets, value):
    for media in value["media"]:
        media["port_count"] = 1
    return value


@value_of
def padding_stays(octets, value):
    count = value["padding"]
    return value | {"payload": value["payload"] + octets[len(octets) - count :].hex() * bool(count)}


def any_version(octets, answer):
    return Answer("value", []) if octets and octets[0] >> 6 != 2 else answer


@value_of
def padded_attributes(octets, value):
    for attribute in value["attributes"]:
        attribute["value"] += "00" * (-len(attribute["value"]) // 2 % 4)
    return value


@value_of
def one_is_true(octets, value):
    return [octets[1] == 1] if octets[:1] == b"\x01" else value


@value_of
def unsigned_integers(octets, value):
    return unsigned(value)


def unsigned(value):
    if isinstance(value, list):
        return [unsigned(each) for each in value]
    if isinstance(value, dict):
        if value.get("type") == "integer":
            return value | {"value": value["value"] & 0x1FFFFFFF}
        return {name: unsigned(each) for name, each in value.items()}
    return value


@value_of
def short_time(octets, value):
    return value | {"timestamp": value["timestamp"] & 0xFFFFFF}


@value_of
def big_endian_stream(octets, value):
    for message in value:
        message["stream_id"] = int.from_bytes(message["stream_id"].to_bytes(4, "little"), "big")
    return value


def any_mode(octets, answer):
    if octets and not octets[0] & 3:
        return Answer("value", {"mode": 0, "chunks": []})
    return answer


BUGS = [
    # codec, mistake, class, clause, what is said, calls while shrinking
    ("sip", long_names_alone, "odd", "RFC 3261 §7.3.1", "is refused", 10),
    ("sdp", one_port, "valid", "RFC 8866 §5.14", "media.port_count", 10),
    ("rtp", padding_stays, "valid", "RFC 3550 §5.1", "payload", 40),
    ("rtcp", any_version, "broken", "RFC 3550 §A.2", "is accepted: another version", 30),
    ("stun", padded_attributes, "valid", "RFC 8489 §14", "attributes.value", 20),
    ("amf0", one_is_true, "odd", "AMF0 §2", "is read otherwise: value", 40),
    ("amf3", unsigned_integers, "valid", "AMF3 §3.6", "integer.value", 30),
    ("flv-tag", short_time, "valid", "FLV 10.1 §E.4.1", "timestamp", 40),
    ("rtmp", big_endian_stream, "valid", "RTMP 1.0 §5.3.1.2.5", "stream_id", 40),
    ("rtmfp", any_mode, "broken", "RFC 7016 §2.2.4", "is accepted: mode 0", 40),
]


@pytest.mark.parametrize(("name", "wrong", "kind", "clause", "what", "calls"), BUGS)
def test_a_planted_bug_is_found_and_shrunk(name, wrong, kind, clause, what, calls):
    """To the smallest of all octets that showed the bug, whatever was drawn."""
    other = Implementation(name, wrong)
    [finding] = found(name, other.ask, kind, calls)
    assert finding.clause == clause
    assert what in finding.what


def test_a_simple_bug_is_shrunk_to_its_core():
    """Twelve octets of RTP's header, and one of padding."""
    [finding] = found("rtp", Implementation("rtp", padding_stays).ask, "valid", 1000)
    assert finding.case.octets == bytes((0xA0, *bytes(11), 1))


def test_a_program_with_a_bug_is_found_too(tmp_path):
    spoilt = tmp_path / "spoilt.py"
    spoilt.write_text(EXAMPLE.read_text().replace("second & 127", "second & 63"))
    with Program([sys.executable, str(spoilt)], timeout=60.0) as program:
        [finding] = found("rtp", program.ask, "valid", 100)
    assert finding.what == "is read otherwise: payload_type"
    assert finding.expected == finding.answered + 64


def test_valid_input_that_is_refused_for_two_reasons_is_two_findings():
    """Their first words tell them apart; what comes later is of the case."""

    def ask(line):
        octets = bytes.fromhex(line.removeprefix("decode "))
        if octets[1] & 0x80:
            return Answer("error", f"no idea of a marker in {octets.hex()}")
        return Answer("error", f"no idea of audio in {octets.hex()}")

    codec = catalogue.find("rtp")
    clock = count(step=SECONDS / 10).__next__
    report = Comparison(codec, ask, clock).run(catalogue.cases_of(codec), ["valid"], 50, seed=1)
    assert [each.what for each in report.findings] == [
        "is refused: no idea of a",
        "is refused: no idea of audio",
    ]

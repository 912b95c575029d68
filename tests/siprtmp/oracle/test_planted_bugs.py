"""A comparison finds a bug that was planted in each of ten codecs, and makes its case small.

Own design: each implementation is our own codec behind a wrapper with one mistake; one of them is
a program of its own.
"""

import sys
from itertools import count
from pathlib import Path

import pytest

from siprtmp.oracle import catalogue
from siprtmp.oracle.codec import REFUSALS
from siprtmp.oracle.compare import SECONDS, Answer, Comparison
from siprtmp.oracle.program import Program

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "oracle" / "rtp.py"


def implementation(name, wrong):
    """Our codec, whose value or octets `wrong` spoils, or which refuses where it gives None."""
    codec = catalogue.find(name)

    def ask(line):
        octets = bytes.fromhex(line.removeprefix("decode "))
        try:
            value = codec.to_neutral(codec.decode(octets))
        except REFUSALS as error:
            value = error
        value = wrong(octets, value)
        if isinstance(value, Exception):
            return Answer("error", str(value))
        return Answer("value", value)

    return ask


def count_of_calls():
    """A clock that goes on by what is asked, so that the search is as long on any machine."""
    return count(step=SECONDS / 40)


def found(name, ask, kind, cases=25):
    codec = catalogue.find(name)
    comparison = Comparison(codec, ask, count_of_calls().__next__)
    return comparison.run(catalogue.cases_of(codec), [kind], cases, seed=1).findings


def long_names_alone(octets, value):
    head = octets.partition(b"\r\n\r\n")[0].lower()
    return ValueError("no Via") if b"\nvia" not in head else value


def one_port(octets, value):
    for media in value["media"]:
        media["port_count"] = 1
    return value


def padding_stays(octets, value):
    count = value["padding"]
    return value | {"payload": value["payload"] + octets[len(octets) - count :].hex() * bool(count)}


def unsigned_loss(octets, value):
    if value[0]["type"] == "sender-report":
        for block in value[0]["reports"]:
            block["lost"] &= 0xFFFFFF
    return value


def padded_attributes(octets, value):
    for attribute in value["attributes"]:
        attribute["value"] += "00" * (-len(attribute["value"]) // 2 % 4)
    return value


def one_is_true(octets, value):
    return [octets[1] == 1] if octets[:1] == b"\x01" else value


def unsigned_integers(octets, value):
    if isinstance(value, list):
        return [unsigned_integers(octets, each) for each in value]
    if isinstance(value, dict):
        if value.get("type") == "integer":
            return value | {"value": value["value"] & 0x1FFFFFFF}
        return {name: unsigned_integers(octets, each) for name, each in value.items()}
    return value


def short_time(octets, value):
    return value | {"timestamp": value["timestamp"] & 0xFFFFFF}


def big_endian_stream(octets, value):
    for message in value:
        message["stream_id"] = int.from_bytes(message["stream_id"].to_bytes(4, "little"), "big")
    return value


def any_mode(octets, value):
    if isinstance(value, Exception) and octets and not octets[0] & 3:
        return {"mode": 0, "chunks": []}
    return value


BUGS = [
    # codec, mistake, class, clause, what is said, octets of the smallest case at most
    ("sip", long_names_alone, "odd", "RFC 3261 §7.3.1", "is refused", 600),
    ("sdp", one_port, "valid", "RFC 8866 §5.14", "media.port_count", 400),
    ("rtp", padding_stays, "valid", "RFC 3550 §5.1", "payload", 20),
    ("rtcp", unsigned_loss, "valid", "RFC 3550 §6.4.1", "reports.lost", 300),
    ("stun", padded_attributes, "valid", "RFC 8489 §14", "attributes.value", 60),
    ("amf0", one_is_true, "odd", "AMF0 §2", "is read otherwise", 2),
    ("amf3", unsigned_integers, "valid", "AMF3 §3.6", "integer.value", 30),
    ("flv-tag", short_time, "valid", "FLV 10.1 §E.4.1", "timestamp", 20),
    ("rtmp", big_endian_stream, "valid", "RTMP 1.0 §5.3.1.2.5", "stream_id", 20),
    ("rtmfp", any_mode, "broken", "RFC 7016 §2.2.4", "is accepted: mode 0", 20),
]


@pytest.mark.parametrize(("name", "wrong", "kind", "clause", "what", "most"), BUGS)
def test_a_planted_bug_is_found_and_shrunk(name, wrong, kind, clause, what, most):
    findings = found(name, implementation(name, wrong), kind)
    assert findings
    for finding in findings:
        assert finding.clause.startswith(clause)
        assert what in finding.what
        assert len(finding.case.octets) <= most


def test_a_program_with_a_bug_is_found_too(tmp_path):
    spoilt = tmp_path / "spoilt.py"
    spoilt.write_text(EXAMPLE.read_text().replace("second & 127", "second & 63"))
    with Program([sys.executable, str(spoilt)], timeout=20.0) as program:
        [finding] = found("rtp", program.ask, "valid")
    assert finding.what == "is read otherwise: payload_type"
    assert finding.case.octets == bytes((0x80, 64)) + bytes(10)
    assert (finding.expected, finding.answered) == (64, 0)

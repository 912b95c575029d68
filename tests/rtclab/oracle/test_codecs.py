"""Every codec of the oracle: its cases are what our own codec makes of them, and JSON comes back.

Own design.  Hypothesis draws few of each class here; `make oracle` draws as many as it says.
"""

import json
from itertools import count

import pytest
from support.oracle import WANTED

from p2psip.nat.stun import StunMessage, StunType
from rtclab.oracle import catalogue
from rtclab.oracle.codec import KINDS, REFUSALS
from rtclab.oracle.compare import SECONDS, Answer, Comparison, ProtocolError
from rtclab.oracle.report import lines
from rtclab.oracle.search import draws, smallest

CASES = max(5, WANTED // 10)
pytestmark = pytest.mark.timeout(2400)
PAIRS = [
    (codec.name, kind)
    for codec in catalogue.CODECS.values()
    for kind in KINDS
    if kind in catalogue.cases_of(codec)
]


def answer(codec, line):
    """What our own codec says to a line of the protocol."""
    word, _, rest = line.partition(" ")
    try:
        if word == "encode":
            return Answer("octets", codec.encode(codec.from_neutral(json.loads(rest))).hex())
        value = codec.to_neutral(codec.decode(bytes.fromhex(rest)))
    except REFUSALS as error:
        return Answer("error", str(error))
    return Answer("value", json.loads(json.dumps(value)))


@pytest.mark.parametrize(("name", "kind"), PAIRS)
def test_a_foreign_reader_like_ours_agrees(name, kind):
    codec = catalogue.find(name)
    clock = count(step=SECONDS / 100).__next__
    for encode in (False, True) if kind == "valid" and codec.encode else (False,):
        comparison = Comparison(codec, lambda line: answer(codec, line), clock, encode=encode)
        report = comparison.run(catalogue.cases_of(codec), [kind], CASES, seed=3)
        assert report.findings == []
        assert report.cases and not report.skipped
        assert not report.members.missing | report.members.unknown


def test_the_same_seed_draws_the_same_vectors():
    codec = catalogue.find("stun")
    once, again, other = (
        [case.written() for case in draws(catalogue.cases_of(codec)["broken"], 5, seed)]
        for seed in (1, 1, 2)
    )
    assert once == again != other
    assert len({case["octets"] for case in once}) == 5


def test_a_fault_of_a_request_has_the_status_that_it_deserves():
    codec = catalogue.find("sip")
    required = catalogue.cases_of(codec)["broken"].filter(lambda case: case.status)
    [case] = draws(required.filter(lambda case: not case.allowed), 1, 0)
    line = case.written()
    assert line["class"] == "broken" and line["error"]["status"] in (400, 416, 501, 505)
    assert "value" not in line and line["allowed"] == []


@pytest.mark.parametrize("name", ["sip", "sdp", "rtcp"])
def test_what_is_beyond_a_limit_of_ours_may_be_read_and_must_be_answered(name):
    codec, clock = catalogue.find(name), count().__next__
    excessive = catalogue.cases_of(codec)["broken"].filter(lambda case: case.allowed)
    [case] = draws(excessive, 1, 0)
    line = case.written()
    assert line["error"]["fault"].startswith("too many ") and line["allowed"] == ["value"]
    answers = [Answer("value", {}), Answer("error"), Answer("gone", "ended with code 1")]
    judged = [Comparison(codec, lambda _, a=a: a, clock).judge(case) for a in answers]
    assert [finding and finding.what for finding in judged] == [
        *(None, None, "gets no answer: ended with code 1")
    ]


def test_of_cases_of_one_length_the_one_that_was_shrunk_is_kept():
    valid = catalogue.cases_of(catalogue.find("flv-tag"))["valid"]
    found = smallest(valid, lambda case: case.value["timestamp"] < 0, 200, 0, lambda: False)
    assert found.value["timestamp"] == -1


def test_a_report_counts_what_failed_and_shows_what_an_answer_should_have_been():
    codec, clock = catalogue.find("rtp"), count(step=SECONDS).__next__
    comparison = Comparison(codec, lambda _: Answer("gone", "the program ended"), clock)
    report = comparison.run(catalogue.cases_of(codec), ["valid"], 5, seed=0)
    head, _, _, what, _, expected, answered, *_ = lines(codec, report, 0)
    assert head == "rtp: 1 disagreement, in 5 of 5 cases (seed 0)"
    assert what == "  valid input gets no answer: the program ended"
    assert expected.startswith('    expected  {"payload_type"')
    assert answered == "    answered  nothing"


def test_a_tag_that_is_reserved_may_be_refused():
    """FLV 10.1 §E.4.1."""
    cases = catalogue.cases_of(catalogue.find("flv-tag"))
    for case in draws(cases["valid"], 50, 0):
        assert case.value["tag_type"] in (8, 9, 18) and case.value["stream_id"] == 0
    assert {case.allowed for case in draws(cases["odd"], 50, 0)} == {("error",)}


def test_a_fingerprint_of_stun_holds():
    """RFC 8489 §14.7."""
    cases = catalogue.cases_of(catalogue.find("stun"))
    for case in [*draws(cases["valid"], 50, 0), *draws(cases["odd"], 100, 0)]:
        message = StunMessage.parse(case.octets)
        assert message.get(StunType.FINGERPRINT) is None or message.fingerprint_holds()


def test_a_damaged_chunk_is_left_out_or_its_packet_refused():
    """RFC 7016 §2.3."""
    codec = catalogue.find("rtmfp")
    damaged = catalogue.cases_of(codec)["broken"].filter(lambda case: not case.refused)
    [case] = draws(damaged, 1, 0)
    assert case.value["chunks"] == [] and case.allowed == ("error",)
    assert case.written()["value"] == case.value


@pytest.mark.parametrize("name", catalogue.CODECS)
def test_the_fields_that_are_listed_are_those_of_a_value(name):
    codec = catalogue.find(name)
    cases = catalogue.cases_of(codec)
    text = " ".join(codec.fields())
    [case] = draws(cases["valid" if "valid" in cases else "odd"], 1, 0)
    value = case.value[0] if isinstance(case.value, list) else case.value
    assert all(member in text for member in value or () if member != "type")  # of the record


def written_by(answer_of):
    """The findings about a program that writes RTP as `answer_of` says, of one case."""
    codec = catalogue.find("rtp")
    clock = count(step=SECONDS).__next__
    comparison = Comparison(codec, answer_of, clock, encode=True)
    return comparison.run(catalogue.cases_of(codec), ["valid"], 1, seed=0).findings


def one_later(line):
    """Write RTP with another sequence number."""
    codec, value = catalogue.find("rtp"), json.loads(line.removeprefix("encode "))
    value["sequence"] ^= 1
    return Answer("octets", codec.encode(codec.from_neutral(value)).hex())


def test_a_writer_is_judged_by_what_we_read():
    [cut] = written_by(lambda line: Answer("octets", "80"))
    assert cut.what == "is written as octets that cannot be read"
    assert "shorter than its fixed header" in cut.answered
    [other] = written_by(one_later)
    assert other.what == "is written otherwise: sequence"
    [refused] = written_by(lambda line: Answer("error", "no idea"))
    assert (refused.what, refused.answered) == ("is refused: no idea", "error no idea")
    assert written_by(lambda line: Answer("skip")) == []


@pytest.mark.parametrize("given", [Answer("octets", "8"), Answer("value", 1)])
def test_a_writer_that_gives_no_octets_cannot_be_judged(given):
    with pytest.raises(ProtocolError, match="no octets"):
        written_by(lambda line: given)

"""The vectors beside sections: what is kept, what our readers answer, what the pages show."""

import json

import pytest
import vectors

from rtclab.oracle import catalogue
from rtclab.oracle.codec import KINDS, REFUSALS, VERSION

LINES = [
    json.loads(line)
    for path in sorted(vectors.FOLDER.glob("*.jsonl"))
    for line in path.read_text().splitlines()
]


def line(octets, clause="RFC 9999 §1", fault=None, value=None, codec="rtmfp"):
    said = {"value": value} if fault is None else {"error": {"fault": fault}}
    kind = "valid" if fault is None else "broken"
    head = {"version": VERSION, "codec": codec, "class": kind, "clause": clause}
    return head | {"octets": octets, **said, "allowed": []}


def test_every_codec_has_vectors_of_each_class_that_is_drawn():
    found = {(each["codec"], each["class"]) for each in LINES}
    drawn = {
        (n, kind) for n, codec in catalogue.CODECS.items() for kind in catalogue.cases_of(codec)
    }
    assert found == drawn


@pytest.mark.parametrize("name", catalogue.CODECS)
def test_our_readers_answer_as_the_vectors_say(name):
    codec = catalogue.CODECS[name]
    for each in (each for each in LINES if each["codec"] == name):
        assert each["version"] == VERSION and each["class"] in KINDS
        try:
            answer = codec.to_neutral(codec.decode(bytes.fromhex(each["octets"])))
        except REFUSALS:
            assert "error" in each or "error" in each["allowed"], each
        else:
            assert "error" not in each and json.loads(json.dumps(answer)) == each["value"], each


def test_a_section_says_what_a_reader_must_answer_and_how_to_get_more():
    [shown] = vectors.vectors_in("RFC 3261", "8.1.1")
    text = shown.astext()
    assert "refused: no Via, with 400" in text
    assert "\nCSeq: 0 ACK\n" in text, "the message is shown as text"
    assert "<code>python -m rtclab oracle vectors sip --broken --seed 1</code>" in text
    assert vectors.vectors_in("RFC 3261", "17.1.1.2") == []


def test_a_value_stands_beside_the_sections_of_its_parts():
    chunk = {"type": "ping", "message": "00"}
    value = {"mode": 1, "chunks": [chunk], "timestamp": None}
    found = vectors.places(line("00", "RFC 7016 §2.2.4", value=value))
    assert found == {("RFC 7016", "2.2.4"): value, ("RFC 7016", "2.3.9"): chunk}
    of_a_field = vectors.places(
        line("00", "RFC 8866 §5", value={"uri": "", "name": "x"}, codec="sdp")
    )
    assert of_a_field["RFC 8866", "5.3"] == {"name": "x"}
    assert ("RFC 8866", "5.5") not in of_a_field, "there is none"


def test_the_shortest_of_each_fault_are_chosen_and_of_values_a_longer_one():
    cut = [line(f"{at:04x}", fault="cut") for at in range(3)]
    others = [line(f"{at:06x}", fault=f"fault {at}") for at in range(5)]
    assert vectors.chosen([*reversed(cut), *others]) == [cut[0], *others[: vectors.FAULTS - 1]]
    values = [line("00" * length, value={}) for length in (9, 2, 7, 40, 99)]
    assert [len(each["octets"]) // 2 for each in vectors.chosen(values)] == [2, 40]

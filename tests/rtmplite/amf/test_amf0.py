"""AMF0 means the same to us as to Flash, and no bytes can make it do anything else."""

import json
from contextlib import suppress

import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st
from support.mutations import mutations, peak
from support.rtmp.amf_corpus import manifest, stored_lines, tells

from rtmplite.amf import amf0
from rtmplite.amf.values import (
    UNDEFINED,
    UNSUPPORTED,
    Date,
    EcmaArray,
    TypedObject,
    XmlDocument,
)
from rtmplite.errors import LocalError, RemoteError
from rtmplite.strategies import amf

SAME = "same object as the first element"
LOOP = [None]
LOOP.append(LOOP)


@given(amf.values())
def test_what_is_written_reads_back(value):
    """Covers AMF0 §2.1 [markers], AMF0 §2.2 [number-is-double], AMF0 §2.5 [object-layout].

    And AMF0 §2.10 [ecma-array-layout], §2.12 [strict-array-layout], §2.18 [typed-object-layout],
    §2.11 [object-end].
    """
    (back,) = amf0.decode(amf0.encode(value))
    assert amf.alike(back, value)


@given(amf.graphs())
def test_who_holds_whom_survives(value):
    """Covers AMF0 §2.9 [repeat-by-reference] [reference-from-0], AMF0 §2.5 [same-by-reference].

    Containers in circles, and the same one in several places.
    """
    raw = amf0.encode(value)
    (back,) = amf0.decode(raw)
    assert amf.alike(back, value) and amf0.encode(back) == raw


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (1.0, "00 3ff0000000000000"),
        (-4, "00 c010000000000000"),
        (True, "01 01"),
        (False, "01 00"),
        ("å", "02 0002 c3a5"),
        ({"a": None}, "03 0001 61 05 0000 09"),
        (None, "05"),
        (UNDEFINED, "06"),
        (EcmaArray(a=None), "08 00000001 0001 61 05 0000 09"),
        ([None, UNDEFINED], "0a 00000002 05 06"),
        (Date(1.0, -60), "0b 3ff0000000000000 ffc4"),
        ("a" * 65536, "0c 00010000" + "61" * 65536),
        (UNSUPPORTED, "0d"),
        (XmlDocument("<a/>"), "0f 00000004 3c612f3e"),
        (TypedObject("P", {"a": None}), "10 0001 50 0001 61 05 0000 09"),
        (b"raw", "11 0c 07 726177"),
    ],
    ids=lambda value: str(value)[:12],
)
def test_every_type_looks_like_this(value, encoded):
    """Covers AMF0 §2.1 [markers] [marker-values], AMF0 §1.3 [big-endian], §1.3.1 [utf8].

    Covers FLV 10.1 §E.4.4.2 [types], §E.4.4.3 [date], §E.4.4.4 [array-with-names],
    §E.4.4.5 [long-string], §E.4.4.6 [end-follows], §E.4.4.7 [end-bytes],
    §E.4.4.8 [name-then-value], §E.4.4.9 [count-is-exact] [gaps-are-undefined], §E.4.4.10 [string].
    And AMF0 §2.12 [gaps-are-undefined], §2.3 [boolean-nonzero].
    And AMF0 §2.4 [string-u16] [long-when-over-64k], §2.7 [null-is-a-marker],
    §2.8 [undefined-is-a-marker], §2.13 [date-layout], §2.14 [long-string-u32],
    §2.15 [unsupported-is-a-marker], §2.17 [xml-is-long-string], and of the containers
    §2.5 [object-layout], §2.10 [ecma-array-layout], §2.12 [strict-array-layout],
    §2.18 [typed-object-layout], §2.11 [object-end].
    """
    raw = bytes.fromhex(encoded)
    assert amf0.encode(value) == raw
    back, end = amf0.decode_one(b"..." + raw + b"...", 3)
    assert end == 3 + len(raw)
    assert amf.alike(back, float(value) if type(value) is int else value)


@given(amf.unusual())
@example((b"\x0c\0\0\0\1a", "a"))
@example((b"\x01\x02", True))
@example((b"\x08\0\0\0\x09\0\1a\x05\0\0\x09", EcmaArray(a=None)))
@example((b"\x0a\0\0\0\2\x05\x07\0\0", LOOP))
def test_another_way_to_say_it_means_the_same(pair):
    """Covers AMF0 §2.14 [long-string-u32], AMF0 §2.3 [boolean-nonzero], AMF0 §2.9 [reference-u16].

    And AMF0 §2.10 [ecma-array-layout], FLV 10.1 §E.4.4.4 [count-is-approximate].
    """
    raw, value = pair
    (back,) = amf0.decode(raw)
    assert amf.alike(back, value)


def test_the_same_thing_is_written_once():
    """Covers AMF0 §2.9 [repeat-by-reference] [reference-u16] [reference-from-0].

    Covers AMF0 §2.5 [same-by-reference].
    """
    inner = {"a": 1.0}
    raw = amf0.encode([inner, inner])
    assert raw.endswith(bytes.fromhex("07 0001"))
    ((one, other),) = amf0.decode(raw)
    assert one == inner and one is other
    assert amf0.decode(amf0.encode(inner, inner)) == [inner, inner]


def test_what_no_reference_can_name_is_written_again():
    """Covers AMF0 §2.9 [reference-u16]: with the array around them there is one too many."""
    many = [{} for _ in range(0x10000)]
    (back,) = amf0.decode(amf0.encode([*many, many[0], many[-1]]))
    assert back == [*many, {}, {}]
    assert back[-2] is back[0] and back[-1] is not back[0x10000 - 1]


def test_a_thing_may_contain_itself():
    """Covers AMF0 §2.9 [repeat-by-reference] [reference-from-0]."""
    loop = {"a": 1.0}
    loop["self"] = loop
    (back,) = amf0.decode(amf0.encode(loop))
    assert back["self"] is back and back["a"] == 1.0


def test_numbers_for_indices_are_text_too():
    """Covers AMF0 §2.10 [keys-are-text], FLV 10.1 §E.4.4.8 [name-then-value]."""
    raw = bytes.fromhex("08 00000002 0001 30 05 0001 37 01 01 0000 09")
    assert amf0.decode(raw) == [EcmaArray({"0": None, "7": True})]


def test_an_instance_of_any_class_is_an_object():
    """Covers AMF0 §2.5 [unregistered-is-anonymous]: its name is there for who knows the class."""
    (found,) = amf0.decode(bytes.fromhex("10 0001 50 0001 61 05 0000 09"))
    assert isinstance(found, dict) and dict(found) == {"a": None} and found.class_name == "P"


def test_what_utf8_lacks_is_replaced():
    """Covers AMF0 §1.3.1 [utf8]: half a character of ActionScript's is none."""
    assert amf0.encode("a\ud800") == b"\x02\0\2a?"
    assert amf0.encode(XmlDocument("a\ud800")) == b"\x0f\0\0\0\2a?"
    assert amf0.encode({"a\ud800": None}) == b"\x03\0\2a?\x05\0\0\x09"


@pytest.mark.parametrize("text", [b"caf\xe9", b"\xed\xa0\x80", b"\xff"])
def test_bad_utf8_is_replaced(text):
    """Covers AMF0 §1.3.1 [utf8]."""
    (back,) = amf0.decode(b"\x02" + len(text).to_bytes(2, "big") + text)
    assert "\ufffd" in back


@pytest.mark.parametrize(
    ("raw", "complaint"),
    [
        ("04", "movie clips"),
        ("0e", "record sets"),
        ("09", "never began"),
        ("11", "bytes more"),
        ("11 12", "AMF3 has no marker"),
        ("0a 00000001" * 40 + "11" + "09 03 01" * 25 + "01", "deep"),
        ("12", "no marker"),
        ("ff", "no marker"),
        ("00 3ff0", "bytes more"),
        ("01", "bytes more"),
        ("02 0005 61", "bytes more"),
        ("0c ffffffff 61", "bytes more"),
        ("03 0001 61", "bytes more"),
        ("03 0001 61 05", "bytes more"),
        ("03 0000", "bytes more"),
        ("07 0000", "reference"),
        ("0a ffffffff 05", "4294967295 items"),
        ("0a 00000001 07 0001", "reference"),
        ("0a 00000001" * 65 + "05", "deep"),
    ],
    ids=lambda text: text[:14],
)
def test_what_no_writer_may_send_is_refused(raw, complaint):
    """Covers AMF0 §2.6 [movieclip-reserved], AMF0 §2.16 [recordset-reserved].

    And AMF0 §2.11 [object-end-only-there], §2.1 [object-end-only-closes], §2.9 [reference-u16].
    """
    with pytest.raises(RemoteError, match=complaint):
        amf0.decode(bytes.fromhex(raw))


@pytest.mark.parametrize("value", [{"a" * 65536: UNSUPPORTED}, 1 << 1024, object()])
def test_what_amf0_cannot_say_is_our_bug(value):
    """Covers AMF0 §2.1."""
    with pytest.raises(LocalError):
        amf0.encode(value)


@pytest.mark.parametrize("around", [lambda value: [value], lambda value: {"a": value}])
def test_depth_is_limited_on_the_way_out_too(around):
    """Covers AMF0 §2.9."""
    value = around(None)
    for _ in range(amf0.MAX_DEPTH - 1):
        value = around(value)
    assert amf0.decode(amf0.encode(value)) == [value]
    with pytest.raises(LocalError):
        amf0.encode(around(value))


wounded = mutations(amf.encoded() | amf.unusual().map(lambda pair: pair[0]))


@given(st.tuples(amf.encoded(), wounded).map(b"".join) | wounded | st.binary())
def test_nothing_else_ever_happens(raw):
    """Covers AMF0 §2."""
    reached = 0
    with suppress(RemoteError):
        for _ in range(1000):
            _, reached = amf0.decode_one(raw, reached)
    event("passed the first value" if reached else "failed in the first value")
    assert peak(lambda: _swallow(raw)) <= 32 * len(raw) + 65536


@pytest.mark.parametrize(
    "raw",
    ["05", "06", "0000000000000000 00", "03 0000 09", "0a00000000", "03 0000 05 0000 09"],
)
def test_memory_follows_the_input(raw):
    """Covers AMF0 §2."""
    many = bytes.fromhex(raw) * 5000
    assert peak(lambda: _swallow(many)) <= 32 * len(many) + 16384


def _swallow(raw):
    with suppress(RemoteError):
        amf0.decode(raw)


def neutral(value):
    """What the corpus's neutral notation says, as our values."""
    match value:
        case list(items):
            first = [neutral(item) for item in items[:1]]
            return first + [
                first[0] if item == {"@": SAME} else neutral(item) for item in items[1:]
            ]
        case {"@": "undefined"}:
            return UNDEFINED
        case {"@": "ecma"}:
            return EcmaArray({k: neutral(v) for k, v in value.items() if k != "@"})
        case {"@": "date"}:
            return Date(value["ms"], value["tz"])
        case {"@": "xml"}:
            return XmlDocument(value["text"])
        case {"@": str(text)}:  # "long string, 65537 times the letter a"
            count, _, letter = text.removeprefix("long string, ").partition(" times the letter ")
            return int(count) * letter
        case dict():
            return {k: neutral(v) for k, v in value.items()}
        case _:
            return value


@pytest.mark.parametrize(
    "line", manifest("amf/vectors_amf0.json", "vectors"), ids=lambda line: line.get("hex", "")[:20]
)
def test_vectors(corpus, line):
    """Covers AMF0 §2.1 [markers]."""
    raw = bytes.fromhex(line["hex"])
    (back,) = amf0.decode(raw)
    assert amf.alike(back, neutral(line["value"]))
    assert amf0.encode(back) == raw


@pytest.mark.parametrize("line", stored_lines(0), ids=lambda line: line.get("file", ""))
def test_stored_objects(corpus, line):
    """Covers AMF0 §2.11 [object-end], AMF0 §2.10 [ecma-array-layout]."""
    raw = (corpus / "amf/sol" / line["file"]).read_bytes()
    at = 18 + int.from_bytes(raw[16:18], "big") + 4
    found, seen, values = {}, [], b""
    while at < len(raw):
        length = int.from_bytes(raw[at : at + 2], "big")
        name, start = raw[at + 2 : at + 2 + length].decode(), at + 2 + length
        found[name], at = amf0.decode_one(raw, start, seen)
        values += raw[start:at]
        assert raw[at] == 0
        at += 1
    assert amf0.encode(*found.values()) == values
    if "decoded" in line:
        decoded = json.loads((corpus / "amf/sol" / line["decoded"]).read_text())
        assert list(found) == [element["name"] for element in decoded["body"]]
        for element in decoded["body"]:
            assert tells(found[element["name"]], element["value"]), element["name"]

"""AMF3 means the same to us as to Flash, and no bytes can make it do anything else."""

import json

import pytest
from hypothesis import example, given
from support.rtmp.amf_corpus import manifest, stored_lines, tells

from rtmplite.amf import amf3
from rtmplite.amf.amf3 import FLEX
from rtmplite.amf.amf3_reader import Amf3Reader
from rtmplite.amf.amf3_writer import Amf3Writer
from rtmplite.amf.cursor import Cursor
from rtmplite.amf.values import (
    UNDEFINED,
    Array,
    Date,
    Dictionary,
    EcmaArray,
    Externalizable,
    Traits,
    TypedObject,
    Vector,
    VectorKind,
    Xml,
    XmlDocument,
)
from rtmplite.errors import RemoteError
from rtmplite.strategies import amf
from rtmplite.strategies import amf3 as strategies


@given(strategies.values() | strategies.graphs())
def test_what_is_written_reads_back(value):
    """Covers AMF3 §2.2 [tables-are-kept] [three-tables], AMF3 §3.1 [markers], AMF3 §3."""
    raw = amf3.encode(value)
    (back,) = amf3.decode(raw)
    assert amf.alike(back, value)
    assert amf3.encode(back) == raw


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (UNDEFINED, "00"),
        (None, "01"),
        (False, "02"),
        (True, "03"),
        (5, "04 05"),
        (-1, "04 ffffffff"),
        ((1 << 28) - 1, "04 bfffffff"),
        (-(1 << 28), "04 c0808000"),
        (float(1 << 28), "05 41b0000000000000"),
        (5.0, "05 4014000000000000"),
        ("", "06 01"),
        ("å", "06 05 c3a5"),
        (XmlDocument("<a/>"), "07 09 3c612f3e"),
        (Date(1.0), "08 01 3ff0000000000000"),
        ([], "09 01 01"),
        ([None], "09 03 01 01"),
        (EcmaArray(a=None), "09 01 03 61 01 01"),
        (Array([None], {"a": True}), "09 03 03 61 03 01 01"),
        ({}, "0a 0b 01 01"),
        ({"a": None}, "0a 0b 01 03 61 01 01"),
        (TypedObject("P", {"a": None}), "0a 0b 03 50 03 61 01 01"),
        (TypedObject(Traits("P", ("a",), False), {"a": None}), "0a 13 03 50 03 61 01"),
        (
            TypedObject(Traits("P", ("a",), True), {"a": None, "b": True}),
            "0a 1b 03 50 03 61 01 03 62 03 01",
        ),
        (TypedObject(Traits("", (), False)), "0a 03 01"),
        (
            Externalizable("flex.messaging.io.ObjectProxy", "x"),
            "0a 07 3b" + b"flex.messaging.io.ObjectProxy".hex() + "06 03 78",
        ),
        (Xml("<a/>"), "0b 09 3c612f3e"),
        (b"raw", "0c 07 726177"),
        (Vector(VectorKind.INT, [-1, 2], True), "0d 05 01 ffffffff 00000002"),
        (Vector(VectorKind.UINT, [0xFFFFFFFF]), "0e 03 00 ffffffff"),
        (Vector(VectorKind.DOUBLE, [1.0]), "0f 03 00 3ff0000000000000"),
        (Vector(VectorKind.OBJECT, [None], class_name="*"), "10 03 00 03 2a 01"),
        (Dictionary([(True, None)], weak=True), "11 03 01 03 01"),
        (Dictionary([(b"key", [])]), "11 03 00 0c 07 6b6579 09 01 01"),
    ],
    ids=lambda value: str(value)[:16],
)
def test_every_type_looks_like_this(value, encoded):
    """Covers AMF3 §3.1 [markers] [marker-values], §1.3.2 [utf8] [string-header].

    And §1.3.2 [empty-is-no-reference], §3.12 [anonymous-has-no-name],
    §3.2 [undefined-is-a-marker], §3.3 [null-is-a-marker], §3.4 [false-is-a-marker],
    §3.5 [true-is-a-marker], §3.6 [integer-is-signed], §3.7 [double-is-double], §3.8 [one-string],
    §3.9 [xml-document-layout], §3.10 [date-layout] [date-has-no-zone], §3.11 [array-layout],
    §3.12 [traits-header] [sealed-then-dynamic] [dynamic-until-empty] [externalizable-is-agreed],
    §3.13 [xml-layout], §3.14 [byte-array-layout], §3.15 [vector-layout] [vector-fixed]
    [vector-type-name], §3.16 [dictionary-layout] [dictionary-weak] [any-key].
    """
    raw = bytes.fromhex(encoded)
    assert amf3.encode(value) == raw
    back, end = amf3.decode_one(b"..." + raw + b"...", 3)
    assert end == 3 + len(raw)
    assert amf.alike(back, value)


@given(strategies.unusual())
@example((b"\x04\x80\x80\x80\x05", 5))
@example((b"\x08\x03" + bytes(8), Date(0.0)))
@example((b"\x0d\x01\x02", Vector(VectorKind.INT, [], True)))
def test_another_way_to_say_it_means_the_same(pair):
    """Covers AMF3 §1.3.1 [u29-layout], AMF3 §3.10 [date-layout], §3.15 [vector-fixed]."""
    raw, value = pair
    assert amf.alike(amf3.decode(raw), [value])


@pytest.mark.parametrize("value", [1 << 28, -(1 << 28) - 1, 1 << 53])
def test_a_large_integer_becomes_a_double(value):
    """Covers AMF3 §3.6 [large-integer-is-double]."""
    assert amf.alike(amf3.decode(amf3.encode(value)), [float(value)])


def test_the_same_string_is_written_once():
    """Covers AMF3 §3.8 [string-by-reference] [empty-never-referred], §2.2 [from-zero].

    Covers AMF3 §2.2 [tables-are-kept], AMF3 §1.3.2 [empty-is-no-reference].
    """
    raw = amf3.encode(["ab", "", "ab", {"ab": ""}])
    assert raw == bytes.fromhex("09 09 01 06 05 6162 06 01 06 00 0a 0b 01 00 06 01 01")
    assert amf3.decode(raw) == [["ab", "", "ab", {"ab": ""}]]


def test_strings_are_numbered_in_order():
    """Covers AMF3 §3.8 [string-by-reference], §1.3.2 [string-header], §2.2 [tables-are-kept]."""
    names = [f"{number:02}" for number in range(70)]
    raw = amf3.encode([*names, *names])
    assert raw.startswith(bytes.fromhex("09 8219 01 06 05 3030 06 05 3031"))
    assert raw.endswith(bytes.fromhex("06 7e 06 8100 06 8102 06 8104 06 8106 06 8108 06 810a"))
    assert amf3.decode(raw) == [[*names, *names]]


def test_what_utf8_lacks_is_replaced():
    """Covers AMF3 §1.3.2 [utf8], AMF3 §3.9 [xml-document-layout], §3.13 [xml-layout]."""
    assert amf3.encode("a\ud800") == b"\x06\5a?"
    assert amf3.encode(XmlDocument("a\ud800")) == b"\x07\5a?"
    assert amf3.encode(Xml("a\ud800")) == b"\x0b\5a?"


def test_the_same_traits_are_written_once():
    """Covers AMF3 §3.12 [traits-by-reference] [traits-header], AMF3 §2.2 [three-tables]."""
    traits = Traits("P", ("x",), False)
    raw = amf3.encode([TypedObject(traits, {"x": 1}), {}, TypedObject(traits, {"x": 2})])
    assert raw == bytes.fromhex("09 07 01 0a 13 03 50 03 78 04 01 0a 0b 01 01 0a 01 04 02")
    assert amf3.encode(*amf3.decode(raw)) == raw
    other = TypedObject(Traits("Q", (), False))
    raw = amf3.encode([TypedObject(traits, {"x": 1}), other, TypedObject(Traits("Q", (), False))])
    assert raw[-6:] == bytes.fromhex("0a 03 03 51 0a 05")
    assert amf3.decode(raw)[0][1:] == [other, other]


@pytest.mark.parametrize(
    ("value", "reference"),
    [
        (XmlDocument("<a/>"), "07 02"),
        (Date(1.0), "08 02"),
        ([1], "09 02"),
        (EcmaArray(a=1), "09 02"),
        ({}, "0a 02"),
        (TypedObject("P"), "0a 02"),
        (Externalizable("flex.messaging.io.ArrayList"), "0a 02"),
        (Xml("<a/>"), "0b 02"),
        (b"raw", "0c 02"),
        (Vector(VectorKind.INT), "0d 02"),
        (Vector(VectorKind.OBJECT), "10 02"),
        (Dictionary(), "11 02"),
    ],
    ids=lambda value: str(value)[:12],
)
def test_the_same_thing_is_written_once(value, reference):
    """Covers AMF3 §3.1 [objects-by-reference], §2.2 [from-zero]."""
    raw = amf3.encode([value, value])
    assert raw.endswith(bytes.fromhex(reference))
    ((one, other),) = amf3.decode(raw)
    assert one is other and amf.alike(one, value)


def test_each_message_has_tables_of_its_own():
    """Covers AMF3 §4.1 [tables-are-reset], AMF3 §4.2 [tables-for-each-object]."""
    item = {"ab": [1]}
    alone = amf3.encode(item)
    assert amf3.encode(item) == alone
    assert amf3.encode(item, item) == alone + bytes.fromhex("0a 00")
    assert amf3.decode(alone + bytes.fromhex("0a 00")) == [item, item]
    both = alone + alone
    _, middle = amf3.decode_one(both)
    assert amf3.decode_one(both, middle) == (item, len(both))
    with pytest.raises(RemoteError, match="reference"):
        amf3.decode_one(alone + bytes.fromhex("0a 00"), middle)


def neutral(value, outer=None):
    """What the corpus's neutral notation says, as our values."""
    match value:
        case list(items):
            return [neutral(item, outer) for item in items]
        case {"@": "array"}:
            return Array(neutral(value["dense"]), neutral(value["assoc"]))
        case {"@": "date"}:
            return Date(value["ms"])
        case {"@": "bytearray"}:
            return bytes.fromhex(value["hex"])
        case {"@": "xml"}:
            return Xml(value["text"])
        case {"@": "reference to the outer object"}:
            return outer
        case dict():
            members = {}
            for name, member in value.items():
                members[name] = neutral(member, members if outer is None else outer)
            return members
        case _:
            return value


@pytest.mark.parametrize(
    "line", manifest("amf/vectors_amf3.json", "vectors"), ids=lambda line: line.get("hex", "")[:20]
)
def test_vectors(corpus, line):
    """Covers AMF3 §3.1 [markers]."""
    raw = bytes.fromhex(line["hex"])
    (back,) = amf3.decode(raw)
    expected = neutral(line["value"])
    if type(back) is float and type(expected) is int:  # JSON does not tell them apart
        expected = float(expected)
    assert amf.alike(back, expected)
    assert amf3.encode(back) == raw


@pytest.mark.parametrize("line", stored_lines(3), ids=lambda line: line.get("file", ""))
def test_stored_objects(corpus, line):
    """Covers AMF3 §2.2 [tables-are-kept]: the tables of these files span all their values."""
    raw = (corpus / "amf/sol" / line["file"]).read_bytes()
    start = 18 + int.from_bytes(raw[16:18], "big") + 4
    reader, writer, found = Amf3Reader(Cursor(raw, start), FLEX), Amf3Writer(FLEX), {}
    while reader.cursor.left:
        name = reader.string()
        found[name] = reader.value()
        assert reader.cursor.u8() == 0
        writer.string(name)
        writer.value(found[name])
        writer.parts.append(b"\0")
    assert b"".join(writer.parts) == raw[start:]
    if "decoded" in line:
        decoded = json.loads((corpus / "amf/sol" / line["decoded"]).read_text())
        assert list(found) == [element["name"] for element in decoded["body"]]
        for element in decoded["body"]:
            assert tells(found[element["name"]], element["value"]), element["name"]


@pytest.mark.parametrize(
    "name",
    [
        "LearnToFly3.profileData.saveString",
        "object-with-vec-obj-child-referencing-parent",
        "self-referential-dict",
        "self-referential-vec-object",
    ],
)
def test_raw_values(corpus, name):
    """Covers AMF3 §3.1 [objects-by-reference], AMF3 §3.12 [sealed-then-dynamic]."""
    raw = (corpus / "amf/raw" / f"{name}.amf").read_bytes()
    (value,) = amf3.decode(raw)
    assert amf3.encode(value) == raw
    assert tells(value, json.loads((corpus / "amf/raw" / f"{name}.json").read_text()))


def test_a_thing_may_contain_itself():
    """Covers AMF3 §3.1 [objects-by-reference], AMF3 §2.2 [from-zero]."""
    dictionary, vector = Dictionary(), Vector(VectorKind.OBJECT, [None], True)
    dictionary.entries.append((UNDEFINED, dictionary))
    vector.items.append(vector)
    loop = {}
    loop["loop"] = [dictionary, vector, loop]
    ((back),) = amf3.decode(amf3.encode(loop))
    assert back["loop"][2] is back
    assert back["loop"][0].entries[0][1] is back["loop"][0]
    assert back["loop"][1].items[1] is back["loop"][1]

"""The values that Python has no word for keep apart what AMF keeps apart."""

from rtmplite.amf import amf0
from rtmplite.amf.values import UNDEFINED, UNSUPPORTED, Date, EcmaArray, Traits, TypedObject


def test_they_say_what_they_are():
    assert repr([UNDEFINED, UNSUPPORTED]) == "[UNDEFINED, UNSUPPORTED]"
    assert repr(EcmaArray(a=1)) == "EcmaArray({'a': 1})"
    assert repr(TypedObject("Point", {"x": 1})) == "TypedObject('Point', {'x': 1})"
    assert "sealed=('x',)" in repr(TypedObject(Traits("Point", ("x",))))


def test_nothing_is_false():
    assert not UNDEFINED and not UNSUPPORTED
    assert UNDEFINED != UNSUPPORTED and UNDEFINED is not None


def test_a_class_name_is_part_of_an_object():
    point = TypedObject("Point", {"x": 1})
    assert point == TypedObject("Point", {"x": 1})
    assert point != TypedObject(Traits("Point", ("x",)), {"x": 1})
    assert point.class_name == "Point" and point.traits == Traits("Point")
    assert point != TypedObject("Vector", {"x": 1}) and point != {"x": 1}


def test_a_date_has_no_zone_unless_given():
    """Covers AMF0 §2.13 [date-zone-empty]."""
    assert amf0.encode(Date(1.0)) == bytes.fromhex("0b 3ff0000000000000 0000")


def test_a_count_that_differs_is_kept():
    """Covers AMF0 §2.10 [ecma-array-layout]."""
    (array,) = amf0.decode(bytes.fromhex("08 0000000f 0001 61 05 000009"))
    assert array == EcmaArray(a=None) and array.announced == 15
    assert amf0.encode(array) == bytes.fromhex("08 0000000f 0001 61 05 000009")
    assert EcmaArray(announced=1).announced is None

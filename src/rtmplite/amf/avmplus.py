"""Decides which values AMF0 passes on to AMF3.

Implements AMF0 §3.1, and AMF0 §2.1 and AMF3 §3.1 for what each version has.  An outermost value is
passed on whole if any part of it needs AMF3, so that references stay in one table and integers stay
integers.  If another part needs AMF0, only the parts that need AMF3 are passed on.
"""

from typing import Final

from rtmplite.amf.amf3_writer import INTEGERS
from rtmplite.amf.values import (
    Array,
    Date,
    Dictionary,
    EcmaArray,
    Externalizable,
    Traits,
    TypedObject,
    Unsupported,
    Value,
    Vector,
    Xml,
)

_LONGEST_NAME: Final = 0xFFFF  # in bytes: AMF0 §2.5
_IN_BOTH: Final = frozenset({str, float, bool, type(None)})  # looked up first, being the most


def hands_over(value: Value, prefer: bool) -> bool:
    """Whether a value goes behind the switch whole, by choice with `prefer`: AMF0 §3.1."""
    if type(value) in _IN_BOTH:
        return False
    if not isinstance(value, dict | list):
        return only_amf3_has(value, prefer)
    found, seen, waiting = prefer, {id(value)}, [value]
    while waiting:
        inner = waiting.pop()
        for each in inner.values() if isinstance(inner, dict) else inner:
            if type(each) in _IN_BOTH:
                continue
            if isinstance(each, dict | list):
                if id(each) not in seen:
                    seen.add(id(each))
                    waiting.append(each)
            elif _only_amf0_has(each):
                return False
            elif only_amf3_has(each):
                found = True
        if _only_amf0_has(inner):
            return False
        found = found or only_amf3_has(inner)
    return found


def only_amf3_has(value: Value, prefer: bool = False) -> bool:
    """Tell whether AMF0 lacks the type of `value`, without regard to its members: AMF0 §3.1.

    With `prefer`, an integer is for AMF3 too, as AMF0 only has doubles (AMF0 §2.2).
    """
    match value:
        case bytes() | Array() | Dictionary() | Externalizable() | Vector() | Xml():
            return True
        case TypedObject() if value.traits != Traits(value.class_name):
            return True
        case TypedObject() if _long(value.class_name):
            return True
        case dict():
            return max(map(len, value), default=0) > _LONGEST_NAME // 4 and any(map(_long, value))
        case bool():
            return False
        case int():
            return prefer and value in INTEGERS
        case _:
            return False


def _only_amf0_has(value: Value) -> bool:
    """Whether AMF3 lacks the type, or reads it back as another: AMF3 §2.1."""
    match value:
        case Unsupported():
            return True
        case Date():
            return value.timezone != 0
        case EcmaArray():
            return not value or "" in value
        case TypedObject():
            return value.traits == Traits() or ("" in value and "" not in value.traits.sealed)
        case dict():
            return "" in value
        case _:
            return False


def _long(name: str) -> bool:
    return len(name.encode("utf-8", "replace")) > _LONGEST_NAME

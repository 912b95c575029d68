"""The corpus's AMF: its manifests, and comparison of our values with its decoded files."""

import json
import math

from support.corpus_lines import CORPUS

from rtmplite.amf.values import (
    UNDEFINED,
    Array,
    Dictionary,
    EcmaArray,
    Vector,
    VectorKind,
    Xml,
    XmlDocument,
)


def manifest(name, key):
    """The lines of a manifest, or one line that the `corpus` fixture will explain."""
    path = CORPUS / name
    return json.loads(path.read_text())[key] if path.is_file() else [{}]


def stored_lines(version):
    """The lines for shared objects of one version of AMF, as the files themselves say."""
    lines = manifest("amf/sol/manifest.json", "files")
    return [line for line in lines if not line or _version(line["file"]) == version]


def _version(file):
    raw = (CORPUS / "amf/sol" / file).read_bytes()
    return raw[18 + int.from_bytes(raw[16:18], "big") + 3]


def tells(value, told):
    """Whether `value` equals that of flash-lso, types included; references are not followed."""
    if told in ("Null", "Undefined"):
        return value is (None if told == "Null" else UNDEFINED)
    ((kind, content),) = told.items()
    match kind, content:
        case "Bool" | "Integer" | "String", _:
            return type(value) is type(content) and value == content
        case "Number", None:
            return math.isnan(value) or math.isinf(value)
        case "Number", _:
            return type(value) is float and value == content
        case "Date", [ms, zone]:
            return value.timezone == (zone or 0) and ms in (None, value.ms)
        case "XML", [text, newer]:
            return value == (Xml(text) if newer else XmlDocument(text))
        case "Object", {"data": {"elements": elements, "class_definition": kind}}:
            return _class(value, kind) and _members(value, elements)
        case "StrictArray", [_, items]:
            return type(value) is list and _items(value, items)
        case "ECMAArray", [_, dense, elements, _]:
            return _array(value, dense, elements)
        case "VectorInt" | "VectorUInt" | "VectorDouble", [items, fixed]:
            return value == Vector(VectorKind[kind.removeprefix("Vector").upper()], items, fixed)
        case "VectorObject", [_, items, name, fixed]:
            told = VectorKind.OBJECT, name, fixed
            return (value.kind, value.class_name, value.fixed) == told and _items(
                value.items, items
            )
        case "Dictionary", [_, pairs, weak]:
            flat = [each for pair in value.entries for each in pair]
            return (type(value), value.weak) == (Dictionary, weak) and _items(
                flat, [each for pair in pairs for each in pair]
            )
        case _:
            return kind in ("Amf3ObjectReference", "Reference")


def _class(value, definition):
    if definition is None or (not definition["name"] and not definition["static_properties"]):
        return type(value) is dict
    traits = value.traits
    return traits.class_name == definition["name"] and (
        list(traits.sealed) == definition["static_properties"]
    )


def _members(value, elements):
    return _items(value.values(), [each["value"] for each in elements]) and list(value) == [
        each["name"] for each in elements
    ]


def _array(value, dense, elements):
    match value:
        case Array():
            return _items(value.dense, dense) and _members(value.associative, elements)
        case EcmaArray():
            return not dense and _members(value, elements)
        case _:
            return type(value) is list and not elements and _items(value, dense)


def _items(values, told):
    return len(values) == len(told) and all(map(tells, values, told))

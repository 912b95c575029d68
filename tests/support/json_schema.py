"""Judges values by the words of JSON Schema that our schemas use, and by no others."""

import re

TYPES = {
    "string": str,
    "boolean": bool,
    "array": list,
    "object": dict,
    "integer": int,
    "number": int | float,
}
TOLD = {"$schema", "title", "description", "default"}  # which judge nothing
WORDS = TOLD | {
    *("type", "enum", "anyOf", "pattern", "minLength", "items"),
    *("minimum", "maximum", "exclusiveMaximum"),
    *("properties", "required", "additionalProperties"),
}


def accepts(schema, value):
    """Whether a schema accepts a value."""
    assert schema.keys() <= WORDS, schema.keys() - WORDS
    if "type" in schema and not _is_a(schema["type"], value):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if "anyOf" in schema and not any(accepts(each, value) for each in schema["anyOf"]):
        return False
    if isinstance(value, str):
        long = len(value) >= schema.get("minLength", 0)
        return long and bool(re.search(schema.get("pattern", ""), value))
    if isinstance(value, list):
        return all(accepts(schema.get("items", {}), each) for each in value)
    return _accepts_members(schema, value) if isinstance(value, dict) else _is_within(schema, value)


def _is_a(name, value):
    return isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def _is_within(schema, value):
    low, high = schema.get("minimum", value), schema.get("maximum", value)
    return low <= value <= high and value < schema.get("exclusiveMaximum", value + 1)


def _accepts_members(schema, value):
    known = schema.get("properties", {})
    if not value.keys() <= known.keys() and not schema.get("additionalProperties", True):
        return False
    return value.keys() >= set(schema.get("required", ())) and all(
        accepts(known.get(name, {}), each) for name, each in value.items()
    )

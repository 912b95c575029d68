"""Answers the oracle's questions by Py3AMF: oracle compare amf0 -- python py3amf_reader.py

Dates and XML, of which Py3AMF makes objects of Python's that hold less, are skipped.
"""

import json
import struct
import sys

import pyamf


def written(value, ids):
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | float):
        return {"type": "double", "bits": struct.pack(">d", value).hex()}
    if value is pyamf.Undefined:
        return {"type": "undefined"}
    if id(value) in ids:
        return {"type": "reference", "id": ids[id(value)]}
    if not isinstance(value, list | dict):
        raise NotImplementedError(type(value).__name__)
    head = {"id": ids.setdefault(id(value), len(ids) + 1)}
    if isinstance(value, list):
        return head | {"type": "strict-array", "items": [written(each, ids) for each in value]}
    members = [[name, written(each, ids)] for name, each in value.items()]
    if isinstance(value, pyamf.TypedObject):
        return head | {"type": "typed-object", "class": value.alias.alias, "members": members}
    kind = "ecma-array" if isinstance(value, pyamf.MixedArray) else "object"
    return head | {"type": kind, "members": members}


for line in sys.stdin:
    try:
        values, ids = list(pyamf.decode(bytes.fromhex(line[len("decode ") :]), encoding=0)), {}
        print("value", json.dumps([written(value, ids) for value in values]), flush=True)
    except NotImplementedError as reason:
        print("skip", reason, flush=True)
    except Exception as error:
        print("error", repr(error), flush=True)

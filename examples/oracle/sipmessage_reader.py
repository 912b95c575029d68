"""Answers the oracle's questions by sipmessage: oracle compare sip -- python sipmessage_reader.py

It keeps the lines of headers by name, so their order is left out, as are URIs of other schemes.
"""

import json
import sys

import sipmessage


def uri(read):
    if read.scheme == "tel":
        return {"scheme": "tel", "user": read.user, "params": list(read.parameters.items())}
    value = {"scheme": read.scheme, "user": read.user, "password": read.password}
    value |= {"host": read.host.strip("[]"), "port": read.port}
    return value | {"params": list(read.parameters.items())}


def params(read):
    return [[name.lower(), value and unquoted(value)] for name, value in read.items()]


def unquoted(value):
    """Take off the quotes, which sipmessage leaves to its users."""
    if not value.startswith('"'):
        return value
    letters = iter(value[1:-1])
    return "".join(next(letters, "") if each == "\\" else each for each in letters)


def address(read):
    return {"display": read.name, "uri": uri(read.uri), "params": params(read.parameters)}


def via(read):
    head = {"transport": read.transport, "host": read.host.strip("[]"), "port": read.port}
    return head | {"params": params(read.parameters)}


def decode(data):
    read = sipmessage.Message.parse(data)
    if isinstance(read, sipmessage.Request):
        value = {"type": "request", "method": read.method, "uri": uri(read.uri)}
    else:
        value = {"type": "response", "status": read.code, "reason": read.phrase}
    return value | {
        "via": [via(each) for each in read.via],
        "from": address(read.from_address),
        "to": address(read.to_address),
        "call_id": read.call_id,
        "cseq": {"number": read.cseq.sequence, "method": read.cseq.method},
        "contact": [address(each) for each in read.contact],
        "route": [address(each) for each in read.route],
        "record_route": [address(each) for each in read.record_route],
        "max_forwards": read.max_forwards,
        "body": read.body.hex(),
    }


for line in sys.stdin:
    try:
        print("value", json.dumps(decode(bytes.fromhex(line[len("decode ") :]))), flush=True)
    except (ValueError, KeyError) as error:  # a KeyError is a header that is missing
        print("error", repr(error), flush=True)

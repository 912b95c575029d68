"""The branches by plain HTTP in the words of OpenAPI 3.1, made from one table.

Own design: the table says which methods a resource has, and the document, the manual and the tests
follow it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

Schema = Mapping[str, Any]

_TEXT: Final[Schema] = {"type": "string"}
_FLAG: Final[Schema] = {"type": "boolean"}
_ANY: Final[Schema] = {"type": "object"}
_PLACE: Final[Schema] = {
    "type": "object",
    "properties": {
        "from": {**_TEXT, "description": "A SIP or tel address, or the name of a stream of call."},
        "to": {**_TEXT, "description": "The SIP or tel address to call."},
    },
    "required": ["from", "to"],
}
_CHANGE: Final[Schema] = {"type": "object", "properties": {"held": _FLAG, "muted": _FLAG}}
_LEVEL: Final[Schema] = {
    "type": "object",
    "properties": {"log_level": {"enum": ["debug", "info", "warning", "error"]}},
}
_MUTE: Final[Schema] = {"type": "object", "properties": {"muted": _FLAG}}
_OF_CALL: Final[Schema] = {"type": "object", "properties": {"call": _TEXT}, "required": ["call"]}
_OF_STREAM: Final[Schema] = {
    "type": "object",
    "properties": {
        "stream": {**_TEXT, "description": "A stream that is published, as APP/NAME."},
        "call": {**_TEXT, "description": "Or a call: that of both its sides, or of the phone."},
    },
    "minProperties": 1,
    "maxProperties": 1,
}
_PUSH: Final[Schema] = {
    "type": "object",
    "properties": {
        **_OF_STREAM["properties"],
        "url": {**_TEXT, "description": "rtmp://HOST[:PORT]/APP[/STREAM], or rtmps."},
    },
    "required": ["url"],
    "minProperties": 2,
    "maxProperties": 2,
}
_SAY: Final[Schema] = {
    "type": "object",
    "properties": {"digits": _TEXT, "message": _TEXT, "transfer": _TEXT},
    "minProperties": 1,
    "maxProperties": 1,
}


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of a resource: what it does, and what it takes if it takes something."""

    method: str
    summary: str
    takes: Schema | None = None


_LIST: Final = Operation("GET", "Read the branch; `?view=children` has the names below it.")
_READ: Final = Operation("GET", "Read one.")
# A line for each resource: its branch, its path below the branch, and its methods.
OPERATIONS: Final[Mapping[tuple[str, str], tuple[Operation, ...]]] = {
    ("call", ""): (
        _LIST,
        Operation("POST", "Place a call of `from` to `to`.", _PLACE),
    ),
    ("call", "/{call}"): (
        _READ,
        Operation("PATCH", "Hold or mute, or go on.", _CHANGE),
        Operation("PUT", "Hold or mute, or go on, by the whole state.", _CHANGE),
        Operation("NOTIFY", "Press keys, send a message, or transfer.", _SAY),
        Operation("DELETE", "Hang up."),
    ),
    ("call", "/{call}/ladder"): (Operation("GET", "Read the messages of a call, in order."),),
    ("call", "/{call}/quality"): (Operation("GET", "Read its quality over time."),),
    ("call", "/{call}/advice"): (Operation("GET", "Read what is wrong, and what to do."),),
    ("call", "/{call}/log"): (Operation("GET", "Read its lines of the log."),),
    ("login", ""): (_LIST,),
    ("login", "/{user}"): (
        _READ,
        Operation("NOTIFY", "Send an event to who is subscribed.", _ANY),
        Operation("DELETE", "Log out a page."),
    ),
    ("stream", ""): (_LIST,),
    ("stream", "/{app}/{name}"): (_READ, Operation("DELETE", "Disconnect the publisher.")),
    ("room", ""): (_LIST,),
    ("room", "/{room}"): (_READ,),
    ("room", "/{room}/{member}"): (
        _READ,
        Operation("PATCH", "Mute a member, or have it heard again.", _MUTE),
        Operation("DELETE", "Have a member leave."),
    ),
    ("registration", ""): (_LIST,),
    ("registration", "/{registration}"): (_READ, Operation("DELETE", "Forget a registration.")),
    ("trunk", ""): (_LIST,),
    ("trunk", "/{trunk}"): (_READ,),
    ("route", ""): (_LIST,),
    ("route", "/{route}"): (_READ,),
    ("recording", ""): (
        _LIST,
        Operation("POST", "Record a stream, or that of a call.", _OF_STREAM),
    ),
    ("recording", "/{recording}"): (_READ, Operation("DELETE", "End a recording.")),
    ("push", ""): (
        _LIST,
        Operation("POST", "Push a stream, or that of a call, to a server of the list.", _PUSH),
    ),
    ("push", "/{push}"): (_READ, Operation("DELETE", "End a push.")),
    ("mix", ""): (
        _LIST,
        Operation("POST", "Publish both sides of a call as one stream.", _OF_CALL),
    ),
    ("mix", "/{mix}"): (_READ, Operation("DELETE", "End a mix.")),
    ("capture", ""): (_LIST, Operation("POST", "Capture the packets of a call.", _OF_CALL)),
    ("capture", "/{capture}"): (_READ, Operation("DELETE", "End a capture.")),
    ("subscription", ""): (_LIST,),
    ("subscription", "/{subscription}"): (_READ, Operation("DELETE", "End a subscription.")),
    ("gateway", ""): (
        Operation("GET", "Read the figures of the gateway, and the role of the client."),
        Operation("PATCH", "Set the level of the log.", _LEVEL),
    ),
    ("gateway", "/ended"): (Operation("GET", "Read the calls that have ended lately."),),
    ("gateway", "/audit"): (Operation("GET", "Read which client has changed what."),),
}


def document(branches: Collection[str], version: str) -> dict[str, Any]:
    """The document for these branches."""
    paths = {
        f"/tree/{branch}{below}": _path(below, operations)
        for (branch, below), operations in OPERATIONS.items()
        if branch in branches
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "siprtmp", "version": version},
        "paths": paths,
        "components": {
            "securitySchemes": {
                "password": {"type": "http", "scheme": "basic"},
                "token": {"type": "http", "scheme": "bearer"},
            }
        },
        "security": [{}, {"password": []}, {"token": []}],
    }


def _path(below: str, operations: Collection[Operation]) -> dict[str, Any]:
    """A path item; OpenAPI has no word for NOTIFY, which is an extension."""
    item: dict[str, Any] = {
        (f"x-{each.method}" if each.method == "NOTIFY" else each.method).lower(): _said(each)
        for each in operations
    }
    names = [part.strip("{}") for part in below.split("/") if part]
    if names:
        item["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": _TEXT} for name in names
        ]
    return item


def _said(operation: Operation) -> dict[str, Any]:
    said: dict[str, Any] = {
        "summary": operation.summary,
        "responses": {"default": {"description": "What it holds, or the reason of a refusal."}},
    }
    if operation.takes is not None:
        content = {"application/json": {"schema": operation.takes}}
        said["requestBody"] = {"required": True, "content": content}
    return said

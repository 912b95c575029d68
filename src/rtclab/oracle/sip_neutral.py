"""SIP messages as neutral JSON: the start line, typed headers, and all header lines in order.

Own design: a form that any parser of RFC 3261 §7 and §20 can give.  Names of headers and parameters
are in lower case, and values of parameters without their quotes: neither says anything.
"""

from typing import Any, Final

from p2psip.sip.address import Address
from p2psip.sip.grammar import unquote
from p2psip.sip.headers import Headers
from p2psip.sip.message import (
    Message,
    Request,
    Response,
    check_request,
    check_response,
    parse_message,
)
from p2psip.sip.params import Params
from p2psip.sip.uri import Uri
from p2psip.sip.via import Via
from rtclab.oracle.neutral import (
    Json,
    NeutralError,
    array,
    integer,
    octets,
    record,
    string,
    text,
)

SHAPE: Final = (
    "value: request|response",
    "request: type text, method text, uri uri, and the fields of every message",
    "response: type text, status number, reason text, and the fields of every message",
    "every message: via [via], from address, to address, call_id text, cseq cseq, "
    "contact [address], route [address], record_route [address], max_forwards number|null, "
    "header_lines [[text, text]], body octets",
    "via: transport text, host text, port number|null, params [[text, text|null]]",
    "address: display text, uri uri, params [[text, text|null]]",
    "cseq: number number, method text",
    "uri: scheme text, user text|null, password text|null, host text, port number|null, "
    "params [[text, text|null]], headers [[text, text]], opaque text",
)

_MEMBERS: Final = (
    *("type", "method", "uri", "status", "reason", "via", "from", "to", "call_id", "cseq"),
    *("contact", "route", "record_route", "max_forwards", "header_lines", "body"),
)


def decode(data: bytes) -> Message:
    """Read a message, and every header that an element relies on: RFC 3261 §7, §20."""
    message = parse_message(data)
    if isinstance(message, Request):
        check_request(message)
    else:
        check_response(message)
    _ = message.routes, message.max_forwards
    return message


def write(message: Message) -> Json:
    """Write a message; `header_lines` has all of them, and the typed ones stand beside it."""
    start: dict[str, Json]
    if isinstance(message, Request):
        start = {"type": "request", "method": message.method, "uri": _uri(message.uri)}
    else:
        reason = text(message.reason)
        start = {"type": "response", "status": message.status, "reason": reason}
    return start | {
        "via": list(map(_via, message.vias)),
        "from": _address(message.from_),
        "to": _address(message.to),
        "call_id": text(message.call_id),
        "cseq": {"number": message.cseq.number, "method": message.cseq.method},
        "contact": list(map(_address, message.contacts)),
        "route": list(map(_address, message.routes)),
        "record_route": list(map(_address, message.record_routes)),
        "max_forwards": message.max_forwards,
        "header_lines": [[name.lower(), text(value)] for name, value in message.headers],
        "body": message.body.hex(),
    }


def read(written: Json) -> Message:
    """Read a message from its start line, `header_lines` and `body`.  Raises NeutralError."""
    given = record(written, "value")
    if unknown := [name for name in given if name not in _MEMBERS]:
        raise NeutralError(f"value: unknown {', '.join(unknown)}")
    try:
        headers, body = _headers(given["header_lines"]), octets(given["body"], "body")
        if given["type"] == "response":
            status = integer(given["status"], "status")
            return Response(status, string(given["reason"], "reason"), headers, body)
        method = string(given["method"], "method")
        return Request(method, _read_uri(record(given["uri"], "uri")), headers, body)
    except KeyError as error:
        raise NeutralError(f"value: missing {error}") from None


def _headers(written: Json) -> Headers:
    return Headers(_pairs(written, "header_lines"))


def _pairs(written: Json, where: str) -> list[tuple[str, Any]]:
    """Read pairs of a name and a value, which may be null."""
    found = []
    for pair in array(written, where):
        if len(array(pair, where)) != 2:
            raise NeutralError(f"{where}: a name and a value are a pair")
        name, value = pair
        found.append((string(name, where), None if value is None else string(value, where)))
    return found


def _params(params: Params) -> Json:
    return [
        [text(name.lower()), None if value is None else text(unquote(value))]
        for name, value in params
    ]


def _uri(uri: Uri) -> dict[str, Any]:
    return {
        "scheme": uri.scheme,
        "user": None if uri.user is None else text(uri.user),
        "password": None if uri.password is None else text(uri.password),
        "host": uri.host,
        "port": uri.port,
        "params": [
            [text(name), None if value is None else text(value)] for name, value in uri.params
        ],
        "headers": [[text(name), text(value)] for name, value in uri.headers],
        "opaque": text(uri.opaque),
    }


def _address(address: Address) -> dict[str, Any]:
    params = _params(address.params)
    return {"display": text(address.display), "uri": _uri(address.uri), "params": params}


def _via(via: Via) -> dict[str, Any]:
    return {
        "transport": via.transport,
        "host": via.host,
        "port": via.port,
        "params": _params(via.params),
    }


def _read_uri(given: dict[str, Any]) -> Uri:
    user, password = (
        None if given.get(name) is None else string(given[name], name)
        for name in ("user", "password")
    )
    port = given.get("port")
    return Uri(
        string(given["scheme"], "scheme"),
        user,
        password,
        string(given.get("host", ""), "host"),
        None if port is None else integer(port, "port"),
        tuple(_pairs(given.get("params", []), "params")),
        tuple(_pairs(given.get("headers", []), "headers")),
        string(given.get("opaque", ""), "opaque"),
    )

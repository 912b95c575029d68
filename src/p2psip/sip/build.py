"""Build messages from messages: responses, the ACK of a failure, CANCEL.

Implements RFC 3261 §8.2.6, §9.1, §17.1.1.3 and §21.
"""

from collections.abc import Iterable
from typing import Final

from p2psip.errors import LocalError, RemoteError
from p2psip.sip.headers import Headers
from p2psip.sip.message import Request, Response

MAX_FORWARDS: Final = 70  # hops: §8.1.1.6 [seventy-hops]

# Source: RFC 3261 §21 [no-other-http-codes], and the RFC that registered each other code.
REASONS: Final[dict[int, str]] = {
    100: "Trying",
    180: "Ringing",
    181: "Call Is Being Forwarded",
    182: "Queued",
    183: "Session Progress",
    199: "Early Dialog Terminated",
    200: "OK",
    202: "Accepted",
    204: "No Notification",
    300: "Multiple Choices",
    301: "Moved Permanently",
    302: "Moved Temporarily",
    305: "Use Proxy",
    380: "Alternative Service",
    400: "Bad Request",
    401: "Unauthorized",
    402: "Payment Required",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    406: "Not Acceptable",
    407: "Proxy Authentication Required",
    408: "Request Timeout",
    410: "Gone",
    412: "Conditional Request Failed",
    413: "Request Entity Too Large",
    414: "Request-URI Too Long",
    415: "Unsupported Media Type",
    416: "Unsupported URI Scheme",
    417: "Unknown Resource-Priority",
    420: "Bad Extension",
    421: "Extension Required",
    422: "Session Interval Too Small",
    423: "Interval Too Brief",
    428: "Use Identity Header",
    429: "Provide Referrer Identity",
    430: "Flow Failed",
    433: "Anonymity Disallowed",
    436: "Bad Identity-Info",
    437: "Unsupported Certificate",
    438: "Invalid Identity Header",
    439: "First Hop Lacks Outbound Support",
    440: "Max-Breadth Exceeded",
    469: "Bad Info Package",
    470: "Consent Needed",
    480: "Temporarily Unavailable",
    481: "Call/Transaction Does Not Exist",
    482: "Loop Detected",
    483: "Too Many Hops",
    484: "Address Incomplete",
    485: "Ambiguous",
    486: "Busy Here",
    487: "Request Terminated",
    488: "Not Acceptable Here",
    489: "Bad Event",
    491: "Request Pending",
    493: "Undecipherable",
    494: "Security Agreement Required",
    500: "Server Internal Error",
    501: "Not Implemented",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Server Time-out",
    505: "Version Not Supported",
    513: "Message Too Large",
    555: "Push Notification Service Not Supported",
    580: "Precondition Failure",
    600: "Busy Everywhere",
    603: "Decline",
    604: "Does Not Exist Anywhere",
    606: "Not Acceptable",
    607: "Unwanted",
}

_FORM_DIALOGS: Final = frozenset({"INVITE", "SUBSCRIBE", "NOTIFY", "REFER"})


def response_to(
    request: Request,
    status: int,
    reason: str | None = None,
    *,
    to_tag: str | None = None,
    headers: Iterable[tuple[str, object]] = (),
    body: bytes = b"",
    content_type: str | None = None,
) -> Response:
    """Make the response to a request, with the headers that it copies: §8.2.6.2.

    `to_tag` goes into a To that has no tag; `headers` follow what is copied.  Works on
    what `salvage` returns: headers that are missing or malformed are copied as they are.

    Not done: RFC 3261 §8.2.6.1 [delay-is-told] [delay-in-seconds]: our own 100 comes within a fifth
    of a second, and no client is known that adapts its timers to a Timestamp.
    """
    # §8.2.6.2 [from-comes-back] [call-id-comes-back] [cseq-comes-back]
    # §8.2.6.2 [vias-come-back] [vias-in-order] [to-comes-back]
    # §12.1.1 [record-routes-in-order]; §20 [response-has-the-mandatory]
    names = _copied(request.method, status)
    fields = Headers(tuple([pair for pair in request.headers.fields if pair[0] in names]), {})
    if to_tag is not None and (to := fields.get("To")) is not None and _has_no_tag(request):
        # §8.2.6.2 [to-uri-comes-back] [to-gets-a-tag]
        fields = fields.with_("To", f"{to};tag={to_tag}")
    if content_type is not None:
        # §7.4.1 [type-of-the-body], §20.15 [type-with-a-body]
        fields = fields.append("Content-Type", content_type)
    for name, value in headers:
        fields = fields.append(name, value)
    # §7.2 [other-reason-phrases]
    return Response(status, REASONS.get(status, "") if reason is None else reason, fields, body)


def ack_for(invite: Request, response: Response) -> Request:
    """Make the ACK that the transaction sends for a final response other than 2xx (§17.1.1.3).

    Raises LocalError for any other response: the ACK of a 2xx is the dialog's (§13.2.2.4).
    """
    if response.status < 300:
        raise LocalError(f"a {response.status} is not acknowledged by the transaction")
    ack = _same_hop(invite, "ACK")
    return ack.replace(headers=ack.headers.with_("To", *response.headers.values("To")))


def cancel_for(invite: Request) -> Request:
    """Make the CANCEL of a request that is still pending (§9.1)."""
    return _same_hop(invite, "CANCEL")


def _same_hop(invite: Request, method: str) -> Request:
    """A request that follows `invite` to its next hop, in its transaction's name."""
    # RFC 5393 §4.2.1 [follow-ups-have-its-branch]; RFC 3261 §9.1 [one-via]
    fields: list[tuple[str, object]] = [("Via", invite.via), ("Max-Forwards", MAX_FORWARDS)]
    # §9.1 [cancel-copies] [same-route] [requires-nothing]
    # §8.2.2.3 [none-in-what-follows]
    fields += [pair for pair in invite.headers if pair[0] in ("Route", "From", "To", "Call-ID")]
    # §9.1 [cancel-copies] [cseq-says-cancel]
    fields.append(("CSeq", f"{invite.cseq.number} {method}"))
    return Request(method, invite.uri, Headers(fields))  # §9.1 [cancel-copies]


def _copied(method: str, status: int) -> frozenset[str]:
    """The names to copy: §8.2.6.2; §8.2.6.1 for a 100; §12.1.1 where a dialog may begin."""
    names = {"Via", "From", "To", "Call-ID", "CSeq"}
    may_begin = method in _FORM_DIALOGS  # which a REGISTER may not: §10.3 [no-record-route]
    if status == 100:
        names.add("Timestamp")  # §8.2.6.1 [timestamp-comes-back]
    elif status < 300 and may_begin:
        names.add("Record-Route")  # §12.1.1 [copies-record-routes]
    return frozenset(names)


def _has_no_tag(request: Request) -> bool:
    try:
        return request.to.tag is None
    except RemoteError:
        return False

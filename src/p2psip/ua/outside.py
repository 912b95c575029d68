"""Requests outside of dialogs: MESSAGE, OPTIONS, and those that begin a subscription.

Implements RFC 3261 §8.1.1.
"""

from collections.abc import Callable, Sequence

from p2psip.sip.address import Address
from p2psip.sip.build import MAX_FORWARDS
from p2psip.sip.headers import Headers
from p2psip.sip.message import Request
from p2psip.sip.uri import Uri


def outside_request(
    random: Callable[[int], bytes],
    method: str,
    to: Address,
    from_: Address,
    *,
    route: Sequence[Uri] = (),
    headers: Sequence[tuple[str, object]] = (),
    body: bytes = b"",
    content_type: str = "",
    call_id: str | None = None,
) -> Request:
    """Make a request to `to` with a new Call-ID and From tag (§8.1.1).

    `route` are the proxies to pass; `random(n)` gives n random bytes.
    """
    # RFC 3428 §4 [no-contact]
    fields: list[tuple[str, object]] = [("Route", Address(uri)) for uri in route]
    # §20 [mandatory-are-written]
    fields += [
        ("Max-Forwards", MAX_FORWARDS),
        ("From", from_.with_tag(random(6).hex())),
        ("To", to.replace(params=())),
        ("Call-ID", call_id or random(12).hex()),
        ("CSeq", f"1 {method}"),
        *headers,
    ]
    if body:  # RFC 3428 §4 [plain-text]
        fields.append(("Content-Type", content_type))  # RFC 3261 §20.15 [type-with-a-body]
    # A URI in a header may carry parts that a Request-URI must not (§19.1.1).
    target = to.uri.replace(headers=()).without_params("method")
    return Request(method, target, Headers(fields), body)

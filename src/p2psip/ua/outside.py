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
    Departs from RFC 3261 §19.1.5 [method-is-used] [headers-are-honoured]: URIs come from web pages
    and from strangers, and the program alone decides what is sent to them, and says of itself.
    """
    # A URI in a header may carry parts that a Request-URI and a To must not (§19.1.1).
    # §19.1.5 [params-are-kept] [unknown-are-kept] [method-is-dropped]
    # §19.1.5 [no-dangerous-headers] [no-route] [no-false-claims]
    target = to.uri.replace(headers=()).without_params("method")
    # RFC 3428 §4 [no-contact]
    fields: list[tuple[str, object]] = [("Route", Address(uri)) for uri in route]
    fields += [  # §19.3 [tags-are-random]
        ("Max-Forwards", MAX_FORWARDS),
        ("From", from_.with_tag(random(6).hex())),
        ("To", to.replace(uri=target, params=())),
        ("Call-ID", call_id or random(12).hex()),
        ("CSeq", f"1 {method}"),
        *headers,
    ]
    if body:  # RFC 3428 §4 [plain-text]
        fields.append(("Content-Type", content_type))
    return Request(method, target, Headers(fields), body)

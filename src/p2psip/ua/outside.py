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
    # §8.1.1.1 [target-is-the-to]
    target = to.uri.replace(headers=()).without_params("method")
    # RFC 3428 §4 [no-contact]
    # RFC 3261 §8.1.1.1 [proxy-as-a-route] [given-route], §8.1.2 [route-for-a-proxy]
    fields: list[tuple[str, object]] = [("Route", Address(uri)) for uri in route]
    # RFC 3261 §8.1.1 [six-fields], §7.3.1 [proxy-fields-on-top], §19.3 [tags-are-random]
    # §20 [mandatory-are-written]
    fields += [
        ("Max-Forwards", MAX_FORWARDS),  # §8.1.1.6 [says-how-far] [seventy-hops]
        ("From", from_.with_tag(random(6).hex())),  # §8.1.1.3 [new-tag]
        ("To", to.replace(uri=target, params=())),  # §8.1.1.2 [no-tag-in-the-first-to]
        # §8.1.1.4 [unique-name] [random-name], RFC 3323 §4.1 [random-call-id]
        ("Call-ID", call_id or random(12).hex()),
        ("CSeq", f"1 {method}"),  # §8.1.1.5 [method-in-cseq] [small-numbers]
        *headers,
    ]
    if body:  # RFC 3428 §4 [plain-text], §9 [has-a-body]
        fields.append(("Content-Type", content_type))  # RFC 3261 §20.15 [type-with-a-body]
    return Request(method, target, Headers(fields), body)

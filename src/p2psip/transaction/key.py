"""Keys that match messages to transactions.

Implements RFC 3261 §17.1.3 and §17.2.3.
"""

from typing import Final

from p2psip.sip.message import Request, Response
from p2psip.sip.via import Via

COOKIE: Final = "z9hG4bK"  # how the branch of an RFC 3261 client begins: §17.2.3 [magic-cookie]
DEFAULT_PORTS: Final = {"TLS": 5061, "WSS": 443, "WS": 80}  # any other: 5060 (§18.1.1)

Key = tuple[str | int | None, ...]


def default_port(transport: str) -> int:
    """Return the port that applies where none is written (§18.1.1, §19.1.2)."""
    return DEFAULT_PORTS.get(transport, 5060)


def new_branch(token: str) -> str:
    """Make a branch that `token` makes unique, as §8.1.1.7 wants it."""
    return COOKIE + token  # §8.1.1.7 [begins-with-the-cookie]; §20.42 [branch-has-the-cookie]


def client_key(message: Request | Response) -> Key:
    """Return the key of a client transaction, from its request or from a response to it.

    The two are one transaction if branch and method agree (§17.1.3).
    """
    return message.via.branch, message.cseq.method  # §17.1.3 [match-branch] [match-method]


def server_key(request: Request, method: str = "") -> Key:
    """Return the key of a server transaction, from its request, a repetition or its ACK (§17.2.3).

    `method` stands in for the request's own: a CANCEL looks for its INVITE by it (§9.2).
    """
    method = method or request.method
    if method == "ACK":
        method = "INVITE"
    if not is_modern(request):
        return _old_key(request, method, request.to.tag)
    via = request.via
    # §17.2.3 [match-branch] [match-sent-by] [match-method]
    return via.branch, *sent_by(via), method


def ack_key(request: Request, response: Response) -> Key:
    """Return the key under which the ACK of an RFC 2543 client looks for its INVITE.

    Such an ACK shows no branch of use, but the To tag of our response (§17.2.3).
    """
    return _old_key(request, "INVITE", response.to.tag)  # §17.2.3 [2543-ack]


def is_modern(request: Request) -> bool:
    """Tell whether the branch is unique, as from RFC 3261 clients (§17.2.3)."""
    return (request.via.branch or "").startswith(COOKIE)  # §17.2.3 [magic-cookie]


def sent_by(via: Via) -> tuple[str, int]:
    """Return the host and port where the client wants responses (§18.1.1)."""
    return via.host, via.port or default_port(via.transport)


def _old_key(request: Request, method: str, to_tag: str | None) -> Key:
    """Return the fields that RFC 2543 compares (§17.2.3)."""
    # §17.2.3 [2543-invite] [2543-other]
    return (
        str(request.uri),
        to_tag,
        request.from_.tag,
        request.call_id,
        request.cseq.number,
        str(request.via),
        method,
    )

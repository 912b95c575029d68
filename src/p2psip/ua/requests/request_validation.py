"""The checks of a user agent on every request, before its method is looked at.

Implements RFC 3261 §8.2.
"""

from collections.abc import Collection, Sequence
from typing import Final, NoReturn

from p2psip.errors import RemoteError
from p2psip.sip.build import REASONS
from p2psip.sip.headers import Headers
from p2psip.sip.message import METHODS, Request, Response
from p2psip.sip.multipart import Part, is_multipart, leaves
from p2psip.sip.values import Term, Warn

SDP: Final = "application/sdp"
ACCEPTED: Final = f"{SDP}, multipart/mixed, multipart/alternative"
# §13.1 [calls-end-too]
CALL_METHODS: Final = ("INVITE", "ACK", "CANCEL", "BYE", "OPTIONS", "INFO", "UPDATE", "PRACK")
ALLOW: Final = ", ".join(CALL_METHODS)


class RefusalError(RemoteError):
    """A refusal with headers (§8.2); `cause` is for our own log, and not for the peer."""

    def __init__(
        self,
        status: int,
        reason: str,
        headers: Sequence[tuple[str, object]] = (),
        *,
        cause: str | None = None,
    ) -> None:
        super().__init__(reason, status)
        self.headers, self.cause = headers, cause


def refuse_extensions(request: Request, known: Collection[str] = ()) -> None:
    """Refuse with 420 a request that needs extensions other than those `known` (§8.2.2.3)."""
    # §20.32 [require-is-heeded]
    required = [each for each in request.headers.all("Require") if each.lower() not in known]
    if required:
        # §8.2.2.3 [420-for-unknown] [unknown-are-named]
        raise RefusalError(420, "Bad Extension", [("Unsupported", ", ".join(required))])


def refuse_method(request: Request, allow: str = ALLOW) -> NoReturn:
    """Refuse a method: §8.2.1, with 405, or 501 for one of which nobody here has heard."""
    if request.method not in METHODS:
        raise RefusalError(501, "Not Implemented", [("Allow", allow)])
    # §8.2.1 [405-for-others] [405-says-allow]
    raise RefusalError(405, "Method Not Allowed", [("Allow", allow)])


def refuse_accept(request: Request, content_type: str = SDP) -> None:
    """Refuse a request whose sender does not take bodies of our type back: §21.4.7.

    For an INVITE that is a session description, for a SUBSCRIBE what its package has (RFC 6665
    §3.2.1).  Raises RefusalError with 406.  An empty Accept would ask for no body at all, and is
    taken for none, since phones write empty headers.
    """
    ranges = [Term.parse(each) for each in request.headers.all("Accept")]
    # §20.1 [sdp-is-the-default]
    if ranges and not any(each.covers(content_type) for each in ranges):
        warning = Warn(399, "p2psip", f"Nothing but {content_type} can be sent")
        raise RefusalError(406, "Not Acceptable", [("Warning", warning)])


def warnings(status: int, reason: str = "") -> list[tuple[str, object]]:
    """The Warning of a 488, by which the other side sees what was refused (§13.3.1.3, §14.2).

    A `reason` of its own says it better than the usual text does.
    """
    if status != 488:
        return []
    is_usual = reason in ("", REASONS[488])
    text = "Nothing in the description can be used" if is_usual else reason
    # §13.3.1.3 [warning-says-why], §14.2 [warning-says-why]
    return [("Warning", Warn(399, "p2psip", text))]


# Source: RFC 3325 §9.1 and §6; Remote-Party-ID is what the field had before.
IDENTITY: Final = ("P-Asserted-Identity", "P-Preferred-Identity", "Remote-Party-ID")


def without_identity(headers: Headers, changes: dict[str, tuple[object, ...]]) -> Headers:
    """The headers of a message to forward, without the identities that its sender asserts.

    `changes` are others, as `Headers.with_all` has them, so that the lines are copied once.

    RFC 3325 §5: an assertion goes no further unless its sender is trusted.  Own design: no sender
    is trusted, not even a user of ours, since the password proves the From alone.

    Departs from RFC 3325 §7 [none-keeps-it] [kept-where-possible]: for the same reason there is
    none to keep, whatever Privacy says.
    """
    # RFC 3325 §4 [kept-private], §5 [strangers-assert-nothing], §6 [no-hint-goes-on]
    # RFC 3325 §7 [private-is-removed]
    return headers.with_all({**dict.fromkeys(IDENTITY, ()), **changes})


def session(message: Request | Response) -> bytes | None:
    """The session description in a message, the first of several parts (§7.4.1, §13.2.1)."""
    try:
        parts = _parts(message)
    except RemoteError:
        return None  # a 2xx is to be acknowledged all the same
    for part in parts:
        # §20.11 [sdp-is-a-session]
        if part.body and part.content_type == SDP and not is_encoded(part.headers):
            return part.body
    return None


def offer_of(request: Request) -> bytes | None:
    """The offer in an INVITE or UPDATE, None when it leaves the offer to us (§13.2.1).

    Raises RefusalError with 415 for a body other than a session description, or a compressed one,
    unless its sender marks it as optional (§8.2.3).

    Departs from RFC 3261 §20.11 [required-unless-said]: beside a session description, a part of
    another type counts as optional unless its sender says otherwise: most are remarks for gateways
    to the telephone network.
    """
    offer = session(request)
    for part in _parts(request):
        handling = _handling(part.headers)
        if not part.body or handling == "optional":
            continue
        # §20.11 [required-unless-said]
        if part.content_type != SDP and (offer is None or handling == "required"):
            # §8.2.3 [415-for-the-body] [415-says-accept]
            raise RefusalError(415, "Unsupported Media Type", [("Accept", ACCEPTED)])
        if part.content_type == SDP and is_encoded(part.headers):  # §20.12 [encoded-is-refused]
            refuse_encoding()
    return offer


def _parts(message: Request | Response) -> Sequence[Part]:
    """The body as one part, or the parts of it (§7.4.1)."""
    content_type = message.headers.get("Content-Type", "")
    if not is_multipart(content_type):
        return [Part(message.headers, message.body)]
    return list(leaves(content_type, message.body))


def refuse_encoding() -> NoReturn:
    """Refuse a body that is compressed (§8.2.3).  Raises RefusalError with 415."""
    # §8.2.3 [415-for-the-body] [415-says-encodings]
    raise RefusalError(415, "Unsupported Media Type", [("Accept-Encoding", "identity")])


def is_encoded(headers: Headers) -> bool:
    """Whether a body is compressed; nothing here can expand it (§20.12)."""
    return headers.get("Content-Encoding", "").strip().lower() not in ("", "identity")


def is_optional(request: Request) -> bool:
    """Whether a receiver that does not understand the body may pass it over (§20.11)."""
    return _handling(request.headers) == "optional"


def _handling(headers: Headers) -> str:
    """What is said of a receiver that does not understand a body, "" if nothing is (§20.11)."""
    text = headers.get("Content-Disposition")
    return (Term.parse(text).param("handling") or "").lower() if text else ""

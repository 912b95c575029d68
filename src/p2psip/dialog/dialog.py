"""A dialog: the state that two user agents keep of each other between requests.

Implements RFC 3261 §12.

    >>> from p2psip.sip.message import parse_message
    >>> invite = parse_message(
    ...     b"INVITE sip:bob@biloxi.com SIP/2.0\\r\\n"
    ...     b"Via: SIP/2.0/UDP pc33.atlanta.com;branch=z9hG4bKnashds8\\r\\n"
    ...     b"From: <sip:alice@atlanta.com>;tag=1928301774\\r\\n"
    ...     b"To: <sip:bob@biloxi.com>\\r\\n"
    ...     b"Contact: <sip:alice@pc33.atlanta.com>\\r\\n"
    ...     b"Record-Route: <sip:p2.com;lr>, <sip:p1.com;lr>\\r\\n"
    ...     b"Call-ID: a84b4c76e66710\\r\\n"
    ...     b"CSeq: 314159 INVITE\\r\\n\\r\\n"
    ... )
    >>> dialog = Dialog.of_server(invite, to_tag="a6c85cf")
    >>> bye = dialog.request("BYE")
    >>> print(bye.method, bye.uri, bye.headers.all("Route"), bye.cseq)
    BYE sip:alice@pc33.atlanta.com ('<sip:p2.com;lr>', '<sip:p1.com;lr>') 1 BYE
    >>> print(bye.from_, bye.to)
    <sip:bob@biloxi.com>;tag=a6c85cf <sip:alice@atlanta.com>;tag=1928301774
"""

from typing import NamedTuple

from p2psip.errors import RemoteError
from p2psip.sip.address import Address
from p2psip.sip.build import MAX_FORWARDS
from p2psip.sip.headers import Headers
from p2psip.sip.message import Request, Response, remote_target
from p2psip.sip.uri import Uri


class DialogId(NamedTuple):
    """The name of a dialog, as one side sees it (§12); a missing tag is empty."""

    call_id: str
    local_tag: str
    remote_tag: str

    @classmethod
    def at_server(cls, request: Request, to_tag: str = "") -> "DialogId":
        """The dialog of a received request (§12); `to_tag` is the one we give to a bare To."""
        # §12.1 [named-by-three-parts]
        return cls(request.call_id, request.to.tag or to_tag, request.from_.tag or "")

    @classmethod
    def at_client(cls, response: Response) -> "DialogId":
        """Return the dialog that a received response belongs to (§12)."""
        # §12.1 [named-by-three-parts]
        return cls(response.call_id, response.from_.tag or "", response.to.tag or "")


class Dialog:
    """The state of one dialog at one side (§12); `target` is where the other wants requests."""

    def __init__(
        self,
        call_id: str,
        local: Address,
        remote: Address,
        target: Uri,
        route_set: tuple[Address, ...],
        *,
        local_cseq: int = 0,
        remote_cseq: int | None = None,
    ) -> None:
        self.call_id, self.local, self.remote = call_id, local, remote
        self.target, self.route_set = target, route_set
        self.local_cseq, self.remote_cseq = local_cseq, remote_cseq
        self.confirmed = False

    @classmethod
    def of_server(cls, request: Request, to_tag: str) -> "Dialog":
        """The dialog that our response to `request` makes (§12.1.1).  RemoteError: no Contact."""
        target = remote_target(request)  # §12.1.1 [target-is-the-contact]
        # §12.1.1 [tag-of-our-to] [local-is-the-to]
        local = request.to if request.to.tag else request.to.with_tag(to_tag)
        # §12.1.1 [call-id-of-the-request] [remote-is-the-from] [tag-of-their-from]
        # §12.1.1 [no-tag-is-empty] [route-set-in-order] [number-of-the-request]
        # §12.1.1 [no-number-of-our-own]
        return cls(
            request.call_id,
            local,
            request.from_,
            target,
            request.record_routes,
            remote_cseq=request.cseq.number,
        )

    @classmethod
    def of_client(cls, request: Request, response: Response) -> "Dialog":
        """Make the dialog that `response` to our `request` establishes (§12.1.2)."""
        # §12.1.2 [call-id-of-the-request] [local-is-the-from] [tag-of-our-from]
        # §12.1.2 [remote-is-the-to]
        # §12.1.2 [tag-of-their-to] [no-tag-is-empty] [route-set-reversed]
        # §12.1.2 [number-of-the-request]
        # §12.1.2 [no-number-of-theirs]
        dialog = cls(
            response.call_id,
            response.from_,
            response.to,
            request.uri,  # of a peer that forgot its Contact
            response.record_routes[::-1],
            local_cseq=request.cseq.number,
        )
        dialog.refresh(response)  # §12.1.2 [target-is-the-contact]
        return dialog

    @property
    def id(self) -> DialogId:
        """The name of this dialog (§12)."""
        # §12.1 [named-by-three-parts]
        return DialogId(self.call_id, self.local.tag or "", self.remote.tag or "")

    def confirm(self, response: Response) -> None:
        """Take the 2xx to our INVITE: the route set is worked out again (§13.2.2.4)."""
        self.confirmed = True  # §13.2.2.4 [confirms-the-dialog]
        self.route_set = response.record_routes[::-1]  # §13.2.2.4 [route-set-again]
        self.refresh(response)

    def refresh(self, message: Request | Response) -> None:
        """Take the new remote target of a target refresh request or its 2xx (§12.2)."""
        if message.contacts and not message.contacts[0].is_star:
            self.target = message.contacts[0].uri

    def check_order(self, request: Request) -> None:
        """Raise RemoteError with 500 unless a request is newer than the last (§12.2.2)."""
        number = request.cseq.number
        # §12.2.2 [gaps-are-fine] [first-number-is-taken]
        if self.remote_cseq is not None and number <= self.remote_cseq:
            raise RemoteError("CSeq Out Of Order", 500)  # §12.2.2 [500-for-older]
        self.remote_cseq = number  # §12.2.2 [number-is-kept] [first-number-is-taken]

    def next_cseq(self) -> int:
        """The number of the next request: one more than the last (§12.2.1.1)."""
        self.local_cseq += 1  # §12.2.1.1 [one-more-each] [numbers-without-gaps] [begins-low]
        return self.local_cseq

    def request(self, method: str, body: bytes = b"", content_type: str = "") -> Request:
        """Make a request to the other side, without Via, Contact and credentials (§12.2.1.1).

        A strict router at the head of the route set is left to the transport layer (§8.1.2).
        """
        return self._build(method, self.next_cseq(), body, content_type)

    def ack(self, cseq: int, body: bytes = b"", content_type: str = "") -> Request:
        """Make the ACK of a 2xx to our INVITE of number `cseq` (§13.2.2.4)."""
        # §13.2.2.4 [number-of-the-invite] [method-is-ack]
        # §8.2.2.3 [ack-asks-no-more]
        return self._build("ACK", cseq, body, content_type)

    def _build(self, method: str, cseq: int, body: bytes, content_type: str) -> Request:
        # §12.2.1.1 [routes-in-order] [no-route-of-nothing]
        fields: list[tuple[str, object]] = [("Route", route) for route in self.route_set]
        # §12.2.1.1 [from-is-the-local] [from-has-our-tag] [to-is-the-remote]
        # §12.2.1.1 [to-has-their-tag]
        # §12.2.1.1 [no-empty-tag] [same-call-id] [number-is-sent]
        # §12.2.1.1 [cseq-names-the-method]
        # §8.1.1 [six-fields], §8.1.1.6 [says-how-far]
        fields += [
            ("Max-Forwards", MAX_FORWARDS),
            ("From", self.local),
            ("To", self.remote),
            ("Call-ID", self.call_id),  # §8.1.1.4 [one-name-per-dialog]
            ("CSeq", f"{cseq} {method}"),  # §8.1.1.5 [method-in-cseq]
        ]
        if body:
            fields.append(("Content-Type", content_type))  # §20.15 [type-with-a-body]
        # §12.2.1.1 [target-is-the-request-uri] [target-behind-a-loose-router]
        return Request(method, self.target, Headers(fields), body)

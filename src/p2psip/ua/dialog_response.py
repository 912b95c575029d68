"""Responses that make or refresh a dialog, and the 2xx of an INVITE until its ACK.

Implements RFC 3261 §12.1.1 and §13.3.1.4.
"""

from collections.abc import Sequence

from p2psip.dialog.acceptance import Acceptance, Do, Todo
from p2psip.sip.address import Address
from p2psip.sip.build import response_to
from p2psip.sip.message import Response
from p2psip.sip.uri import Uri
from p2psip.stack.stack import ServerHandle
from p2psip.ua.requests.extensions import Extensions
from p2psip.ua.requests.request_validation import SDP


def dialog_response(
    server: ServerHandle,
    contact: Uri,
    extensions: Extensions,
    status: int,
    sdp: bytes,
    headers: Sequence[tuple[str, object]] = (),
) -> Response:
    """A response that names our Contact, with a session description if there is one (§12.1.1).

    Departs from RFC 6086 §5.2.3 [no-list-unasked]: the list goes with every such response, as Allow
    and Supported do; a peer that knows no packages ignores it.
    """
    # §12.1.1 [adds-a-contact]; §13.3.1.1 [one-dialog]; §13.3.1.4 [2xx-says-what-we-can]
    # RFC 3311 §4 [reliable-allows-update] [2xx-allows-update], RFC 6086 §5.2.3 [answer-lists]
    fields = [("Contact", Address(contact)), *extensions.headers(), *headers]
    return response_to(
        server.request,
        status,
        to_tag=server.to_tag,
        headers=fields,
        body=sdp,
        content_type=SDP if sdp else None,
    )


class AnsweredInvite:
    """A 2xx that is sent, and repeated until its ACK comes (§13.3.1.4); `t1` is in seconds."""

    def __init__(self, server: ServerHandle, response: Response, now: float, t1: float) -> None:
        self._server, self._response = server, response
        self._acceptance, todo = Acceptance.start(now, t1=t1)
        self._send_if_due(todo, now)

    @property
    def is_waiting(self) -> bool:
        """Whether the ACK has not come (§13.3.1.4)."""
        return not self._acceptance.finished

    @property
    def is_heard(self) -> bool:
        """Whether the caller has shown that it hears us (`ServerHandle`, §13.3.1.4)."""
        return self._server.is_heard

    @property
    def deadline(self) -> float | None:
        """When to call `tick` (§13.3.1.4)."""
        return self._acceptance.deadline

    def on_ack(self, number: int | None, now: float) -> Todo:
        """Take an ACK (§13.3.1.4); one that comes again, or for another INVITE, changes nothing.

        `number` is its CSeq number, None if the peer has shown in another way that it has our 2xx.
        """
        is_ours = number in (None, self._server.request.cseq.number)
        return self._acceptance.acknowledge(now) if is_ours else ()

    def tick(self, now: float) -> Todo:
        """Repeat the 2xx, or give up (§13.3.1.4)."""
        return self._send_if_due(self._acceptance.tick(now), now)

    def _send_if_due(self, todo: Todo, now: float) -> Todo:
        if Do.SEND_2XX in todo:
            self._server.respond(self._response, now)
        return todo

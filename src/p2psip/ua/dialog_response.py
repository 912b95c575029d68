"""Responses that make or refresh a dialog.

Implements RFC 3261 §12.1.1.
"""

from collections.abc import Sequence

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

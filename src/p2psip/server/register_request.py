"""What a REGISTER asks for: contacts to bind or to remove, each with its lifetime.

Implements RFC 3261 §10.3.

Departs from RFC 3261 §10.3 [foreign-is-forwarded]: a REGISTER for another domain is refused with
403, or strangers could try passwords there in our name.
Departs from RFC 3261 §10.3: any of our domains may be in the Request-URI, since phones have one
setting for the server and another one for the user's domain.
"""

from collections.abc import Iterator
from typing import Final

from p2psip.errors import RemoteError
from p2psip.server.location import Binding
from p2psip.sip.address import Address
from p2psip.sip.message import Request
from p2psip.sip.views import seconds
from p2psip.ua.requests.request_validation import RefusalError

DEFAULT_EXPIRES: Final = 3600  # s: §10.3 step 7 leaves it to us, §10.2 names an hour
MIN_EXPIRES: Final = 30  # s, shorter ones are refused with 423
MAX_EXPIRES: Final = 7200  # s, longer ones are shortened
MAX_CONTACT: Final = 1024  # octets of one Contact with all its parameters


def requested_bindings(request: Request) -> list[tuple[Address, int]]:
    """Each Contact with its lifetime, 0 to remove it: §10.3 step 7, RFC 5630 §5.2.  RemoteError."""
    found = list(_requested(request))
    schemes = {contact.uri.scheme for contact, expires in found if expires}
    if "sips" in schemes:
        path = [Address.parse(each) for each in request.headers.all("Path")]
        # RFC 5630 §5.2 [sips-by-sips] [400-for-a-mix]
        if {*schemes, request.uri.scheme, *(each.uri.scheme for each in path)} != {"sips"}:
            raise RemoteError("SIPS Contact Beside A SIP URI")
    return found


def _requested(request: Request) -> Iterator[tuple[Address, int]]:
    if is_clear_all(request):
        return
    for contact in request.contacts:
        if contact.is_star or len(str(contact)) > MAX_CONTACT:
            raise RemoteError("Bad Contact")  # §10.3 [star-alone]
        if contact.uri.scheme not in ("sip", "sips"):
            is_device = contact.instance is not None  # RFC 5627 §5.1 [403-for-other-schemes]
            raise RemoteError("Unsupported URI Scheme", 403 if is_device else 416)
        text = contact.param("expires")
        # §10.3 [contact-expires] [header-expires]
        expires = request.expires if text is None else seconds(text)
        if expires is None:
            expires = DEFAULT_EXPIRES  # §10.3 [default-expires]
        if 0 < expires < MIN_EXPIRES:
            # §10.3 [min-expires]
            raise RefusalError(423, "Interval Too Brief", [("Min-Expires", MIN_EXPIRES)])
        yield contact, min(expires, MAX_EXPIRES)


def is_clear_all(request: Request) -> bool:
    """`Contact: *` alone, with Expires 0: §10.3 step 6."""
    contacts = request.contacts
    return len(contacts) == 1 and contacts[0].is_star and request.expires == 0


def check_order(binding: Binding, request: Request) -> None:
    """Refuse a REGISTER that a later one of the same phone has overtaken: §10.3 step 7."""
    # §10.3 [another-call-id] [higher-cseq]
    if binding.call_id == request.call_id and request.cseq.number <= binding.cseq:
        raise RemoteError("CSeq Out Of Order")  # §10.3 [star-refused] [lower-refused]

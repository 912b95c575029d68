"""The identities of a request: none shown by its sender, or one that a trusted peer asserts.

Implements RFC 3325 §8 and §9.3, and RFC 3323 §4.1.1.3.

    >>> print(ANONYMOUS)
    "Anonymous" <sip:anonymous@anonymous.invalid>
"""

from collections.abc import Container
from typing import Final

from p2psip.errors import RemoteError
from p2psip.sip.address import Address
from p2psip.sip.message import Request
from p2psip.sip.uri import Uri
from p2psip.stack.stack import Flow

# The From of a sender without a name.  RFC 3323 §4.1.1.3 [anonymous-host]
# RFC 3323 §4.1.1.1 [named-anonymous]
# RFC 3261 §8.1.1.3 [anonymous]
# RFC 3261 §20.20 [anonymous-by-name]
ANONYMOUS: Final = Address(Uri("sip", "anonymous", None, "anonymous.invalid"), "Anonymous")
# Asks that no identity be told beyond those who trust each other.  Source: RFC 3325 §9.3
PRIVACY: Final = ("Privacy", "id")

KINDS: Final = {"sip": "URI", "sips": "URI", "tel": "number"}  # of identities: RFC 3325 §9.1


def sender(request: Request, flow: Flow, trusted: Container[str]) -> Address:
    """The sender to judge by: as a trusted address asserts it, else the From (RFC 3325 §8)."""
    return asserted_identity(request, flow, trusted) or request.from_


def asserted_identity(request: Request, flow: Flow, trusted: Container[str]) -> Address | None:
    """The sender as a `trusted` address asserts it, by SIP URI if possible (RFC 3325 §8)."""
    # RFC 3325 §8 [not-of-strangers]
    if flow.remote[0] not in trusted:
        return None
    try:
        # RFC 3325 §9.1 [one-address-each]
        found = [Address.parse(each) for each in request.headers.all("P-Asserted-Identity")]
    except RemoteError:
        return None  # RFC 3261 §8.2.2 [odd-values-pass]
    kinds = [KINDS.get(each.uri.scheme) for each in found]
    # RFC 3325 §9.1 [of-three-schemes] [one-uri-of-two] [one-number-of-two]
    if None in kinds or len(set(kinds)) < len(kinds):
        return None
    return min(found, key=lambda each: each.uri.scheme == "tel", default=None)

"""The calls that have SRTP, by the setting and by the privacy of the signalling.

Implements RFC 4568 §8.3 and RFC 8643 §4 as far as `--srtp` does not say otherwise.

Own design: keys are in the signalling, so they go where nobody can read that: by TLS, or within
this machine.  There the audio has nobody to hide from, and is encrypted only if the phone wants it.

    >>> [srtp_terms("auto", privacy, bytes).profile for privacy in Privacy]
    ['', '', 'RTP/AVP']
    >>> [srtp_terms("auto", privacy, bytes).answers for privacy in Privacy]
    [False, True, True]
"""

from collections.abc import Callable
from enum import IntEnum
from typing import Final

from p2psip.sdp.local_media import PROTOCOLS
from p2psip.sdp.sdes_transport import ALL_OFFERED, DEFAULT_SUITES, SECURE, SrtpTerms
from p2psip.sip.message import Request
from p2psip.sip.uri import Uri
from p2psip.stack.routing import is_loopback
from p2psip.transaction.flow import LOCAL, Flow
from p2psip.transaction.flow import SECURE as SECURE_TRANSPORTS

OFF: Final = "SRTP Is Off"  # the reasons of a 488
NEEDS_TLS: Final = "SRTP Keys Need TLS"
REQUIRED: Final = "SRTP Is Required"


class Privacy(IntEnum):
    """The readers of the signalling with a peer: anybody on the way, this machine, or nobody."""

    NONE = 0
    HERE = 1
    TLS = 2


def of_way(transport: str, host: str) -> Privacy:
    """The privacy of messages by a transport, with a peer at a host: RFC 3261 §26.2.1."""
    if transport == LOCAL or (transport not in SECURE_TRANSPORTS and is_loopback(host)):
        return Privacy.HERE
    return Privacy.TLS if transport in SECURE_TRANSPORTS else Privacy.NONE


def of_request(request: Request, flow: Flow) -> Privacy:
    """The privacy of a request and its responses, which may have passed our own proxy."""
    vias = request.vias
    if flow.transport == LOCAL and len(vias) > 1:
        return of_way(vias[1].transport.upper(), vias[1].received or vias[1].host.strip("[]"))
    return of_way(flow.transport, flow.remote[0])


def of_uri(uri: Uri) -> Privacy:
    """The privacy of requests to a URI, if it tells: RFC 3261 §19.1.1, §26.2.2."""
    if uri.scheme not in ("sip", "sips"):
        return Privacy.NONE
    named = (uri.param("transport") or "").upper()
    return of_way("TLS" if uri.scheme == "sips" else named, uri.host.strip("[]"))


def srtp_terms(use: str, privacy: Privacy, random: Callable[[int], bytes]) -> SrtpTerms:
    """What the gateway wants of SRTP in a call; `use` is the word of `--srtp`.  RFC 4568 §5.1."""
    if use == "never":
        return SrtpTerms(random, answers=False, refusal=OFF)
    if use == "auto" and privacy is Privacy.NONE:
        return SrtpTerms(random, answers=False, refusal=NEEDS_TLS)
    # an INVITE by UDP has few octets to spare: RFC 3261 §18.1.1
    suites = ALL_OFFERED if privacy is Privacy.TLS else DEFAULT_SUITES
    if use == "always":
        profile = SECURE[0]
        return SrtpTerms(random, profile=profile, plain=False, suites=suites, refusal=REQUIRED)
    profile = "" if use == "auto" and privacy is Privacy.HERE else PROTOCOLS[0]
    return SrtpTerms(random, profile=profile, suites=suites)

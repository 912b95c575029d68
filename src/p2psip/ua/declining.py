"""The answer to an offer that must be answered and is not wanted.

Implements RFC 3264 §6 for a caller whose INVITE has left the offer to the callee: no message
refuses the offer of a response, so that the answer has to (RFC 3261 §13.2.2.4).
"""

from collections.abc import Callable

from p2psip.errors import RemoteError
from p2psip.sdp.line import Origin
from p2psip.sdp.offer_answer import make_answer
from p2psip.sdp.session import SessionDescription


def declined(offer: bytes, host: str, random: Callable[[int], bytes]) -> bytes:
    """The answer of `host` that accepts no line (RFC 3264 §6), b"" to an unreadable offer."""
    try:
        session = SessionDescription.parse(offer)
    except RemoteError:
        return b""
    origin = Origin.at(host, int.from_bytes(random(4), "big"))
    return bytes(make_answer(session, (), origin, host)[0])

"""The limited STUN server of a SIP port: it tells a sender which address we see.

Implements RFC 8489 §6.3.1 for the Binding method: RFC 5626 §8 asks it of every SIP element that
listens on UDP.

Own design: it keeps no state, and an answer is 12 octets longer than the shortest request, so that
a forged source gains nothing by it.
"""

import struct

from p2psip.errors import RemoteError
from p2psip.nat.stun import BINDING, StunClass, StunMessage, StunType, write_address, write_error

UNKNOWN_ATTRIBUTE = 420  # Source: RFC 8489 §14.8
MAX_UNKNOWN = 8  # types named in a 420, so that it is no longer than what asked for it


def answer(data: bytes, source: tuple[str, int]) -> bytes | None:
    """Answer a Binding request from `source`; None for whatever else: RFC 8489 §6.3.1."""
    try:
        request = StunMessage.parse(data)
    except RemoteError:
        return None  # RFC 8489 §6.3
    if request.kind is not StunClass.REQUEST or request.method != BINDING:
        return None
    identifier, unknown = request.transaction_id, request.unknown(StunType)
    if unknown:  # RFC 8489 §6.3.1
        listed = struct.pack(f"!{len(unknown[:MAX_UNKNOWN])}H", *unknown[:MAX_UNKNOWN])
        attributes = (
            (StunType.ERROR_CODE, write_error(UNKNOWN_ATTRIBUTE, "")),  # §6.3.1.1 [error-code]
            (
                StunType.UNKNOWN_ATTRIBUTES,
                listed,
            ),  # §6.3.1.1 [420-names-them], §14.8 [420-names-them]
        )
        return StunMessage.write(StunClass.ERROR, BINDING, identifier, attributes).data
    # RFC 8489 §6.3.1.1; RFC 5626 §8 [xor-mapped]
    mapped = (StunType.XOR_MAPPED_ADDRESS, write_address(source, identifier))
    # RFC 8489 §5 [same-transaction-id], §6.3.1 [repeats-are-equal] [only-if-idempotent]
    # RFC 8489 §12 [binding] [no-credentials] [fingerprint-not-needed]
    return StunMessage.write(StunClass.SUCCESS, BINDING, identifier, (mapped,)).data

"""The states of a session that is opening, as the initiator sees them.

Implements RFC 7016 §3.5, the upper half of Figure 8; the lower half is that of `session`.  A
responder has no states: it forgets a hello, and begins a session with the IIKeying (§3.5.1.1.2).
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class OpeningState(StrEnum):
    """The states of an opening session: the upper half of Figure 8 in §3.5 [states]."""

    IHELLO_SENT = "S_IHELLO_SENT"
    KEYING_SENT = "S_KEYING_SENT"
    OPEN = "S_OPEN"
    OPEN_FAILED = "S_OPEN_FAILED"
    CLOSED = "S_CLOSED"


class OpeningEvent(StrEnum):
    """The events of an opening session: §3.5.1.1.1, §3.5.1.2, §3.5.1.3."""

    RESEND = "after 1.5 s, 3 s, 4.5 s ..."
    REDIRECT = "Redirect"
    RHELLO = "RHello"
    DUPLICATE = "RHello, and there is such a session"
    GLARE = "the far end opens it"
    KEY_MADE = "our half of the key is made"
    NO_KEY = "no key for this certificate"
    COOKIE_CHANGE = "RHello Cookie Change"
    RIKEYING = "RIKeying"
    TIMEOUT = "95 s"
    CANCEL = "cancelled here"


class OpeningOrder(StrEnum):
    """The actions of an opening session on an event: §3.5.1.1.1."""

    SEND_IHELLO = "send IHello"
    MAKE_KEY = "make our half of the key"
    SEND_IIKEYING = "send IIKeying"
    BEGIN = "begin the session"
    END = "tell the endpoint"


# The upper half of Figure 8 as data: §3.5.  An arrow that is not drawn is an event to ignore.
FIGURE_8: Final[
    Mapping[OpeningState, Mapping[OpeningEvent, tuple[OpeningState, tuple[OpeningOrder, ...]]]]
] = {
    OpeningState.IHELLO_SENT: {
        OpeningEvent.RESEND: (OpeningState.IHELLO_SENT, (OpeningOrder.SEND_IHELLO,)),
        OpeningEvent.REDIRECT: (OpeningState.IHELLO_SENT, (OpeningOrder.SEND_IHELLO,)),
        OpeningEvent.RHELLO: (OpeningState.KEYING_SENT, (OpeningOrder.MAKE_KEY,)),
        OpeningEvent.DUPLICATE: (OpeningState.CLOSED, (OpeningOrder.END,)),
        OpeningEvent.GLARE: (OpeningState.CLOSED, (OpeningOrder.END,)),
        OpeningEvent.CANCEL: (OpeningState.CLOSED, (OpeningOrder.END,)),
        OpeningEvent.TIMEOUT: (OpeningState.OPEN_FAILED, (OpeningOrder.END,)),
    },
    OpeningState.KEYING_SENT: {
        OpeningEvent.KEY_MADE: (OpeningState.KEYING_SENT, (OpeningOrder.SEND_IIKEYING,)),
        OpeningEvent.RESEND: (OpeningState.KEYING_SENT, (OpeningOrder.SEND_IIKEYING,)),
        OpeningEvent.COOKIE_CHANGE: (OpeningState.KEYING_SENT, (OpeningOrder.SEND_IIKEYING,)),
        OpeningEvent.RIKEYING: (OpeningState.OPEN, (OpeningOrder.BEGIN,)),
        OpeningEvent.GLARE: (OpeningState.CLOSED, (OpeningOrder.END,)),
        OpeningEvent.CANCEL: (OpeningState.CLOSED, (OpeningOrder.END,)),
        OpeningEvent.NO_KEY: (OpeningState.OPEN_FAILED, (OpeningOrder.END,)),
        OpeningEvent.TIMEOUT: (OpeningState.OPEN_FAILED, (OpeningOrder.END,)),
    },
    OpeningState.OPEN: {},  # the lower half is a session's: `session.session`
    OpeningState.OPEN_FAILED: {},
    OpeningState.CLOSED: {},
}

"""The states of flows as tables: Figure 19 for the sending end, Figure 22 for the receiving end.

Implements RFC 7016 §3.6.2 and §3.6.3.  `SendFlow` and `RecvFlow` follow the arrows and do what they
say; an arrow that is not drawn is an event to ignore.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class SendState(StrEnum):
    """The boxes of Figure 19: §3.6.2."""

    OPEN = "F_OPEN"
    CLOSING = "F_CLOSING"
    COMPLETE_LINGER = "F_COMPLETE_LINGER"
    CLOSED = "F_CLOSED"


class SendEvent(StrEnum):
    """The labels of Figure 19's arrows, and the end of the session (§3.5.5): §3.6.2."""

    CLOSE = "CLOSE"
    EXCEPTION = "rcv Flow Exception"
    ALL_ACKNOWLEDGED = "rcv Data Ack 0..F_FINAL_SN"
    LINGER_ENDS = "130 seconds"
    SESSION_ENDS = "session ends"


class SendDo(StrEnum):
    """The actions of a sending flow on an arrow: §3.6.2.10, §3.6.2.11."""

    MARK_FINAL = "mark final fragment"
    ABANDON = "abandon all"
    LINGER = "linger"
    TELL_EXCEPTION = "exception to user"
    TELL_COMPLETE = "completion to user"


FIGURE_19: Final[Mapping[SendState, Mapping[SendEvent, tuple[SendState, tuple[SendDo, ...]]]]] = {
    SendState.OPEN: {
        SendEvent.CLOSE: (SendState.CLOSING, (SendDo.MARK_FINAL,)),
        SendEvent.EXCEPTION: (
            SendState.CLOSING,
            (SendDo.MARK_FINAL, SendDo.ABANDON, SendDo.TELL_EXCEPTION),
        ),
        SendEvent.SESSION_ENDS: (SendState.CLOSED, ()),
    },
    SendState.CLOSING: {
        SendEvent.EXCEPTION: (SendState.CLOSING, (SendDo.ABANDON,)),
        SendEvent.ALL_ACKNOWLEDGED: (
            SendState.COMPLETE_LINGER,
            (SendDo.LINGER, SendDo.TELL_COMPLETE),
        ),
        SendEvent.SESSION_ENDS: (SendState.CLOSED, ()),
    },
    SendState.COMPLETE_LINGER: {
        SendEvent.LINGER_ENDS: (SendState.CLOSED, ()),
        SendEvent.SESSION_ENDS: (SendState.CLOSED, ()),
    },
    SendState.CLOSED: {},
}


class RecvState(StrEnum):
    """The boxes of Figure 22: §3.6.3."""

    OPEN = "RF_OPEN"
    REJECTED = "RF_REJECTED"
    COMPLETE_LINGER = "RF_COMPLETE_LINGER"
    CLOSED = "RF_CLOSED"


class RecvEvent(StrEnum):
    """The labels of Figure 22's arrows, and the end of the session (§3.5.5): §3.6.3."""

    REJECT = "reject"  # by the user, for bad options, or for going beyond a limit
    ALL_RECEIVED = "rcv 0..RF_FINAL_SN"
    LINGER_ENDS = "120 seconds"
    SESSION_ENDS = "session ends"


class RecvDo(StrEnum):
    """The actions of a receiving flow on an arrow: §3.6.3.7, §3.6.3.8."""

    FORGET = "discard the buffer"
    REPORT = "send Flow Exception"
    LINGER = "linger"
    ACKNOWLEDGE = "acknowledge"


FIGURE_22: Final[Mapping[RecvState, Mapping[RecvEvent, tuple[RecvState, tuple[RecvDo, ...]]]]] = {
    RecvState.OPEN: {
        RecvEvent.REJECT: (RecvState.REJECTED, (RecvDo.FORGET, RecvDo.REPORT)),
        RecvEvent.ALL_RECEIVED: (RecvState.COMPLETE_LINGER, (RecvDo.LINGER, RecvDo.ACKNOWLEDGE)),
        RecvEvent.SESSION_ENDS: (RecvState.CLOSED, (RecvDo.FORGET,)),
    },
    RecvState.REJECTED: {
        RecvEvent.ALL_RECEIVED: (RecvState.COMPLETE_LINGER, (RecvDo.LINGER, RecvDo.ACKNOWLEDGE)),
        RecvEvent.SESSION_ENDS: (RecvState.CLOSED, (RecvDo.FORGET,)),
    },
    RecvState.COMPLETE_LINGER: {
        RecvEvent.LINGER_ENDS: (RecvState.CLOSED, ()),
        RecvEvent.SESSION_ENDS: (RecvState.CLOSED, (RecvDo.FORGET,)),
    },
    RecvState.CLOSED: {},
}

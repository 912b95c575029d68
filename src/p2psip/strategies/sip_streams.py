"""SIP on a stream, with the keep-alives between messages, and broken streams.

Implements RFC 3261 §18.3 in reverse, with the keep-alives of RFC 5626 §3.5.1.

Own design: a broken stream begins with a whole message, for a reader to find, and after that is
the fault.
"""

from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from p2psip.sip.framing import LIMIT, SHORTEST
from p2psip.sip.message import Message
from p2psip.sip.message_limits import MAX_HEAD, MAX_LINES
from p2psip.strategies.faults import Octets, by_clause
from p2psip.strategies.sip import messages

_BETWEEN: Final = st.sampled_from(
    [b"", b"", b"\r\n", b"\r\n\r\n", b"\r\n\r\n\r\n", b"\0\0\0\0", b"\r\n\0"]
)


def streams() -> SearchStrategy[tuple[bytes, list[Message]]]:
    """Octets of a connection, and the messages in them: RFC 3261 §18.3.

    Keep-alives stand between them, of zeros too: Field §"Keep-alives of other kinds".
    """
    pairs = st.lists(st.tuples(_BETWEEN, messages()), max_size=4)
    return st.builds(
        lambda some, end: (
            b"".join(before + bytes(message) for before, message in some) + end,
            [message for _, message in some],
        ),
        pairs,
        _BETWEEN,
    )


def _edited(old: bytes, new: bytes) -> Octets:
    """Edit the second message of a stream."""
    return st.builds(
        lambda first, second: bytes(first) + bytes(second).replace(old, new, 1),
        messages(),
        messages(),
    )


_LENGTH: Final = b"\r\nContent-Length: "
_REQUEST: Final = b"OPTIONS sip:a@b SIP/2.0"

STREAM_FAULTS: Final = by_clause(
    {
        "RFC 3261 §18.3": {"no length": _edited(_LENGTH, b"\r\nX-Length: ")},
        "RFC 3261 §25.1": {
            "length below zero": _edited(_LENGTH, _LENGTH + b"-"),
            "length of letters": _edited(_LENGTH, _LENGTH + b"x"),
            "bare line feed": _edited(b"\r\n", b"\n"),
            "bare carriage return": _edited(b"\r\n", b"\r"),
            "line without colon": _edited(b"\r\n", b"\r\nno colon here\r\n"),
        },
        "RFC 3261 §20.14": {"two lengths": _edited(_LENGTH, b"\r\nl: 1000000" + _LENGTH)},
        "RFC 3261 §7": {
            "no SIP": st.text("abcxyz", min_size=1, max_size=SHORTEST - 25).map(
                lambda text: text.encode() + _LENGTH + b"0\r\n\r\n"
            )
        },
    }
)
"""Every fault of a stream: RFC 3261 §7, §18.3, §20.14, §25.1."""


def _long_head(end: bytes) -> Octets:
    return st.integers(LIMIT, LIMIT + 9).map(
        lambda size: _REQUEST + b"\r\nX-Long: " + b"x" * size + end
    )


STREAM_LIMITS: Final = by_clause(
    {
        "RFC 3261 §21.5.7": {
            "head without an end": _long_head(b""),
            "head beyond the limit": _long_head(_LENGTH + b"0\r\n\r\n"),
            "head of too many lines": st.just(
                _REQUEST + b"\r\na:b" * (MAX_LINES + 1) + _LENGTH + b"0\r\n\r\n"
            ),
            "head too long to be read": st.just(
                _REQUEST + b"\r\nX-Long: " + b"x" * MAX_HEAD + _LENGTH + b"0\r\n\r\n"
            ),
            "body beyond the limit": _edited(_LENGTH, _LENGTH + b"999999"),
        },
    }
)
"""Streams that are well-formed, and more than ours takes: RFC 3261 §21.5.7."""

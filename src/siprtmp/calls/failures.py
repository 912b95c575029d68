"""The failures of a call on both sides: SIP statuses, and what RTMP clients are told.

Own design: RTMP has no word for most failures of a call.  So a client is told the SIP status and
reason as text, `486 Busy Here`, under one code for each kind of command.  The way back reads such a
text.  What ends a call here before its answer has a status of its own towards the caller: RFC 3261
§13.3.1.3, §21.

    >>> told(486, "Busy Here"), asked("486 Not Now"), asked("200 OK"), asked("")
    ('486 Busy Here', (486, 'Not Now'), (603, 'Decline'), (603, 'Decline'))
    >>> refusal("shutdown"), refusal("client hung up")
    ((503, 'Service Unavailable'), (603, 'Decline'))
"""

from collections.abc import Mapping
from typing import Final

from p2psip.errors import RemoteError
from p2psip.sip.build import REASONS

MAX_TEXT: Final = 100  # characters of a reason that go into a header

Failure = tuple[int, str]
"""A SIP status and its reason."""

BUSY: Final = (486, "Busy Here")
DECLINED: Final = (603, "Decline")
FORBIDDEN: Final = (403, "Forbidden")
NOBODY: Final = (480, "Temporarily Unavailable")
NO_FILE: Final = (404, "No Such File")
ANNOUNCED: Final = (480, "Announcement Played")  # the end of a call that is an announcement alone
NO_TRUNK: Final = (404, "No Trunk For This Number")
NO_TELEPHONES: Final = (416, "Unsupported URI Scheme")

REJECTED: Final = "NetStream.Publish.Rejected"  # the publish that dials has failed
OVER: Final = "NetStream.Unpublish.Success"  # the call was up, and its publish ends with it

REFUSALS: Final[Mapping[str, Failure]] = {
    "client gone": NOBODY,  # another phone of the callee may take the call
    "shutdown": (503, "Service Unavailable"),
}
"""What a caller is told when a call that rings here ends for a reason of ours; else 603."""


def failed(failure: Failure) -> RemoteError:
    status, reason = failure
    return RemoteError(reason, status)


def told(status: int, reason: str) -> str:
    """What an RTMP client is told of a SIP failure: RFC 3261 §7.2."""
    return f"{status} {reason}"


def asked(text: object) -> Failure:
    """The SIP failure that an RTMP client asks for; 603 for any other text: RFC 3261 §21.6."""
    code, _, reason = (text if isinstance(text, str) else "").strip().partition(" ")
    if not (len(code) == 3 and code.isascii() and code.isdigit() and "300" <= code <= "699"):
        return DECLINED
    reason = "".join(letter for letter in reason if letter.isprintable())[:MAX_TEXT]
    return int(code), reason or REASONS.get(int(code), "")


def refusal(reason: str) -> Failure:
    """The final response to a call that rings here, and that we end for `reason`."""
    return REFUSALS.get(reason, DECLINED)

"""What notifications say: the calls of a user, and the messages that wait for it.

Implements RFC 4235 §4.1 and RFC 3842 §5.2 as far as a phone tells them.

    >>> print(bytes(MessageSummary(2, 8, "sip:bob@b.com")).decode().replace("\\r", ""), end="")
    Messages-Waiting: yes
    Message-Account: sip:bob@b.com
    Voice-Message: 2/8
    >>> MessageSummary.parse(b"Messages-Waiting: yes\\r\\nVoice-Message: 4/1 (2/0)\\r\\n").new
    4
"""

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import Final, NamedTuple, Self

from p2psip.errors import RemoteError
from p2psip.sip.grammar import number, text_of

DIALOG_INFO: Final = "application/dialog-info+xml"
MESSAGE_SUMMARY: Final = "application/simple-message-summary"
NAMESPACE: Final = "urn:ietf:params:xml:ns:dialog-info"
MAX_COUNT: Final = 2**32 - 1
MAX_LINES: Final = 64


@dataclass(frozen=True, slots=True)
class MessageSummary:
    """How many voice messages wait for a user, new and old: RFC 3842 §5.2."""

    new: int = 0
    old: int = 0
    account: str = ""

    @classmethod
    def parse(cls, data: bytes | memoryview) -> Self:
        """Read the body of a notification: RFC 3842 §5.2.  Raises RemoteError."""
        lines = text_of(data).replace("\r\n", "\n").split("\n", MAX_LINES)[:MAX_LINES]
        fields = {
            name.strip().lower(): value.strip()
            for name, colon, value in (line.partition(":") for line in lines)
            if colon
        }
        waiting = fields.get("messages-waiting", "").lower()
        if waiting not in ("yes", "no"):
            raise RemoteError("Bad Message Summary")
        new, _, old = fields.get("voice-message", "").partition(" ")[0].partition("/")
        return cls(_count(new), _count(old), fields.get("message-account", ""))

    def __bytes__(self) -> bytes:
        """The body of a notification: RFC 3842 §5.2."""
        lines = [f"Messages-Waiting: {'yes' if self.new else 'no'}"]
        lines += [f"Message-Account: {self.account}"] if self.account else []
        lines.append(f"Voice-Message: {self.new}/{self.old}")
        return "".join(f"{line}\r\n" for line in lines).encode()


def _count(text: str) -> int:
    return number(text, MAX_COUNT) if text else 0  # RFC 3842 §5.2 [counts-of-32-bits]


class DialogState(NamedTuple):
    """One call as others are told of it: RFC 4235 §4.1.  `state` is a word of §3.7.1 there."""

    call_id: str
    is_ours: bool
    state: str
    remote: str


def dialog_info(entity: str, version: int, dialogs: Iterable[DialogState]) -> bytes:
    """Write all calls of a user, as RFC 4235 §4.1 has them; `version` counts notifications."""
    version &= 0x7FFFFFFF  # RFC 4235 §4.1 [version-of-32-bits]
    lines = [
        '<?xml version="1.0"?>',
        f'<dialog-info xmlns="{NAMESPACE}" version="{version}" state="full"'
        f' entity="{escape(entity)}">',
    ]
    for each in dialogs:
        direction = "initiator" if each.is_ours else "recipient"
        name = f'"{escape(each.call_id)}"'
        lines += [
            f'<dialog id={name} call-id={name} direction="{direction}">',
            f"<state>{escape(each.state)}</state>",
            f"<remote><identity>{escape(each.remote)}</identity></remote>",
            "</dialog>",
        ]
    return "\n".join([*lines, "</dialog-info>", ""]).encode()

"""One SIP message as a step of the ladder of its call.

Own design: a message is kept as it is and read when somebody looks, which few do.  What is shown
is chosen, so that no credentials, keys or texts of messages are: some headers, and of a description
its media lines and codecs.
"""

import re
from typing import Final

Row = dict[str, object]
MAX_OCTETS: Final = 2048  # of a message that are kept
_SHOWN: Final = {
    each.lower(): each
    for each in (
        *("From", "To", "CSeq", "Contact", "Content-Type", "Reason", "Warning", "Retry-After"),
        *("User-Agent", "Server", "Require", "Unsupported", "Refer-To", "Session-Expires"),
    )
}
_COMPACT: Final = {"f": "from", "t": "to", "m": "contact", "c": "content-type", "r": "refer-to"}
_OF_SDP: Final = ("c=", "m=", "a=rtpmap:", "a=sendrecv", "a=sendonly", "a=recvonly", "a=inactive")
_CALL_ID: Final = re.compile(rb"\r\n(?:Call-ID|i)[ \t]*:[ \t]*([^\r\n]+?)[ \t]*\r\n", re.IGNORECASE)
_CAUSE: Final = re.compile(rb"\r\n(Reason|Warning)[ \t]*:[ \t]*([^\r\n]{1,200})", re.IGNORECASE)
_PASSWORD: Final = re.compile(r"(?i)(sips?:[^:@;>\s\"]*):[^@>\s]*@")
_STATUS: Final = "SIP/2.0 "


def call_id_in(data: bytes) -> str:
    """Find the Call-ID of a message, also by its compact name: RFC 3261 §20.8.

    >>> call_id_in(b"BYE sip:a SIP/2.0\\r\\ni: abc@host\\r\\n\\r\\n")
    'abc@host'
    """
    found = _CALL_ID.search(data)
    return found[1].decode(errors="replace") if found is not None else ""


def causes_in(data: bytes) -> list[str]:
    """What a message says about why: RFC 3326 §2, RFC 3261 §20.43."""
    head = data.partition(b"\r\n\r\n")[0]
    return [masked(value.decode(errors="replace").strip()) for _, value in _CAUSE.findall(head)]


def step_of(data: bytes) -> tuple[str, str]:
    """Give a message in a word or two, and in some lines."""
    head, _, body = data.decode(errors="replace").partition("\r\n\r\n")
    first, *lines = head.split("\r\n")
    shown, sequence = [masked(first)], ""
    for line in lines:
        name, _, value = line.partition(":")
        key = name.strip().lower()
        key = _COMPACT.get(key, key)
        if key in _SHOWN:
            shown.append(f"{_SHOWN[key]}: {masked(value.strip())}")
        if key == "cseq":
            sequence = value.split()[-1] if value.split() else ""
    shown += [line for line in body.split("\r\n") if line.startswith(_OF_SDP)]
    if first.startswith(_STATUS):
        return f"{first.removeprefix(_STATUS)} ({sequence})", "\n".join(shown)
    return first.partition(" ")[0], "\n".join(shown)


def masked(text: str) -> str:
    """Leave out the password of a URI.

    >>> masked("sip:bob:secret@host;x=y")
    'sip:bob:***@host;x=y'
    """
    return _PASSWORD.sub(r"\1:***@", text)

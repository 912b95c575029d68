"""A message with the short names of its headers, where a datagram would be too long for it.

Implements RFC 3261 §7.3.3, from the sender's side, and RFC 4028 §4 for Session-Expires.

    >>> compact(b"BYE sip:a@b SIP/2.0\\r\\nVia: x\\r\\nAllow: z\\r\\n\\r\\nVia: body")
    b'BYE sip:a@b SIP/2.0\\r\\nv: x\\r\\nAllow: z\\r\\n\\r\\nVia: body'
"""

from typing import Final

MAX_DATAGRAM: Final = 1300  # octets: §18.1.1, Field §"Requests too long for UDP"

# The names that every implementation has to know, and that of the session timer.
_SHORT: Final = {
    b"Content-Type": b"c",
    b"Content-Encoding": b"e",
    b"From": b"f",
    b"Call-ID": b"i",
    b"Supported": b"k",
    b"Content-Length": b"l",
    b"Contact": b"m",
    b"Subject": b"s",
    b"To": b"t",
    b"Via": b"v",
    b"Session-Expires": b"x",
}


def compact(message: bytes) -> bytes:
    """Give a message of ours, which has the long names, with the short ones (§7.3.3)."""
    head, blank, body = message.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    return b"\r\n".join([first, *map(_shortened, lines)]) + blank + body


def _shortened(line: bytes) -> bytes:
    name, colon, value = line.partition(b":")
    return _SHORT.get(name, name) + colon + value

"""SIP on a stream, cut into messages that keep their octets.

Own design: `p2psip.sip.framing` gives up a stream at the first error, as it must; a rule book reads
on where the next message begins, as the same capture may hold more that is wrong.
"""

from collections.abc import Iterator
from typing import Final

from rtclab.explain.sip import SIP_START
from rtclab.lint.findings.finding import Findings
from rtclab.lint.findings.packet import SeenPacket
from rtclab.lint.sip_message import announced_length

MOST: Final = 1 << 20  # octets without the end of a head


class SipStream:
    """One direction of a connection: RFC 3261 §18.3."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._buffer = bytearray()

    def feed(self, packet: SeenPacket, data: bytes) -> Iterator[bytes]:
        """Take octets; yield the messages that they complete: RFC 3261 §18.3."""
        self._buffer += data
        while True:
            self._skip()
            head, end, _ = self._buffer.partition(b"\r\n\r\n")
            if not end:
                if len(self._buffer) > MOST:
                    self._buffer.clear()
                return
            length = announced_length(bytes(head))
            if length is None:
                what = f"{bytes(head[:40]).split(b' SIP')[0].decode('latin-1')}"
                self._findings.add("sip-no-length", packet, what)
            size = len(head) + len(end) + (length or 0)
            if len(self._buffer) < size:
                return
            message = bytes(self._buffer[:size])
            del self._buffer[:size]
            yield message

    def _skip(self) -> None:
        """Drop keep-alives, and what is before the beginning of a message."""
        while self._buffer[:2] == b"\r\n":
            del self._buffer[:2]
        if self._buffer and b"\n" in self._buffer and not SIP_START.match(self._buffer):
            found = SIP_START.search(self._buffer)
            if found is not None:
                del self._buffer[: found.start()]

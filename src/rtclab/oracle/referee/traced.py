"""A message of a trace.

Own design: what both kinds of trace have in common.
"""

from dataclasses import dataclass

from p2psip.sip.message import Message


@dataclass(frozen=True, slots=True)
class Traced:
    """A message on its way: `time` in seconds, addresses as `host:port`."""

    time: float
    source: str
    destination: str
    transport: str
    message: Message

    @property
    def reliable(self) -> bool:
        """Whether the transport repeats what is lost: RFC 3261 §17."""
        return self.transport.upper() != "UDP"

"""A request of a trace that has an offer, or whose responses may have one.

Own design: what a session keeps of the request until its offer is answered.
"""

from dataclasses import dataclass, field
from typing import Final, Self

from p2psip.sip.message import Request, Response
from p2psip.transaction.invite_client import T1
from p2psip.ua.requests.request_validation import session
from rtclab.oracle.referee.ruling import SLACK

SILENCE: Final = 64 * T1  # after which a request that nobody has answered is over: timers B and F


@dataclass(slots=True, eq=False)
class Asked:
    """A request; `due` is the status with which its offer must be refused, if it must.

    `offer` is its description, which may also be an answer.  `is_opaque` says that the body is
    one that we cannot read, so that nothing is known of offers.
    """

    request: Request
    time: float
    offer: bytes
    is_opaque: bool
    due: int | None = None
    is_heard: bool = False
    answered_by: set[str | None] = field(default_factory=set)  # tags that gave a final response

    @classmethod
    def of(cls, request: Request, now: float) -> Self:
        """Begin with a request that was sent now."""
        return cls(request, now, *description(request))

    @property
    def name(self) -> str:
        """Its method, its number and its call."""
        return f"{self.request.method} {self.request.cseq.number} of {self.request.call_id}"

    @property
    def sender(self) -> str:
        """The tag of its author."""
        return self.request.from_.tag or ""

    def is_open(self, now: float) -> bool:
        """Whether its final response is still to come."""
        is_lost = not self.is_heard and now - self.time > SILENCE
        return not self.answered_by and not is_lost

    def is_unseen(self, now: float) -> bool:
        """Whether the other side may not have it yet; one that makes a dialog was seen."""
        return bool(self.request.to.tag) and not self.is_heard and now - self.time <= SLACK


def description(message: Request | Response) -> tuple[bytes, bool]:
    """The session description of a message, and whether there is a body that cannot be read."""
    found = session(message)
    return found or b"", found is None and bool(message.body)

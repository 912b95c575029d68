"""The session of one dialog: offers and answers in INVITE, its responses, ACK, PRACK and UPDATE.

Own design: each side has the `Negotiation` that a user agent of ours has, and `Session` moves both
with each message.  What they refuse is a finding, and so is an offer that still waits behind the
message that had to bring its answer.  Two offers that cross on their way are no fault of their
authors; both are to be refused.
"""

from dataclasses import dataclass, field
from typing import Final

from p2psip.dialog.acceptance import glare_delay
from p2psip.dialog.negotiation import Negotiation
from p2psip.dialog.prack import ProvisionalOrder, RAck, rseq_of
from p2psip.errors import RemoteError
from p2psip.sip.message import Response
from rtclab.oracle.referee.asked import SILENCE, Asked, description
from rtclab.oracle.referee.descriptions import are_same, of_answer, of_successor
from rtclab.oracle.referee.ruling import SLACK, Ruling

_OFFERING: Final = {  # the clause that says when a request may have an offer
    "INVITE": "RFC 3261 §14.1",
    "UPDATE": "RFC 3311 §5.1",
    "PRACK": "RFC 6337 §3.2",
}
_REFUSING: Final = {"INVITE": "RFC 3261 §14.2", "UPDATE": "RFC 3311 §5.2"}
_ANSWERING: Final = {"PRACK": "RFC 3262 §5", "UPDATE": "RFC 3311 §5.2"}
_WAITING: Final = {"INVITE": "RFC 3261 §14.1", "UPDATE": "RFC 3311 §5.3"}  # after a 491


@dataclass(frozen=True, slots=True)
class Offer:
    """An offer that waits, in a request or in a response to it (`rseq` of a provisional one)."""

    name: str
    sender: str
    sdp: bytes
    time: float
    asked: Asked
    rseq: int | None = None

    @property
    def is_in_request(self) -> bool:
        """Whether the request that carries this description can be refused."""
        return self.sender == self.asked.sender

    def is_stale(self, now: float) -> bool:
        """Whether nobody will answer it."""
        if self.is_in_request and self.asked.request.method == "INVITE" and self.asked.is_heard:
            return False
        return now - self.time > SILENCE

    def is_unseen(self, now: float) -> bool:
        """Whether the other side may not have it yet."""
        return self.asked.is_unseen(now) if self.is_in_request else now - self.time <= SLACK


@dataclass(slots=True)
class _Responses:
    """What the responses to one INVITE have brought."""

    order: ProvisionalOrder = field(default_factory=ProvisionalOrder)
    preview: bytes = b""  # the answer as an unreliable response has it
    said: bytes = b""  # the answer, or the offer, that counts


class Session:
    """The session of one dialog; `ended` is set by a BYE.

    `caller` is the tag that began the call, None if the trace began later.
    """

    def __init__(self, one: str, other: str, caller: str | None) -> None:
        self.ended = False
        self.findings: list[Ruling] = []
        self._caller = caller
        self._sides = {one: Negotiation(), other: Negotiation()}
        self._waiting: Offer | None = None
        self._invite: Asked | None = None
        self._responses: dict[Asked, _Responses] = {}
        self._unheard: set[int | None] = set()  # provisional responses with a description
        self._retry_at: dict[str, float] = {}

    # -- requests ------------------------------------------------------------------------

    def begin(self, asked: Asked) -> None:
        """Take the INVITE that makes the dialog (RFC 3261 §13.2.1)."""
        self._invite = asked
        if asked.offer:
            self._offer(Offer(asked.name, asked.sender, asked.offer, asked.time, asked), asked.time)

    def request(self, asked: Asked, now: float) -> None:
        """Take an INVITE or UPDATE within the dialog (RFC 3261 §14, RFC 3311 §5)."""
        method = asked.request.method
        if asked.offer or method == "INVITE":
            self._check_patience(asked, now)
        earlier = self._invite if self._invite and self._invite.is_open(now) else None
        if method == "INVITE" and earlier is not None:
            self._collide(asked, earlier, now)
            return
        if method == "INVITE":
            self._invite = asked
        elif asked.offer and earlier is not None:
            self._check_early(asked, earlier, now)
        if asked.offer:
            self._offer(Offer(asked.name, asked.sender, asked.offer, now, asked), now)

    def prack(self, asked: Asked, now: float) -> None:
        """Take a PRACK, with the answer to a reliable response or a new offer (RFC 3262 §5)."""
        try:
            rseq: int | None = RAck.parse(asked.request.headers.get("RAck", "")).rseq
        except RemoteError:
            rseq = None
        waiting = self._waiting
        expected = (None, None) if waiting is None else (waiting.rseq, self._other(waiting.sender))
        if rseq is not None and expected == (rseq, asked.sender):
            self._reply(asked.sender, asked.name, asked.offer, asked.is_opaque, now, "RFC 3262 §5")
        elif asked.offer:
            if rseq not in self._unheard:
                text = f"{asked.name} has an offer, and acknowledges no answer"
                self._find(now, text, "RFC 6337 §3.2")
            self._offer(Offer(asked.name, asked.sender, asked.offer, now, asked), now)
        self._unheard -= {rseq}

    def ack(self, ack: Asked, invite: Asked, now: float) -> None:
        """Take the ACK of a 2xx, with the answer to its offer (RFC 3261 §13.2.2.4)."""
        waiting = self._waiting
        if waiting is not None and waiting.asked is invite and waiting.sender != ack.sender:
            clause = "RFC 3261 §13.2.2.4"
            self._reply(ack.sender, ack.name, ack.offer, ack.is_opaque, now, clause)
        elif ack.offer:
            self._find(now, f"{ack.name} answers no offer", "RFC 3261 §13.2.1")

    # -- responses -----------------------------------------------------------------------

    def response(self, asked: Asked, response: Response, now: float) -> None:
        """Take a response, the first copy of it."""
        method, status = asked.request.method, response.status
        name = f"the {status} to {asked.name}"
        sdp, is_opaque = description(response)
        if status >= 200:
            self._check_refusal(asked, response, now)
        if status >= 300:
            self._refuse(asked, status, now)
        elif asked.due is not None and not self._is_waiting(asked):
            return  # its offer does not count
        elif method == "INVITE" and status < 200:
            self._provisional(asked, response, sdp, now)
        elif method == "INVITE":
            if self._unheard:
                text = f"{name} came before the PRACK of a description"
                self._find(now, text, "RFC 3262 §5")
                self._unheard.clear()
            self._carry(asked, name, sdp, now, is_opaque=is_opaque)
        elif status >= 200 and self._is_waiting(asked):
            sender, clause = self._other(asked.sender), _ANSWERING[method]
            self._reply(sender, name, sdp, is_opaque, now, clause)
        elif sdp:
            self._find(now, f"{name} answers no offer", "RFC 3261 §13.2.1")

    def _check_refusal(self, asked: Asked, response: Response, now: float) -> None:
        """Compare with the status that our machine gives (RFC 3261 §14.2, RFC 3311 §5.2)."""
        due, status, clause = asked.due, response.status, _REFUSING.get(asked.request.method)
        if due is None or clause is None:
            return
        if status < 300 or (status in (491, 500) and status != due):
            text = f"{asked.name} was answered with {status}, and {due} was due"
            self._find(now, f"{text} at t={asked.time:.3f}", clause)
        elif status == 500 and "Retry-After" not in response.headers:
            self._find(now, f"the 500 to {asked.name} should have had a Retry-After", clause)

    def _refuse(self, asked: Asked, status: int, now: float) -> None:
        """Drop the offer, so that the session stays as it was (RFC 3261 §14.1)."""
        said = self._responses.get(asked, _Responses()).said
        if self._is_waiting(asked):
            self._drop()
        elif said and asked.request.to.tag:
            text = f"{asked.name} was refused with {status} after its session was agreed on"
            self._find(now, f"{text}, which should have stayed as before", "RFC 3261 §14.1")
        self._unheard.clear()
        if status == 491 and self._caller is not None:
            delay = glare_delay(bytes, asked.sender == self._caller)
            self._retry_at[asked.sender] = now + delay

    def _provisional(self, asked: Asked, response: Response, sdp: bytes, now: float) -> None:
        try:
            rseq = rseq_of(response)
        except RemoteError:
            return
        responses = self._responses.setdefault(asked, _Responses())
        name = f"the {response.status} to {asked.name}"
        if rseq is None:
            if sdp and asked.offer and not responses.said:
                self._check_same(responses.preview, sdp, name, now)
                responses.preview = responses.preview or sdp
            return
        if not responses.order.take(rseq):
            return
        if sdp:
            self._unheard.add(rseq)
        self._carry(asked, name, sdp, now, rseq, is_opaque=description(response)[1])

    def _carry(
        self,
        asked: Asked,
        name: str,
        sdp: bytes,
        now: float,
        rseq: int | None = None,
        *,
        is_opaque: bool,
    ) -> None:
        """Take a reliable response to an INVITE: the answer, or an offer (RFC 3261 §13.2.1)."""
        responses = self._responses.setdefault(asked, _Responses())
        sender = self._other(asked.sender)
        if responses.said:
            if sdp and sdp != self._sides[sender].local:
                self._check_same(responses.said, sdp, name, now)
        elif asked.offer and self._is_waiting(asked):
            if sdp:
                self._check_same(responses.preview, sdp, name, now)
            if sdp or is_opaque or rseq is None:
                clause = "RFC 3261 §13.2.1"
                self._reply(sender, name, sdp, is_opaque, now, clause)
        elif not asked.offer and sdp:
            self._offer(Offer(name, sender, sdp, now, asked, rseq), now)
        elif not asked.offer and not is_opaque:
            clause = "RFC 3261 §13.2.1" if rseq is None else "RFC 3262 §5"
            self._find(now, f"{name} should have had the offer, as {asked.name} has none", clause)
        responses.said = responses.said or sdp

    # -- offers and answers --------------------------------------------------------------

    def _offer(self, offer: Offer, now: float) -> None:
        """Have one side make an offer, and the other take it (RFC 3264 §4)."""
        mine, other = self._sides[offer.sender], self._sides[self._other(offer.sender)]
        waiting = self._waiting
        if waiting is not None and waiting.is_stale(now):
            self._drop()
        try:
            other.they_offer(offer.sdp)
        except RemoteError as error:
            assert waiting is not None
            self._meet(offer, waiting, error.status, now)
            return
        self.findings += of_successor(mine.local, offer.sdp, offer.name, now)
        mine.we_offer(offer.sdp)
        self._waiting = offer

    def _reply(
        self, sender: str, name: str, sdp: bytes, is_opaque: bool, now: float, clause: str
    ) -> None:
        """Take the message that has to bring the answer to the offer that waits."""
        offer, mine = self._waiting, self._sides[sender]
        assert offer is not None
        if sdp:
            self.findings += of_successor(mine.local, sdp, name, now)
            self.findings += of_answer(offer.sdp, sdp, name, now)
        elif not is_opaque:
            text = f"{name} should have had the answer to the offer of {offer.name}"
            self._find(now, text, clause)
        mine.we_answer(sdp or mine.local or b"")
        self._sides[offer.sender].they_answer(sdp or None)
        self._waiting = None

    def _drop(self) -> None:
        for side in self._sides.values():
            side.refused()
        self._waiting = None

    def _meet(self, offer: Offer, waiting: Offer, status: int, now: float) -> None:
        """Take an offer that our machine refuses with this status (RFC 3264 §4)."""
        if offer.is_in_request:
            offer.asked.due = status
        if offer.sender != waiting.sender and waiting.is_unseen(now):
            if waiting.is_in_request:
                waiting.asked.due = status
            return
        method = offer.asked.request.method
        clause = _OFFERING[method] if offer.is_in_request else "RFC 3264 §4"
        text = f"the offer of {offer.name} was made while that of {waiting.name} waited"
        self._find(now, text, clause)

    def _collide(self, asked: Asked, earlier: Asked, now: float) -> None:
        """Take an INVITE while another one is under way (RFC 3261 §14.1, §14.2)."""
        asked.due = 500 if asked.sender == earlier.sender else 491
        if asked.due == 491 and earlier.is_unseen(now):
            earlier.due = 491
            return
        text = f"{asked.name} was sent while {earlier.name} was under way"
        self._find(now, text, "RFC 3261 §14.1")

    def _check_early(self, asked: Asked, invite: Asked, now: float) -> None:
        """An offer by UPDATE before the INVITE is answered (RFC 3311 §5.1)."""
        mine = self._sides[asked.sender]
        if self._unheard and asked.sender != invite.sender:
            text = f"the offer of {asked.name} came before the PRACK of the answer"
            self._find(now, text, "RFC 3311 §5.1")
        elif mine.is_stable and not mine.was_settled and not invite.request.to.tag:
            text = f"the offer of {asked.name} came before the first one was answered"
            self._find(now, text, "RFC 3311 §5.1")

    def _check_patience(self, asked: Asked, now: float) -> None:
        """An offer after a 491 (RFC 3261 §14.1)."""
        earliest = self._retry_at.pop(asked.sender, now)
        if now < earliest - SLACK:
            text = f"{asked.name} came too early after a 491, and was due at t={earliest:.3f}"
            self._find(now, text, _WAITING[asked.request.method])

    def _check_same(self, first: bytes, second: bytes, name: str, now: float) -> None:
        """All responses to an INVITE have one description (RFC 3261 §13.2.1)."""
        if first and not are_same(first, second):
            text = f"{name} has another description than the response before"
            self._find(now, text, "RFC 3261 §13.2.1")

    def _is_waiting(self, asked: Asked) -> bool:
        """Whether the offer of this request waits for its answer."""
        return self._waiting is not None and self._waiting.asked is asked

    def _other(self, tag: str) -> str:
        return next(each for each in self._sides if each != tag)

    def _find(self, at: float, text: str, clause: str) -> None:
        self.findings.append(Ruling(at, text, clause))

"""Provisional responses of ours that the caller acknowledges by PRACK.

Implements RFC 3262 §3 and §5.
"""

from typing import TYPE_CHECKING

from p2psip.dialog import prack
from p2psip.dialog.prack import MAX_FIRST, OPTION, RAck, ReliableProvisional
from p2psip.errors import RemoteError
from p2psip.sip.message import Request, Response
from p2psip.stack.stack import ServerHandle
from p2psip.ua.call_leg import CallLeg
from p2psip.ua.dialog_response import dialog_response
from p2psip.ua.requests.request_validation import offer_of

if TYPE_CHECKING:
    from p2psip.ua.uas import IncomingCall


class ReliableResponses:
    """The reliable provisional responses to one INVITE, one at a time (RFC 3262 §3)."""

    def __init__(self, call: "IncomingCall", leg: CallLeg, server: ServerHandle) -> None:
        self._call, self._leg, self._server = call, leg, server
        required = server.request.headers.all("Require")
        has_it = OPTION in call.agent.extensions.options
        self._is_required = has_it and OPTION in (tag.lower() for tag in required)
        self._is_possible = self._is_required or (has_it and leg.supports(OPTION))
        # RFC 3262 §3 [first-below-2-31] [first-at-random]
        self._next = 1 + int.from_bytes(call.agent.random(4), "big") % MAX_FIRST
        self._sent: dict[int, ReliableProvisional] = {}
        self._current: ReliableProvisional | None = None
        self._response: Response | None = None
        self._queue: list[tuple[int, bytes]] = []

    @property
    def holds_session(self) -> bool:
        """Whether a description waits for its PRACK, so that the 2xx has to wait too (§5)."""
        return self._current is not None and bool(self._response and self._response.body)

    def wanted(self, sdp: bytes) -> bool:
        """Whether a provisional response is sent reliably (RFC 3262 §3).

        Own design: if the caller requires it, or if it has a description, which then counts.
        """
        # RFC 3261 §8.2.4 [only-what-it-supports] [else-as-usual]
        # RFC 3262 §3 [required-is-done] [unasked-is-not-done]
        return self._is_required or (self._is_possible and bool(sdp))

    def send(self, status: int, sdp: bytes, now: float) -> None:
        """Send a provisional response, after the PRACK of the one before (RFC 3262 §3).

        Departs from RFC 3261 §13.3.1: one that the caller requires to be reliable has no offer of
        ours if there is no early media, since the formats are chosen when the call is answered.
        Departs from RFC 6337 §5.2.2 [first-reliable-offers]: for the same reason.
        """
        if self._current is not None:
            # RFC 3262 §3 [waits-for-the-first] [waits-for-each]
            if (status, sdp) not in self._queue:
                self._queue.append((status, sdp))
            return
        if self._leg.session.was_settled:
            sdp = b""  # RFC 3261 §13.2.1 [no-offer-after-the-answer]
        elif sdp and self._leg.session.remote is None:
            self._leg.session.we_offer(sdp)  # RFC 3261 §13.2.1 [offer-comes-first]
        elif sdp:
            self._leg.session.we_answer(sdp)  # RFC 3261 §13.2.1 [answer-is-reliable]
        call, ours = self._call, self._call.agent.extensions
        # RFC 3261 §8.2.4 [says-what-it-applied], RFC 3262 §3 [requires-100rel] [one-higher]
        # RFC 3261 §20.32 [standard-tags-only]
        headers = [*ours.require(OPTION), ("RSeq", self._next)]
        self._response = dialog_response(self._server, call.contact, ours, status, sdp, headers)
        self._current, todo = ReliableProvisional.start(now, t1=call.agent.stack.t1)
        self._sent[self._next] = self._current
        self._next += 1
        self._perform(todo, now)

    def on_prack(self, server: ServerHandle, request: Request, leg: CallLeg, now: float) -> None:
        """Take a PRACK (RFC 3262 §3), with the answer to our offer or a new offer (§5)."""
        rack = RAck.parse(request.headers.get("RAck", ""))
        invite = self._server.request.cseq
        if rack.rseq not in self._sent or (rack.cseq, rack.method) != tuple(invite):
            # RFC 3262 §3 [481-for-others]
            raise RemoteError("Call/Transaction Does Not Exist", 481)
        offer, answer = offer_of(request), b""
        if offer is not None and (leg.session.is_stable or leg.session.was_settled):
            answer = self._call.offers.take(leg, offer, now)  # RFC 3262 §5 [answers-in-the-2xx]
        todo = self._sent.pop(rack.rseq).acknowledge(now)
        call = self._call
        response = dialog_response(server, call.contact, call.agent.extensions, 200, answer)
        server.respond(response, now)  # RFC 3262 §3 [2xx-for-a-match]
        if offer is not None and not answer:
            leg.session.they_answer(offer)
            call.owner.on_answer(call, offer, now)
        elif not leg.session.is_stable and not leg.session.was_settled:
            # Own design: an answer that is missing, which RFC 3262 §5 demands, is treated as it is
            # in an ACK: the peer's side stays, and the call can still be answered.
            leg.session.they_answer(None)
        self._perform(todo, now)

    def finish(self, now: float) -> None:
        """Repeat nothing more, since the final response is on its way (RFC 3262 §3)."""
        if self._current is not None:
            self._current.finish(now)
            self._current = None
        self._queue.clear()  # RFC 3262 §3 [none-after-the-final]

    @property
    def deadline(self) -> float | None:
        """When to call `tick` (RFC 3262 §3)."""
        return self._current.deadline if self._current is not None else None

    def tick(self, now: float) -> None:
        """Repeat the response, or give the INVITE up (RFC 3262 §3)."""
        if self._current is not None:
            self._perform(self._current.tick(now), now)

    def _perform(self, todo: prack.Todo, now: float) -> None:
        assert self._response is not None
        for do in todo:
            match do:
                case prack.Do.SEND_1XX:
                    self._server.respond(self._response, now)
                case prack.Do.CONFIRMED:
                    self._current = None
                    self._call.on_acknowledged(now)
                    if self._queue:
                        self.send(*self._queue.pop(0), now)
                case prack.Do.UNHEARD:
                    self._current = None
                    self._call.on_unacknowledged(now)

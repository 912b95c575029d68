"""Provisional responses of ours that the caller acknowledges by PRACK.

Implements RFC 3262 §3 and §5.
"""

from p2psip.dialog.prack import MAX_FIRST, OPTION, Do, RAck, ReliableProvisional, Todo
from p2psip.errors import RemoteError
from p2psip.sip.message import Request, Response
from p2psip.sip.uri import Uri
from p2psip.stack.stack import ServerHandle
from p2psip.ua.call_leg import CallLeg
from p2psip.ua.core import UserAgentCore
from p2psip.ua.dialog_response import dialog_response


class ReliableResponses:
    """The reliable 1xx to one INVITE, of which `response` is the latest (RFC 3262 §3)."""

    response: Response

    def __init__(
        self, core: UserAgentCore, server: ServerHandle, leg: CallLeg, contact: Uri
    ) -> None:
        self._core, self._server, self._leg, self._contact = core, server, leg, contact
        required = server.request.headers.all("Require")
        has_it = OPTION in core.extensions.options
        self._is_required = has_it and OPTION in (tag.lower() for tag in required)
        self._is_possible = self._is_required or (has_it and leg.supports(OPTION))
        # RFC 3262 §3 [first-below-2-31] [first-at-random]
        self._next = 1 + int.from_bytes(core.random(4), "big") % MAX_FIRST
        self._sent: dict[int, ReliableProvisional] = {}
        self._current: ReliableProvisional | None = None
        self._queue: list[tuple[int, bytes]] = []

    @property
    def holds_session(self) -> bool:
        """Whether a description waits for its PRACK, so that the 2xx has to wait too (§5)."""
        return self._current is not None and bool(self.response.body)

    def wanted(self, sdp: bytes) -> bool:
        """Whether a 1xx is sent reliably (RFC 3262 §3).  Own design: if required, or with SDP."""
        # RFC 3261 §8.2.4 [only-what-it-supports] [else-as-usual]
        # RFC 3262 §3 [required-is-done] [unasked-is-not-done]
        return self._is_required or (self._is_possible and bool(sdp))

    def send(self, status: int, sdp: bytes, now: float) -> Todo:
        """Send a provisional response, after the PRACK of the one before (RFC 3262 §3).

        Departs from RFC 3261 §13.3.1: one that the caller requires to be reliable has no offer of
        ours if there is no early media, since the formats are chosen when the call is answered.
        Departs from RFC 6337 §5.2.2 [first-reliable-offers]: for the same reason.
        """
        if self._current is not None:
            # RFC 3262 §3 [waits-for-the-first] [waits-for-each]
            if (status, sdp) not in self._queue:
                self._queue.append((status, sdp))
            return ()
        if self._leg.session.was_settled:
            sdp = b""  # RFC 3261 §13.2.1 [no-offer-after-the-answer]
        elif sdp and self._leg.session.remote is None:
            self._leg.session.we_offer(sdp)  # RFC 3261 §13.2.1 [offer-comes-first]
        elif sdp:
            self._leg.session.we_answer(sdp)  # RFC 3261 §13.2.1 [answer-is-reliable]
        ours = self._core.extensions
        # RFC 3261 §8.2.4 [says-what-it-applied], RFC 3262 §3 [requires-100rel] [one-higher]
        # RFC 3261 §20.32 [standard-tags-only]
        headers = [*ours.require(OPTION), ("RSeq", self._next)]
        self.response = dialog_response(self._server, self._contact, ours, status, sdp, headers)
        self._current, todo = ReliableProvisional.start(now, t1=self._core.stack.t1)
        self._sent[self._next] = self._current
        self._next += 1
        return todo

    def send_next(self, now: float) -> Todo:
        """Send the response that has waited longest, unless one is under way (RFC 3262 §3)."""
        return self.send(*self._queue.pop(0), now) if self._queue and not self._current else ()

    def matched(self, prack: Request) -> int:
        """The number of the response that a PRACK is for (RFC 3262 §3).  Raises RemoteError."""
        rack = RAck.parse(prack.headers.get("RAck", ""))
        invite = self._server.request.cseq
        if rack.rseq not in self._sent or (rack.cseq, rack.method) != tuple(invite):
            # RFC 3262 §3 [481-for-others]
            raise RemoteError("Call/Transaction Does Not Exist", 481)
        return rack.rseq

    def acknowledge(self, rseq: int, now: float) -> Todo:
        """Take the PRACK of a response (RFC 3262 §3)."""
        return self._settled(self._sent.pop(rseq).acknowledge(now))

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

    def tick(self, now: float) -> Todo:
        """Repeat the response, or give the INVITE up (RFC 3262 §3)."""
        return self._settled(self._current.tick(now)) if self._current is not None else ()

    def _settled(self, todo: Todo) -> Todo:
        if Do.CONFIRMED in todo or Do.UNHEARD in todo:
            self._current = None
        return todo

"""SIP transactions of a capture: requests with their responses, ACKs and CANCELs.

Implements RFC 3261 §17 as a rule book: the machines of `p2psip.transaction` do what it says, and
these compare what others did, by the times at which packets were seen.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from p2psip.sip.message import Request, Response
from rtclab.lint.findings.finding import Findings
from rtclab.lint.sip_message import HeardMessage

T1: Final = 0.5  # s, Source: RFC 3261 §17.1.1.1
T2: Final = 4.0  # s, Source: RFC 3261 §17.1.2.1
GIVEN_UP: Final = 64 * T1  # s, Source: RFC 3261 §17.1.1.2
SAME_TIME: Final = 0.01  # s: a packet that was captured twice, on its way in and out
DOUBLED: Final = 1.5  # how much longer the next gap is at least; clocks and captures are inexact
ENOUGH: Final = 3  # repetitions which show that nobody answers

Key = tuple[str, str, str]


@dataclass(slots=True)
class SipTransaction:
    """A request, when it was sent, and what came back: §17."""

    heard: HeardMessage
    times: list[float] = field(default_factory=list)
    responses: list[HeardMessage] = field(default_factory=list)
    final: HeardMessage | None = None
    final_repeated: int = 0
    is_acknowledged: bool = False

    @property
    def request(self) -> Request:
        """The request itself: §17."""
        assert isinstance(self.heard.message, Request)
        return self.heard.message

    @property
    def status(self) -> int:
        """The status of the final response, 0 without one: §7.2."""
        return status_of(self.final) if self.final else 0


def status_of(heard: HeardMessage) -> int:
    """The status of a response: §7.2."""
    assert isinstance(heard.message, Response)
    return heard.message.status


def key_of(request: Request | Response, method: str) -> Key:
    """What tells transactions apart: §17.1.3, §17.2.3; without a branch the Call-ID must do."""
    via = request.via
    branch = via.branch or f"{request.call_id} {request.cseq.number}"
    return branch, f"{via.host}:{via.port}", method


class SipTransactions:
    """All transactions of a capture.  `request` and `response` say what is new: §17."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._all: dict[Key, SipTransaction] = {}
        self._invites: dict[tuple[str, str | None], list[SipTransaction]] = {}

    def __iter__(self) -> Iterator[SipTransaction]:
        return iter(self._all.values())

    def request(self, heard: HeardMessage) -> SipTransaction | None:
        """Take a request that is no ACK; None if it is a repetition: §17.1."""
        request = heard.message
        assert isinstance(request, Request)
        key = key_of(request, request.method)
        known = self._all.get(key)
        if known is not None:
            self._repeated(known, heard)
            return None
        transaction = SipTransaction(heard, [heard.packet.time])
        self._all[key] = transaction
        if request.method == "INVITE":
            place = request.call_id, request.from_.tag
            self._invites.setdefault(place, []).append(transaction)
        if request.method == "CANCEL":
            self._cancel(heard, request)
        return transaction

    def response(self, heard: HeardMessage) -> SipTransaction | None:
        """Take a response; its transaction, or None if it is a repetition or has none: §17.1.3."""
        response = heard.message
        assert isinstance(response, Response)
        transaction = self._all.get(key_of(response, response.cseq.method))
        what = heard.label
        if transaction is None:
            self._findings.add("sip-response-alone", heard.packet, f"{what}: no such request")
            return None
        self._compare(heard, response, transaction.request)
        if any(each.data == heard.data for each in transaction.responses):
            if transaction.final and transaction.final.data == heard.data:
                transaction.final_repeated += 1
            return None
        self._judge_order(heard, response, transaction)
        transaction.responses.append(heard)
        if response.status >= 200 and transaction.final is None:
            transaction.final = heard
        return transaction

    def ack(self, heard: HeardMessage) -> SipTransaction | None:
        """Take an ACK; the INVITE that it is for, if it was seen: §17.1.1.3, §13.2.2.4."""
        ack = heard.message
        assert isinstance(ack, Request)
        invites = self._invites.get((ack.call_id, ack.from_.tag), [])
        same = [each for each in invites if each.request.cseq.number == ack.cseq.number]
        by_branch = self._all.get(key_of(ack, "INVITE"))
        if by_branch is None and not same:
            self._ack_of_none(heard, ack, invites)
            return None
        invite = by_branch or next((each for each in same if not each.is_acknowledged), same[-1])
        if ack.cseq.number != invite.request.cseq.number:
            told = f"ACK has CSeq {ack.cseq.number}, INVITE {invite.request.cseq.number}"
            self._findings.add("sip-ack-cseq", heard.packet, told)
        self._judge_branch(heard, ack, invite, is_same=by_branch is not None)
        invite.is_acknowledged = True
        return invite

    def finish(self, end: float) -> None:
        """Report what had no answer when the capture ended: §17.1, §17.2."""
        for transaction in self._all.values():
            self._judge_end(transaction, end)

    # -- rules ---------------------------------------------------------------------------

    def _repeated(self, known: SipTransaction, heard: HeardMessage) -> None:
        """Judge when a request comes again: §17.1.1.2, §17.1.2.2."""
        now, method = heard.packet.time, known.request.method
        gap = now - known.times[-1]
        if gap < SAME_TIME:
            return
        if heard.is_reliable:
            self._findings.add("sip-repeated-on-stream", heard.packet, f"{method} again")
            return
        since = known.responses[0].packet.time if known.responses else now
        if method == "INVITE" and now - since > T1:
            what = f"{method} again {now - since:.1f} s after {known.responses[0].label}"
            self._findings.add("sip-repeated-after-response", heard.packet, what)
        before = known.times[-1] - known.times[-2] if len(known.times) > 1 else T1 / DOUBLED / 1.2
        least = before * DOUBLED
        if method != "INVITE":
            least = min(least, T2 / 1.1)
        if gap < least and not known.responses:
            section = "§17.1.1.2" if method == "INVITE" else "§17.1.2.2"
            what = f"{method} again after {gap:.3f} s"
            if len(known.times) > 1:
                what += f", the time before {before:.3f} s"
            self._findings.add(
                "sip-repeated-early", heard.packet, what, citation=f"RFC 3261 {section}"
            )
        known.times.append(now)

    def _cancel(self, heard: HeardMessage, cancel: Request) -> None:
        invite = self._all.get(key_of(cancel, "INVITE"))
        if invite is None:
            self._findings.add("sip-cancel-alone", heard.packet, "CANCEL with another branch")
            return
        if not invite.responses:
            self._findings.add("sip-cancel-early", heard.packet, "CANCEL before any response")
        of = invite.request
        pairs = {
            "Request-URI": (str(cancel.uri), str(of.uri)),
            "Call-ID": (cancel.call_id, of.call_id),
            "To": (str(cancel.to), str(of.to)),
            "From": (str(cancel.from_), str(of.from_)),
            "CSeq": (cancel.cseq.number, of.cseq.number),
        }
        for name, (said, meant) in pairs.items():
            if said != meant:
                told = f"CANCEL has another {name}: {said}, not {meant}"
                self._findings.add("sip-cancel-differs", heard.packet, told)

    def _compare(self, heard: HeardMessage, response: Response, request: Request) -> None:
        """Compare a response with its request: §8.2.6.2."""
        pairs = {
            "From tag": (response.from_.tag, request.from_.tag),
            "Call-ID": (response.call_id, request.call_id),
            "CSeq": (response.cseq.number, request.cseq.number),
        }
        for name, (said, meant) in pairs.items():
            if said != meant:
                what = f"{heard.label} has another {name}: {said}, not {meant}"
                self._findings.add("sip-response-differs", heard.packet, what)
        if request.to.tag and response.to.tag != request.to.tag:
            what = f"{heard.label} has another To tag: {response.to.tag}, not {request.to.tag}"
            self._findings.add("sip-response-differs", heard.packet, what)

    def _judge_order(
        self, heard: HeardMessage, response: Response, transaction: SipTransaction
    ) -> None:
        """Judge a response behind the final one; forks may send some: §13.2.2.4, §17.2.1."""
        final = transaction.final
        if final is None or final.message.to.tag != response.to.tag:
            return
        if response.status // 100 == 2 and transaction.status // 100 == 2:
            return  # a 2xx again, with a new Date or the like
        what = f"{heard.label} behind {final.label}"
        self._findings.add("sip-after-final", heard.packet, what)

    def _ack_of_none(
        self, heard: HeardMessage, ack: Request, invites: list[SipTransaction]
    ) -> None:
        waiting = [each for each in invites if each.final and not each.is_acknowledged]
        if waiting:
            number = waiting[-1].request.cseq.number
            what = f"ACK has CSeq {ack.cseq.number}, INVITE {number}"
            self._findings.add("sip-ack-cseq", heard.packet, what)
            waiting[-1].is_acknowledged = True

    def _judge_branch(
        self, heard: HeardMessage, ack: Request, invite: SipTransaction, *, is_same: bool
    ) -> None:
        """An ACK is of its INVITE's transaction if that failed, else of none: §17.1.1.3."""
        if invite.final is None or ack.via.branch is None:
            return
        if is_same and invite.status < 300 and len(ack.vias) == 1:
            what = f"the ACK of {invite.final.label} has the INVITE's branch"
            citation = "RFC 3261 §13.2.2.4"
            self._findings.add("sip-ack-branch", heard.packet, what, citation=citation)
        elif not is_same and invite.status >= 300 and len(ack.vias) == 1:
            what = f"the ACK of {invite.final.label} has another branch"
            self._findings.add("sip-ack-branch", heard.packet, what)

    def _judge_end(self, transaction: SipTransaction, end: float) -> None:
        method, heard = transaction.request.method, transaction.heard
        waited = end - heard.packet.time
        target = heard.packet.target
        if not transaction.responses:
            if len(transaction.times) > ENOUGH or waited >= GIVEN_UP:
                rule = "sip-bye-unanswered" if method == "BYE" else "sip-unanswered"
                times = len(transaction.times)
                what = f"no response to {method}, sent {times} time{'s' if times > 1 else ''}"
                self._findings.add(rule, heard.packet, what, who=target)
        elif transaction.final is None and method not in ("INVITE", "SUBSCRIBE"):
            if waited >= GIVEN_UP:
                what = f"no final response to {method}"
                self._findings.add("sip-unanswered", heard.packet, what, who=target)
        elif method == "INVITE" and transaction.final and not transaction.is_acknowledged:
            since = end - transaction.final.packet.time
            if since >= T2 or transaction.final_repeated >= ENOUGH:
                section = "§17.1.1.3" if transaction.status >= 300 else "§13.2.2.4"
                what = f"no ACK of {transaction.final.label}"
                citation = f"RFC 3261 {section}"
                packet, who = transaction.final.packet, heard.packet.source
                self._findings.add("sip-no-ack", packet, what, who=who, citation=citation)

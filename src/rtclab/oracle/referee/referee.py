"""Walks a trace of SIP through our machines, and says what should have happened when.

Own design: one pass, a machine for each end of each transaction, and two views of each dialog:

    >>> from p2psip.sip.message import parse_message
    >>> call = parse_message(
    ...     b"INVITE sip:b@b.com SIP/2.0\\r\\nVia: SIP/2.0/UDP a.com;branch=z9hG4bK1\\r\\n"
    ...     b"From: <sip:a@a.com>;tag=1\\r\\nTo: <sip:b@b.com>\\r\\nCall-ID: 1\\r\\n"
    ...     b"CSeq: 1 INVITE\\r\\nContact: <sip:a@a.com>\\r\\n\\r\\n"
    ... )
    >>> times = (0.0, 0.5, 3.5)
    >>> for finding in referee(Traced(at, "a:5060", "b:5060", "UDP", call) for at in times):
    ...     print(finding)
    t=1.500 INVITE 1 of 1 should have been repeated (timer A): RFC 3261 §17.1.1.2
"""

from collections.abc import Iterable

from p2psip.dialog.prack import RAck
from p2psip.errors import RemoteError
from p2psip.sip.message import Request, Response
from p2psip.transaction.key import Key
from p2psip.transaction.table import TimerQueue
from rtclab.oracle.referee.dialogs import Dialogs
from rtclab.oracle.referee.offers import Offers
from rtclab.oracle.referee.ruling import Ruling
from rtclab.oracle.referee.traced import Traced
from rtclab.oracle.referee.transactions import Transaction


class Referee:
    """The transactions, dialogs and sessions of one trace, in the order of its times."""

    def __init__(self) -> None:
        self._known: dict[Key, Transaction] = {}
        self._timer_queue = TimerQueue[Transaction]()
        self._by_name: dict[str, list[Transaction]] = {}
        self._dialogs, self._misrouted = Dialogs(), list[Ruling]()
        self._offers = Offers()

    def take(self, heard: Traced) -> None:
        """Take the next message of the trace."""
        for each in self._timer_queue.due(heard.time):
            each.pass_time(heard.time)
            self._timer_queue.set(each, each.deadline)
        message = heard.message
        if isinstance(message, Response):
            self._response(message, heard.time)
        elif message.method == "ACK":
            self._ack(message, heard.time)
        else:
            self._request(message, heard)

    def findings(self) -> list[Ruling]:
        """What was found up to the last message, in the order of time."""
        of_transactions = (each for known in self._known.values() for each in known.findings)
        return sorted([*self._misrouted, *self._offers.findings, *of_transactions])

    def _request(self, request: Request, heard: Traced) -> None:
        known = self._known.get(key := _key(request))
        if known is not None:
            known.repeat(heard.time)
            self._timer_queue.set(known, known.deadline)
            return
        new = Transaction(request, heard.time, reliable=heard.reliable)
        self._known[key] = new
        self._by_name.setdefault(new.name, []).append(new)
        self._timer_queue.set(new, new.deadline)
        if request.method == "PRACK":
            self._prack(request, heard.time)
        self._misrouted += self._dialogs.request(request, heard.time)
        self._offers.request(request, heard.time)

    def _response(self, response: Response, now: float) -> None:
        known = self._known.get(_key(response))
        if known is not None:  # else the trace began later
            known.respond(response, now)
            self._timer_queue.set(known, known.deadline)
            self._dialogs.response(response)
            self._offers.response(response, now)

    def _prack(self, request: Request, now: float) -> None:
        """A PRACK names its INVITE (RFC 3262 §7.2)."""
        try:
            rack = RAck.parse(request.headers.get("RAck", ""))
        except RemoteError:
            return
        for each in self._by_name.get(f"INVITE {rack.cseq} of {request.call_id}", ()):
            each.acknowledge_provisional(request, rack, now)
            self._timer_queue.set(each, each.deadline)

    def _ack(self, ack: Request, now: float) -> None:
        """An ACK of a failure has the branch of its INVITE, one of a 2xx its number alone."""
        known = self._known.get(_key(ack))
        if known is not None:
            known.acknowledge(now)
            self._timer_queue.set(known, known.deadline)
            return
        number = f"INVITE {ack.cseq.number} of {ack.call_id}"
        for each in self._by_name.get(number, ()):
            if each.accepted:
                each.acknowledge(now)
                self._timer_queue.set(each, each.deadline)
        self._misrouted += self._dialogs.request(ack, now)
        self._offers.request(ack, now)


def _key(message: Request | Response) -> Key:
    """What the messages of a transaction share, those without a cookie too (RFC 3261 §17.2.3)."""
    method = message.cseq.method.replace("ACK", "INVITE")
    call = message.call_id, message.cseq.number, message.from_.tag
    return message.via.branch, method, *call


def referee(trace: Iterable[Traced]) -> list[Ruling]:
    """Judge a whole trace; a message that may follow after its end is not missing."""
    judge = Referee()
    for heard in trace:
        judge.take(heard)
    return judge.findings()

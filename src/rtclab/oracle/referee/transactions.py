"""One transaction of a trace, beside our client and server machines under the trace's clock.

Own design: the machines run as if they had sent and received the messages of the trace.  An order
of theirs that the trace does not carry out is a finding, and so is a message that they did not
order; a transaction has at most one finding of each kind.  An element that never says anything is
absent, and not judged.
"""

import re
from typing import Final

from p2psip.dialog import acceptance, prack
from p2psip.dialog.acceptance import Acceptance
from p2psip.dialog.prack import RAck, ReliableProvisional, rseq_of
from p2psip.errors import RemoteError
from p2psip.sip.message import Request, Response
from p2psip.transaction import client, invite_client, invite_server
from p2psip.transaction.client import NonInviteClient
from p2psip.transaction.invite_client import InviteClient
from p2psip.transaction.invite_server import InviteServer
from p2psip.transaction.server import NonInviteServer
from rtclab.oracle.referee.ruling import ANSWER, SLACK, Ruling

Machine = (
    InviteClient
    | NonInviteClient
    | InviteServer
    | NonInviteServer
    | Acceptance
    | ReliableProvisional
)
# What a machine orders without a message, with the timer and the clause behind it.  Orders of two
# machines may be equal texts, so that the type is a part of the key.
_TIMERS: Final[dict[tuple[type, str], tuple[str, str, str]]] = {
    (invite_client.Do, invite_client.Do.SEND_INVITE): (
        "{} should have been repeated",
        "A",
        "RFC 3261 §17.1.1.2",
    ),
    (client.Do, client.Do.SEND_REQUEST): (
        "{} should have been repeated",
        "E",
        "RFC 3261 §17.1.2.2",
    ),
    (invite_server.Do, invite_server.Do.SEND_100): (
        "a 100 should have answered {}",
        "",
        "RFC 3261 §17.2.1",
    ),
    (invite_server.Do, invite_server.Do.SEND_RESPONSE): (
        "the {status} to {} should have been repeated",
        "G",
        "RFC 3261 §17.2.1",
    ),
    (acceptance.Do, acceptance.Do.SEND_2XX): (
        "the 2xx to {} should have been repeated",
        "",
        "RFC 3261 §13.3.1.4",
    ),
    (prack.Do, prack.Do.SEND_1XX): (
        "the reliable response to {} should have been repeated",
        "",
        "RFC 3262 §3",
    ),
    (prack.Do, prack.Do.UNHEARD): (
        "{} should have been refused for want of a PRACK",
        "",
        "RFC 3262 §3",
    ),
}
_ENDS: Final[dict[tuple[type, str], tuple[str, str]]] = {
    (invite_client.Do, invite_client.Do.TIMED_OUT): ("B", "RFC 3261 §17.1.1.2"),
    (client.Do, client.Do.TIMED_OUT): ("F", "RFC 3261 §17.1.2.2"),
}

_FIGURES: Final = re.compile(r"\d+")
_RESPONSE: Final = "the response"
_PRACK: Final = "a PRACK"


class Transaction:
    """One request with its repetitions, responses and, of a failed INVITE, the ACK."""

    def __init__(self, request: Request, now: float, *, reliable: bool) -> None:
        self._findings: list[Ruling] = []
        self._of_server: list[Ruling] = []
        self.invite = request.method == "INVITE"
        self.name = f"{request.method} {request.cseq.number} of {request.call_id}"
        self.client: InviteClient | NonInviteClient
        self.server: InviteServer | NonInviteServer
        if self.invite:
            self.client, _ = InviteClient.start(now, reliable=reliable)
            self.server, _ = InviteServer.start(now, reliable=reliable)
        else:
            self.client, _ = NonInviteClient.start(now, reliable=reliable)
            self.server, _ = NonInviteServer.start(now, reliable=reliable)
        self.accepted: dict[str, Acceptance] = {}  # by the tag of the callee: forks are several
        self._provisional: dict[tuple[str, int], ReliableProvisional] = {}  # with their RSeq
        self._final: int | None = None
        self._status = 100  # of the last response, or that the server owes
        self._responded: float | None = None
        self._acknowledged: float | None = None
        self._ended: tuple[float, str, str] | None = None
        self._owed: dict[str, tuple[float, str]] = {}  # until when, and the clause

    @property
    def findings(self) -> list[Ruling]:
        """What was found; of the server only if there is one."""
        return self._findings + (self._of_server if self._responded is not None else [])

    @property
    def _machines(self) -> list[Machine]:
        of_responses: list[Machine] = [*self.accepted.values(), *self._provisional.values()]
        return [self.client, self.server, *of_responses]

    @property
    def deadline(self) -> float | None:
        """When to call `pass_time`, None while there is nothing to wait for."""
        times = [each.deadline + SLACK for each in self._machines if each.deadline is not None]
        return min([*times, *(until for until, _ in self._owed.values())], default=None)

    def pass_time(self, now: float) -> None:
        """Fire what was due a while ago: its message did not come."""
        for machine in self._machines:
            while machine.deadline is not None and machine.deadline + SLACK <= now:
                at = machine.deadline
                for do in machine.tick(at):
                    self._missed(do, at)
        for what, (until, clause) in list(self._owed.items()):
            if until <= now:
                del self._owed[what]
                is_response = what == _RESPONSE
                text = f"{what} should have been sent for {self.name}"
                if is_response:
                    text = f"the {self._status} to {self.name} should have been repeated"
                self._find(until - ANSWER, text, clause, by_server=is_response)

    def repeat(self, now: float) -> None:
        """Take the request once more."""
        if self._ended is not None:
            at, timer, clause = self._ended
            text = f"{self.name} was repeated after timer {timer}: the transaction should have "
            self._find(now, f"{text}ended at t={at:.3f} with 408", clause)
        elif self._responded is not None and self._is_silenced():
            if now - self._responded > SLACK:
                clause = f"RFC 3261 §17.1.{1 if self.invite else 2}.2"
                self._find(now, f"{self.name} was repeated after a response", clause)
        else:
            self._on_time(self.client, f"{self.name} was repeated", now)
        if isinstance(self.server, InviteServer):
            orders: tuple[object, ...] = self.server.receive("INVITE", now)
        else:
            orders = self.server.receive(now)
        if orders:
            clause = f"RFC 3261 §17.2.{1 if self.invite else 2}"
            self._owed[_RESPONSE] = now + ANSWER, clause

    def respond(self, response: Response, now: float) -> None:
        """Take a response."""
        status, asked = response.status, self._owed.pop(_RESPONSE, None) is not None
        final, first = status >= 200, self._final is None
        if not final and first and self.invite:
            self._provide(response, now, is_asked=asked)
        elif final:
            self._finish(now)
        if final and self.invite and status < 300 and (first or self._final_is_2xx()):
            self._accept(response, now)
        elif final and not first and status != self._final:
            text = f"{self.name} was answered with {status} after {self._final}"
            self._find(now, text, f"RFC 3261 §17.2.{1 if self.invite else 2}")
        elif final and not first and not asked:
            self._repeated(status, now)
        if final and self.invite and first and status >= 300:
            self._owed["the ACK"] = now + ANSWER, "RFC 3261 §17.1.1.3"
        self._final = status if final and first else self._final
        self._status = status if first else self._status
        self._responded = now if self._responded is None or (final and first) else self._responded
        self.client.receive(status, now)
        if not final or first:
            self.server.respond(status, now)

    def acknowledge_provisional(self, request: Request, rack: RAck, now: float) -> None:
        """Take the PRACK of a provisional response (RFC 3262 §4)."""
        known = self._provisional.get((request.to.tag or "", rack.rseq))
        if known is not None:
            self._owed.pop(_PRACK, None)
            known.acknowledge(now)

    def acknowledge(self, now: float) -> None:
        """Take the ACK of a failure, or of a 2xx."""
        self._owed.pop("the ACK", None)
        if self._acknowledged is None:
            self._acknowledged = now
        if isinstance(self.server, InviteServer):
            self.server.receive("ACK", now)
        for each in self.accepted.values():
            each.acknowledge(now)

    def _provide(self, response: Response, now: float, *, is_asked: bool) -> None:
        """Take a provisional response, which is repeated until its PRACK comes (RFC 3262 §3).

        It is repeated for a repeated INVITE as well (RFC 3261 §17.2.1).
        """
        try:
            rseq = rseq_of(response)
        except RemoteError:
            return
        if rseq is None or response.status == 100:
            return
        known = self._provisional.get(name := (response.to.tag or "", rseq))
        if known is None:
            self._provisional[name] = ReliableProvisional.start(now)[0]
            self._owed[_PRACK] = now + ANSWER, "RFC 3262 §4"
        elif known.state is prack.State.WAITING and not is_asked:
            self._on_time(known, f"the {response.status} to {self.name} was repeated", now)

    def _finish(self, now: float) -> None:
        """Wait for no PRACK any longer (RFC 3262 §3)."""
        self._owed.pop(_PRACK, None)
        for each in self._provisional.values():
            each.finish(now)

    def _accept(self, response: Response, now: float) -> None:
        """Take a 2xx to an INVITE, which is repeated until its ACK comes (RFC 3261 §13.3.1.4)."""
        tag = response.to.tag or ""
        clause, known = "RFC 3261 §13.3.1.4", self.accepted.get(tag)
        if known is None:
            self.accepted[tag] = Acceptance.start(now)[0]
        elif known.state is acceptance.State.WAITING:
            self._on_time(known, f"the 2xx to {self.name} was repeated", now)
        elif known.state is acceptance.State.ABANDONED:
            self._find(now, f"the 2xx to {self.name} was repeated after 64*T1", clause)
        elif self._acknowledged is not None and now - self._acknowledged > SLACK:
            self._find(now, f"the 2xx to {self.name} was repeated after its ACK", clause)
        self._owed["the ACK"] = now + ANSWER, "RFC 3261 §13.2.2.4"

    def _repeated(self, status: int, now: float) -> None:
        """Take a failure, or a final response to another request, that nobody asked for again."""
        if not isinstance(self.server, InviteServer):
            text = f"the {status} to {self.name} was repeated, and the request was not"
            self._find(now, text, "RFC 3261 §17.2.2")
        elif self.server.state is invite_server.State.COMPLETED:
            self._on_time(self.server, f"the {status} to {self.name} was repeated", now)
        elif self._acknowledged is not None and now - self._acknowledged > SLACK:
            text = f"the {status} to {self.name} was repeated after its ACK"
            self._find(now, text, "RFC 3261 §17.2.1")

    def _on_time(self, machine: Machine, text: str, now: float) -> None:
        """Carry out the order of a timer, if it is near."""
        due = machine.deadline
        if due is None or now < due - SLACK:
            when = "" if due is None else f", which is due at t={due:.3f}"
            timer, clause = _timer_of(machine)
            self._find(now, f"{text} too early for {timer}{when}", clause)
        else:
            for do in machine.tick(max(now, due)):
                if (order := (type(do), str(do))) in _ENDS:
                    self._ended = (due, *_ENDS[order])

    def _is_silenced(self) -> bool:
        """Whether a response has ended the repetitions; a 1xx ends only those of an INVITE."""
        return self.invite or self._final is not None

    def _final_is_2xx(self) -> bool:
        return self._final is not None and self._final < 300

    def _missed(self, do: object, at: float) -> None:
        order = type(do), str(do)
        if order in _ENDS:
            self._ended = (at, *_ENDS[order])
        elif order in _TIMERS:
            text, timer, clause = _TIMERS[order]
            named = f" (timer {timer})" if timer else ""
            by_server = isinstance(do, invite_server.Do)
            self._find(
                at, text.format(self.name, status=self._status) + named, clause, by_server=by_server
            )

    def _find(self, at: float, text: str, clause: str, *, by_server: bool = False) -> None:
        findings = self._of_server if by_server else self._findings
        kind = _kind(text), clause
        if kind not in [(_kind(each.text), each.clause) for each in findings]:
            findings.append(Ruling(at, text, clause))


def _kind(text: str) -> str:
    """What a finding says without its figures."""
    return _FIGURES.sub("", text)


def _timer_of(machine: Machine) -> tuple[str, str]:
    match machine:
        case InviteClient():
            return "timer A", "RFC 3261 §17.1.1.2"
        case NonInviteClient():
            return "timer E", "RFC 3261 §17.1.2.2"
        case Acceptance():
            return "its timer", "RFC 3261 §13.3.1.4"
        case ReliableProvisional():
            return "its timer", "RFC 3262 §3"
    return "timer G", "RFC 3261 §17.2.1"

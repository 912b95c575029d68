"""Dialogs of a capture: numbers, tags, routes and targets from request to request.

Implements RFC 3261 §12 as a rule book.

Own design: a message may be captured at several hops.  CSeq is judged hop by hop, and routes and
targets where the sender of the request is an end of the dialog: it has one Via there.
"""

from dataclasses import dataclass, field
from typing import Final

from p2psip.sip.message import Request, Response
from p2psip.sip.uri import Uri, equivalent
from rtclab.lint.findings.finding import Findings
from rtclab.lint.sip_message import HeardMessage
from rtclab.lint.sip_transactions import T2, SipTransaction

_UNNUMBERED: Final = ("ACK", "CANCEL")  # their numbers are the INVITE's: §12.2.1.1, §9.1


@dataclass(slots=True)
class HeardDialog:
    """What a request in the dialog must fit, by the tag of its sender: §12.1.

    `targets` are the Contacts of each end, `routes` the route sets that each end may have learned.
    `ended` is when a BYE was answered.
    """

    call_id: str
    tags: frozenset[str]
    targets: dict[str, list[Uri]] = field(default_factory=dict)
    routes: dict[str, list[list[str]]] = field(default_factory=dict)
    ended: float | None = None


@dataclass(slots=True)
class _Reliable:
    """A reliable response that waits for its PRACK."""

    heard: HeardMessage
    caller: str


class SipDialogs:
    """All dialogs of a capture: §12."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._all: dict[tuple[str, frozenset[str]], HeardDialog] = {}
        self._calls: dict[str, list[HeardDialog]] = {}
        self._numbers: dict[tuple[str, str | None, int, str], int] = {}
        self._reliable: dict[tuple[str, int, int], _Reliable] = {}

    def request(self, heard: HeardMessage, *, is_new: bool = True) -> None:
        """Take a request that is no repetition, or an ACK: §12.2."""
        request = heard.message
        assert isinstance(request, Request)
        if is_new and request.method not in _UNNUMBERED:
            self._number(heard, request)
        if request.method == "PRACK":
            self._prack(request)
        if not request.to.tag or not request.from_.tag or request.method == "CANCEL":
            return
        tags = frozenset((request.from_.tag, request.to.tag))
        dialog = self._all.get((request.call_id, tags))
        if dialog is None:
            self._unknown(heard, request)
            return
        if dialog.ended is not None and request.method not in ("ACK", "BYE"):
            what = f"{request.method} in a dialog that a BYE has ended"
            self._findings.add("sip-after-bye", heard.packet, what)
        self._aim(heard, request, dialog)
        if request.contacts and not request.contacts[0].is_star:
            dialog.targets.setdefault(request.from_.tag, []).append(request.contacts[0].uri)

    def response(self, heard: HeardMessage, transaction: SipTransaction) -> None:
        """Take a response that is no repetition: §12.1."""
        response, request = heard.message, transaction.request
        assert isinstance(response, Response)
        if response.status <= 100 or response.status >= 300 or not response.to.tag:
            return
        if request.method == "INVITE":
            self._begin(response, request)
            if response.status < 200:
                self._provisional(heard, response, request)
        dialog = self._of(response)
        if dialog is None:
            return
        if request.method == "BYE":
            dialog.ended = heard.packet.time
        if request.method in ("INVITE", "UPDATE", "SUBSCRIBE") and response.contacts:
            sender = response.to.tag
            dialog.targets.setdefault(sender, []).append(response.contacts[0].uri)

    def finish(self, end: float) -> None:
        """Report reliable responses that no PRACK has acknowledged: RFC 3262 §4."""
        for each in self._reliable.values():
            if end - each.heard.packet.time >= T2:
                what = f"no PRACK of {each.heard.label}"
                self._findings.add("sip-no-prack", each.heard.packet, what, who=each.caller)

    # -- rules ---------------------------------------------------------------------------

    def _of(self, response: Response) -> HeardDialog | None:
        tags = frozenset((response.from_.tag or "", response.to.tag or ""))
        return self._all.get((response.call_id, tags))

    def _number(self, heard: HeardMessage, request: Request) -> None:
        """§12.2.1.1; out of dialogs §8.1.3.5 and §10.2 say the same of the next request."""
        key = (
            request.call_id,
            request.from_.tag,
            len(request.vias),
            f"{heard.packet.source} {heard.packet.target}",
        )
        number, before = request.cseq.number, self._numbers.get(key, -1)
        if number <= before:
            what = f"{request.method} has CSeq {number} after {before}"
            self._findings.add("sip-cseq", heard.packet, what)
        self._numbers[key] = max(number, before)

    def _begin(self, response: Response, request: Request) -> None:
        caller, callee = request.from_.tag or "", response.to.tag or ""
        key = request.call_id, frozenset((caller, callee))
        dialog = self._all.get(key)
        if dialog is None:
            dialog = HeardDialog(*key)
            self._all[key] = dialog
            self._calls.setdefault(request.call_id, []).append(dialog)
        if request.to.tag:
            return  # the route set stays as it was: §12.2
        if request.contacts and not request.contacts[0].is_star:
            dialog.targets.setdefault(caller, []).append(request.contacts[0].uri)
        forth = [str(each.uri) for each in reversed(response.record_routes)]
        if response.status >= 200:  # what provisional responses had no longer counts: §13.2.2.4
            dialog.routes[caller] = []
        dialog.routes.setdefault(caller, []).append(forth)
        back = [str(each.uri) for each in request.record_routes]
        dialog.routes.setdefault(callee, []).append(back)

    def _unknown(self, heard: HeardMessage, request: Request) -> None:
        """Report tags that belong to no dialog, if the capture has the beginning of the call."""
        known = self._calls.get(request.call_id)
        if not known or heard.packet.source == heard.packet.target:
            return
        if request.method == "ACK" and not any(request.from_.tag in each.tags for each in known):
            return
        what = f"{request.method} with From tag {request.from_.tag}, To tag {request.to.tag}"
        self._findings.add("sip-tag-changed", heard.packet, what)

    def _aim(self, heard: HeardMessage, request: Request, dialog: HeardDialog) -> None:
        """Route and Request-URI of an end's own request: §12.2.1.1."""
        if len(request.vias) != 1:
            return
        sender = request.from_.tag or ""
        other = next(iter(dialog.tags - {sender}), sender)
        route = [str(each.uri) for each in request.routes]
        sets = dialog.routes.get(sender, [])
        if sets and route not in sets and (request.method != "ACK" or any(sets)):
            told = ", ".join(sets[-1]) or "none"
            what = f"{request.method} has Route {', '.join(route) or 'none'}; the set is {told}"
            self._findings.add("sip-route", heard.packet, what)
        targets = dialog.targets.get(other, [])
        is_strict = bool(route) and request.routes[0].uri.param("lr") is None
        if targets and not is_strict and not any(_same(request.uri, each) for each in targets):
            what = f"{request.method} for {request.uri}; the Contact is {targets[-1]}"
            self._findings.add("sip-target", heard.packet, what)

    def _provisional(self, heard: HeardMessage, response: Response, request: Request) -> None:
        """Reliable responses: RFC 3262 §3."""
        if not _names(response, "Require", "100rel"):
            return
        if not (_names(request, "Supported", "100rel") or _names(request, "Require", "100rel")):
            what = f"{heard.label} is reliable, and INVITE has no 100rel"
            self._findings.add("sip-100rel-unasked", heard.packet, what)
        number = response.headers.get("RSeq", "")
        if not (number.isascii() and number.isdigit()):
            self._findings.add("sip-rseq", heard.packet, f"{heard.label} with RSeq {number!r}")
            return
        key = request.call_id, int(number[:12]), request.cseq.number
        self._reliable.setdefault(key, _Reliable(heard, heard.packet.target))

    def _prack(self, request: Request) -> None:
        parts = request.headers.get("RAck", "").split()
        if len(parts) >= 2 and all(each.isascii() and each.isdigit() for each in parts[:2]):
            self._reliable.pop((request.call_id, int(parts[0][:12]), int(parts[1][:12])), None)


def _same(one: Uri, other: Uri) -> bool:
    return equivalent(one, other) or str(one) == str(other)


def _names(message: Request | Response, header: str, tag: str) -> bool:
    """Whether a header lists an option tag: RFC 3261 §20.32, §20.37."""
    listed = ",".join(message.headers.values(header)).lower().split(",")
    return tag in (each.strip() for each in listed)

"""The routing of requests within dialogs: the remote target, the route set and the numbers.

Own design: a message with one Via is on the first hop of a request, so that it is what a user agent
wrote, and what the other one reads of a response; the request with the most is what the callee got.
Strict routers, which write the Request-URI anew, are left out.
"""

from collections.abc import Iterator
from contextlib import suppress

from p2psip.dialog.dialog import Dialog, DialogId
from p2psip.errors import RemoteError
from p2psip.sip.message import Request, Response
from p2psip.sip.uri import equivalent
from rtclab.oracle.referee.ruling import Ruling

_TARGET_REFRESH = ("INVITE", "UPDATE")  # RFC 3261 §12.2, RFC 3311 §5.1


class Dialogs:
    """The dialogs of a trace, each as both sides see it (RFC 3261 §12)."""

    def __init__(self) -> None:
        self._sides: dict[DialogId, Dialog] = {}
        self._invites: dict[tuple[str, int, str], list[Request]] = {}

    def request(self, request: Request, now: float) -> Iterator[Ruling]:
        """Take a request that is no repetition; an ACK for a failure is none of these."""
        if not request.to.tag:
            if request.method == "INVITE":
                self._invites.setdefault(_key(request), []).append(request)
            return
        if len(request.vias) > 1:
            return
        at_peer = DialogId.at_server(request)
        mine = self._sides.get(DialogId(at_peer.call_id, at_peer.remote_tag, at_peer.local_tag))
        peer = self._sides.get(at_peer)
        if mine is not None and _has_loose_routes(mine):
            yield from _routed(mine, request, now)
        if peer is None or request.method in ("ACK", "CANCEL"):
            return
        try:
            peer.check_order(request)
        except RemoteError:
            text = f"{request.method} {request.cseq.number} is not above the number before"
            yield Ruling(now, text, "RFC 3261 §12.2.1.1")
        if request.method in _TARGET_REFRESH:
            peer.refresh(request)
            self._invites.setdefault(_key(request), []).append(request)

    def response(self, response: Response) -> None:
        """Take a response: it makes a dialog, or moves its target (RFC 3261 §12.1, §12.2.1.2)."""
        invites = self._invites.get(_key(response))
        if not invites or not response.to.tag or not 100 < response.status < 300:
            return
        first, last = invites[0], max(invites, key=lambda each: len(each.vias))
        name = DialogId.at_client(response)
        if len(response.vias) == 1:
            known = self._sides.get(name)
            if known is None:
                known = self._sides[name] = Dialog.of_client(first, response)
            elif response.status >= 200:
                known.refresh(response)
            if response.status >= 200 and not first.to.tag:
                known.confirm(response)
        theirs = DialogId(name.call_id, name.remote_tag, name.local_tag)
        if len(response.vias) == len(last.vias) and theirs not in self._sides:
            with suppress(RemoteError):  # without one Contact there is nowhere to go
                self._sides[theirs] = Dialog.of_server(last, response.to.tag)


def _key(message: Request | Response) -> tuple[str, int, str]:
    """What the hops of a request, and its responses, have in common."""
    return message.call_id, message.cseq.number, message.from_.tag or ""


def _has_loose_routes(dialog: Dialog) -> bool:
    return all("lr" in dict(route.uri.params) for route in dialog.route_set)


def _routed(dialog: Dialog, request: Request, now: float) -> Iterator[Ruling]:
    """Compare with the request that our dialog would send (RFC 3261 §12.2.1.1)."""
    wanted = dialog.ack(request.cseq.number)
    name = f"{request.method} {request.cseq.number} of {request.call_id}"
    if not equivalent(request.uri, wanted.uri):
        text = f"{name} went to {request.uri}, and not to the remote target {wanted.uri}"
        yield Ruling(now, text, "RFC 3261 §12.2.1.1")
    routes, ours = ([each.uri for each in message.routes] for message in (request, wanted))
    if len(routes) != len(ours) or not all(map(equivalent, routes, ours)):
        shown = ", ".join(map(str, ours)) or "nothing"
        yield Ruling(now, f"the Route of {name} should have been {shown}", "RFC 3261 §12.2.1.1")

"""The subscriptions that a phone serves: to its calls, and to the messages that wait for it.

Implements RFC 6665 §4.2, with the packages dialog and message-summary.
"""

from collections.abc import Callable, Iterable
from typing import Final

from p2psip.errors import RemoteError
from p2psip.net.clock import monotonic
from p2psip.net.phone.call import Call
from p2psip.sip.address import Address
from p2psip.sip.uri import Uri
from p2psip.stack.stack import ServerHandle
from p2psip.ua.event_bodies import (
    DIALOG_INFO,
    MESSAGE_SUMMARY,
    DialogState,
    MessageSummary,
    dialog_info,
)
from p2psip.ua.requests.request_validation import refuse_accept
from p2psip.ua.subscriptions import EventName, ServedSubscription
from p2psip.ua.ua import UserAgent

DIALOG: Final = "dialog"
SUMMARY: Final = "message-summary"
# The packages, each with the one type of its bodies, which is its default too.
PACKAGES: Final = {DIALOG: DIALOG_INFO, SUMMARY: MESSAGE_SUMMARY}


def dialog_states(calls: Iterable[Call]) -> list[DialogState]:
    """The calls as others are told of them: RFC 4235 §3.7.1."""
    return [
        DialogState(
            call.id,
            call.direction == "out",
            "confirmed" if call.is_up else "early",
            str(call.remote.uri),
        )
        for call in calls
    ]


class Serving:
    """Tells those who may know of the calls and messages of a user (RFC 6665 §4.2).

    `may_watch(package, sender)` tells who may; nobody may unless it is set.  `calls` gives the
    calls as they are now, `reached_at(host)` where a peer reaches us, `sender_of(server)` the
    sender of a request.  `contact` names our user.

    Departs from RFC 6665 §4.4.4 [lists-all-packages]: a 489 does not list refer, which a SUBSCRIBE
    cannot ask for.
    Not done: RFC 6665 §4.4.4 [says-allow-events]: only that refusal says what there is.
    Not done: RFC 6665 §6.3 [authenticates]: a phone has no passwords of others; who a sender is, a
    trusted proxy says, else nobody proves it.
    Not done: RFC 6665 §6.4 [no-replays]: for the same reason.
    """

    def __init__(
        self,
        ua: UserAgent,
        contact: Uri,
        calls: Callable[[], Iterable[DialogState]],
    ) -> None:
        self.may_watch: Callable[[str, Address], bool] = lambda package, sender: False
        self.sender_of: Callable[[ServerHandle], Address] = lambda server: server.request.from_
        self.summary = MessageSummary()
        self.entity = str(contact)
        self._ua, self._calls = ua, calls
        self.reached_at: Callable[[str], Uri] = lambda peer: contact
        self._served: dict[ServedSubscription, int] = {}  # and the version told last

    def on_subscribe(self, server: ServerHandle, now: float) -> None:
        """Take a SUBSCRIBE outside of a dialog (RFC 6665 §4.2.1.1)."""
        request = server.request
        event = EventName.parse(request.headers.get("Event", ""))
        if event.package not in PACKAGES:
            server.reply(489, now, headers=[("Allow-Events", ", ".join(PACKAGES))])
            return
        if not self.may_watch(event.package, self.sender_of(server)):
            raise RemoteError("Forbidden", 403)  # RFC 6665 §4.2.1.3 [403-without-leave]
        refuse_accept(request, PACKAGES[event.package])  # RFC 6665 §3.2.1 [body-as-accepted]
        served = self._ua.serve(server, self.reached_at(server.flow.remote[0]), now)
        served.on_over = lambda subscription: self._served.pop(subscription, None)
        self._served[served] = -1
        self._tell(served, now)

    def changed(self, package: str) -> None:
        """Tell everybody who watches (RFC 6665 §4.2.2)."""
        for served in list(self._served):
            if served.event.package == package:
                self._tell(served, monotonic())

    def _tell(self, served: ServedSubscription, now: float) -> None:
        self._served[served] = version = self._served[served] + 1
        if served.event.package == DIALOG:
            body = dialog_info(self.entity, version, self._calls())
        else:
            body = bytes(self.summary)
        served.tell(PACKAGES[served.event.package], body, now)

"""One dialog of a call: its session, and what the peer can do.

Implements RFC 3261 §12.1 and §13.2.2.4: an INVITE that is forked has a leg for each phone.
"""

from typing import TYPE_CHECKING, Final

from p2psip.dialog.dialog import Dialog
from p2psip.dialog.negotiation import Negotiation
from p2psip.dialog.prack import ProvisionalOrder
from p2psip.sip.message import Request, Response
from p2psip.stack.stack import ServerHandle
from p2psip.ua.requests.extensions import listed
from p2psip.ua.shared_dialog import SharedDialog

if TYPE_CHECKING:
    from p2psip.ua.call import UserAgentCall

# The methods of the INVITE usage.  Source: RFC 5057 §4.1
METHODS: Final = frozenset({"INVITE", "BYE", "UPDATE", "INFO", "PRACK", "MESSAGE", "REFER"})


class CallLeg:
    """The INVITE usage of one dialog (RFC 5057 §4.1).

    `shared` is the dialog with all its usages; `session` the offers and answers within it,
    `order` the reliable provisional responses of the peer.
    """

    def __init__(self, call: "UserAgentCall", dialog: Dialog) -> None:
        self.call, self.dialog = call, dialog
        self.session, self.order = Negotiation(), ProvisionalOrder()
        self.shared = SharedDialog(call.agent, dialog, call.whereabouts, call.keyring)
        self._can: dict[str, frozenset[str]] = {}
        self.shared.attach(self)

    def learn(self, message: Request | Response) -> None:
        """Take note of the abilities that the peer announces (§13.2.1, RFC 6086 §5.2.2)."""
        for name in ("Allow", "Supported", "Recv-Info"):
            tokens = listed(message, name)
            if tokens is not None:  # RFC 3261 §20.5 [no-allow-says-nothing]
                self._can[name] = tokens

    def allows(self, method: str) -> bool:
        """Whether the peer takes a method (§13.2.1)."""
        return method.lower() in self._can.get("Allow", ())

    def supports(self, option: str) -> bool:
        """Whether the peer knows an option tag (§13.2.1)."""
        return option.lower() in self._can.get("Supported", ())

    def receives(self, package: str) -> bool:
        """Whether the peer wants an Info Package (RFC 6086 §5.2.2)."""
        return package.lower() in self._can.get("Recv-Info", ())

    def end(self) -> None:
        """End this usage of the dialog (§12.3)."""
        self.shared.detach(self)

    # Usage

    def takes(self, request: Request) -> bool:
        """Whether a request is one of a call (RFC 5057 §4.1)."""
        return request.method in METHODS

    def on_alive(self, now: float) -> None:
        """Pass on that the peer is there (§12.2.2)."""
        self.call.owner.on_alive(self.call, now)

    def on_request(self, server: ServerHandle, request: Request, now: float) -> None:
        """Pass on a request of the call (§12.2.2)."""
        self.call.on_request(server, request, self, now)

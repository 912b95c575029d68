"""One dialog of a call: its session, and what the peer can do.

Implements RFC 3261 §12.1 and §13.2.2.4: an INVITE that is forked has a leg for each phone.
"""

from p2psip.dialog.negotiation import Negotiation
from p2psip.dialog.prack import ProvisionalOrder
from p2psip.errors import LocalError
from p2psip.sip.message import Request, Response
from p2psip.ua.core import SharedDialog
from p2psip.ua.requests.digest_client import copy_credentials
from p2psip.ua.requests.extensions import listed
from p2psip.ua.requests.request_validation import SDP


class CallLeg:
    """The INVITE usage of one dialog (RFC 5057 §4.1): its session, and the order of its 1xx."""

    def __init__(self, shared: SharedDialog) -> None:
        self.shared, self.dialog = shared, shared.dialog
        self.session, self.order = Negotiation(), ProvisionalOrder()
        self._can: dict[str, frozenset[str]] = {}
        self._ack: tuple[int, Request] | None = None  # of our latest re-INVITE, by its number

    def learn(self, message: Request | Response) -> None:
        """Take note of the abilities that the peer announces (§13.2.1, RFC 6086 §5.2.2)."""
        for name in ("Allow", "Supported", "Recv-Info"):
            tokens = listed(message, name)
            if tokens is not None:  # RFC 3261 §20.5 [no-allow-says-nothing]
                self._can[name] = tokens

    def refresh(self, message: Request | Response) -> None:
        """Take the peer's new target and abilities (§12.2.1.2, §12.2.2)."""
        self.dialog.refresh(message)
        self.learn(message)

    def allows(self, method: str) -> bool:
        """Whether the peer takes a method (§13.2.1)."""
        return method.lower() in self._can.get("Allow", ())

    def supports(self, option: str) -> bool:
        """Whether the peer knows an option tag (§13.2.1)."""
        return option.lower() in self._can.get("Supported", ())

    def receives(self, package: str) -> bool:
        """Whether the peer wants an Info Package (RFC 6086 §5.2.2)."""
        return package.lower() in self._can.get("Recv-Info", ())

    def acknowledge(self, invite: Request, response: Response, now: float) -> None:
        """Send the ACK of a re-INVITE's 2xx, again for each repetition (§13.2.2.4, §12.2.1.2)."""
        number = response.cseq.number
        if self._ack is None or self._ack[0] != number:
            self.refresh(response)  # §12.2.1.2 [2xx-moves-the-target]
            # §13.2.2.4 [same-credentials]
            ack = copy_credentials(invite, self.dialog.ack(number), self.shared.digest_client)
            self._ack = number, ack
        self.shared.send_ack(self._ack[1], now)  # §13.2.2.4 [ack-for-each] [ack-again]

    def bye_request(self, reason: str | None) -> Request:
        """A BYE (§15.1.1); `reason` is a value for its Reason header (RFC 3326 §2)."""
        bye = self.shared.new_request("BYE")
        # RFC 3326 §2 [reason-of-a-bye] [one-reason-per-protocol]
        return bye.replace(headers=bye.headers.append("Reason", reason)) if reason else bye

    def options_request(self) -> Request:
        """A question whether the peer is still there, and what it can do (§11.1)."""
        request = self.shared.new_request("OPTIONS")
        # §11 [asks-within-a-call], §11.1 [options-say-accept]
        return request.replace(headers=request.headers.append("Accept", SDP))

    def info_request(self, content_type: str, body: bytes, package: str | None) -> Request:
        """An INFO, of a package or of the old kind (RFC 6086 §4.2.1).  LocalError: not received."""
        # RFC 6086 §4.2.1 [legacy-names-none] [no-recv-info]
        request = self.shared.new_request("INFO", body, content_type)
        if package is None:
            return request
        # RFC 6086 §4.2.1 [only-in-a-call], §5.2.2 [waits-for-the-list]
        if not self.receives(package):
            raise LocalError(f"the peer does not receive Info Package {package!r}")
        # RFC 6086 §4.2.1 [names-its-package]
        return request.replace(headers=request.headers.append("Info-Package", package))

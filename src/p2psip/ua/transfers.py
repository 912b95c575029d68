"""Transfer: asking the peer to call somebody else, and being asked to.

Implements RFC 3515 §2.4 and RFC 3891 §3 and §4.

A REFER within a call is for its owner to allow or refuse; what becomes of it is told in NOTIFYs,
each with the status line of the latest response.
"""

from collections.abc import Callable
from typing import Final

from p2psip.dialog.subscription import EventName
from p2psip.errors import LocalError, RemoteError
from p2psip.sip.address import Address
from p2psip.sip.message import Request
from p2psip.sip.uri import Uri
from p2psip.stack.stack import ServerHandle
from p2psip.ua.call_leg import CallLeg
from p2psip.ua.core import UserAgentCore
from p2psip.ua.replaces import Replaces
from p2psip.ua.requests.digest_client import DigestClient
from p2psip.ua.subscriptions import REFER, ServedSubscription, Subscription

SIPFRAG: Final = "message/sipfrag"  # Source: RFC 3515 §2.4.5
LIFETIME: Final = 180  # s that a transfer may take: RFC 3515 §3.4 [longer-than-it-rings]


class Referral:
    """A wish of the peer that we call `target` (RFC 3515 §2.4.2), with `headers` for the INVITE."""

    def __init__(self, request: Request) -> None:
        values = request.headers.values("Refer-To")
        if len(values) != 1:
            raise RemoteError("One Refer-To Is Needed", 400)  # RFC 3515 §2.4.2 [400-unless-one]
        address = Address.parse(values[0])
        is_sip = address.uri.scheme in ("sip", "sips")
        if not is_sip or address.uri.param("method") not in (None, "INVITE"):
            raise RemoteError("Decline", 603)  # RFC 3515 §2.4.2 [sip-only]
        # RFC 3515 §2.4.3: the headers of the URI become headers of the INVITE
        wanted = {name.lower(): value for name, value in address.uri.headers}
        self.replaces = wanted.get("replaces")
        if self.replaces is not None:
            Replaces.parse(self.replaces)  # a wrong one is its sender's error, not our peer's
        self.target = Address(address.uri.replace(headers=()).without_params("method"))
        self.referred_by = request.headers.get("Referred-By")
        self._served: ServedSubscription | None = None
        self._last = 100, "Trying"

    @property
    def headers(self) -> list[tuple[str, object]]:
        """The headers of the INVITE that the peer asks for (RFC 3515 §2.4.3, RFC 3891 §4)."""
        fields = (
            ("Replaces", self.replaces),
            ("Referred-By", self.referred_by),  # RFC 3891 §8 [says-who-asked]
        )
        return [(name, value) for name, value in fields if value is not None]

    def serve(self, served: ServedSubscription, now: float) -> None:
        """Tell the peer of the progress from now on (RFC 3515 §2.4.4)."""
        self._served = served
        self.progress(*self._last, now)

    def progress(self, status: int, reason: str, now: float) -> None:
        """Tell the peer of a response to our INVITE; a final one ends it (RFC 3515 §2.4.5).

        Departs from RFC 3515 §3.10 [one-a-second]: a user waits for the news that it rings, and
        that it is answered; only what changes while a NOTIFY is under way is told together.
        """
        self._last = status, reason
        if self._served is not None:
            # RFC 3515 §2.4.4 [a-sipfrag], §2.4.5 [a-sipfrag] [begins-with-the-status]
            body = f"SIP/2.0 {status} {reason}\r\n".encode()
            last = "noresource" if status >= 200 else None  # RFC 3515 §2.4.7 [ends-with-noresource]
            self._served.tell(SIPFRAG, body, now, last=last)


def status_of(content_type: str, body: bytes) -> tuple[int, str]:
    """Read the status in a NOTIFY of the event refer (RFC 3515 §2.4.5).  RemoteError: 415, 400."""
    if content_type != SIPFRAG:
        raise RemoteError("Unsupported Media Type", 415)
    line = (body.splitlines() or [b""])[0]  # Field §"Line feeds in a sipfrag"
    version, _, rest = line.decode(errors="replace").partition(" ")
    digits, _, reason = rest.partition(" ")
    if version.upper() != "SIP/2.0" or len(digits) != 3 or not digits.isdecimal():
        raise RemoteError("Bad Status Line", 400)
    return int(digits), reason


class Transfers:
    """The transfers of one call, in either direction (RFC 3515 §2.4).

    `tell(status, reason, now)` hears what comes of those that we have asked for; the other
    arguments are those of a `Subscription`.
    """

    def __init__(
        self,
        core: UserAgentCore,
        contact: Uri,
        digest_client: DigestClient | None,
        tell: Callable[[int, str, float], object],
    ) -> None:
        self._core, self._contact, self._digest_client = core, contact, digest_client
        self._tell = tell
        self._asked: Subscription | None = None
        self._served: ServedSubscription | None = None
        self._told = 0  # the latest status of the call that we have asked for

    def refer(self, leg: CallLeg, target: Uri, replaces: Replaces | None, now: float) -> None:
        """Ask the peer to call `target`, in place of the call `replaces` (RFC 3515 §2.4.1).

        Raises LocalError while another transfer of the call is open.

        Departs from RFC 6665 §4.5.2 [gruu-not-shared]: the REFER goes within the call, whatever
        Contact the peer has: Target-Dialog, by which it could name the call, is not done.
        """
        if self._asked is not None:
            raise LocalError("the call cannot be transferred now")
        if replaces is not None:
            target = target.replace(headers=(("Replaces", str(replaces)),))
        request = leg.shared.new_request("REFER")  # RFC 3515 §2 [by-the-route]
        # RFC 3515 §2.4.1 [one-refer-to]
        headers = request.headers.append("Refer-To", Address(target))
        # RFC 3891 §8 [says-who-asked]
        headers = headers.append("Referred-By", Address(leg.dialog.local.uri))
        headers = headers.append("Contact", Address(self._contact))  # RFC 3515 §2 [one-contact]
        event, digest_client = EventName(REFER, str(request.cseq.number)), self._digest_client
        self._told = 0
        self._asked = Subscription(
            self._core,
            self,
            self._contact,
            event,
            now,
            digest_client=digest_client,
            expires=LIFETIME,
        )
        self._asked.join(leg.shared, request.replace(headers=headers), now)

    def on_notify(
        self, subscription: Subscription, content_type: str, body: bytes, now: float
    ) -> None:
        """Take the status of the peer's call (RFC 3515 §2.4.5)."""
        self._told, reason = status_of(content_type, body)
        self._tell(self._told, reason, now)

    def on_over(self, subscription: Subscription, status: int, reason: str, now: float) -> None:
        """Take the end: a transfer without a final status has failed (RFC 3515 §2.4.7)."""
        self._asked = None
        if self._told < 200:
            self._tell(status if status >= 300 else 408, reason or "No Result", now)

    def wanted(self, request: Request) -> Referral:
        """Read a REFER of the peer (RFC 3515 §2.4.2), unless we still follow another."""
        referral = Referral(request)
        if self._served is not None and not self._served.is_over:
            raise RemoteError("Request Pending", 491)
        return referral

    def follow(self, referral: Referral, server: ServerHandle, leg: CallLeg, now: float) -> None:
        """Accept the wish of the peer, and tell it of the progress (RFC 3515 §2.4.4)."""
        # RFC 3515 §2.4.2 [202-in-time]
        server.reply(202, now, None, [("Contact", Address(self._contact))])
        # RFC 3515 §2.4.2 [subscribes-the-peer], §2.4.4 [tells-by-notify]
        event = EventName(REFER, str(server.request.cseq.number))
        self._served = ServedSubscription(
            self._core, leg.shared, self._contact, event, LIFETIME, now
        )
        referral.serve(self._served, now)

"""Phones that subscribe to each other's state."""

from support.sip.elements import Phone

from p2psip.dialog.subscription import EventName
from p2psip.errors import RemoteError
from p2psip.sip.address import Address
from p2psip.sip.uri import Uri
from p2psip.ua.outside import outside_request
from p2psip.ua.requests.extensions import Extensions
from p2psip.ua.requests.request_validation import CALL_METHODS
from p2psip.ua.subscriptions import Subscription

KIND = "text/plain"


class Watcher(Phone):
    """A phone that subscribes, and serves subscriptions."""

    def __init__(self, link, address, **options):
        super().__init__(link, address, **options)
        methods = (*CALL_METHODS, "SUBSCRIBE", "NOTIFY")
        self.agent.core.extensions = Extensions(methods=methods)
        self.heard, self.served, self.state = [], [], b"state 1"

    def subscribe(self, host, now, expires=600, event="presence"):
        name = EventName.parse(event)
        subscription = Subscription(self.agent.core, self, self.contact, name, now, expires=expires)
        to, me = (Address(Uri("sip", "user", None, at)) for at in (host, self.address))
        fields = [("Contact", Address(self.contact)), ("Event", name), ("Expires", expires)]
        subscription.start(outside_request(self.random, "SUBSCRIBE", to, me, headers=fields), now)
        return subscription

    def tell(self, now, **options):
        for each in self.served:
            each.tell(KIND, self.state, now, **options)

    @property
    def idle(self):
        return super().idle and not self.agent.core.awaited and not self.agent._subscriptions.used

    # Core
    def on_request(self, server, request, now):
        if request.method == "SUBSCRIBE" and request.to.tag is None:
            served = self.agent.serve(server, self.contact, now)
            self.served.append(served)
            served.on_over = self.served.remove
            served.tell(KIND, self.state, now)
        else:
            super().on_request(server, request, now)

    # SubscriptionHandler
    def on_notify(self, subscription, content_type, body, now):
        if isinstance(self.reply_to_offer, RemoteError):
            raise self.reply_to_offer
        self.heard.append(body)

    def on_over(self, subscription, status, reason, now):
        self.heard.append((status, reason))

"""A stack on its own, fed and emptied by hand, with cores and users that write things down."""

from support.rtmfp.link import Link
from support.sip.elements import PORT, Element, random_source

from p2psip.sip.headers import Headers
from p2psip.sip.message import Request, parse_message
from p2psip.sip.uri import Uri
from p2psip.stack.stack import Flow, Listener, Recipient, Stack

US, THEM = "10.0.0.1", "10.0.0.2"


UDP = Flow("UDP", (THEM, PORT))


class Server:
    """A core that answers at once with `status`, after a 1xx if there is one in `statuses`.

    `knows(request)` tells which requests belong to a known dialog or registration.
    """

    def __init__(self, *statuses):
        self.statuses = statuses or (200,)
        self.requests, self.acks, self.handles = [], [], []
        self.cancelled, self.ended = [], []
        self.knows = lambda request: False

    def recipient(self, request, flow, now):
        return Recipient(self.on_request, self.knows(request))

    def on_request(self, server, request, now):
        self.requests.append(request)
        self.handles.append(server)
        server.user = self
        for status in self.statuses:
            server.reply(status, now)

    def on_ack(self, request, flow, now):
        self.acks.append(request)

    def on_cancel(self, handle, now):
        self.cancelled.append(handle)
        handle.reply(487, now)

    def on_transaction_end(self, handle, now):
        self.ended.append(handle)


class Asker:
    """A user of client transactions that records its events."""

    def __init__(self):
        self.heard = []

    def on_response(self, handle, response, now):
        self.heard.append(response.status)

    def on_failure(self, handle, status, now):
        self.heard.append(-status)


def request(method="OPTIONS", uri=f"sip:{THEM}", cseq=1, *more, body=b""):
    headers = Headers(
        [
            ("Max-Forwards", 70),
            ("From", "<sip:alice@a.com>;tag=a"),
            ("To", "<sip:bob@b.com>"),
            ("Call-ID", "call"),
            ("CSeq", f"{cseq} {method}"),
            *more,
        ]
    )
    return Request(method, Uri.parse(uri), headers, body)


def incoming(method="INVITE", via=f"SIP/2.0/UDP {THEM};branch=z9hG4bKx", cseq=1, to=""):
    return bytes(request(method, f"sip:{US}", cseq, ("Via", via))).replace(
        b"<sip:bob@b.com>", b"<sip:bob@b.com>" + to.encode()
    )


def lone_stack(core=None, **options):
    listeners = [Listener("UDP", US, PORT), Listener("TCP", US, PORT)]
    options.setdefault("trusting", True)
    stack = Stack(random=random_source("x"), listeners=listeners, **options)
    stack.core = core or Server()
    return stack


def pair(core, weather=None, **options):
    link = Link(weather)
    client, server = Element(link, US, **options), Element(link, THEM)
    client.stack.core = server.stack.core = core
    return link, client, server


def sent(stack):
    """The messages among a stack's orders, each with its flow."""
    return [(parse_message(order.data), order.flow) for order in stack.take_orders()]

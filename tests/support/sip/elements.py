"""SIP elements on an in-memory network: a stack and its user agent as nodes of a `Link`."""

import hashlib

from p2psip.errors import RemoteError
from p2psip.sip.address import Address
from p2psip.sip.message import parse_message
from p2psip.sip.uri import Uri
from p2psip.stack.stack import Flow, Listener, Locate, Recipient, Send, Stack
from p2psip.ua.ua import CallHandler, UserAgent

PORT = 5060


def random_source(seed):
    """A `random(n)` that is the same in every run."""
    count = 0

    def random(n):
        nonlocal count
        count += 1
        block = hashlib.sha256(f"{seed} {count}".encode()).digest()
        return (block * (n // 32 + 1))[:n]

    return random


class Element:
    """A stack at one address, reachable by UDP, or by TCP where the flow says so.

    `hosts` maps names to the addresses that a look-up finds.
    """

    def __init__(self, link, address, *, hosts=None, **options):
        self.address, self.hosts = address, hosts or {}
        listeners = [Listener("UDP", address, PORT), Listener("TCP", address, PORT)]
        self.random = random_source(address)
        options.setdefault("trusting", True)
        self.stack = Stack(random=self.random, listeners=listeners, **options)
        self.machines = [self.stack]
        self.orders = []
        link.join(address, self)

    @property
    def deadline(self):
        times = [machine.deadline for machine in self.machines]
        return min((at for at in times if at is not None), default=None)

    def tick(self, now):
        for machine in list(self.machines):
            if machine.deadline is not None and machine.deadline <= now:
                machine.tick(now)
        self.now = now

    def receive(self, parcel, source, now):
        transport, data = parcel
        self.now = now
        self.stack.receive(data, Flow(transport, (source, PORT), (self.address, PORT)), now)

    now = 0.0

    def take(self):
        out = []
        while orders := self.stack.take_orders():
            for order in orders:
                match order:
                    case Send(data, flow):
                        parcel = (flow.transport, data)
                        out.append((parcel, flow.remote[0], flow.transport == "TCP"))
                    case Locate(token, uri):
                        found = self.hosts.get(uri.host, ())
                        flows = [Flow("UDP", (host, PORT)) for host in found]
                        self.stack.located(token, flows, self.now)
        return out


class Phone(Element, CallHandler):
    """An element with one user, which reacts as `answer` says and records its events.

    `answer` is called with every new incoming call.
    """

    def __init__(self, link, address, answer=None, *, answer_timeout=60.0, **options):
        super().__init__(link, address, **options)
        self.agent = UserAgent(self.stack, random=self.random, answer_timeout=answer_timeout)
        self.machines.append(self.agent)
        self.stack.core = self
        self.contact = self.stack.contact("user")
        self.answer = answer or (lambda call, now: call.accept(b"answer", now))
        self.calls, self.log = [], []
        self.reply_to_offer = b"new answer"

    def dial(self, host, now, sdp=b"offer", **options):
        """Call the user at `host`."""
        to, me = (Address(Uri("sip", "user", None, at)) for at in (host, self.address))
        call = self.agent.invite(to, me, self.contact, sdp, self, now, **options)
        self.calls.append(call)
        return call

    @property
    def idle(self):
        """Is everything forgotten?"""
        agent = self.agent
        kept = agent.dialogs, agent.calls, len(agent.core.invites), len(agent.core.timer_queue)
        return not (self.stack.transactions or any(kept))

    def events(self, call=None):
        """The names of the events, for one call or all."""
        return [name for name, about, *_ in self.log if call in (None, about)]

    # Core
    def recipient(self, request, flow, now):
        return self.agent.recipient(request) or Recipient(self.on_request)

    def on_request(self, server, request, now):
        if request.method == "INVITE" and request.to.tag is None:
            call = self.agent.incoming(server, self.contact, self, now)
            self.calls.append(call)
            self.answer(call, now)
        else:
            self.agent.on_stray(server, request, now)

    def on_ack(self, request, flow, now):
        self.agent.on_ack(request, flow, now)

    # CallOwner
    def on_ringing(self, call, status, reason, sdp, now):
        self.log.append(("ringing", call, status, sdp))

    def on_accepted(self, call, sdp, now):
        self.log.append(("accepted", call, sdp))

    def on_rejected(self, call, status, reason, now):
        self.log.append(("rejected", call, status))

    def on_cancelled(self, call, now):
        self.log.append(("cancelled", call))

    def on_ended(self, call, reason, now):
        self.log.append(("ended", call, reason))

    def on_offer(self, call, sdp, now):
        self.log.append(("offer", call, sdp))
        if isinstance(self.reply_to_offer, RemoteError):
            raise self.reply_to_offer
        return self.reply_to_offer

    def on_answer(self, call, sdp, now):
        self.log.append(("answer", call, sdp))

    def on_reoffer_failed(self, call, status, reason, now):
        self.log.append(("reoffer failed", call, status))

    def on_info(self, call, content_type, body, now, package):
        about = (content_type, body) if package is None else (content_type, body, package)
        self.log.append(("info", call, *about))


class Script:
    """A peer that acts only when the test says so, and keeps the messages that it receives."""

    deadline = None

    def __init__(self, link, address):
        self.link, self.address, self.heard, self.out = link, address, [], []
        link.join(address, self)

    def tick(self, now):
        """Time means nothing to it."""

    def receive(self, parcel, source, now):
        self.heard.append(parse_message(parcel[1]))

    def take(self):
        out, self.out = self.out, []
        return out

    def say(self, message, to, wait=0.1):
        """Send a message and let the answer come."""
        self.out.append((("UDP", bytes(message)), to))
        self.link.run(until=self.link.now + wait)
        return self.heard[-1] if self.heard else None

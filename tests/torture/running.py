"""Elements on a virtual clock, and a phone: what each does with the octets of a message."""

from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace

from support.sip.homes import BOB, FAR, HOME, Home
from support.sip.phones import wait_for

from p2psip.agent import Agent, Call
from p2psip.errors import RemoteError
from p2psip.net.clock import monotonic
from p2psip.net.phone.settings import Account
from p2psip.server.location import Binding
from p2psip.sip.address import Address
from p2psip.sip.framing import Malformed, StreamFramer
from p2psip.sip.message import Request, Response, parse_message
from p2psip.stack.stack import Flow, Listener, Send
from p2psip.ua.requests.request_validation import refuse_method
from p2psip.ua.ua import CallHandler

SOURCE = ("192.0.2.250", 5088)  # where each packet comes from, whatever its Via says
ROUTE = Listener("UDP", "127.0.0.1", 5080)  # what the Route of mpart01 names


@dataclass
class Outcome:
    """What an element did: all it sent, the responses and the forwarded requests among it."""

    home: Home
    sent: list = field(default_factory=list)

    @property
    def responses(self):
        """The final responses to the source."""
        return [
            message
            for message, to, _ in self.sent
            if isinstance(message, Response) and message.status >= 200 and to == SOURCE[0]
        ]

    @property
    def forwarded(self):
        """The requests that went on to the phone."""
        return [
            message for message, to, _ in self.sent if isinstance(message, Request) and to == BOB
        ]

    def __str__(self):
        """A word or two for a table."""
        if self.forwarded:
            return "forwarded"
        if self.responses:
            return str(self.responses[0].status)
        return "dropped: malformed" if self.home.stack.counters.malformed else "dropped: stray"


class Callee(CallHandler):
    """A user in the process of an element, who answers every call."""

    def __init__(self):
        self.home, self.calls = None, []

    def take(self, server, now):
        if server.request.method != "INVITE":
            refuse_method(server.request)
        contact = self.home.stack.contact("callee")
        call = self.home.agent.incoming(server, contact, self, now)
        self.calls.append(call)
        call.accept(b"answer", now)


def uri_of(data):
    """The Request-URI of a message, None if it cannot be read."""
    try:
        return parse_message(data).uri
    except (RemoteError, AttributeError):
        return None


def user_agent(data, transport="UDP", **options):
    """Feed an element in whose process every user of its domain lives."""
    callee = Callee()
    callee.home = _home(data, route=lambda request: callee.take, **options)
    return feed(callee.home, data, transport)


def proxy(data, transport="UDP", **options):
    """Feed an element whose users have registered a phone each, at BOB."""
    home, uri = _home(data, **options), uri_of(data)
    aor = home.domains.address_of_record(uri) if uri is not None else None
    if aor is not None and aor[0]:
        phone = Address.parse(f"<sip:phone@{BOB}>")
        home.registrar._put(aor, [Binding(phone, Flow("UDP", (BOB, 5060)), "c", 1, 3600.0)])
    return feed(home, data, transport)


def _home(data, **options):
    """An element of the domains that a message is for, at the address and port that it names."""
    uri = uri_of(data)
    names, listeners = ["example.com"], [ROUTE]
    if uri is not None:
        names.append(uri.host or "example.com")
        listeners += [Listener("UDP", uri.host, uri.port)] if uri.port else []
    home = Home(names=names, listeners=listeners, **options)
    home.hosts["gw1.example.net"] = [FAR]  # a contact that is asked by OPTIONS, and thinks about it
    return home


def feed(home, data, transport="UDP"):
    """What an element sends for some octets from SOURCE, a datagram or a connection's."""
    _feed(home.stack, data, Flow(transport, SOURCE, (HOME, 5060)), 0.0)
    return Outcome(home, home.said())


def _feed(stack, data, flow, now):
    if flow.transport == "UDP":
        stack.receive(data, flow, now)
        return
    for item in StreamFramer().feed(data):
        if isinstance(item, Malformed):
            stack.refuse(item.data, flow, item.error, now)
        elif isinstance(item, Request | Response):
            stack.receive(bytes(item), flow, now)


def phone(data, transport="UDP"):
    """Feed an `Agent` of the user whom a message is for, which answers every call."""
    uri, sent = uri_of(data), []
    agent = Agent(Account((uri.user if uri is not None else None) or "user"))
    agent.on_call = Call.answer
    driver, stack = agent._driver, agent._stack
    driver._carry_out = sent.append  # nothing leaves this machine
    receive = partial(_feed, stack, data, Flow(transport, SOURCE, agent.address), monotonic())
    try:
        driver.run(receive)
        outcome = Outcome(SimpleNamespace(stack=stack))

        def is_settled():
            outcome.sent = [
                (parse_message(order.data), order.flow.remote[0], order.flow.transport)
                for order in sent
                if isinstance(order, Send)
            ]
            return outcome.responses or stack.counters.malformed or stack.counters.stray

        wait_for(is_settled)
        return outcome
    finally:
        agent.close(timeout=0)

"""A SIP domain on an in-memory network: registrar and proxy, and the users who live there."""

from support.sip.elements import PORT, Element, Phone, random_source

from p2psip.nat import stun_server
from p2psip.nat.stun import is_stun
from p2psip.server.domain_server import DomainServer, DomainSettings
from p2psip.server.users import UserStore
from p2psip.sip.address import Address
from p2psip.sip.auth import Challenge, answer, ha1
from p2psip.sip.headers import Headers
from p2psip.sip.message import Request, Response, parse_message
from p2psip.sip.uri import Uri
from p2psip.stack.stack import Flow, Listener
from p2psip.ua.registering.registration import Registration
from p2psip.ua.registering.registrations import Registrations
from p2psip.ua.requests.digest_client import Login

HOME = "10.0.0.1"
ALICE, BOB, CAROL, FAR = "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.9.9"
PASSWORD = "zanzibar"
OUTSIDER = ("From", "<sip:eve@away>;tag=a")


def store(*names, realm="home", algorithms=("SHA-256", "MD5")):
    """Users who all have `PASSWORD`."""
    return UserStore(
        (name, realm, ha1(name, realm, PASSWORD, algorithm))
        for name in names
        for algorithm in algorithms
    )


class Home(Element):
    """The element that serves the domain "home", at a `Link` or alone.

    `names` are more domains that it serves, `listeners` more sockets of its own; `hooks` are set
    on its `SipElement`.  Alone, `hear` feeds it one message and `wait` lets time pass; both give
    what it sends.
    """

    def __init__(
        self,
        link=None,
        *,
        users=None,
        store=None,
        names=(),
        listeners=(),
        nat=False,
        t1=0.5,
        trusting=True,
        **hooks,
    ):
        self.random, self.told = random_source("home"), []  # of contacts that were given up
        listeners = [Listener("UDP", HOME, PORT), Listener("TCP", HOME, PORT), *listeners]
        domains = ["home", HOME, *names]
        server = DomainServer(
            DomainSettings(listeners=listeners, domains=domains, nat=nat, t1=t1, trusting=trusting),
            self.random,
            users=users,
            location=store,
            tell=lambda what, aor, contact: self.told.append((what, str(contact.uri))),
        )
        for name, hook in hooks.items():
            if hook is not None:
                setattr(server.element, name, hook)
        self.serve(server, link)

    def serve(self, server, link=None):
        """Be a node of a network that has all parts of a `DomainServer`."""
        self.address = HOME
        self.hosts = {"far": [FAR], "mirror": [HOME]}
        self.stack, self.domains, self.verifier = server.stack, server.domains, server.verifier
        self.registrar, self.proxy, self.agent = server.registrar, server.proxy, server.agent
        self.endpoint, self.machines = server.element, [self.stack, *server.machines]
        if link is not None:
            link.join(HOME, self)

    def hear(self, message, source=None, transport="UDP", now=0.0):
        """Take one message from `source`; the messages sent, as (message, address, transport).

        Without a source it is Alice who speaks, but a phone that registers itself.
        """
        self.now, source = now, source or _registrant(message) or ALICE
        self.stack.receive(bytes(message), Flow(transport, (source, PORT), (HOME, PORT)), now)
        return self.said()

    def believe(self, message, source=None, transport="UDP"):
        """As `hear`, and once more with the password of its user if that is asked for."""
        sent = self.hear(message, source, transport)
        asked = [m for m, _, _ in sent if isinstance(m, Response) and m.status in (401, 407)]
        return self.hear(signed(message, asked[0]), source, transport) if asked else sent

    def said(self):
        """The messages sent since the last time, as (message, address, transport)."""
        return [(parse_message(data), to, transport) for (transport, data), to, _ in self.take()]

    def wait(self, until):
        """Fire every timer up to the time `until`; [(message, address, transport)] sent."""
        sent = []
        while self.deadline is not None and self.deadline <= until:
            self.tick(self.deadline)
            sent += self.said()
        self.now = until
        return sent

    @property
    def idle(self):
        """Is everything forgotten but the bindings?"""
        return not (self.stack.transactions or self.agent.dialogs or len(self.proxy))


def _registrant(message):
    """The address that a REGISTER gives for its own, if it gives one."""
    if getattr(message, "method", "") != "REGISTER" or "Contact" not in message.headers:
        return None
    host = message.contacts[0].uri.host
    return host if host.startswith("10.") else None


def request(method="INVITE", uri="sip:bob@home", *more, user="alice", cseq=1, to="", call="call"):
    """A request of `user` at ALICE.

    `to` is added to the To; `more` are header pairs, where None takes a header away.
    """
    target = Uri.parse(uri)
    headers = [
        ("Via", f"SIP/2.0/UDP {ALICE};rport;branch=z9hG4bK{call}{cseq}{method}"),
        ("Max-Forwards", 70),
        ("From", f"<sip:{user}@home>;tag=a"),
        ("To", f"<{target.replace(params=())}>{to}"),
        ("Call-ID", call),
        ("CSeq", f"{cseq} {method}"),
        ("Contact", f"<sip:{user}@{ALICE}>"),
    ]
    given = {name for name, _ in more}
    kept = [(name, value) for name, value in headers if name not in given]
    fields = [(name, value) for name, value in (*kept, *more) if value is not None]
    return Request(method, target, Headers(fields))


def register(user="bob", contact=f"<sip:bob@{BOB}>", *more, expires=3600, cseq=1, call="reg"):
    """A REGISTER of `user`; `contact` None asks only."""
    fields = [("Contact", contact), ("To", f"<sip:{user}@home>"), ("Expires", expires), *more]
    return request("REGISTER", "sip:home", *fields, user=user, cseq=cseq, call=call)


def signed(message, challenged, *, user=None, password=PASSWORD, nc=1, cseq=None, uri=None):
    """`message` again, with credentials for the first challenge in the response `challenged`."""
    proxy = challenged.status == 407
    asking = "Proxy-Authenticate" if proxy else "WWW-Authenticate"
    credentials = answer(
        Challenge.parse(challenged.headers.values(asking)[0]),
        message.method,
        uri or message.uri,
        user or message.from_.uri.user,
        password,
        cnonce="c0ffee",
        nc=nc,
        body=message.body,
    )
    number = cseq or message.cseq.number + 1
    headers = message.headers.with_("CSeq", f"{number} {message.method}")
    headers = headers.with_("Via", f"SIP/2.0/UDP {ALICE};rport;branch=z9hG4bKsigned{number}{nc}")
    answering = "Proxy-Authorization" if proxy else "Authorization"
    return message.replace(headers=headers.append(answering, credentials))


def forked(*phones, message=None, **options):
    """A home that has forwarded a request for bob: it, and the request each phone got."""
    home = Home(**options)
    for number, phone in enumerate(phones):
        home.believe(register(contact=f"<sip:bob@{phone}>", cseq=2 * number + 1), source=phone)
    home.wait(0.0)
    sent = home.believe(message or request())
    branches = {to: out for out, to, _ in sent if isinstance(out, Request)}
    return home, branches


def statuses(sent):
    """The responses that Alice is sent, by their status."""
    return [out.status for out, to, _ in sent if isinstance(out, Response) and to == ALICE]


def methods(sent):
    """(method, address) of the requests that went on."""
    return [(out.method, to) for out, to, _ in sent if isinstance(out, Request)]


class Member(Phone):
    """A user of the domain "home", with a phone at `address` that may register and call."""

    def __init__(self, link, address, user, *, transport="UDP", password=PASSWORD, **options):
        super().__init__(link, address, hosts={"home": [HOME]}, **options)
        self.user, self.home = user, Uri("sip", None, None, "home")
        if transport == "TCP":
            self.home = Uri("sip", None, None, HOME, None, (("transport", "tcp"),))
        self.login = Login(user, password, self.home)
        self.contact = self.stack.contact(user, transport)
        self.registrations = Registrations()
        self.registrations.ping = self._ping
        self.machines.append(self.registrations)
        self.heard = []  # of the registration

    def _ping(self, flow, data):
        self.registrations.heard(flow, pong(data, self.address), self.now)

    def register(self, now, **options):
        """Register at home, and stay so."""
        registration = Registration(
            self.stack,
            Address(self.home.replace(user=self.user)),
            self.contact,
            self.home,
            self,
            self.random,
            login=self.login,
            **options,
        )
        self.registrations.add(registration)
        registration.start(now)
        return registration

    def call(self, user, now, **options):
        """Call another user of home."""
        to, me = (Address(self.home.replace(user=name)) for name in (user, self.user))
        options.setdefault("credentials", self.login)
        call = self.agent.invite(to, me, self.contact, b"offer", self, now, **options)
        self.calls.append(call)
        return call

    # RegistrationHandler
    def on_registered(self, registration, expires, now):
        self.heard.append(expires)

    def on_failed(self, registration, status, reason, now):
        self.heard.append(-status)


def pong(data, host):
    """The answer to the keep-alive of a phone at `host`."""
    return stun_server.answer(data, (host, PORT)) if is_stun(data) else b""


def finals(sent):
    """The statuses of the final responses among the messages sent."""
    return [m.status for m, _, _ in sent if isinstance(m, Response) and m.status >= 200]


def forwarded(sent):
    """[(Request-URI, address, transport)] of the requests that went on."""
    return [(str(m.uri), to, how) for m, to, how in sent if isinstance(m, Request)]


def answer_to(sent):
    """The first final response among the messages sent."""
    return next(m for m, _, _ in sent if isinstance(m, Response) and m.status >= 200)

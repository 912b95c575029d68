"""The registrar, the proxy and the user agents of some domains, as one element without sockets.

Implements RFC 3261 §10.3 and §16 by composition.

Own design: whoever serves domains composes here, from one value.  `p2psip.SipServer` and the
gateway bring sockets and a clock; a test brings a network in memory.  A part that is added here
reaches all of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from p2psip.server.digest_server import DigestServer
from p2psip.server.domains import Aor, Domains
from p2psip.server.element import SipElement
from p2psip.server.location import SharedLocation
from p2psip.server.proxy import Proxy
from p2psip.server.registrar import Registrar
from p2psip.server.users import UserStore
from p2psip.sip.address import Address
from p2psip.stack.routing import Listener
from p2psip.stack.stack import Stack
from p2psip.transaction.flow import Flow
from p2psip.transaction.invite_client import T1
from p2psip.ua.requests.extensions import Extensions
from p2psip.ua.ua import UserAgent


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainSettings:
    """How some domains are served.

    `domains` are names that users belong to, the hosts of `listeners` if there are none; all name
    one domain unless they are `distinct`.  With `nat` a phone is reached at the address that it
    registers or calls from.  `listeners`, `advertised`, `inside`, `t1`, `user_agent`,
    `trusting` and `mark` are those of the `Stack`, `answer_timeout` and `extensions` of the user
    agents.
    """

    listeners: Sequence[Listener]
    domains: Sequence[str] = ()
    distinct: bool = False
    nat: bool = False
    advertised: str | None = None
    inside: Callable[[str], str | None] = lambda peer: None
    t1: float = T1
    user_agent: str = "p2psip"
    trusting: bool = False
    mark: str = ""
    answer_timeout: float = 60.0
    extensions: Extensions | None = None


class DomainServer:
    """The parts of an element that serves domains, each connected to the others.

    Without `users` there are no passwords.  Bindings end with the process unless `location` keeps
    them; `tell` is called for each contact that is given up (see `Registrar`).  Set the callbacks
    that judge and route requests on `element`.  Tick `machines` beside the stack; it sends what
    they order.
    """

    def __init__(
        self,
        settings: DomainSettings,
        random: Callable[[int], bytes],
        *,
        users: UserStore | None = None,
        location: SharedLocation | None = None,
        tell: Callable[[str, Aor, Address], None] = lambda what, aor, contact: None,
    ) -> None:
        nat = settings.nat
        self.stack = stack = Stack(
            random=random,
            t1=settings.t1,
            listeners=settings.listeners,
            advertised=settings.advertised,
            inside=settings.inside,
            hosts=settings.domains,
            user_agent=settings.user_agent,
            trusting=settings.trusting,
            mark=settings.mark,
        )
        names = settings.domains or list(dict.fromkeys(at.host for at in settings.listeners))
        self.domains = domains = Domains(names, stack.is_own_address, distinct=settings.distinct)
        self.verifier = None if users is None else DigestServer(users, random)
        self.registrar = Registrar(
            domains, self.verifier, stack, random, store=location, nat=nat, tell=tell
        )
        self.proxy = Proxy(stack)
        self.agent = UserAgent(
            stack,
            random=random,
            answer_timeout=settings.answer_timeout,
            nat=nat,
            extensions=settings.extensions,
        )
        self.element = SipElement(
            stack,
            self.agent,
            self.registrar,
            self.proxy,
            domains,
            verifier=self.verifier,
            nat=nat,
        )
        self._location = location
        self.machines: list[UserAgent | Proxy] = [self.agent, self.proxy]

    def start(self, now: float) -> None:
        """Load the bindings of the location, before any message arrives: §10.3."""
        self.registrar.restore(now)
        if self._location is not None:
            self._location.follow(self.registrar.adopt)

    def keeps(self, flow: Flow, now: float) -> bool:
        """Whether a connection leads to a registered phone, or to one side of a proxied call.

        RFC 5626 §5.3.
        """
        return self.registrar.keeps(flow, now) or self.proxy.dialogs.keeps(flow)

    def is_dead(self, flow: Flow, silence: float, now: float) -> bool:
        """Whether a phone has sent no keep-alive for too long: RFC 5626 §5.4."""
        return self.registrar.is_dead(flow, silence, now)

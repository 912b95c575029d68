"""The registrar: where each address-of-record can be reached, and until when.

Implements RFC 3261 §10.3.

Bindings expire at the next access.  A store (`p2psip.server.location`) keeps them beyond the end of
the process.  A contact at a host that is not its sender's must answer one OPTIONS: `contact_probe`.

A device has one binding, or one for each of its flows (`p2psip.server.outbound`): the last contact
of an instance replaces the one before, as suits a phone that has lost its connection or address.

Not done: RFC 3261 §10.3 [has-date]: no machine here knows the time of day.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from p2psip.errors import RemoteError
from p2psip.server.contact_probe import ContactProbes
from p2psip.server.digest_server import DigestServer
from p2psip.server.domains import Aor, Domains
from p2psip.server.gruu import Gruus, of_one_number, without_gruus
from p2psip.server.location import Binding, LocationStore, MemoryLocation, is_at_host
from p2psip.server.outbound import (
    FLOW_TIMER,
    GRACE,
    ReturnPath,
    answer_headers,
    is_replaced,
    return_path,
    supports,
)
from p2psip.server.register_request import (
    MAX_EXPIRES,
    check_order,
    is_clear_all,
    requested_bindings,
)
from p2psip.sip.address import Address
from p2psip.sip.build import response_to
from p2psip.sip.message import Request
from p2psip.sip.uri import Uri, equivalent
from p2psip.stack.servers import ServerHandle
from p2psip.stack.stack import Stack
from p2psip.transaction.flow import LOCAL, Flow
from p2psip.ua.requests.request_validation import refuse_extensions

UNPROVEN_EXPIRES: Final = 60  # s for a contact that must answer first: the OPTIONS may be lost
MAX_BINDINGS: Final = 10  # of one address-of-record
MAX_USERS: Final = 10_000
MAX_FACTOR: Final = 2.9  # how many times a datagram's size its answer may have

__all__ = ["Binding", "Registrar"]


Place = Flow | str


class BindingIndex:
    """Finds the users that are bound at a place: a connection of a phone, or a host's address.

    Own design: a registrar asks whenever a connection is lost or swept, or an address has to be
    told from a forged one.  It should not look at all of its bindings each time.
    """

    def __init__(self) -> None:
        self._users: dict[Place, set[Aor]] = {}

    def __len__(self) -> int:
        return len(self._users)

    def at(self, place: Place) -> tuple[Aor, ...]:
        """The users with a binding at a place."""
        return tuple(self._users.get(place, ()))

    def moved(self, aor: Aor, before: Sequence[Binding], after: Sequence[Binding]) -> None:
        """Note that a user has these bindings now."""
        old, new = _places_of(before), _places_of(after)
        for place in old - new:
            users = self._users[place]
            users.discard(aor)
            if not users:
                del self._users[place]
        for place in new - old:
            self._users.setdefault(place, set()).add(aor)


def _places_of(bindings: Sequence[Binding]) -> set[Place]:
    flows = [binding.flow for binding in bindings]
    places: set[Place] = {flow.remote[0] for flow in flows}
    return places.union(flow for flow in flows if flow.reliable and flow.transport != LOCAL)


class Registrar:
    """Registrations of one element's domains.

    §10.3.  Without a `verifier` any client may register any user.  `nat` is passed on to
    `Binding.way`.  `tell(what, aor, contact)` reports contacts that the registrar drops by itself:
    "contact-lost" when the connection of the contact was lost, "contact-silent" when the contact
    did not answer its OPTIONS.  `on_change` is told the bindings of a user when they have changed.
    """

    def __init__(
        self,
        domains: Domains,
        verifier: DigestServer | None,
        stack: Stack,
        random: Callable[[int], bytes],
        *,
        store: LocationStore | None = None,
        nat: bool = False,
        tell: Callable[[str, Aor, Address], None] = lambda what, aor, contact: None,
        max_bindings: int = MAX_BINDINGS,
        max_users: int = MAX_USERS,
    ) -> None:
        self._domains, self._verifier, self._stack = domains, verifier, stack
        self._location, self._nat, self._tell = store or MemoryLocation(), nat, tell
        self._max_bindings, self._max_users = max_bindings, max_users
        self._bindings: dict[Aor, list[Binding]] = {}
        self.gruus = Gruus(self._location, random, domains)
        self._binding_index = BindingIndex()
        self._timed: set[Flow] = set()  # connections that were given a Flow-Timer
        self._probes = ContactProbes(stack, random, self._probed)
        self.on_change: Callable[[Aor, Sequence[Binding]], object] = lambda aor, bindings: None
        stack.on_lost = self.on_flow_lost

    def restore(self, now: float) -> None:
        """Load the store, once.  Own design: without bindings that reach no phone any more."""
        for aor, binding in list(self._location.load(now)):
            kept = self._bindings.get(aor, [])
            is_full = len(kept) >= self._max_bindings or (
                not kept and len(self._bindings) >= self._max_users
            )
            is_gone = self._verifier is not None and not self._verifier.knows(aor)
            left = self._again(binding, now)
            if left is not None and not is_full and not is_gone:
                self._put(aor, [*kept, left])
        for aor in list(self._bindings):
            self._ask_again(aor, now)

    def adopt(self, aor: Aor, stored: Sequence[Binding], now: float) -> list[Binding]:
        """Take the bindings that another process has stored for a user; the ones in force now.

        Own design: for a store that several processes share.  Of a connection that a phone opened
        to another process only its Contact is of use here, as after a restart.
        """
        if self._verifier is not None and not self._verifier.knows(aor):
            return []
        mine = {binding.name: binding for binding in self._alive(aor, now)}
        if not mine and len(self._bindings) >= self._max_users:
            return []
        kept = []
        for binding in stored:
            known = mine.get(binding.name)
            is_same = known and (known.call_id, known.cseq) == (binding.call_id, binding.cseq)
            if known is not None and is_same:
                kept.append(of_one_number(known, binding))
            elif left := self._again(binding, now):
                kept.append(left)
        self._put(aor, kept[-self._max_bindings :])
        self._ask_again(aor, now)
        return list(self._bindings.get(aor, ()))

    def on_register(self, server: ServerHandle, request: Request, now: float) -> None:
        """Answer a REGISTER: §10.3, step by step.  Raises RemoteError to refuse it."""
        has_passwords = self._verifier is not None
        options = ("outbound", "gruu", "path") if has_passwords else ("outbound", "gruu")
        refuse_extensions(request, options)  # §10.3 [extensions-are-checked]
        if request.to.uri.scheme not in ("sip", "sips"):
            raise RemoteError("To Is Not A SIP URI")  # RFC 4475 §3.3.4 [registrar-wants-sip]
        aor = self._domains.address_of_record(request.to.uri)
        if aor is None or not aor[0]:
            raise RemoteError("Not Found", 404)  # §10.3 [404-for-strangers]
        if self._verifier is not None:
            challenges = self._verifier.demand(  # §10.3 [authenticates]
                request, aor, self._domains, now, proxy=False, source=server.flow
            )
            if challenges:
                server.reply(401, now, headers=challenges)
                return
        is_ours = self._stack.is_ours
        asked = return_path(request, server.flow, trusts=has_passwords, is_ours=is_ours)
        if request.contacts:
            self._update(aor, request, asked, server, now)
        self._confirm(server, aor, asked, now)
        self._ask_next(aor, now)

    def bindings(self, uri: Uri, now: float) -> list[Binding]:
        """The bindings of `uri` to call now, the preferred first: §16.5."""
        alive = [binding for binding in self.registered(uri, now) if binding.is_proven]
        # RFC 3261 §10.2.1.2 [q-is-a-preference]
        return sorted(alive, key=lambda binding: -binding.q)

    def registered(self, uri: Uri, now: float) -> list[Binding]:
        """All bindings of `uri`, also those that must answer before a call: §10.3 step 8."""
        aor = self._domains.address_of_record(uri)
        return list(self._alive(aor, now)) if aor else []

    def everything(self, now: float) -> list[tuple[Aor, Binding]]:
        """All bindings alive, with their users.  Own design: the operator's list of phones."""
        self._sweep(now)
        return [(aor, each) for aor, bindings in self._bindings.items() for each in bindings]

    def remove(self, aor: Aor, binding: Binding, now: float) -> None:
        """Drop a binding as if it had expired.  Own design: for the operator."""
        kept = [each for each in self._alive(aor, now) if each is not binding]
        self._store(aor, kept, now)

    def keeps(self, flow: Flow, now: float) -> bool:
        """Whether a registered phone is reached by this connection (RFC 5626 §5.3)."""
        index, alive = self._binding_index, self._alive
        return any(each.flow == flow for aor in index.at(flow) for each in alive(aor, now))

    def has_host(self, host: str, now: float) -> bool:
        """Whether a binding was made from this host.  Own design: its address is not forged."""
        users = self._binding_index.at(host)
        return any(each.flow.remote[0] == host for aor in users for each in self._alive(aor, now))

    def is_dead(self, flow: Flow, silence: float, now: float) -> bool:
        """Whether a phone has sent no keep-alive by this connection for too long: RFC 5626 §5.4."""
        is_late = silence > FLOW_TIMER + GRACE  # RFC 5626 §5.4 [grace-period]
        return is_late and flow in self._timed and self.keeps(flow, now)

    def count(self, now: float) -> int:
        """How many bindings are alive.  Own design: for the status page."""
        self._sweep(now)
        return sum(map(len, self._bindings.values()))

    def on_flow_lost(self, flow: Flow, now: float) -> None:
        """Drop the bindings that only the lost connection could reach: RFC 5626 §7."""
        self._timed.discard(flow)
        for aor in self._binding_index.at(flow):
            kept = []
            for binding in self._alive(aor, now):
                left = binding.without_flow() if binding.flow == flow else binding
                if left is not None:
                    kept.append(left)
                else:
                    self._tell("contact-lost", aor, binding.contact)
            self._store(aor, kept, now)
            self._ask_again(aor, now)

    def _probed(self, aor: Aor, contact: Uri, flow: Flow | None, now: float) -> None:
        """Call a contact that has answered from now on, and ask the user's next."""
        if flow is None:
            self._on_silent(aor, contact, now)
            return
        self._store(
            aor,
            [
                replace(binding, is_proven=True, proven=flow)
                if binding.contact.uri == contact and not binding.is_proven
                else binding
                for binding in self._alive(aor, now)
            ],
            now,
        )
        self._ask_next(aor, now)

    def _on_silent(self, aor: Aor, contact: Uri, now: float) -> None:
        """Drop the binding of a contact that has not answered."""
        kept = []
        for binding in self._alive(aor, now):
            if binding.is_proven or binding.contact.uri != contact:
                kept.append(binding)
            else:
                self._tell("contact-silent", aor, binding.contact)
        self._store(aor, kept, now)

    def _ask_next(self, aor: Aor, now: float) -> None:
        """Ask one contact that must answer before it is called; a user has one asked at a time."""
        for binding in self._bindings.get(aor, ()):
            uri = binding.contact.uri
            is_ours = self._stack.is_ours(uri)
            if not (binding.is_proven or is_ours or self._probes.is_asked(aor, uri)):
                self._probes.ask(aor, uri, now)
                return

    def _ask_again(self, aor: Aor, now: float) -> None:
        """Ask the phones of a lost connection whether they listen at their Contact."""
        for binding in list(self._bindings.get(aor, ())):
            uri = binding.contact.uri
            is_ours = self._stack.is_ours(uri)
            if not binding.is_proven and binding.flow.reliable and not is_ours:
                is_asked = self._probes.is_asked(aor, uri)
                if not is_asked and not self._probes.ask(aor, uri, now, vouched=True):
                    self._on_silent(aor, uri, now)

    def _again(self, binding: Binding, now: float) -> Binding | None:
        """A stored binding, adapted after a restart; None if the phone cannot be reached by it."""
        binding = replace(binding, expires_at=min(binding.expires_at, now + MAX_EXPIRES))
        is_local = binding.flow.transport == LOCAL
        if binding.expires_at <= now or not binding.is_proven or is_local:
            return None
        if binding.flow.reliable:
            return binding.without_flow()
        is_way = self._nat or binding.proven or binding.reg_id or binding.path
        is_reached = is_way or is_at_host(binding.contact.uri, binding.flow)
        return binding if is_reached else None

    def _update(
        self, aor: Aor, request: Request, asked: ReturnPath, server: ServerHandle, now: float
    ) -> None:
        """Make all changes of a REGISTER, or none: §10.3 steps 6 and 7."""
        old = self._alive(aor, now)
        if is_clear_all(request):
            for binding in old:
                check_order(binding, request)  # §10.3 [star-in-order]
            self._store(aor, [], now)  # §10.3 [star-removes]
            return
        kept, fresh = list(old), list[Binding]()
        for contact, expires in requested_bindings(request):
            if expires:
                self.gruus.refuse_loop(contact, request.to.uri, aor)
                self._refuse_claim(aor, contact.uri, server)
            reg_id = asked.reg_id(contact)
            replaced = [b for b in kept if is_replaced(b, contact, reg_id, expires)]
            for known in replaced:
                check_order(known, request)
                kept.remove(known)
            fresh = [b for b in fresh if not is_replaced(b, contact, reg_id, expires)]
            if expires:
                call = request.call_id, request.cseq.number
                # RFC 3327 §5.3 [path-is-stored]
                # RFC 5626 §6 [stores-flow] [keeps-the-flow] [updates-flow]
                made = Binding(without_gruus(contact), server.flow, *call, now + expires)
                made = replace(made, reg_id=reg_id, path=asked.path)
                made = self.gruus.numbered(made, [*old, *fresh])
                kept = [of_one_number(each, made) for each in kept]
                fresh.append(self._bind(made, replaced, now))
        if len(fresh) > self._max_bindings:
            raise RemoteError("Too Many Contacts", 403)
        if aor not in self._bindings and fresh and len(self._bindings) >= self._max_users:
            self._sweep(now)
            if len(self._bindings) >= self._max_users:
                raise RemoteError("Too Many Users", 503)
        latest = [*kept, *fresh][-self._max_bindings :]
        self._store(aor, latest, now)  # §8.2 [all] [or-none]; §10.3 [all-or-nothing]

    def _refuse_claim(self, aor: Aor, uri: Uri, server: ServerHandle) -> None:
        """Refuse a contact at our own listeners or domains, except from this process: §10.3 step 4.

        The user's own address-of-record is let pass, see `_bind`.  A contact that names another
        user's phone is harmless: only calls to the user who bound it go there.
        """
        is_local = server.flow.transport == LOCAL
        if is_local and len(server.request.vias) == 1:
            return
        is_own_name = not is_local and self._domains.address_of_record(uri) == aor
        if is_local or (self._stack.is_ours(uri) and not is_own_name):
            raise RemoteError("Forbidden", 403)

    def _bind(self, binding: Binding, replaced: Sequence[Binding], now: float) -> Binding:
        """Finish a new binding; it expires soon if its contact must answer first.

        The user's own address-of-record is kept as a contact (RFC 4475 §3.3.14), and nothing is
        ever sent to it: a call would run in circles.
        """
        contact, flow = binding.contact, binding.flow
        if flow.transport != LOCAL and self._stack.is_ours(contact.uri):
            return replace(binding, is_proven=False)  # RFC 4475 §3.3.14 [escaped-headers-are-kept]
        if self._nat or flow.reliable or is_at_host(contact.uri, flow):
            return binding
        if binding.reg_id or binding.path:
            return binding  # nothing is sent to its contact but by the flow or the path
        for known in replaced:
            if known.proven is not None and equivalent(known.contact.uri, contact.uri):
                return replace(binding, proven=known.proven)
        until = min(binding.expires_at, now + UNPROVEN_EXPIRES)
        return replace(binding, is_proven=False, expires_at=until)

    def _confirm(self, server: ServerHandle, aor: Aor, asked: ReturnPath, now: float) -> None:
        """Answer 200 with all bindings of the user, the latest first: §10.3 step 8.

        Departs from RFC 3261 §10.3: a datagram's answer leaves out the oldest of those that would
        make it more than `MAX_FACTOR` times as long as the question, whose source may be forged.
        """
        bindings = self._alive(aor, now)[::-1]  # §10.3 [all-bindings-told]
        told = [binding.contact for binding in bindings]
        if supports(server.request, "gruu"):
            told = self.gruus.told(bindings, server.request.to.uri)
        contacts = [  # §10.3 [expires-told]
            ("Contact", contact.with_param("expires", str(_left(binding, now))))
            for contact, binding in zip(told, bindings, strict=True)
        ]
        more, tag = answer_headers(server.request, asked, server.flow), server.to_tag
        if server.request.contacts:
            is_timed = any(name == "Flow-Timer" for name, _ in more)
            (self._timed.add if is_timed else self._timed.discard)(server.flow)
        response = response_to(server.request, 200, to_tag=tag, headers=[*more, *contacts])
        excess = 0.0 if server.flow.reliable else len(bytes(response)) - MAX_FACTOR * server.size
        if excess > 0:
            while contacts and excess > 0:
                excess -= len("Contact: \r\n") + len(str(contacts.pop()[1]))
            response = response_to(server.request, 200, to_tag=tag, headers=[*more, *contacts])
        server.respond(response, now)

    def _alive(self, aor: Aor, now: float) -> list[Binding]:
        known = self._bindings.get(aor, [])
        alive = [binding for binding in known if binding.expires_at > now]
        if len(alive) != len(known):
            self._put(aor, alive)  # no need to write: the store has their expiry
        return alive

    def _store(self, aor: Aor, bindings: list[Binding], now: float) -> None:
        """Replace the bindings of a user, in memory and in the store."""
        if bindings != self._bindings.get(aor, []):
            self._put(aor, bindings)
            self._location.keep(aor, self._bindings, now)

    def _put(self, aor: Aor, bindings: list[Binding]) -> None:
        before = self._bindings.pop(aor, ())
        self.gruus.moved(aor, before, bindings)
        self._binding_index.moved(aor, before, bindings)
        if bindings:
            self._bindings[aor] = bindings
        self.on_change(aor, bindings)

    def _sweep(self, now: float) -> None:
        for aor in list(self._bindings):
            self._alive(aor, now)


def _left(binding: Binding, now: float) -> int:
    return max(0, round(binding.expires_at - now))

"""The ways to the phones of users: by address-of-record, by GRUU, and within a dialog.

Implements RFC 3261 §16.5, with the flows of RFC 5626 §5.3, the paths of RFC 3327 §5.4 and the GRUUs
of RFC 5627 §6.1.

Not done: RFC 3261 §16.5 [watches-the-registrar] [adds-late-targets]: a phone that registers while
others ring is called from the next call on.  Most of those that do have lost their connection or
address, and ring already by another branch.
"""

from collections.abc import Sequence
from typing import NamedTuple

from p2psip.errors import RemoteError
from p2psip.server.domains import Aor, Domains
from p2psip.server.location import Binding
from p2psip.server.outbound import by_phone
from p2psip.server.proxied_dialogs import Side
from p2psip.server.registrar import Registrar
from p2psip.server.response_context import Target
from p2psip.sip.build import REASONS
from p2psip.sip.uri import Uri
from p2psip.stack.request_origin import is_return_flow
from p2psip.stack.stack import Flow, Stack


class SideRoute(NamedTuple):
    """The way to one side of a dialog (§12.2).

    `device` is what a GRUU that is its target leads to (RFC 5627 §6.1), `by` are the connections
    that it has opened, and `seen` the flows by which it was heard or registered, the latest first.
    """

    device: Target | None
    by: Sequence[Flow]
    seen: Sequence[Flow]


class TargetFinder:
    """The ways that lead from this element to phones: §16.5.

    With `nat` a phone is reached at the address it registered from.

    Not done: RFC 5630 §5.3 [warns-of-no-sips]: the refusal would tell strangers that a user of this
    name has a phone.
    """

    def __init__(self, stack: Stack, registrar: Registrar, domains: Domains, *, nat: bool) -> None:
        self._stack, self._registrar, self._domains = stack, registrar, domains
        self._nat = nat

    def targets(self, bindings: Sequence[Binding], *, is_device: bool = False) -> list[Target]:
        """The phones to call, or one device, with their other flows as spares: RFC 5626 §7."""
        if is_device:
            # RFC 5627 §6.1 [latest-contact] [next-after-408] [no-other-contact]
            return [self.target(*bindings)] if bindings else []
        return [self.target(*group) for group in by_phone(bindings)]

    def target(self, binding: Binding, *spares: Binding) -> Target:
        """A phone as a target: by path or connection, else by its Contact; with other flows."""
        uri, path = binding.contact.uri, binding.path
        next_hop = path[0].uri if path else uri  # RFC 3327 §5.4 [path-is-the-route]
        # RFC 5630 §5.3 [by-their-connection] [connections-of-phones] [by-tls-all-the-same]
        flows = binding.way(nat=self._nat) or self._stack.flows_to(next_hop)
        # RFC 5627 §6.1: the Contact takes the place of the GRUU
        return Target(uri, flows, binding.q, path, tuple(map(self.target, spares)))

    def user_of(self, uri: Uri, now: float) -> Aor | None:
        """The user that a URI or GRUU leads to, None if it is none of ours: RFC 5627 §6.1."""
        if not self.is_gruu(uri):
            return self._domains.address_of_record(uri)
        aor, gruus = self._registrar.gruus.owner(uri), self._registrar.gruus
        # RFC 5627 §5.3 [gone-with-the-last]
        is_lost = aor is not None and gruus.number(uri) and not self.device(uri, now)
        return None if is_lost else aor

    def is_gruu(self, uri: Uri) -> bool:
        """Whether a URI looks like a GRUU of our domains: RFC 5627 §6.1."""
        return uri.is_gruu and self._domains.of(uri) is not None

    def device(self, uri: Uri, now: float) -> list[Binding]:
        """The bindings of the device that a GRUU names, the latest first: RFC 5627 §6.1."""
        gruus = self._registrar.gruus
        aor = gruus.owner(uri)
        if aor is None:
            return []
        bound = self._registrar.registered(Uri(user=aor[0], host=aor[1]), now)
        return [each for each in reversed(bound) if gruus.is_of(each, uri)]

    def side(self, side: Side, now: float) -> SideRoute:
        """The way to one side of a dialog, maybe to a device (RFC 5627 §6.1).  RemoteError."""
        found = self._bound(side.uri, side.target, now)
        last = [] if side.flow is None else [side.flow]
        by = self._opened(found) + [flow for flow in last if is_return_flow(flow, nat=self._nat)]
        seen = [*last, *(each.proven or each.flow for each in found)]
        if not self.is_gruu(side.target):
            return SideRoute(None, by, seen)
        if not found:
            raise RemoteError(REASONS[480], 480)  # RFC 5627 §6.1 [480-without-contact]
        target = self.target(found[0])
        return SideRoute(target, () if target.path else by, seen)

    def bound(self, user: Uri, target: Uri, now: float) -> Sequence[Flow]:
        """The flows by which a user has registered the Contact `target`: RFC 3261 §16.5."""
        return self._opened(self._bound(user, target, now))

    def _opened(self, found: Sequence[Binding]) -> list[Flow]:
        """The flows of bindings that lead to their phones alone: as in RFC 5626 §5.3."""
        return [flow for binding in found for flow in binding.way(nat=self._nat)]

    def _bound(self, user: Uri, target: Uri, now: float) -> list[Binding]:
        """The bindings of the Contact `target` that a user of ours has: RFC 3261 §16.5."""
        if self.is_gruu(target):
            return [each for each in self.device(target, now) if each.is_proven]
        place = target.user, target.host, target.port
        return [
            each
            for each in self._registrar.bindings(user, now)
            if (each.contact.uri.user, each.contact.uri.host, each.contact.uri.port) == place
        ]

"""The users that are bound at a place: by a connection that a phone has opened, or from a host.

Own design: a registrar asks for them whenever a connection is lost or swept, or an address has to
be told from a forged one, and should not look at all of its bindings each time.
"""

from collections.abc import Sequence

from p2psip.server.domains import Aor
from p2psip.server.location import Binding
from p2psip.transaction.flow import LOCAL, Flow

Place = Flow | str


class BindingIndex:
    """The index of a registrar's bindings by place; a host is its address as text."""

    def __init__(self) -> None:
        self._users: dict[Place, set[Aor]] = {}

    def __len__(self) -> int:
        """How many places have bindings."""
        return len(self._users)

    def at(self, place: Place) -> tuple[Aor, ...]:
        """The users with a binding at a place."""
        return tuple(self._users.get(place, ()))

    def moved(self, aor: Aor, before: Sequence[Binding], after: Sequence[Binding]) -> None:
        """Note that a user has these bindings now."""
        old, new = _hosts(before), _hosts(after)
        for place in old - new:
            users = self._users[place]
            users.discard(aor)
            if not users:
                del self._users[place]
        for place in new - old:
            self._users.setdefault(place, set()).add(aor)


def _hosts(bindings: Sequence[Binding]) -> set[Place]:
    flows = [binding.flow for binding in bindings]
    hosts: set[Place] = {flow.remote[0] for flow in flows}
    return hosts.union(flow for flow in flows if flow.reliable and flow.transport != LOCAL)

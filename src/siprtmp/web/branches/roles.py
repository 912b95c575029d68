"""The roles of clients at the branches: viewer, operator, admin, and users with their own calls.

Own design: a listener that only this machine reaches is the admin's, as for `/status`; where
others reach it, the settings name the users of each role, or a token has a group of its name.  A
role may all that those below it may.  A client that has proved a user is that user, wherever it is.
"""

from collections.abc import Collection
from enum import IntEnum
from typing import Final

from p2psip.stack.routing import is_loopback
from p2psip.transaction.flow import rate_limit_key
from siprtmp.calls.access.admission import Holder
from siprtmp.web.resources.asker import Asker

LOCAL_HOLDER: Final = "loopback"  # as `Admission.holder` calls the programs of this machine


class Role(IntEnum):
    """What a client may of all calls, streams and registrations."""

    NONE = 0
    VIEWER = 1  # reads and subscribes
    OPERATOR = 2  # changes, places and ends
    ADMIN = 3  # reads who has changed what, and sets the level of the log

    @property
    def word(self) -> str:
        """Its name in settings, in the groups of a token, and for clients."""
        return self.name.lower()


class Roles:
    """Tells the role of a client; `is_local` says that only this machine reaches the listener."""

    def __init__(
        self,
        operators: Collection[str],
        *,
        is_local: bool,
        viewers: Collection[str] = (),
        admins: Collection[str] = (),
    ) -> None:
        self.is_local = is_local
        self._named = {
            Role.ADMIN: frozenset(admins),
            Role.OPERATOR: frozenset(operators),
            Role.VIEWER: frozenset(viewers),
        }

    def role(self, asker: Asker) -> Role:
        """The highest role of a client."""
        if asker.user is None:
            is_ours = self.is_local and is_loopback(asker.host)  # which a proxy here may send for
            return Role.ADMIN if is_ours else Role.NONE
        names = {asker.user}
        if not asker.by_token:  # another's user may have any domain, such as that of its mail
            names.add(asker.user.partition("@")[0])
        for role, named in self._named.items():
            if role.word in asker.groups or not named.isdisjoint(names):
                return role
        return Role.NONE

    def is_viewer(self, asker: Asker) -> bool:
        """Whether a client may see everything."""
        return self.role(asker) >= Role.VIEWER

    def is_operator(self, asker: Asker) -> bool:
        """Whether a client may see and end everything."""
        return self.role(asker) >= Role.OPERATOR

    def is_admin(self, asker: Asker) -> bool:
        """Whether a client may also read who has changed what, and change how much is logged."""
        return self.role(asker) >= Role.ADMIN

    def is_one_of(self, asker: Asker, owners: Holder) -> bool:
        """Whether a client is one of these users, who are written as user@realm."""
        user = asker.user
        if user is None:
            return False
        if "@" in user:
            return user in owners
        return any(each.partition("@")[0] == user for each in owners)

    def holder(self, asker: Asker, owners: Holder) -> Holder:
        """The client as a holder of names; `owners` are those that may have the name."""
        if self.is_one_of(asker, owners):
            return owners
        if asker.user is not None:
            return frozenset((asker.user,))
        return frozenset((LOCAL_HOLDER if self.is_local else rate_limit_key(asker.host),))


def payer_of(asker: Asker) -> str:
    """The key that a client's calls are counted under, as `Admission.payer`."""
    if asker.user is None:
        return rate_limit_key(asker.host)
    return asker.user if "@" in asker.user else f"{asker.user}@"

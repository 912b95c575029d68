"""The roles of clients at the branches: operators, and users with their own calls.

Own design: a listener that only this machine reaches is the operator's, as for `/status`; where
others reach it, an operator is a user whom the settings name, or whose token says so.  A client
that has proved a user is that user, wherever it is.
"""

from collections.abc import Collection
from typing import Final

from p2psip.stack.routing import is_loopback
from p2psip.transaction.flow import rate_limit_key
from siprtmp.calls.access.admission import Holder
from siprtmp.web.resources.asker import Asker

OPERATOR: Final = "operator"  # the group of a token
LOCAL_HOLDER: Final = "loopback"  # as `Admission.holder` calls the programs of this machine


class Roles:
    """Tells who a client is; `is_local` says that only this machine reaches the listener."""

    def __init__(self, operators: Collection[str], *, is_local: bool) -> None:
        self._operators, self.is_local = frozenset(operators), is_local

    def is_operator(self, asker: Asker) -> bool:
        """Whether a client may see and end everything."""
        if asker.user is None:
            return self.is_local and is_loopback(asker.host)  # which may be behind a proxy here
        name = asker.user.partition("@")[0]
        named = not self._operators.isdisjoint((asker.user, name))
        return named or OPERATOR in asker.groups

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

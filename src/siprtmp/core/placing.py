"""The calls that a client of the tree has placed: for a name of `call`, or between two phones.

Own design: a client may call in the name of an address or a stream that is its own, and an operator
in any.
"""

import re
from typing import Final, Protocol

from p2psip.errors import RemoteError
from p2psip.sip.address import Address
from p2psip.sip.uri import Uri
from rtmplite.live.streams import Registry
from siprtmp.calls.access.admission import Holder
from siprtmp.calls.anchored.joined_call import JoinedCall
from siprtmp.calls.call import Call
from siprtmp.calls.call_app import CallApplication
from siprtmp.calls.home import CallHome

_SCHEME: Final = re.compile(r"(?:sips?|tel):", re.IGNORECASE)
_NAME: Final = re.compile(r"(?:call/)?([^@?\s/:]+)")
NOT_YOURS: Final = "That is another user's to call as"


class Order(Protocol):
    """The client that has a call placed: the key that it counts under, and where it is."""

    payer: str
    source: str

    def may_be(self, owners: Holder) -> bool:
        """Whether it may call as one of these users; as somebody else, if there are none."""


class Placing:
    """Places calls; `names` are those of `call`, whose streams are in `registry`."""

    def __init__(self, home: CallHome, names: CallApplication, registry: Registry) -> None:
        self._home, self._names, self._registry = home, names, registry

    def owners(self, *addresses: str) -> Holder:
        """The users of ours that these addresses name, as user@realm."""
        found = []
        for text in addresses:
            try:
                found.append(Address.parse(text).uri)
            except RemoteError:
                continue
        return self._home.rights.users(found)

    def place(self, caller: str, callee: str, order: Order, now: float) -> Call:
        """Call `callee` for a name, or two phones.

        Raises RemoteError: 403 where the client may not, or limits forbid it; 409 for a busy name.
        """
        to = _address(callee)
        if match := _NAME.fullmatch(caller):
            return self._for_name(match[1], to, order, now)
        from_ = _address(caller)
        if not order.may_be(self._home.rights.users([from_.uri])):
            raise RemoteError(NOT_YOURS, 403)
        return JoinedCall(self._home, order.payer, order.source).place(from_, to, now)

    def _for_name(self, name: str, to: Address, order: Order, now: float) -> Call:
        """Call for a name: its own user may, and who holds it."""
        holder = self._names.holder_of(name) or frozenset()
        rights, default = self._home.rights, self._home.caller.uri
        uris = [Uri("sip", name, host=each) for each in rights.domains.names]
        if not order.may_be(rights.users(uris) | holder):
            raise RemoteError(NOT_YOURS, 403)
        mine = default.replace(user=name)
        own = (each for each in (mine, *uris) if rights.users([each]))
        caller = Address(next(own, mine))  # so that it can be called back
        return self._names.open(name, self._registry).place(caller, to, order.payer, now)


def _address(text: str) -> Address:
    """Read user@domain, or a SIP or tel URI.  Raises RemoteError."""
    uri = Uri.parse(text if _SCHEME.match(text) else f"sip:{text}")
    if uri.scheme != "tel" and not (uri.user and uri.host):
        raise RemoteError("An address has a user and a host", 422)
    return Address(uri)

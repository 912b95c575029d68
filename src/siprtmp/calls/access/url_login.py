"""The SIP login of a call that a stock tool places, in the query of the stream's name.

Own design: a stock tool has a URL and nothing else.  `?sip-user=NAME&sip-pass=PASSWORD` has it call
as NAME of the callee's own domain, and answer that server's challenges (RFC 3261 §22); the password
is proven to no other server.
"""

from typing import Final
from urllib.parse import unquote

from p2psip.errors import RemoteError
from p2psip.sip.address import Address
from p2psip.sip.uri import Uri
from p2psip.ua.requests.digest_client import Login
from rtmplite.auth.credentials import fields

USER: Final = "sip-user"
PASSWORD: Final = "sip-pass"


def caller_of(query: str, to: Uri, default: Address) -> tuple[Address, Login | None]:
    """The From of a call to `to`, and its login; `default` without one.

    Raises RemoteError for a name that cannot go into a header.
    """
    given = fields(query)
    user, password = (unquote(given.get(name, "")) for name in (USER, PASSWORD))
    if not (user and password) or to.scheme == "tel":
        return default, None
    if not user.isprintable():  # it goes into a header: RFC 3261 §7.3.1
        raise RemoteError("Not a login name")
    server = to.replace(user=None, headers=())
    return Address(server.replace(user=user, params=())), Login(user, password, server)

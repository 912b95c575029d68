"""The telephone number that a tel URI, or the user of a SIP URI, stands for.

Implements RFC 3966 §3, §5.1.1 and §5.4, and RFC 3261 §19.1.1 for numbers in SIP URIs.

    >>> called_number(Uri.parse("tel:+49-30-(123)45")), called_number(Uri.parse("sip:030.123@home"))
    ('+493012345', '030123')
    >>> called_number(Uri.parse("sip:bob@home")) is None
    True
    >>> print(number_at("+493012345", Uri.parse("sip:provider.example:5070;transport=tcp")))
    sip:+493012345@provider.example:5070;transport=tcp;user=phone
"""

import re
from collections.abc import Callable
from typing import Final

from p2psip.errors import RemoteError
from p2psip.sip.uri import Uri

SEPARATORS: Final = str.maketrans("", "", "-.()")  # Source: RFC 3966 §3, visual-separator
CONTEXT: Final = "phone-context"
MANDATORY: Final = "m-"  # how the names of parameters begin that must be understood
_GLOBAL: Final = re.compile(r"\+[0-9]+")
_LOCAL: Final = re.compile(r"[0-9*#]*[0-9][0-9*#]*")
_LOCAL_TEL: Final = re.compile(r"[0-9A-Fa-f*#]+")


def called_number(uri: Uri, knows: Callable[[str], bool] = lambda context: False) -> str | None:
    """The number without visual separators, "+" first if it is a global one; None for no number.

    A local number of a tel URI is valid in its context, and `knows(context)` tells whether calls
    can be placed there; without a context it is dialled as it stands.  Raises RemoteError, 404 for
    an unknown context and 416 for a parameter that must be understood and is not.
    """
    if uri.scheme == "tel":
        return _of_tel(uri, knows)
    if uri.scheme not in ("sip", "sips") or not uri.user:
        return None
    # the user may hold the parameters of a tel URI: RFC 3261 §19.1.1
    text = uri.user.partition(";")[0].translate(SEPARATORS)
    return text if _GLOBAL.fullmatch(text) or _LOCAL.fullmatch(text) else None


def number_at(number: str, server: Uri) -> Uri:
    """The SIP URI of a number at a server that has a way to telephones: RFC 3261 §19.1.1."""
    return server.replace(user=number).with_params(user="phone")  # RFC 3261 §19.1.1 [says-phone]


def _of_tel(uri: Uri, knows: Callable[[str], bool]) -> str:
    # RFC 3966 §5.4 [unknown-mandatory-refused]
    if any(name.lower().startswith(MANDATORY) for name, _ in uri.params):
        raise RemoteError("Unknown Parameter In Tel URI", 416)
    # RFC 3966 §5.1.1 [separators-are-not-dialled]
    number = (uri.user or "").translate(SEPARATORS)
    if _GLOBAL.fullmatch(number):
        return number
    if not _LOCAL_TEL.fullmatch(number):
        raise RemoteError("Not A Number")
    context = uri.param(CONTEXT)
    if context is not None and not knows(context):
        raise RemoteError("Unknown Phone Context", 404)
    return number

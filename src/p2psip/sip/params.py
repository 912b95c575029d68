"""Parameters behind a semicolon, as headers write them: `;tag=88a;lr;text="a;b"`.

Implements RFC 3261 §7.3.1 and `generic-param` of §25.1.

A value is kept as it was written, quotes included, so that a proxy forwards what it
got; `find` gives its meaning.  Names are compared without regard to case.
"""

import re
from collections.abc import Sequence
from typing import Final

from p2psip.errors import RemoteError
from p2psip.sip.grammar import LWS, is_quoted, is_token, quote, unquote

Params = tuple[tuple[str, str | None], ...]

MAX_PARAMS: Final = 40  # of one value; the longest Contact headers seen in use have some 20

_HOST_OR_TOKEN: Final = re.compile(r'[^\x00-\x20"<>,;\x7f]*+')  # what peers write, and more
_BARE: Final = re.compile(r"[A-Za-z0-9\-.!%*_+`'~]++|\[[0-9A-Fa-f:.]++\]|[0-9A-Fa-f:.]++")


def parse_params(pieces: Sequence[str]) -> Params:
    """Parse the parameters, already split at the semicolons (§25.1).

    One semicolon at the end is forgiven: Field §"Separators too many".  Raises RemoteError for any
    other empty piece (RFC 4475 §3.1.2.1) or a value that is neither quoted nor free of separators.
    """
    params: list[tuple[str, str | None]] = []
    for piece in without_empty_end(pieces):
        name, equals, value = piece.partition("=")
        name, value = name.rstrip(LWS), value.lstrip(LWS)
        if not is_token(name) or not (_HOST_OR_TOKEN.fullmatch(value) or is_quoted(value)):
            raise RemoteError("Bad Parameter")  # RFC 4475 §3.1.2.1 [empty-values-refused]
        params.append((name, value if equals else None))
    if len(params) > MAX_PARAMS:
        raise RemoteError("Too Many Parameters")
    return tuple(params)


def without_empty_end(pieces: Sequence[str]) -> Sequence[str]:
    """The pieces but for one empty one at the end.  Own design: one separator may be too many."""
    return pieces[:-1] if pieces and not pieces[-1] else pieces


def find(params: Params, name: str) -> str | None:
    """Return the meaning of a parameter: "" when it has no value, None when absent (§7.3.1).

    >>> find((("lr", None), ("text", '"a;b"')), "TEXT")
    'a;b'
    """
    pairs: tuple[tuple[str | None, ...], ...] = params  # objects that need not be taken apart
    for pair in pairs:
        key = pair[0]
        # §7.3.1 [parameters-have-no-case]
        if key == name or (key and len(key) == len(name) and key.lower() == name.lower()):
            return unquote(pair[1]) if pair[1] else ""
    return None


def put(params: Params, name: str, value: str | None) -> Params:
    """Replace a parameter where it stands, or append it; quote the value if it needs it (§25.1)."""
    if value is not None and not (_BARE.fullmatch(value) or is_quoted(value)):
        value = quote(value)  # §25.1 [specials-in-quotes]
    wanted, new = name.lower(), (name, value)
    if any(key.lower() == wanted for key, _ in params):
        # §7.3.1 [no-parameter-twice]
        return tuple(new if pair[0].lower() == wanted else pair for pair in params)
    return (*params, new)


def drop(params: Params, *names: str) -> Params:
    """Leave out every parameter of these names (§7.3.1)."""
    unwanted = {name.lower() for name in names}
    return tuple(pair for pair in params if pair[0].lower() not in unwanted)


def write_params(params: Params) -> str:
    """Write the parameters with their semicolons (§25.1)."""
    return "".join(f";{name}" if value is None else f";{name}={value}" for name, value in params)

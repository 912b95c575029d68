"""What a server says with the answer to a proof that it has accepted: the next nonce above all.

Implements RFC 7616 §3.5, in the header of RFC 3261 §20.6.

Own design: a server's own proof, `rspauth`, is read and not judged, since a phone that finds it
wrong could do nothing but register again.

    >>> info = AuthenticationInfo.parse('nextnonce="47364c23", qop=auth')
    >>> info.nextnonce, str(info)
    ('47364c23', 'nextnonce="47364c23", qop=auth')
"""

from dataclasses import dataclass
from typing import Self

from p2psip.sip.grammar import split, text_of
from p2psip.sip.params import Params, find, parse_params


@dataclass(frozen=True, slots=True)
class AuthenticationInfo:
    """The value of Authentication-Info: RFC 3261 §20.6."""

    params: Params = ()

    @classmethod
    def parse(cls, data: bytes | memoryview | str) -> Self:
        """Read one value: RFC 3261 §25.1.  Raises RemoteError."""
        return cls(parse_params([piece for piece in split(text_of(data), ",") if piece]))

    def __str__(self) -> str:
        return ", ".join(
            name if value is None else f"{name}={value}" for name, value in self.params
        )

    @property
    def nextnonce(self) -> str | None:
        """The nonce for the next request, None to go on with the one in use: RFC 7616 §3.5."""
        return find(self.params, "nextnonce") or None

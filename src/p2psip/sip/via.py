"""Via: the way that a request came, which its responses go back.

Implements RFC 3261 §20.42 and §18.2, with rport of RFC 3581 §3.

    >>> via = Via.parse("SIP/2.0/UDP pc33.atlanta.com:5066;branch=z9hG4bK776;rport")
    >>> via.transport, via.host, via.port, via.branch, via.has_rport, via.rport
    ('UDP', 'pc33.atlanta.com', 5066, 'z9hG4bK776', True, None)
    >>> print(via.with_param("rport", "9988").with_param("received", "192.0.2.1"))
    SIP/2.0/UDP pc33.atlanta.com:5066;branch=z9hG4bK776;rport=9988;received=192.0.2.1
"""

import dataclasses
from dataclasses import dataclass
from typing import Any, Final, Self

from p2psip.errors import RemoteError
from p2psip.sip.grammar import (
    LWS,
    bracketed,
    first_word,
    host_port,
    is_token,
    number,
    split,
    split_list,
    text_of,
)
from p2psip.sip.known import Known
from p2psip.sip.params import Params, find, parse_params, put, write_params


@dataclass(frozen=True, slots=True, init=False)
class Via:
    """One hop of a request: the transport it used, and where it wants the response (§20.42).

    `transport` is in upper case, `host` in lower case and without brackets.
    """

    transport: str
    host: str
    port: int | None = None
    params: Params = ()

    def __init__(
        self,
        transport: str,
        host: str,
        port: int | None = None,
        params: Params = (),
    ) -> None:
        object.__setattr__(self, "transport", transport)
        object.__setattr__(self, "host", host)
        object.__setattr__(self, "port", port)
        object.__setattr__(self, "params", params)

    @classmethod
    def parse(cls, data: bytes | memoryview | str) -> "Via":
        """Read one `via-parm` of §25.1, white space anywhere.  Raises RemoteError.

        Any version is read, so that a request of version 7.0 can be answered 505.
        """
        return _KNOWN.of(text_of(data))

    @classmethod
    def _read(cls, text: str) -> Self:
        """Read a `via-parm` that is not known yet (§25.1)."""
        first, *rest = split(text, ";")
        protocol, *more = first.split("/", 2)
        if (
            protocol.strip(LWS).upper() != "SIP"
            or len(more) != 2
            or not is_token(more[0].strip(LWS))
        ):
            raise RemoteError("Bad Via")
        transport, sent_by = first_word(more[1])
        if not is_token(transport):  # RFC 4475 §3.1.1.10 [any-transport-is-read]
            raise RemoteError("Bad Via")
        host, port = host_port(sent_by)  # RFC 4475 §3.3.10 [broadcast-via-is-read]
        return cls(transport.upper(), host, port, parse_params(rest) if rest else ())

    @classmethod
    def parse_list(cls, data: bytes | memoryview | str) -> "tuple[Via, ...]":
        """Read the hops of one header line, topmost first (§20.42).  Raises RemoteError."""
        return tuple(cls.parse(value) for value in split_list(text_of(data)))

    def __str__(self) -> str:
        port = "" if self.port is None else f":{self.port}"
        params = write_params(self.params)
        # §8.1.1.7 [via-of-2-0]
        return f"SIP/2.0/{self.transport} {bracketed(self.host)}{port}{params}"

    @property
    def branch(self) -> str | None:
        """The transaction's name; None from an RFC 2543 client (§8.1.1.7)."""
        return find(self.params, "branch")  # RFC 4475 §3.2.1 [bare-cookie-is-read]

    @property
    def received(self) -> str | None:
        """The source address that the next hop saw, without brackets (§18.2.1, RFC 5118 §4.5)."""
        value = find(self.params, "received")
        # RFC 5118 §4.5 [received-either-way]
        return value.strip("[]").lower() if value else value

    @property
    def has_rport(self) -> bool:
        """Whether there is an rport parameter, with a value or without (RFC 3581 §3)."""
        return find(self.params, "rport") is not None

    @property
    def rport(self) -> int | None:
        """The source port that the next hop saw, None if it did not say (RFC 3581 §4).

        Raises RemoteError when it is no port number.
        """
        value = find(self.params, "rport")
        return number(value, 65535) if value else None

    def param(self, name: str) -> str | None:
        """Return a parameter, unquoted: "" when it has no value, None when absent (§20.42)."""
        return find(self.params, name)

    def with_param(self, name: str, value: str | None) -> Self:
        """Return a copy with a parameter set, in its old place if it had one (§18.2.1)."""
        return type(self)(self.transport, self.host, self.port, put(self.params, name, value))

    def written(self) -> str:
        """The text, which is read again where it comes back: with the response (§18.1.2)."""
        text = str(self)
        _KNOWN.keep(text, self)
        return text

    def replace(self, **fields: Any) -> Self:
        """Return a copy with other fields, by `dataclasses.replace` (§20.42)."""
        return dataclasses.replace(self, **fields)


_KNOWN: Final = Known(Via._read)

"""The header section of a message: an ordered, immutable multimap of raw values.

Implements RFC 3261 §7.3, with the compact forms of §7.3.3.

    >>> headers = Headers([("v", "SIP/2.0/UDP host"), ("SUBJECT", "lunch"), ("X-Mood", "good")])
    >>> headers["via"], headers.get("x-mood"), "Route" in headers
    ('SIP/2.0/UDP host', 'good', False)
    >>> list(headers.without("s").append("Supported", "path, gruu"))[-1]
    ('Supported', 'path, gruu')
    >>> headers.with_("Allow", "INVITE, ACK").all("Allow")
    ('INVITE', 'ACK')
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Self, cast, overload

from p2psip.errors import LocalError, RemoteError
from p2psip.sip.grammar import LWS, is_token, split

# Name and value as an object: compiled code takes a `tuple[str, str]` apart, and packs it again.
_Pairs = tuple[tuple[str, ...], ...]

MAX_HEADERS: Final = 256  # lines; a request that went 70 hops has some 90


def _names(text: str) -> list[str]:
    return text.split()


# Header fields that hold a comma-separated list: §20, and the registry that grew from it.
LISTS: Final = frozenset(
    _names("""Accept Accept-Encoding Accept-Language Alert-Info Allow Allow-Events Call-Info Contact
    Content-Encoding Content-Language Error-Info History-Info In-Reply-To P-Asserted-Identity
    P-Preferred-Identity Path Proxy-Require Reason Record-Route Recv-Info Require Route
    Security-Client Security-Server Security-Verify Service-Route Supported Unsupported Via
    Warning""")
)

_OTHERS: Final = _names("""
    Authentication-Info Authorization Call-ID Content-Disposition Content-Length
    Content-Type CSeq Date Event Expires From Identity Info-Package Join Max-Forwards MIME-Version
    Min-Expires Min-SE Organization Privacy Priority Proxy-Authenticate Proxy-Authorization RAck
    Refer-To Referred-By Replaces Reply-To Request-Disposition Retry-After RSeq Server
    Session-Expires SIP-ETag SIP-If-Match Subject Subscription-State Timestamp To User-Agent
    WWW-Authenticate""")

# §7.3.3 and §20; then RFC 6665 §8.2, RFC 3515 §2.1, RFC 4028 §4 and others of the registry.
_COMPACT: Final = {
    "c": "Content-Type",
    "e": "Content-Encoding",
    "f": "From",
    "i": "Call-ID",
    "k": "Supported",
    "l": "Content-Length",
    "m": "Contact",
    "s": "Subject",
    "t": "To",
    "v": "Via",
    "o": "Event",
    "u": "Allow-Events",
    "r": "Refer-To",
    "b": "Referred-By",
    "x": "Session-Expires",
    "d": "Request-Disposition",
    "y": "Identity",
}

_CANONICAL: Final = (
    {name: name for name in (*LISTS, *_OTHERS)}
    | {name.lower(): name for name in (*LISTS, *_OTHERS)}
    | _COMPACT
)
_LONG: Final = frozenset(_CANONICAL.values())


def canonical(name: str) -> str:
    """Return the long form of a name as the RFCs write it; an unknown name as it is (§7.3.3).

    Raises LocalError when `name` is no token, which could smuggle a header line.
    """
    known = _CANONICAL.get(name) or _CANONICAL.get(name.lower())
    if not known and not is_token(name):
        raise LocalError(f"{name!r} is not a header name")
    return known or name


@dataclass(frozen=True, slots=True, init=False)
class Headers:
    """Header lines in order; names are canonical, values are as they came (§7.3.1).

    A value may be given as any object that `str` turns into its text.  `views` keeps what `Views`
    has read of them, by name; a copy takes over what is read of lines that it does not change, and
    only a copy, whose names are canonical already, is made with them.
    """

    fields: tuple[tuple[str, str], ...]
    views: dict[str, Any] = field(compare=False, repr=False)

    def __init__(
        self, fields: Iterable[tuple[str, object]] = (), views: dict[str, Any] | None = None
    ) -> None:
        if views is None:
            fields = tuple([(canonical(name), str(value)) for name, value in fields])
            views = {}
        object.__setattr__(self, "fields", fields)
        object.__setattr__(self, "views", views)

    @classmethod
    def parse_lines(cls, lines: Iterable[str]) -> Self:
        """Read unfolded lines (§7.3.1).  Raises RemoteError for one that is no header."""
        fields: list[tuple[str, str]] = []
        for line in lines:
            name, colon, value = line.partition(":")
            known = _CANONICAL.get(name)
            if known is None:
                name = name.rstrip(LWS)  # §7.3.1 [space-around-the-colon]
                known = _CANONICAL.get(name.lower())  # §7.3.1 [names-have-no-case]
                if known is None and not (colon and is_token(name)):
                    raise RemoteError("Bad Header Line")
            # §7.3.3 [both-forms], §8.2.2 [odd-fields-pass]
            # RFC 4475 §3.1.1.1 [unknown-header-is-text]
            fields.append((known or name, value.strip(LWS)))
        if len(fields) > MAX_HEADERS:
            raise RemoteError("Message Too Large", 513)
        return cls(tuple(fields), {})

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __contains__(self, name: str) -> bool:
        return self.get(name) is not None

    def __getitem__(self, name: str) -> str:
        value = self.get(name)
        if value is None:
            raise KeyError(name)
        return value

    @overload
    def get(self, name: str) -> str | None: ...
    @overload
    def get(self, name: str, default: str) -> str: ...
    def get(self, name: str, default: str | None = None) -> str | None:
        """Return the first value, or `default` (§7.3.1)."""
        known = _CANONICAL.get(name)
        if known is None:
            return next(iter(self.values(name)), default)
        pairs: _Pairs = self.fields
        for pair in pairs:
            if pair[0] == known:
                return pair[1]
        return default

    def values(self, name: str) -> tuple[str, ...]:
        """Return the value of every line of this name, commas untouched (§7.3.1)."""
        known = _CANONICAL.get(name) or _CANONICAL.get(name.lower())
        if known is not None:
            pairs: _Pairs = self.fields
            return tuple([pair[1] for pair in pairs if pair[0] == known])
        wanted = name.lower()
        return tuple([value for key, value in self.fields if key.lower() == wanted])

    def all(self, name: str, *, lenient: bool = False) -> tuple[str, ...]:
        """Return every single value; the lists of §7.3.1 are split at their commas.

        Empty values are left out.  Raises RemoteError where quotes do not balance,
        unless `lenient`.
        """
        lines = self.values(name)
        if not lines or _CANONICAL.get(name.lower()) not in LISTS:
            return lines  # §7.3.1 [no-joined-credentials]
        # §7.3.1 [rows-combine]
        return tuple(
            value for line in lines for value in split(line, ",", lenient=lenient) if value
        )

    def with_(self, name: str, *values: object) -> Self:
        """Return a copy with these values in place of the old ones, or at the end (§7.3.1)."""
        return self.with_all({name: values})

    def without(self, *names: str) -> Self:
        """Return a copy without any line of these names (§7.3.1)."""
        return self.with_all(dict.fromkeys(names, ()))

    def with_all(self, changes: dict[str, tuple[object, ...]]) -> Self:
        """Return a copy with other values of several names, each as by `with_` (§7.3.1)."""
        new: dict[str, tuple[str, tuple[object, ...]]] = {}
        for name, values in changes.items():
            known = canonical(name)
            new[_key(known)] = known, values
        pairs: _Pairs = self.fields
        fields: list[tuple[str, ...]] = []
        for pair in pairs:
            key = _key(pair[0])
            found = new.get(key)
            if found is None:
                fields.append(pair)
            elif found[1]:
                fields += [(found[0], str(value)) for value in found[1]]
                new[key] = found[0], ()
        for known, values in new.values():
            fields += [(known, str(value)) for value in values]
        kept = cast(tuple[tuple[str, str], ...], tuple(fields))
        return (
            self if kept == self.fields else self._changed(kept, [name for name, _ in new.values()])
        )

    def prepend(self, name: str, value: object) -> Self:
        """Return a copy with a new topmost value of this name (§16.6)."""
        name = canonical(name)
        key, at = _key(name), 0
        pairs: _Pairs = self.fields
        for place, pair in enumerate(pairs):
            if _key(pair[0]) == key:
                at = place
                break
        return self._changed((*self.fields[:at], (name, str(value)), *self.fields[at:]), [name])

    def append(self, name: str, value: object) -> Self:
        """Return a copy with one more line at the end (§7.3.1)."""
        name = canonical(name)
        return self._changed((*self.fields, (name, str(value))), [name])

    def _changed(self, fields: tuple[tuple[str, str], ...], names: list[str]) -> Self:
        """A copy in which only lines of these canonical names are others."""
        views = self.views.copy()
        for name in names:
            views.pop(name, None)
        return type(self)(fields, views)


def _key(name: str) -> str:
    """The spelling of a canonical name by which it is found: unknown ones have no case (§7.3.1)."""
    return name if name in _LONG else name.lower()


NO_HEADERS: Final = Headers()

"""Header values with a form of their own: terms, references, dates, times, warnings.

Implements RFC 3261 §20 for headers that no layer here reads on every message; `views` has those.

    >>> [(each.word, each.q) for each in Term.parse_list("application/SDP;level=1, text/*;q=0.3")]
    [('application/sdp', 1.0), ('text/*', 0.3)]
    >>> RetryAfter.parse("18000;duration=3600").duration
    3600
    >>> print(Warn(301, "isi.edu", "Incompatible network protocol"))
    301 isi.edu "Incompatible network protocol"
    >>> date_of("Sat, 13 Nov 2010 23:29:00 GMT")
    1289690940

Each `parse` raises RemoteError and nothing else, and `str` writes what `parse` reads.
"""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Self

from p2psip.errors import LocalError, RemoteError
from p2psip.sip.grammar import (
    LWS,
    bracketed,
    first_word,
    host_port,
    is_quoted,
    is_token,
    number,
    quote,
    split,
    split_list,
    text_of,
    unquote,
)
from p2psip.sip.params import Params, find, parse_params, write_params
from p2psip.sip.uri import Uri
from p2psip.sip.views import MAX_EXPIRES

_WORD: Final = re.compile(r"[A-Za-z0-9\-.!%*_+`'~]++(?:/[A-Za-z0-9\-.!%*_+`'~]++)?")
_DECIMAL: Final = re.compile(r"([0-9]{1,10})(?:\.([0-9]{0,9}))?")
_Q: Final = re.compile(r"0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?")
_DATE: Final = re.compile(
    r"([A-Z][a-z]{2}), ([0-9]{2}) ([A-Z][a-z]{2}) ([0-9]{4}) ([0-9]{2}):([0-9]{2}):([0-9]{2}) GMT"
)
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = "JanFebMarAprMayJunJulAugSepOctNovDec"


@dataclass(frozen=True, slots=True)
class Term:
    """A word with parameters: Accept, Accept-Encoding, Accept-Language, Content-Disposition.

    §20.1, §20.2, §20.3 and §20.11; `word` is in lower case, since case means nothing in it.
    """

    word: str
    params: Params = ()

    @classmethod
    def parse(cls, data: bytes | memoryview | str) -> Self:
        """Read one value (§25.1)."""
        word, *params = split(text_of(data), ";")
        if not _WORD.fullmatch(word):
            raise RemoteError("Bad Header Value")
        return cls(word.lower(), parse_params(params))

    @classmethod
    def parse_list(cls, data: bytes | memoryview | str) -> tuple[Self, ...]:
        """Read a comma-separated list (§7.3.1)."""
        return tuple(cls.parse(value) for value in split_list(text_of(data)))

    def __str__(self) -> str:
        return f"{self.word}{write_params(self.params)}"

    def param(self, name: str) -> str | None:
        """A parameter, unquoted: "" when it has no value, None when absent (§7.3.1)."""
        return find(self.params, name)

    @property
    def q(self) -> float:
        """The preference, 0 to 1; 1 where none is given, or none that makes sense (§20.1)."""
        text = self.param("q") or ""
        return float(text) if _Q.fullmatch(text) else 1.0

    def covers(self, media_type: str) -> bool:
        """Whether this range of Accept has a type in it, such as "application/sdp" (§20.1)."""
        kind, _, _ = media_type.partition("/")
        return self.q > 0 and self.word in (media_type, f"{kind}/*", "*/*")


@dataclass(frozen=True, slots=True)
class Reference:
    """A URI in brackets with parameters: Alert-Info (§20.4), Call-Info (§20.9) and Error-Info.

    Own design: nothing here follows one, as a stranger has written it.
    """

    uri: Uri
    params: Params = ()

    @classmethod
    def parse(cls, data: bytes | memoryview | str) -> Self:
        """Read one value (§25.1)."""
        written, *params = split(text_of(data), ";")
        if not (written.startswith("<") and written.endswith(">")):
            raise RemoteError("Bad Header Value")
        return cls(Uri.parse(written[1:-1]), parse_params(params))

    def __str__(self) -> str:
        return f"<{self.uri}>{write_params(self.params)}"

    def param(self, name: str) -> str | None:
        """A parameter, unquoted: "" when it has no value, None when absent (§7.3.1)."""
        return find(self.params, name)


@dataclass(frozen=True, slots=True)
class RetryAfter:
    """When to try again (§20.33): `seconds` from now, and for how long that will do.

    `comment` is without its parentheses; `duration` in seconds, None for ever.
    """

    seconds: int
    comment: str = ""
    duration: int | None = None

    @classmethod
    def parse(cls, data: bytes | memoryview | str) -> Self:
        """Read a value (§25.1); a comment may hold anything but lonely parentheses."""
        text = text_of(data).strip(LWS)
        digits = re.match(r"[0-9]*+", text)
        assert digits is not None
        rest = text[digits.end() :].strip(LWS)
        comment, rest = _comment(rest) if rest.startswith("(") else ("", rest)
        before, *params = split(rest, ";")
        if before:
            raise RemoteError("Bad Retry-After")
        duration = find(parse_params(params), "duration")
        until = None if duration is None else number(duration, MAX_EXPIRES)
        return cls(number(digits[0], MAX_EXPIRES), comment, until)

    def __str__(self) -> str:
        comment = f" ({self.comment})" if self.comment else ""
        return f"{self.seconds}{comment}" + (
            "" if self.duration is None else f";duration={self.duration}"
        )


@dataclass(frozen=True, slots=True)
class Timestamp:
    """When a request was sent, on its client's clock, and how long its server took (§20.38).

    Both in milliseconds, so that what a server copies into its 100 stays exact (§8.2.6.1).
    """

    sent: int
    delay: int = 0

    @classmethod
    def parse(cls, data: bytes | memoryview | str) -> Self:
        """Read a value (§25.1); what is finer than a millisecond is dropped."""
        sent, delay = first_word(text_of(data))
        # the delay may be absent, or begin with its point
        return cls(
            _milliseconds(sent), _milliseconds(delay if delay[:1].isdigit() else f"0{delay}")
        )

    def __str__(self) -> str:
        return _decimal(self.sent) + (f" {_decimal(self.delay)}" if self.delay else "")


@dataclass(frozen=True, slots=True)
class Warn:
    """One warning (§20.43): a code of three digits, who says so, and a text for people."""

    code: int
    agent: str
    text: str

    @classmethod
    def parse(cls, data: bytes | memoryview | str) -> Self:
        """Read one value (§25.1)."""
        code, rest = first_word(text_of(data))
        agent, text = first_word(rest)
        if len(code) != 3 or not is_quoted(text):
            raise RemoteError("Bad Warning")
        if not is_token(agent):
            host, port = host_port(agent)
            agent = bracketed(host) + ("" if port is None else f":{port}")
        return cls(number(code, 999), agent, unquote(text))

    def __str__(self) -> str:
        return f"{self.code:03} {self.agent} {quote(self.text)}"


def date_of(text: str) -> int:
    """Read a Date as Unix time (§20.17); raises RemoteError, also for any zone but GMT."""
    found = _DATE.fullmatch(text.strip(LWS))
    if not found or found[1] not in _DAYS or found[3] not in _MONTHS:
        raise RemoteError("Bad Date")
    day, year, hour, minute, second = (int(found[group]) for group in (2, 4, 5, 6, 7))
    try:
        at = datetime(year, _MONTHS.index(found[3]) // 3 + 1, day, hour, minute, second)
    except ValueError:
        raise RemoteError("Bad Date") from None
    return round((at - datetime(1970, 1, 1)).total_seconds())


def date_text(seconds: int) -> str:
    """Write Unix time as a Date (§20.17); raises LocalError for a year without four digits."""
    try:
        at = datetime(1970, 1, 1) + timedelta(seconds=seconds)
    except OverflowError:
        raise LocalError(f"{seconds} is no time that a Date can tell") from None
    month = _MONTHS[3 * at.month - 3 : 3 * at.month]
    day = f"{_DAYS[at.weekday()]}, {at.day:02} {month} {at.year:04}"
    return f"{day} {at.hour:02}:{at.minute:02}:{at.second:02} GMT"


def _comment(text: str) -> tuple[str, str]:
    """Split text behind its leading comment, which may have comments within: §25.1."""
    depth, at = 0, 0
    while at < len(text):
        match text[at]:
            case "\\":
                at += 1
            case "(":
                depth += 1
            case ")":
                depth -= 1
                if not depth:
                    return text[1:at], text[at + 1 :]
        at += 1
    raise RemoteError("Open Comment")


def _milliseconds(text: str) -> int:
    found = _DECIMAL.fullmatch(text)
    if not found:
        raise RemoteError("Bad Timestamp")
    return int(found[1]) * 1000 + int((found[2] or "").ljust(3, "0")[:3])


def _decimal(milliseconds: int) -> str:
    whole, part = divmod(milliseconds, 1000)
    return f"{whole}.{part:03}".rstrip("0").rstrip(".") if part else str(whole)

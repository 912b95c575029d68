"""The session description: lines of `<type>=<value>`, in sections.

Implements RFC 8866 §5, with the grammar of §9.

    >>> session = SessionDescription.parse(
    ...     b"v=0\\no=- 1 1 IN IP4 192.0.2.1\\ns=-\\nc=IN IP4 192.0.2.1\\n"
    ...     b"t=0 0\\nm=audio 49170 RTP/AVP 0 8\\na=sendonly\\n"
    ... )
    >>> session.connection.address, session.media[0].port, session.media[0].formats
    ('192.0.2.1', 49170, ('0', '8'))
    >>> session.media[0].attribute("sendonly")
    ''

There is one reader, whose tolerance is data.  A line that no stream needs and that cannot be read
is passed over and named in `faults`; a stream that cannot be read counts as off, and its `fault`
says why.  So a call lives that can: Field §"Descriptions with something amiss".  With `strict` the
first fault is an error, for those who judge descriptions (lint, explain, oracle).  No faults at all
are single newlines, lines out of order, blank lines, no `s=` or two, no `t=`.  Always an error is
what nobody can rely on: no version, an unknown letter, two descriptions in one, too many lines.

    >>> odd = b"v=0\\no=- 1 1 IN IP4 192.0.2.1\\nb=AS:\\nm=audio 9 RTP/AVP 0\\nm=video 0 RTP/AVP\\n"
    >>> SessionDescription.parse(odd).faults
    ('Bad m= line', 'Bad number in SDP')
    >>> SessionDescription.parse(odd, strict=True)
    Traceback (most recent call last):
    p2psip.errors.RemoteError: 400 Bad m= line

Writing is exact.  Text is octets in an unknown character set: it is held as `str` by UTF-8 with
surrogate escapes, so that every octet comes out as it went in.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final, Self, TypeVar

from p2psip.errors import LocalError, RemoteError
from p2psip.sdp.line import Attribute as Attribute
from p2psip.sdp.line import Attributes, find_all, number, words
from p2psip.sdp.line import Bandwidth as Bandwidth
from p2psip.sdp.line import Connection as Connection
from p2psip.sdp.line import Origin as Origin
from p2psip.sdp.line import Timing as Timing

# Own design: these bound the time and the memory that one description can take.  A browser's
# offer of audio and video has some 150 lines, and a payload type number has seven bits.
MAX_MEDIA: Final = 64
MAX_LINES: Final = 600
MAX_FORMATS: Final = 512  # of all media lines

# §5 [newline-alone]
_LINE = re.compile(r"[^\r\n]+")  # any line end will do: §5
_SESSION_LETTERS = "vosiuepcbtrzka"  # §5.12 [drops-keys]
# §5.6 [contacts-first], §5.12 [drops-keys], RFC 3264 §5 [one-description]
_MEDIA_LETTERS = "micbka"
_LETTERS = _SESSION_LETTERS + "m"
_SECOND_SESSION = "vo"  # behind a stream these begin another description: RFC 3264 §5
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class MediaDescription:
    """One media stream: §5.14 (an `m=` line and the lines that belong to it).

    `formats` are the words as written: payload type numbers for RTP, anything for others.
    `more_connections` holds the further `c=` lines that layered multicast may have (§5.7).
    `fault` is the reason why a stream that was read is off here, "" if its author says so.
    """

    kind: str
    port: int
    protocol: str
    formats: tuple[str, ...]
    port_count: int = 1
    information: str = ""
    connection: Connection | None = None
    bandwidths: tuple[Bandwidth, ...] = ()
    attributes: Attributes = ()
    more_connections: tuple[Connection, ...] = ()
    fault: str = field(default="", compare=False, repr=False)

    def attribute(self, name: str) -> str | None:
        """Give the first value of this name, "" for a property, None if absent: §5.13."""
        return next(find_all(self.attributes, name), None)

    def lines(self) -> Iterator[str]:
        """Write the section, in the order of §5."""
        count = "" if self.port_count == 1 else f"/{self.port_count}"
        yield " ".join((f"m={self.kind} {self.port}{count} {self.protocol}", *self.formats))
        if self.information:
            yield f"i={self.information}"
        if self.connection:
            yield from (f"c={each}" for each in (self.connection, *self.more_connections))
        yield from (f"b={each}" for each in self.bandwidths)
        yield from (f"a={each}" for each in self.attributes)


@dataclass(frozen=True, slots=True)
class SessionDescription:
    """A whole description: §5; `faults` are the reasons why lines of it were passed over."""

    origin: Origin
    name: str = "-"
    information: str = ""
    uri: str = ""
    emails: tuple[str, ...] = ()
    phones: tuple[str, ...] = ()
    connection: Connection | None = None
    bandwidths: tuple[Bandwidth, ...] = ()
    times: tuple[Timing, ...] = (Timing(),)
    attributes: Attributes = ()
    media: tuple[MediaDescription, ...] = ()
    version: int = 0
    faults: tuple[str, ...] = field(default=(), compare=False, repr=False)

    @classmethod
    def parse(cls, data: bytes | memoryview, *, strict: bool = False) -> Self:
        """Read a description, or raise RemoteError, also for more than `MAX_LINES` lines.

        An absent or empty name becomes "-" (§5.3), of two the first counts; an absent time is
        "0 0".  Keys (`k=`) are dropped, as §5.12 demands.  With an unknown type letter the whole is
        refused, as §5 allows.  Other faults are noted, or the first one raised if `strict`.
        """
        reader = _Reader(strict)
        # §5 [octets-are-utf-8] and §6.10 [unknown-set-is-octets]
        top, *rest = reader.sections(bytes(data).decode("utf-8", "surrogateescape"))
        where = reader.only(top, "c")
        connection = None if where is None else reader.one(Connection.parse, where)
        has_place = where is None or connection is not None
        media = tuple(reader.media(each, has_place=has_place) for each in rest)
        if sum(len(each.formats) for each in media) > MAX_FORMATS:
            raise RemoteError("Too many formats in SDP")
        if number((reader.only(top, "v") or "").strip(" ")) != 0:  # §5.1
            raise RemoteError("Unknown SDP version")
        return cls(
            origin=reader.one(Origin.parse, reader.only(top, "o") or "") or Origin(),
            name=next(iter(top.get("s", ())), "") or "-",
            information=reader.only(top, "i") or "",
            uri=reader.only(top, "u") or "",
            emails=tuple(top.get("e", ())),
            phones=tuple(top.get("p", ())),
            connection=connection,
            # §5.8 [unknown-bandwidth-ignored]
            bandwidths=reader.each(Bandwidth.parse, top.get("b", ())),
            times=tuple(reader.timings(top.get("t", ()))) or (Timing(),),
            attributes=reader.each(Attribute.parse, top.get("a", ())),
            media=media,
            faults=tuple(reader.faults),
        )

    def attribute(self, name: str) -> str | None:
        """Give the first session-level value, "" for a property, None if absent: §5.13."""
        return next(find_all(self.attributes, name), None)

    def lines(self) -> Iterator[str]:
        """Write all lines, in the order of §5."""
        # §5.3 [one-name] [name-not-empty] [dash-for-no-name]
        yield from (f"v={self.version}", f"o={self.origin}", f"s={self.name or '-'}")
        if self.information:
            yield f"i={self.information}"
        if self.uri:
            yield f"u={self.uri}"
        # §5.6 [contacts-first], and no k= behind it: §5.12 [no-key] [never-writes-keys]
        yield from (f"e={each}" for each in self.emails)
        yield from (f"p={each}" for each in self.phones)
        if self.connection:
            yield f"c={self.connection}"
        yield from (f"b={each}" for each in self.bandwidths)
        for timing in self.times:
            yield from timing.lines()
        yield from (f"a={each}" for each in self.attributes)
        for media in self.media:
            yield from media.lines()

    def __bytes__(self) -> bytes:
        """Write the description; LocalError if some text would break out of its line: §5."""
        lines = list(self.lines())
        if any(char in line for line in lines for char in "\r\n\0"):  # §6.10 [no-line-ends]
            raise LocalError("a value that spans lines cannot be written as SDP")
        # §5 [as-the-grammar], §5.3 [name-in-utf-8] and §5.4 [information-in-utf-8]
        return "\r\n".join([*lines, ""]).encode("utf-8", "surrogateescape")

    def following(self, previous: Self | None) -> Self:
        """Keep the `o=` line of the one before, one version up if anything changed: RFC 3264 §8."""
        if previous is None:
            return self
        same = replace(self, origin=previous.origin)  # RFC 3264 §8 [same-origin]
        # RFC 3264 §8 [same-version-same-text], RFC 6337 §5.2.5 [same-version-same-text]
        if same == previous:
            return same
        # RFC 3264 §8 [version-plus-one]; RFC 3261 §14.1 [new-version]
        # RFC 6337 §5.2.5 [version-by-one]
        return replace(same, origin=replace(previous.origin, version=previous.origin.version + 1))

    def replace_media(self, media: Iterable[MediaDescription]) -> Self:
        """Give the same description with other media sections: §5.14."""
        return replace(self, media=tuple(media))


_Section = dict[str, list[str]]


class _Reader:
    """Reads the lines of one description, and keeps the reasons of those that it passes over."""

    def __init__(self, strict: bool) -> None:
        self.faults: list[str] = []
        self._strict = strict

    def _pass_over(self, error: RemoteError) -> None:
        if self._strict:
            raise error
        self.faults.append(error.reason)

    def sections(self, text: str) -> list[_Section]:
        """Sort the values by type letter: the session's section, then one for each `m=` line."""
        sections: list[_Section] = [{}]
        if "\0" in text:
            raise RemoteError("Nul in SDP")
        for count, match in enumerate(_LINE.finditer(text)):
            line = match.group()
            if count >= MAX_LINES:
                raise RemoteError("Too many lines in SDP")
            if line.startswith("m="):
                if len(sections) > MAX_MEDIA:
                    raise RemoteError("Too many media in SDP")
                sections.append({})
            letter, letters = line[0], _SESSION_LETTERS if len(sections) == 1 else _MEDIA_LETTERS
            if not line.strip(" "):
                self._pass_over(RemoteError("Bad line in SDP"))
            # §5 [unknown-letter-refuses]
            elif line[1:2] != "=" or letter not in _LETTERS:
                raise RemoteError("Bad line in SDP")
            elif letter in "rz" and letter in letters:  # to the t= line before them: §5.9
                sections[-1].setdefault("t", []).append(line)
            elif letter in letters or letter == "m":
                sections[-1].setdefault(letter, []).append(line[2:])
            elif letter in _SECOND_SESSION:
                raise RemoteError("Two descriptions in SDP")
            else:
                # of the session, behind a stream: §5.6 [contacts-first]
                self._pass_over(RemoteError("Bad line in SDP"))
        return sections

    def only(self, section: _Section, letter: str) -> str | None:
        """The value of a line that may stand once, the first of several: §5."""
        values = section.get(letter, ())
        if len(values) > 1:
            self._pass_over(RemoteError(f"Two {letter}= lines"))  # §5.7 [one-for-the-session]
        return next(iter(values), None)

    def one(self, parse: Callable[[str], _T], value: str) -> _T | None:
        """Read a value; None if it cannot be read."""
        try:
            return parse(value)
        except RemoteError as error:
            self._pass_over(error)
            return None

    def each(self, parse: Callable[[str], _T], values: Iterable[str]) -> tuple[_T, ...]:
        """Read the values of lines that may be repeated, without those that cannot be read."""
        found: list[_T] = []
        for value in values:
            try:
                found.append(parse(value))
            except RemoteError as error:
                self._pass_over(error)
        return tuple(found)

    def timings(self, lines: Iterable[str]) -> Iterator[Timing]:
        """Join each `t=` value with the `r=` and `z=` lines behind it: §5.9."""
        timing: Timing | None = None
        repeats: list[str] = []
        zone = ""
        for line in lines:
            if timing and line.startswith("r="):
                repeats.append(line[2:])
            elif timing and line.startswith("z="):
                zone = line[2:]
            else:
                if timing:
                    yield Timing(timing.start, timing.stop, tuple(repeats), zone)
                timing, repeats, zone = self.one(Timing.parse, line), [], ""
        if timing:
            yield Timing(timing.start, timing.stop, tuple(repeats), zone)

    def media(self, section: _Section, *, has_place: bool) -> MediaDescription:
        """Read a stream, off if it cannot be read, or if no address can: §5.14."""
        kind, where, protocol, formats = self._stream(section["m"][0])
        port, count = self.one(_ports, where) or (-1, 1)
        written = section.get("c", ())
        connections = self.each(Connection.parse, written)
        fault = ""
        if port and (port < 0 or not formats):
            fault = "Bad m= line"
        elif port and (len(connections) < len(written) or not (connections or has_place)):
            fault = "Bad c= line"
        return MediaDescription(
            kind=kind,
            port=0 if fault else port,
            protocol=protocol,
            formats=formats,
            port_count=count,
            information=self.only(section, "i") or "",
            connection=connections[0] if connections else None,
            bandwidths=self.each(Bandwidth.parse, section.get("b", ())),
            attributes=self.each(Attribute.parse, section.get("a", ())),
            more_connections=connections[1:],
            fault=fault,
        )

    def _stream(self, line: str) -> tuple[str, str, str, tuple[str, ...]]:
        """Take the value of an `m=` line apart; one that ends too soon says `RTP/AVP`: §5.14."""
        if line.count(" ") > MAX_FORMATS:
            raise RemoteError("Too many formats in SDP")
        match words(line):
            case [kind, where, protocol, first, *others]:
                return kind, where, protocol, (first, *others)
            case [kind, where, protocol]:
                self._pass_over(RemoteError("Bad m= line"))
                return kind, where, protocol, ()
            case [kind, *rest]:
                self._pass_over(RemoteError("Bad m= line"))
                return kind, "".join(rest), "RTP/AVP", ()
        raise RemoteError("Bad m= line")  # whoever answers has to name its kind: RFC 3264 §6


def _ports(text: str) -> tuple[int, int]:
    """Read the second word of `m=`: the first port, and how many there are: §5.14."""
    port, slash, count = text.partition("/")
    return number(port), number(count) if slash else 1

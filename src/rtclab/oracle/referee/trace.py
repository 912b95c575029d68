"""Traces of SIP: the messages of a capture, or of JSON lines, with their times.

Own design: what is no SIP is left out, since captures have much else; SIP that cannot be read is
counted.  A stream is read in the order of its sequence numbers; behind a gap it begins anew.  One
that begins with HTTP is read as a WebSocket.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from p2psip.errors import SipError
from p2psip.sip.framing import Item, Malformed, StreamFramer
from p2psip.sip.message import Message, Request, Response, parse_message
from rtclab.command_line.arguments import ConfigError
from rtclab.explain.sip import SIP_START
from rtclab.oracle.referee.traced import Traced
from rtclab.unwrap.capture_file import CaptureError, frames_of, is_capture
from rtclab.unwrap.headers import NetworkHeader, link_of, walk
from rtclab.unwrap.http import STARTS, HttpWay
from rtclab.unwrap.websocket import WebSocketMessage

_MEMBERS: Final = "time", "from", "to", "transport", "data"


@dataclass(frozen=True, slots=True)
class Trace:
    """The messages by their times, the first at 0 s, and how many more there are of SIP."""

    heard: tuple[Traced, ...]
    unread: int  # messages of SIP that cannot be read


def read(data: bytes) -> Trace:
    """Read a trace.  Raises ConfigError."""
    found = list(_captured(data) if is_capture(data) else _listed(data))
    heard = [each for each in found if each is not None]
    start = heard[0].time if heard else 0.0
    moved = [replace(each, time=each.time - start) for each in heard]
    return Trace(tuple(sorted(moved, key=lambda each: each.time)), found.count(None))


def _listed(data: bytes) -> Iterator[Traced | None]:
    """Lines of JSON with the members time, from, to, transport and data."""
    for number, line in enumerate(data.splitlines(), 1):
        try:
            given = json.loads(line)
        except (ValueError, RecursionError):
            if number == 1:
                raise ConfigError("this is neither a capture nor JSON lines") from None
            raise ConfigError(f"line {number} is no JSON") from None
        try:
            yield from _given(given)
        except ConfigError as error:
            raise ConfigError(f"line {number}: {error}") from None


def _given(given: object) -> Iterator[Traced | None]:
    """Read the JSON object of a line; raises ConfigError, which names the wrong member."""
    if not isinstance(given, dict):
        raise ConfigError("this is no JSON object")
    if missing := [name for name in _MEMBERS if name not in given]:
        raise ConfigError(f'"{missing[0]}" is missing')
    source, destination, transport = (str(given[name]) for name in ("from", "to", "transport"))
    try:
        time = float(given["time"])
    except (TypeError, ValueError, OverflowError):
        raise ConfigError('"time" is no number of seconds') from None
    try:
        octets = given["data"].encode("utf-8", "surrogateescape")
    except (AttributeError, ValueError):
        raise ConfigError('"data" is no text of octets') from None
    for message in _read(octets):
        yield _traced(time, source, destination, transport, message)


@dataclass(slots=True)
class _Stream:
    """One direction of a connection, as far as it was read."""

    next_sequence: int
    framer: StreamFramer = field(default_factory=StreamFramer)
    way: HttpWay | None = None

    @property
    def transport(self) -> str:
        return "TCP" if self.way is None else "WS"

    @property
    def is_broken(self) -> bool:
        return self.framer.broken if self.way is None else self.way.is_lost

    def feed(self, data: bytes) -> list[Message | None]:
        """Take octets of a stream; give the messages that they complete, None if unreadable."""
        if self.way is None:
            return [each for item in self.framer.feed(data) for each in _framed(item)]
        found = list(self.way.feed(data))
        frames = [each.data for each in found if isinstance(each, WebSocketMessage)]
        return [each for frame in frames for each in _read(frame)]


def _captured(data: bytes) -> Iterator[Traced | None]:
    streams: dict[str, _Stream] = {}
    now = 0.0
    try:
        for frame in frames_of(data):
            now = now if frame.time is None else frame.time
            headers = list(walk(data, link_of(frame.link), frame.start, frame.end))
            if headers and headers[-1].ports is not None:
                yield from _frame(headers[-1], now, data, streams)
    except CaptureError as error:
        raise ConfigError(f"the capture cannot be read: {error}") from None


def _frame(
    header: NetworkHeader, time: float, data: bytes, streams: dict[str, _Stream]
) -> Iterator[Traced | None]:
    hosts, ports = header.hosts or ("", ""), header.ports or (0, 0)
    source, destination = (f"{host}:{port}" for host, port in zip(hosts, ports, strict=True))
    carried = data[header.end : header.limit]
    if header.sequence is None:
        transport, found = "UDP", _read(carried)
    else:
        way = f"{source} {destination}"
        transport, found = _segment(way, header.sequence, carried, streams)
    for message in found:
        yield _traced(time, source, destination, transport, message)


def _segment(
    way: str, sequence: int, data: bytes, streams: dict[str, _Stream]
) -> tuple[str, list[Message | None]]:
    """The messages that a segment completes, and what carries them."""
    if not data:
        return "TCP", []
    stream = streams.get(way)
    behind = 0 if stream is None else (sequence - stream.next_sequence) % (1 << 32)
    if stream is None or 0 < behind < 1 << 31:  # nothing was lost before, or something now
        is_http = data.startswith(STARTS)
        stream = streams[way] = _Stream(sequence, way=HttpWay() if is_http else None)
        behind = 0
    data = data[(-behind) % (1 << 32) :]  # what was sent before is not read again
    stream.next_sequence = (stream.next_sequence + len(data)) % (1 << 32)
    found = stream.feed(data)
    if stream.is_broken:
        del streams[way]
    return stream.transport, found


def _traced(
    time: float, source: str, destination: str, transport: str, message: Message | None
) -> Traced | None:
    return None if message is None else Traced(time, source, destination, transport, message)


def _read(data: bytes) -> list[Message | None]:
    """Read a message: None for one of SIP that cannot be read, nothing for anything else."""
    try:
        return [_whole(parse_message(data))]
    except SipError:
        return [None] if SIP_START.match(data) else []


def _framed(item: Item) -> list[Message | None]:
    """The message of an item of a stream, as `_read` gives it."""
    if isinstance(item, Request | Response):
        return [_whole(item)]
    return [None] if isinstance(item, Malformed) and SIP_START.match(item.data) else []


def _whole(message: Message) -> Message | None:
    """Give a message with all that matches it to others; None where that is missing."""
    try:
        _ = message.via, message.cseq, message.call_id, message.from_, message.to
        _ = message.contacts, message.routes, message.record_routes
    except SipError:
        return None
    return message

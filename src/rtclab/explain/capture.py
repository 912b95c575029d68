"""Captures of a network: each packet, and the TCP streams that the packets make.

Own design: what a datagram carries is guessed, and a session description tells the formats of the
RTP behind it.  Streams are described behind the packets; their keys of SRTP are taken before.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from rtclab.command_line.arguments import ConfigError
from rtclab.explain import guess
from rtclab.explain.fields.context import Context
from rtclab.explain.fields.field import Field, Span, counted
from rtclab.explain.fields.source import Fault
from rtclab.unwrap.address import written
from rtclab.unwrap.capture_file import CapturedFrame, CaptureError, frames_of
from rtclab.unwrap.headers import IpFragments, Kind, NetworkHeader, link_of, walk

_MOST: Final = 64 << 20  # octets of a stream
_HOSTED: Final = "IP", "IP6"
_KEY: Final = b"inline:"  # of SRTP, in a description


class Segment(NamedTuple):
    """A part of a TCP stream by its sequence number."""

    sequence: int
    data: bytes
    is_wanted: bool = True


def capture(data: bytes, context: Context, wanted: range | None = None) -> Field:
    """Describe a capture; of the packets only those with `wanted` numbers, counted from 1.

    Those before them are read too, since they tell what the wanted ones mean, and of those behind
    what a stream has.
    Raises ConfigError if the capture is whole and has none of these.
    """
    children: list[Field] = []
    if _KEY in data:
        _take_keys(data, context)
    packets = _Packets(context)
    fault: Fault | None = None
    number = 0
    try:
        for number, frame in enumerate(frames_of(data), 1):
            span = Span(data, frame.start, frame.end)
            if wanted is not None and number not in wanted:
                packets.passed(span, frame, is_before=number < wanted.start)
            else:
                inner = packets.described(span, frame)
                said = "" if frame.time is None else f"{frame.time:.6f} s"
                place, way = (f"packet {number}", frame.start, frame.end), context.way
                children.append(Field(*place, way, said, children=inner))
    except CaptureError as error:
        fault = Fault(f"the capture ends or breaks behind packet {number}: {error}")
    if fault is None and wanted is not None and number < wanted.start:
        raise ConfigError(f"the capture's last packet is number {number}")
    children += packets.streams(len(data))
    return Field(
        "capture", 0, len(data), counted(number, "packet"), children=tuple(children), fault=fault
    )


def _take_keys(data: bytes, context: Context) -> None:
    """Take the keys of SRTP that the TCP streams of a capture have, for its datagrams."""
    scratch = Context(srtp=context.srtp)
    packets = _Packets(scratch)
    with suppress(CaptureError):
        for frame in frames_of(data):
            packets.passed(Span(data, frame.start, frame.end), frame, is_before=False)
    for stream in packets.opened:
        held, _ = assembled(stream.segments) if stream.segments else (b"", 0)
        if _KEY in held:
            scratch.way = stream.way
            guess.stream(Span.all(held), scratch)


@dataclass(slots=True)
class _Stream:
    way: str
    segments: list[Segment]


class _Packets:
    """Describes frames one by one, and keeps what they are parts of."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._fragments = IpFragments()
        self.opened: list[_Stream] = []
        self._open: dict[str, _Stream] = {}
        self._now = 0.0
        self._is_wanted = self._has_datagrams = True

    def described(self, span: Span, frame: CapturedFrame) -> tuple[Field, ...]:
        """Describe the headers of a frame, and what they carry."""
        self._context.way = ""
        self._now = self._now if frame.time is None else frame.time
        return tuple(self._layers(span, link_of(frame.link), ("", "")))

    def passed(self, span: Span, frame: CapturedFrame, *, is_before: bool) -> None:
        """Take a frame that is not to be shown, behind those that are for its streams alone."""
        self._is_wanted, self._has_datagrams = False, is_before
        self.described(span, frame)
        self._is_wanted = self._has_datagrams = True

    def _layers(self, span: Span, kind: Kind | None, hosts: tuple[str, str]) -> Iterator[Field]:
        context, at, lacks = self._context, span.start, 0
        for header in walk(span.data, kind, span.start, span.end):
            hosts, lacks = header.hosts or hosts, lacks + header.lacks
            at, end, value = header.end, header.limit, ""
            if header.ports is not None:
                value = "{} > {}".format(*header.ports)
                context.way = " > ".join(map(written, hosts, header.ports))
            elif header.name in _HOSTED:
                value = context.way = " > ".join(hosts)
            short = f"{counted(header.lacks, 'octet')} behind it not captured"
            yield Field(header.name, header.start, at, value, short if header.lacks else "")
            if header.part is not None:
                yield from self._fragment(header, Span(span.data, at, end), is_cut=lacks > 0)
                return
            if header.sequence is not None:
                yield from self._segment(header, Span(span.data, at, end))
                return
            if header.ports is not None:
                if self._has_datagrams:
                    yield guess.datagram(Span(span.data, at, end), context)
                return
        if at < span.end:
            yield Field("octets", at, span.end, meaning="not described")

    def _fragment(self, header: NetworkHeader, span: Span, *, is_cut: bool) -> Iterator[Field]:
        """Describe a fragment, and the datagram that it completes."""
        assert header.hosts is not None
        meaning = "a part of a datagram"
        whole = None if is_cut else self._fragments.joined(header, bytes(span), self._now)
        if whole is None:
            said = f"{meaning}, which is not whole"
            yield Field("fragment", span.start, span.end, meaning=said, is_part=True)
            return
        inner = tuple(self._layers(Span.all(whole), header.next, header.hosts))
        said = f"{counted(len(whole), 'octet')}"
        yield Field("fragment", span.start, span.end, meaning=f"{meaning}, see below", is_part=True)
        yield Field("datagram", span.end, span.end, said, "put together", None, inner, octets=whole)

    def _segment(self, header: NetworkHeader, span: Span) -> Iterator[Field]:
        """Keep a part of a stream; with the SYN begins another one."""
        way, sequence = self._context.way, header.sequence
        assert sequence is not None
        known = self._open.get(way)
        if known is None or (header.is_syn and any(each.data for each in known.segments)):
            self._open[way] = known = _Stream(way, [])
            self.opened.append(known)
        if header.is_syn:
            sequence = (sequence + 1) % (1 << 32)
        if len(span) or header.is_syn:
            known.segments.append(Segment(sequence, bytes(span), self._is_wanted))
        if len(span):
            meaning = "a part of a stream, see below"
            yield Field("segment", span.start, span.end, meaning=meaning, is_part=True)

    def streams(self, end: int) -> Iterator[Field]:
        """Describe the streams: they are no piece of the file, but made of its packets."""
        for stream in self.opened:
            if any(each.data and each.is_wanted for each in stream.segments):
                yield _described(stream, end, self._context)


def _described(stream: _Stream, end: int, context: Context) -> Field:
    """Describe a stream, of its messages those that the wanted packets have a part of."""
    data, missing = assembled(stream.segments)
    context.way = stream.way
    inner = guess.stream(Span.all(data), context)
    if not all(each.is_wanted for each in stream.segments):
        placed = _placed(stream.segments)
        ranges = [(at, at + len(each.data)) for at, each in placed if each.is_wanted]
        chosen = (
            each
            for each in inner.children
            if any(each.start < last and first < each.end for first, last in ranges)
        )
        inner = replace(inner, children=tuple(chosen))
    fault = Fault(f"{missing} octets are missing, and what follows them") if missing else None
    name, said = f"TCP stream {stream.way}", counted(len(data), "octet")
    return Field(name, end, end, said, "put together", children=(inner,), fault=fault, octets=data)


def _placed(segments: list[Segment]) -> list[tuple[int, Segment]]:
    """The segments in order, with their places in the stream."""
    first = segments[0].sequence
    # numbers wrap; of what came first half of them lie ahead, and the others behind
    placed = sorted(
        (((each.sequence - first + (1 << 31)) % (1 << 32), each) for each in segments),
        key=lambda pair: pair[0],
    )
    return [(at - placed[0][0], each) for at, each in placed]


def assembled(segments: list[Segment]) -> tuple[bytes, int]:
    """Put a stream together up to its first gap; answer it, and how large the gap is.

    >>> assembled([Segment(7, b"lo"), Segment(4, b"hel"), Segment(4, b"hel"), Segment(12, b"!")])
    (b'hello', 3)
    """
    data = bytearray()
    for at, piece in _placed(segments):
        if at > len(data):
            return bytes(data), at - len(data)
        data += piece.data[len(data) - at :]
        if len(data) > _MOST:
            break
    return bytes(data), 0

"""The other side of an RTMP target: as many clients as a case wants, publishers and players.

Own design: the names of streams are new in each case, so that cases can run at the same time and
leave nothing to each other.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Final, TypeAlias

from gevent import socket

from rtclab.conform.case import NotApplicable, Unmet, Unreachable
from rtclab.conform.rtmp.line import MEDIA, QUIET, RtmpLine, at_most, information, said
from rtmplite.amf import amf0
from rtmplite.amf.values import Value
from rtmplite.errors import LocalError, RemoteError
from rtmplite.rtmp.wire.command import Command
from rtmplite.rtmp.wire.message import Message, MessageType
from rtmplite.rtmp.wire.url import split

PORT: Final = 1935
REACH: Final = 2  # s for the target's part of a handshake
AUDIO, VIDEO, DATA = MessageType.AUDIO, MessageType.VIDEO, MessageType.DATA
Sent: TypeAlias = tuple[int, int, bytes]
"""The type, the time in ms and the payload of a message (RTMP 1.0 §7.1)."""
_MEDIA: Final = (AUDIO, VIDEO, DATA)


def connect(target: str) -> closing["RtmpPeer"]:
    """Make a peer of a target, `rtmp://HOST:PORT/APP`; raises ValueError."""
    return closing(RtmpPeer(target))


def reach(target: str) -> None:
    """Raise Unreachable unless the target does its part of a handshake.

    Raises ValueError for an application that it refuses with a reason: the cases need one.
    """
    alive(target)
    with closing(RtmpPeer(target)) as peer, at_most(REACH), suppress(Unmet):
        answer = peer.shaken().connect()
        if answer.name == "_error":
            raise ValueError(f"connect is refused: {said(answer)}")


def alive(target: str) -> None:
    """Raise Unreachable unless the target does its part of a handshake."""
    with closing(RtmpPeer(target)) as peer:
        if not _shakes(peer.line()):
            raise Unreachable("no handshake")


def _shakes(line: RtmpLine) -> bool:
    with at_most(REACH), suppress(Unmet):
        line.shake()
        return True
    return False


class RtmpPeer:
    """Clients of one application; all that they have opened is closed with the case."""

    def __init__(self, target: str) -> None:
        try:
            url = split(target)
        except LocalError as error:
            raise ValueError(str(error)) from None
        self.app = url.path.strip("/")
        if url.scheme != "rtmp" or not url.host or not self.app:
            raise ValueError("a target is rtmp://HOST:PORT/APP")
        self.place = url.host, url.port or PORT
        self.tc_url = f"rtmp://{url.authority}/{self.app}"
        self._lines: list[RtmpLine] = []

    def close(self) -> None:
        """End all connections."""
        for line in self._lines:
            line.socket.close()

    def line(self) -> RtmpLine:
        """A connection, before its handshake."""
        try:
            stream = socket.create_connection(self.place)
        except OSError as error:
            raise Unreachable(error.strerror or str(error)) from None
        line = RtmpLine(stream, self.app, self.tc_url)
        self._lines.append(line)
        return line

    def shaken(self) -> RtmpLine:
        """A connection after its handshake."""
        line = self.line()
        line.shake()
        return line

    def connected(self, **more: Value) -> RtmpLine:
        """A connection whose connect was accepted."""
        line = self.shaken()
        answer = line.connect(**more)
        if answer.name != "_result":
            raise Unmet("_result of connect", said(answer))
        return line

    def stream(self, **more: Value) -> "NetStream":
        """A message stream of a connection of its own, with a name that nobody has."""
        line = self.connected(**more)
        return NetStream(line, line.create_stream(), token())

    def publisher(self, **more: Value) -> "NetStream":
        """A stream that is published; NotApplicable if the target refuses."""
        stream = self.stream(**more)
        stream.publish()
        return stream

    def player(self, name: str, **more: Value) -> "NetStream":
        """A stream that is played; NotApplicable if the target refuses."""
        stream = self.stream(**more)
        stream.name = name
        stream.play()
        return stream

    def pair(self, **more: Value) -> tuple["NetStream", "NetStream"]:
        """A publisher, and a player of what it publishes; `more` are members of connect."""
        publisher = self.publisher(**more)
        return publisher, self.player(publisher.name, **more)

    @contextmanager
    def others_served(self) -> Iterator[RtmpLine]:
        """Give a connected line to do damage to; others must be served during and after that."""
        witness, victim = self.connected(), self.connected()
        with suppress(Unmet):
            yield victim
            with at_most(QUIET):
                victim.between()  # it need not be served, but has been read
        witness.between()
        self.connected().create_stream()


@dataclass
class NetStream:
    """A message stream of a line: RTMP 1.0 §7.2.2."""

    line: RtmpLine
    id: int
    name: str

    def command(self, name: str, *args: Value, number: float = 0.0) -> None:
        """Send a command on this stream."""
        self.line.write(Command(name, number, None, args).message(self.id))

    def statuses(self) -> Iterator[Command]:
        """Wait for one onStatus after another."""
        for command, _ in self.line.commands():
            if command.name == "onStatus":
                yield command

    def status(self, *codes: str) -> dict[str, Value]:
        """Wait for a status with one of these codes; Unmet if an error comes instead."""
        for command in self.statuses():
            found = information(command)
            if found.get("code") in codes:
                return found
            if found.get("level") == "error":
                raise Unmet(" or ".join(codes), said(command))
        raise AssertionError("statuses() has no end")

    def publish(self) -> None:
        """Publish live under the name; NotApplicable if the target refuses (RTMP 1.0 §7.2.2.6)."""
        self.command("publish", self.name, "live", number=self.line.number())
        self._begun("NetStream.Publish.Start")

    def play(self) -> None:
        """Play the name; NotApplicable if the target refuses (RTMP 1.0 §7.2.2.1)."""
        self.command("play", self.name, -2000.0, number=self.line.number())
        self._begun("NetStream.Play.Start")

    def _begun(self, code: str) -> None:
        try:
            self.status(code)
        except Unmet as unmet:
            raise NotApplicable(f"the target refuses: {unmet.got}") from None

    def send(self, type_id: int, time: int, payload: bytes) -> None:
        """Publish a message; `time` in ms."""
        self.line.write(Message(type_id, time, self.id, payload), MEDIA)

    def send_all(self, sent: Iterable[Sent]) -> None:
        """Publish messages."""
        for each in sent:
            self.send(*each)

    def media(self, *types: int) -> Iterator[Message]:
        """Wait for one message of media after another, of these types or any."""
        for message in self.line.messages():
            if message.type_id in (types or _MEDIA):
                yield message

    def data(self, name: str) -> Message:
        """Wait for a data message whose first value is this name."""
        return next(each for each in self.media(DATA) if values(each)[:1] == [name])

    def expect(self, sent: Sequence[Sent]) -> None:
        """Unmet unless these messages come, unchanged and in order, with the same gaps of time."""
        first: int | None = None
        for type_id, time, payload in sent:
            got = next(self.media(AUDIO, VIDEO))
            if (got.type_id, got.payload) != (type_id, payload):
                raise Unmet(_shown(type_id, payload), _shown(got.type_id, got.payload))
            if first is None:
                first = got.timestamp - time
            wanted, found = (time - sent[0][1]) % 2**32, (got.timestamp - sent[0][1] - first)
            if wanted != found % 2**32:
                raise Unmet(f"{wanted} ms after the first message", f"{found % 2**32} ms")


def values(message: Message) -> list[Value]:
    """The values of a data message; Unmet if they cannot be read."""
    try:
        return amf0.decode(message.payload[message.type_id == MessageType.DATA_AMF3 :])
    except RemoteError as error:
        raise Unmet("a data message", f"{error}: {message.payload[:60]!r}") from None


def token() -> str:
    """A name of a stream that nobody else has."""
    return f"conform-{os.urandom(6).hex()}"


def expect_quiet(line: RtmpLine, about: str) -> None:
    """Unmet if anything arrives within a moment, or the connection ends."""
    if found := line.all_within(QUIET):
        raise Unmet(about, f"{len(found)} bytes: {found[:16].hex()}")


def _shown(type_id: int, payload: bytes) -> str:
    more = "..." if len(payload) > 24 else ""
    return f"type {type_id}, {len(payload)} bytes: {payload[:24].hex()}{more}"

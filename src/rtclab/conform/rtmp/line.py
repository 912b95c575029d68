"""One connection to an RTMP target: octets, messages and commands.

Own design: a line does nothing by itself but answer pings and acknowledge, as any client would, so
that the target has no reason to end it.  What else it sends is up to the case.
"""

import os
from collections import deque
from collections.abc import Iterator
from typing import Final

import gevent
from gevent import socket

from rtclab.conform.case import Unmet
from rtmplite.amf.values import Value
from rtmplite.errors import RemoteError
from rtmplite.rtmp.wire import control
from rtmplite.rtmp.wire.chunk_reader import ChunkReader
from rtmplite.rtmp.wire.chunk_writer import ChunkWriter
from rtmplite.rtmp.wire.command import Command
from rtmplite.rtmp.wire.message import Message, MessageType

PACKET: Final = 1536  # bytes of C1, C2, S1 and S2: RTMP 1.0 §5.2.3
VERSION: Final = b"\x03"
QUIET: Final = 0.3  # s without a word from the target: it has nothing to say
PONG: Final = 2.0  # s in which a Ping Request is answered, if at all
NO_PONG: Final = "the target answers no Ping Request"  # which is another case's
COMMANDS: Final = 3  # the chunk stream of commands
CONTROL: Final = 2
MEDIA: Final = 6
ALL_SOUND: Final = 4095.0  # RTMP 1.0 §7.2.1.1
ALL_VIDEO: Final = 255.0
_PIECE: Final = 65536
_ANSWERS: Final = ("_result", "_error")
_COMMAND_TYPES: Final = (MessageType.COMMAND, MessageType.COMMAND_AMF3)


class RtmpLine:
    """A client of `app` at a socket; `raw` has all octets that came after the handshake."""

    def __init__(self, stream: socket.socket, app: str, tc_url: str) -> None:
        self.socket, self.app, self.tc_url = stream, app, tc_url
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.writer = ChunkWriter()
        self.raw = bytearray()
        self.acknowledges = True
        self._reader = ChunkReader()
        self._inbox: deque[Message] = deque()
        self._fresh = b""  # octets before the chunks begin
        self._number = 1.0
        self._window, self._acknowledged = 0, 0

    # -- octets ---------------------------------------------------------------------------

    def send(self, *pieces: bytes) -> None:
        """Send octets, each piece in a segment of its own if the system agrees."""
        try:
            for piece in pieces:
                self.socket.sendall(piece)
        except OSError as error:
            raise Unmet("a connection that stays", error.strerror or str(error)) from None

    def receive(self) -> bytes:
        """Wait for octets, b"" at the end of the connection."""
        try:
            return self.socket.recv(_PIECE)
        except ConnectionError:
            return b""

    def take(self, count: int) -> bytes:
        """Wait for so many octets of the handshake."""
        while len(self._fresh) < count:
            if not (data := self.receive()):
                raise Unmet(f"{count} bytes", f"{len(self._fresh)}, and the connection's end")
            self._fresh += data
        taken, self._fresh = self._fresh[:count], self._fresh[count:]
        return taken

    def all_within(self, seconds: float = QUIET) -> bytes:
        """What comes of the handshake within a moment, or before the connection ends."""
        found, self._fresh = self._fresh, b""
        with at_most(seconds):
            while data := self.receive():
                found += data
        return found

    def shake(self) -> None:
        """Do the handshake as RTMP 1.0 §5.2.1 has it."""
        c1 = packet_1()
        self.send(VERSION + c1)
        s1 = self.take(1 + PACKET)[1:]
        self.send(s1)
        self.take(PACKET)

    # -- messages -------------------------------------------------------------------------

    def messages(self) -> Iterator[Message]:
        """Wait for one message after another."""
        while True:
            while self._inbox:
                message = self._inbox.popleft()
                self._behave(message)
                yield message
            data, self._fresh = self._fresh or self.receive(), b""
            if not data:
                raise Unmet("a message", "the connection's end")
            self.raw += data
            try:
                self._inbox.extend(self._reader.feed(data))
            except RemoteError as error:
                raise Unmet("chunks that make sense", str(error)) from None

    def write(self, message: Message, chunk_stream: int = COMMANDS) -> None:
        """Send a message."""
        self.send(self.writer.write(message, chunk_stream))

    def tell(self, order: control.Control) -> None:
        """Send a control message (RTMP 1.0 §5.4)."""
        self.write(order.message(), CONTROL)

    def set_chunk_size(self, size: int) -> None:
        """Say and use a chunk size (RTMP 1.0 §5.4.1)."""
        self.send(self.writer.set_chunk_size(size))

    def controls(self) -> Iterator[control.Control]:
        """Wait for one control message after another."""
        for message in self.messages():
            if (order := _control(message)) is not None:
                yield order

    def ping(self, time: int) -> int | None:
        """Send a Ping Request; gives the time of its response, or None (RTMP 1.0 §7.1.7)."""
        self.tell(control.PingRequest(time))
        with at_most(PONG):
            for order in self.controls():
                if isinstance(order, control.PingResponse):
                    return order.timestamp
        return None

    def is_over(self, seconds: float = QUIET) -> bool:
        """Listen for a moment; tells whether the target closed the connection."""
        with at_most(seconds):
            while data := self.receive():
                self.raw += data
            return True
        return False

    # -- commands -------------------------------------------------------------------------

    def number(self) -> float:
        """The next transaction id (RTMP 1.0 §7.2)."""
        self._number += 1
        return self._number

    def commands(self) -> Iterator[tuple[Command, int]]:
        """Wait for one command after another, with its message stream."""
        for message in self.messages():
            if message.type_id in _COMMAND_TYPES:
                yield _command(message), message.stream_id

    def ask(self, name: str, *args: Value, object: Value = None) -> Command:
        """Call, and wait for the answer (RTMP 1.0 §7.2.1.2)."""
        call = Command(name, self.number(), object, args)
        self.write(call.message())
        return self.answer(call.transaction_id)

    def answer(self, number: float) -> Command:
        """Wait for the answer to a call."""
        return next(
            command
            for command, _ in self.commands()
            if command.name in _ANSWERS and command.transaction_id == number
        )

    def connect(self, *args: Value, **more: Value) -> Command:
        """Send connect, and wait for the answer (RTMP 1.0 §7.2.1.1)."""
        self.write(self.connect_command(*args, **more).message())
        return next(command for command, _ in self.commands() if command.name in _ANSWERS)

    def connect_command(self, *args: Value, **more: Value) -> Command:
        """A connect; `more` are members of its object, beside or instead of the usual ones."""
        usual: dict[str, Value] = {
            "app": self.app,
            "flashVer": "FMLE/3.0 (compatible; conform)",
            "tcUrl": self.tc_url,
            # some servers hold back what is not named: RTMP Errata §8.1.4
            "audioCodecs": ALL_SOUND,
            "videoCodecs": ALL_VIDEO,
        }
        return Command("connect", 1.0, usual | more, args)

    def create_stream(self) -> int:
        """Make a message stream (RTMP 1.0 §7.2.1.3)."""
        answer = self.ask("createStream")
        number = answer.args[0] if answer.args else None
        if answer.name != "_result" or not isinstance(number, float) or number < 1:
            raise Unmet("_result with a stream", said(answer))
        return int(number)

    def between(self) -> list[Message]:
        """What comes before the answer to a last call: all that was sent before has been read."""
        call = Command("createStream", self.number())
        self.write(call.message())
        found = []
        for message in self.messages():
            if message.type_id in _COMMAND_TYPES:
                command = _command(message)
                if command.name in _ANSWERS and command.transaction_id == call.transaction_id:
                    break
            found.append(message)
        return found

    def _behave(self, message: Message) -> None:
        match _control(message):
            case control.PingRequest(time):
                self.tell(control.PingResponse(time))
            case control.WindowAcknowledgementSize(size):
                self._window = size
        count = self._reader.bytes_received
        if self.acknowledges and self._window and count - self._acknowledged >= self._window:
            self.acknowledge()

    def acknowledge(self) -> None:
        """Say how much has come (RTMP 1.0 §5.4.3)."""
        self._acknowledged = self._reader.bytes_received
        self.tell(control.Acknowledgement(self._acknowledged))


def packet_1() -> bytes:
    """A C1 (RTMP 1.0 §5.2.3), whose time is other than 0."""
    return bytes.fromhex("00012345 00000000") + os.urandom(PACKET - 8)


def at_most(seconds: float) -> gevent.Timeout:
    """A block that ends after this time, without an error.

    Own design: False is how gevent says so, which its types leave out.
    """
    return gevent.Timeout(seconds, False)  # type: ignore[arg-type]


def said(command: Command) -> str:
    """A command for a report: its name, and its code if it has one."""
    code = information(command).get("code")
    return f"{command.name} {code}" if isinstance(code, str) else f"{command.name} {command.args}"


def information(command: Command) -> dict[str, Value]:
    """The information object of an answer or a status (RTMP 1.0 §7.2.2), {} if there is none."""
    found = command.args[0] if command.args else None
    return found if isinstance(found, dict) else {}


def _command(message: Message) -> Command:
    try:
        return Command.parse(message)
    except RemoteError as error:
        raise Unmet("a command", f"{error}: {message.payload[:60]!r}") from None


def _control(message: Message) -> control.Control | None:
    try:
        return control.parse_control(message)
    except RemoteError as error:
        raise Unmet("a control message", f"{error}: {message.payload.hex()}") from None

"""RTMP clients for load: set up by rtmplite's machine, then bytes straight to and from the socket.

What a leg does per frame must cost little, or the driver would be what is measured: headers are
packed here, and of what arrives only chunk headers and stamps are looked at.
"""

import os
import socket
import time
from collections import deque
from collections.abc import Callable
from struct import Struct

from load import SPEEX_8K, stamp

from rtmplite.amf.values import Value
from rtmplite.rtmp.client import Called, ClientConnection, Event, Reply, Target
from rtmplite.rtmp.wire.chunk_writer import CHUNK_SIZE

TIMEOUT = 10.0  # seconds, for an answer of the server
HANDSHAKE = 1 + 2 * 1536  # bytes from the server before its first chunk
AUDIO, VIDEO, SET_CHUNK_SIZE, USER_CONTROL = 8, 9, 1, 4
PING, PONG = b"\0\6", b"\0\7"  # event types: who is silent for a minute is asked
KEY_FRAME, INTER_FRAME = 12_000, 2_500  # bytes: about 0.6 Mbit/s at 25 frames a second
GROUP = 50  # frames from one key frame to the next
SPEEX_TAG = b"\xb2"
_PONG = bytes.fromhex("02 000000 000006 04 00000000") + PONG  # a whole chunk but for the time
AVC_HEADER = bytes.fromhex("1700000000 0142c01effe1000467640000 01000468ee3c80")
AUDIO_STAMP, VIDEO_STAMP = 2, 10  # where a message of that type has it
_STAMP_AT = {AUDIO: AUDIO_STAMP, VIDEO: VIDEO_STAMP}
_HEADER_SIZES = (12, 8, 4, 1)  # by the top two bits
_LENGTH_TYPE = Struct("!I").unpack_from
_WORD = Struct("!I")
_QUAD = Struct("!Q")


class Splitter:
    """Chunk headers and stamps of everything a server sends: see RTMP 1.0 §5.3."""

    def __init__(self) -> None:
        self.chunk_size = 128
        self.pings: list[bytes] = []  # what answers must repeat
        self._skip = HANDSHAKE
        self._rest = b""
        self._streams: dict[int, list[int]] = {}  # length, type, what is left of a message

    def feed(self, data: bytes) -> list[int]:
        """The stamps in `data`; what is no media gives none, or one that is no time."""
        data, at, stamps = self._rest + data if self._rest else data, self._skip, list[int]()
        end = len(data)
        while at < end:
            after = at + _HEADER_SIZES[data[at] >> 6]
            if after > end:
                break
            stream = self._streams.setdefault(data[at] & 63, [0, 0, 0])
            length, kind, left = stream
            if after - at >= 8:
                (word,) = _LENGTH_TYPE(data, at + 4)
                length, kind = word >> 8, word & 0xFF
            if not left:
                left = length
                found = after + _STAMP_AT.get(kind, 0)
                if kind <= VIDEO and found + 8 > end and found + 8 <= after + length:
                    break
                if kind in _STAMP_AT and found + 8 <= after + length:
                    stamps += _QUAD.unpack_from(data, found)
                elif kind == USER_CONTROL and data[after : after + 2] == PING:
                    self.pings.append(data[after + 2 : after + 6])
                elif kind == SET_CHUNK_SIZE:
                    (self.chunk_size,) = _WORD.unpack_from(data, after)
            here = min(left, self.chunk_size)
            stream[:] = length, kind, left - here
            at = after + here
        self._rest, self._skip = data[at:], max(0, at - end)
        return stamps


class Session:
    """A connection that waits for its answers; `splitter` has seen all that came."""

    def __init__(
        self, url: str, *args: Value, prepare: Callable[[socket.socket], None] | None = None
    ) -> None:
        """Connect to the application that is the whole path of `url`.

        `prepare` may do something to the socket before.
        """
        target = Target.parse(url, stream=False)
        self.socket = socket.socket()
        self.socket.settimeout(TIMEOUT)
        if prepare is not None:
            prepare(self.socket)
        self.socket.connect((target.host, target.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.splitter = Splitter()
        self._machine = ClientConnection(target, os.urandom, time.monotonic(), args=args)
        self._events: deque[Event] = deque()
        self._wait(lambda event: _is_reply(event, 1.0))

    def fileno(self) -> int:
        """The socket to watch."""
        return self.socket.fileno()

    def call(self, name: str, *args: Value) -> Value:
        """Call and wait for the result."""
        number = self._machine.call(name, *args)
        reply = self._wait(lambda event: _is_reply(event, number))
        assert isinstance(reply, Reply) and reply.succeeded, reply
        return reply.values[-1]

    def wait_called(self, name: str) -> None:
        """Wait until the server calls `name`."""
        self._wait(lambda event: isinstance(event, Called) and event.command.name == name)

    def publish(self, name: str) -> int:
        """A new stream that is being published."""
        return self._start("publish", name, "live")

    def play(self, name: str) -> int:
        """A new stream that is being played."""
        return self._start("play", name)

    def run(self) -> None:
        """From now on there are only `send` and `receive`, which do not wait."""
        self.socket.setblocking(False)

    def receive(self) -> list[int]:
        """The stamps of what can be read at once; pings are answered."""
        stamps = self.splitter.feed(self.socket.recv(65536))
        if self.splitter.pings:
            pongs = [_PONG + ping for ping in self.splitter.pings]
            self.splitter.pings.clear()
            self.socket.sendall(b"".join(pongs))
        return stamps

    def close(self) -> None:
        """Close the socket."""
        self.socket.close()

    def _start(self, verb: str, name: str, *args: Value) -> int:
        number = self.call("createStream")
        assert isinstance(number, float)
        self._machine.send(verb, name, *args, stream_id=int(number))
        while True:
            event = self._wait(lambda event: _is_status(event, int(number)))
            assert isinstance(event, Called)
            information = event.command.args[0]
            assert isinstance(information, dict) and information["level"] == "status", information
            if str(information["code"]).endswith(".Start"):
                return int(number)

    def _wait(self, wanted: Callable[[Event], bool]) -> Event:
        while True:
            for data in self._machine.transport.take_output():
                self.socket.sendall(data)
            while self._events:
                event = self._events.popleft()
                if wanted(event):
                    return event
            data = self.socket.recv(65536)
            assert data, "closed by the server"
            self.splitter.feed(data)
            self._machine.transport.receive(data, time.monotonic())
            self._events += self._machine.events()


class CallClient(Session):
    """The rich client of one call: `local` published, `remote` played, on one connection."""

    def __init__(self, url: str, frame: bytes) -> None:
        """`url` names the identity; `frame` is what it says."""
        super().__init__(url)
        self._frame, self._time, self._stream = frame, 0, 0

    def invite(self, dest: str, codec: str) -> None:
        """Ask for the call; go on with `open` when the phone has answered."""
        self.call("invite", dest, codec)

    def open(self) -> None:
        """Wait for the answer; publish and play."""
        self.wait_called("accepted")
        self._stream = self.publish("local")
        self.play("remote")
        self.run()

    def send(self) -> int:
        """One frame."""
        body = SPEEX_TAG + stamp(self._frame, AUDIO_STAMP - 1)
        self.socket.sendall(message(AUDIO, self._time, self._stream, body))
        self._time += 20
        return 1


class Publisher(Session):
    """Publishes 50 frames of sound a second, and 25 pictures if `video` is true."""

    def __init__(self, url: str, name: str, video: bool) -> None:
        super().__init__(url)
        self._stream, self._time, self._pictures = self.publish(name), 0, 0
        self._video = video
        if video:
            self.socket.sendall(message(VIDEO, 0, self._stream, AVC_HEADER))
        self.run()

    def send(self) -> int:
        """The frames of 20 ms: a sound, and every other time a picture."""
        now, self._time = self._time, self._time + 20
        body = SPEEX_TAG + stamp(SPEEX_8K, AUDIO_STAMP - 1)
        self.socket.sendall(message(AUDIO, now, self._stream, body))
        if not self._video or now % 40:
            return 1
        key = self._pictures % GROUP == 0
        self._pictures += 1
        head = bytes.fromhex("17 01000000 00002edb65" if key else "27 01000000 000009bf41")
        picture = head + bytes((KEY_FRAME if key else INTER_FRAME) - len(head))
        body = stamp(picture, VIDEO_STAMP)
        self.socket.sendall(message(VIDEO, now, self._stream, body))
        return 2


class Player(Session):
    """Plays, and says nothing."""

    def __init__(self, url: str, name: str) -> None:
        super().__init__(url)
        self.play(name)
        self.run()


def message(kind: int, time_ms: int, stream: int, body: bytes, delta: int | None = None) -> bytes:
    """A message as publishers write it: whole header at first, then with the time that went by."""
    chunks = {AUDIO: 4, VIDEO: 6}[kind]
    if time_ms or delta is not None:
        if delta is None:
            delta = 20 if kind == AUDIO else 40
        out = _WORD.pack(chunks << 24 | 1 << 30 | delta) + _WORD.pack(len(body) << 8 | kind)
    else:
        out = _WORD.pack(chunks << 24) + _WORD.pack(len(body) << 8 | kind)
        out += stream.to_bytes(4, "little")
    if len(body) <= CHUNK_SIZE:
        return out + body
    cut = [body[at : at + CHUNK_SIZE] for at in range(0, len(body), CHUNK_SIZE)]
    return out + bytes([chunks | 0xC0]).join(cut)


def _is_reply(event: Event, number: float) -> bool:
    return isinstance(event, Reply) and event.transaction_id == number


def _is_status(event: Event, stream: int) -> bool:
    return isinstance(event, Called) and event.stream_id == stream

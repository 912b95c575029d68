"""Watches RTMP's machines at work, at build time, to draw states that no table holds."""

import itertools
from collections.abc import Callable, Iterator

from drawing import Figure

from rtmplite.amf import amf0
from rtmplite.live.streams import Registry
from rtmplite.rtmp.application import LiveApplication
from rtmplite.rtmp.client import ClientConnection, Reply, Target
from rtmplite.rtmp.handshake import ClientHandshake, ServerHandshake
from rtmplite.rtmp.server import ServerConnection
from rtmplite.rtmp.wire.chunk_reader import ChunkReader
from rtmplite.rtmp.wire.command import Command
from rtmplite.rtmp.wire.control import parse_control
from rtmplite.rtmp.wire.message import Message, MessageType

PACKETS = 1 + 2 * 1536  # bytes of either side's handshake


def counting() -> Callable[[int], bytes]:
    """A source of bytes that is the same in every run."""
    numbers = itertools.count(1)
    return lambda count: (next(numbers).to_bytes(4, "big") * (count // 4 + 1))[:count]


def server_handshake() -> Figure:
    """The server's handshake, fed with one packet at a time."""
    server = ServerHandshake(counting(), 0.0)
    client = ClientHandshake(counting(), 0.0)
    c0_c1 = client.start(0.0)
    figure: dict[str, dict[str, tuple[str, list[str]]]] = {}

    def step(event: str, data: bytes, sent: str) -> bytes:
        before = server.state.value
        answer = server.receive(data, 0.0)
        figure[before] = {event: (server.state.value, [sent] if answer else [])}
        return answer

    step("C0", c0_c1[:1], "")
    answer = step("C1", c0_c1[1:], "send S0, S1, S2")
    step("C2", client.receive(answer, 0.0), "")
    return {**figure, server.state.value: {}}


def client_handshake() -> Figure:
    """The client's handshake, fed with one packet at a time."""
    server = ServerHandshake(counting(), 0.0)
    client = ClientHandshake(counting(), 0.0)
    figure: dict[str, dict[str, tuple[str, list[str]]]] = {}

    def step(event: str, action: Callable[[], bytes], sent: str) -> bytes:
        before = client.state.value
        data = action()
        figure[before] = {event: (client.state.value, [sent] if data else [])}
        return data

    c0_c1 = step("connected", lambda: client.start(0.0), "send C0, C1")
    answer = server.receive(c0_c1, 0.0)
    step("S0, S1", lambda: client.receive(answer[:1537], 0.0), "send C2")
    step("S2", lambda: client.receive(answer[1537:], 0.0), "")
    return {**figure, client.state.value: {}}


class Conversation:
    """Our client and our server, with somebody listening in between."""

    def __init__(self) -> None:
        random = counting()
        self.lines: list[tuple[str, str, str, str]] = []
        self._client = ClientConnection(Target.parse("rtmp://host/live", stream=False), random, 0.0)
        self._server = ServerConnection({"live": LiveApplication()}.get, Registry(), random, 0.0)
        self._taps = {"client": Tap(), "server": Tap()}

    def publish(self) -> list[tuple[str, str, str, str]]:
        """Connect, publish one tag, stop; (who, message stream, type, what) of each message."""
        self._carry()
        number = self._client.call("createStream")
        [reply] = [event for event in self._carry() if isinstance(event, Reply)]
        assert reply.transaction_id == number
        stream = int(reply.values[1])  # type: ignore[call-overload]
        self._client.send("publish", "demo", "live", stream_id=stream)
        self._carry()
        self._client.send_media(MessageType.AUDIO, 0, stream, b"\x82" + bytes(160))
        self._carry()
        self._client.send("deleteStream", float(stream))
        self._carry()
        return self.lines

    def _carry(self) -> list[object]:
        seen: list[object] = []
        while True:
            up = b"".join(self._client.transport.take_output())
            self._listen("client", up)
            if up:
                self._server.transport.receive(up, 0.0)
            down = b"".join(self._server.transport.take_output())
            self._listen("server", down)
            if down:
                self._client.transport.receive(down, 0.0)
            seen += self._client.events()
            if not (up or down):
                return seen

    def _listen(self, who: str, data: bytes) -> None:
        for message in self._taps[who].feed(data):
            name = MessageType(message.type_id).name.replace("_", " ").lower()
            self.lines.append((who, str(message.stream_id), name, describe(message)))


class Tap:
    """Reads one direction of a connection, from its first byte."""

    def __init__(self) -> None:
        self._handshake, self._reader = PACKETS, ChunkReader()

    def feed(self, data: bytes) -> Iterator[Message]:
        """The messages that are complete with `data`."""
        skipped = min(self._handshake, len(data))
        self._handshake -= skipped
        yield from self._reader.feed(data[skipped:])


def describe(message: Message) -> str:
    """A message in one line."""
    if message.type_id == MessageType.COMMAND:
        command = Command.parse(message)
        return f"{command.name} {command.transaction_id:g} {_values(command.object, *command.args)}"
    if message.type_id == MessageType.DATA:
        return _values(*amf0.decode(message.payload))
    control = parse_control(message)
    return repr(control) if control is not None else f"{len(message.payload)} bytes"


def _values(*values: object) -> str:
    texts = []
    for value in values:
        if isinstance(value, dict):
            keys = [k for k in ("app", "tcUrl", "code") if k in value]
            texts.append("{" + ", ".join(f"{k}: {value[k]}" for k in keys) + ", ...}")
        else:
            texts.append("null" if value is None else str(value))
    return " ".join(texts)

"""A NetConnection of a client with the target: commands in a flow, and what comes back.

Own design: a connection that the target refuses is not what a case about flows is about, so that
such a case does not apply.
"""

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from rtclab.conform.case import NotApplicable, Unmet
from rtclab.conform.rtmfp.flows import FlowReader, FlowWriter
from rtclab.conform.rtmfp.peer import RtmfpPeer
from rtclab.conform.rtmfp.session import RtmfpSession, open_session
from rtmplite.amf.values import Value
from rtmplite.errors import RemoteError
from rtmplite.rtmfp.netconnection.messages import FlowMetadata, encode_message, parse_message
from rtmplite.rtmfp.wire.chunks import Chunk
from rtmplite.rtmfp.wire.flow_chunks import UserData
from rtmplite.rtmp.wire.command import Command
from rtmplite.rtmp.wire.message import Message, MessageType

CONTROL: Final = 2  # the identifier of our control flow; any will do
# A message that means nothing in a flow, whatever it says: RFC 7425 §5.1.
NOTHING: Final = encode_message(MessageType.ACKNOWLEDGEMENT, 0, bytes(4))
_REPLIES: Final = ("_result", "_error")
_FRAGMENT: Final = 1000  # bytes of one chunk of ours


class RtmfpClient:
    """The client of a NetConnection (RFC 7425 §5.3).

    `control` is our control flow.
    """

    def __init__(self, session: RtmfpSession, flow_id: int = CONTROL) -> None:
        self.session = session
        self.control = FlowWriter(flow_id, bytes(FlowMetadata(0)), known=session.known)
        self._calls = 0
        self._flows = flow_id

    @property
    def returning(self) -> FlowReader:
        """The target's control flow: the first one for stream 0 (RFC 7425 §5.3.2)."""
        for reader in self.session.readers.values():
            if stream_of(reader) == 0:
                return reader
        raise Unmet("a flow for stream 0", "none")

    def connect(self) -> Command:
        """Send connect, and give the answer (RFC 7425 §5.3.1)."""
        self.write(self.control, self.connect_message())
        return self.answer()

    def connect_message(self) -> bytes:
        """The call connect, as the message of a flow (RTMP 1.0 §7.2.1.1)."""
        target = self.session.peer.target
        about: dict[str, Value] = {
            "app": target.app,
            "flashVer": "LNX 9,0,124,2",
            "tcUrl": target.tc_url,
            "fpad": False,
            "capabilities": 235.0,
            "audioCodecs": 3575.0,
            "videoCodecs": 252.0,
            "videoFunction": 1.0,
            "objectEncoding": 0.0,
        }
        return self.command("connect", about)

    def command(self, name: str, subject: Value = None, *args: Value) -> bytes:
        """The next call on the connection, as the message of a flow (RTMP 1.0 §7.2.1)."""
        self._calls += 1
        return in_flow(Command(name, float(self._calls), subject, args).message())

    def call(self, name: str, subject: Value = None, *args: Value) -> Command:
        """Call, and give the answer (RTMP 1.0 §7.2.1.2)."""
        self.write(self.control, self.command(name, subject, *args))
        return self.answer()

    def answer(self) -> Command:
        """Wait for the answer to the latest call (RTMP 1.0 §7.2.1.2)."""
        for _, message in self.messages():
            command = command_of(message)
            if command and command.name in _REPLIES and command.transaction_id == self._calls:
                return command
        raise AssertionError("messages do not end")

    def is_answered(self) -> bool:
        """Tell whether the answer to the latest call comes within a moment."""
        self.session.within()
        found = [command_of(_read(reader, data)) for reader, data in self.session.messages]
        return any(
            each and each.name in _REPLIES and each.transaction_id == self._calls for each in found
        )

    def messages(self) -> Iterator[tuple[FlowReader, Message]]:
        """Wait for messages of the target, in the order of arrival."""
        session = self.session
        packets = session.packets()
        while True:
            while session.messages:
                reader, data = session.messages.pop(0)
                yield reader, _read(reader, data)
            if session.ended:
                raise Unmet("a message", "the end of the session")
            next(packets)

    def write(self, flow: FlowWriter, data: bytes) -> None:
        """Send a message in as few packets as it needs."""
        if len(data) <= _FRAGMENT:
            self.session.send(flow.chunk(data))
            return
        for chunk in flow.cut(data, -(-len(data) // _FRAGMENT)):
            self.session.send(chunk)

    def close_flow(self, flow: FlowWriter) -> None:
        """End a flow by a last message that means nothing (RFC 7016 §2.3.11)."""
        self.session.send(replace(flow.chunk(NOTHING), final=True))

    def flow(self, stream_id: int) -> FlowWriter:
        """A further flow, associated to the target's control flow (RFC 7425 §5.3.5.1)."""
        self._flows += 1
        metadata = bytes(FlowMetadata(stream_id))
        return FlowWriter(self._flows, metadata, self.returning.flow_id, known=self.session.known)

    def create_stream(self) -> int:
        """Create a message stream (RTMP 1.0 §7.2.1.3)."""
        answer = self.call("createStream")
        number = answer.args[0] if answer.args else None
        if answer.name != "_result" or not isinstance(number, float) or number < 1:
            raise Unmet("_result with the number of a stream", str(answer))
        return int(number)

    def on_stream(self, name: str, stream_id: int, *args: Value) -> FlowWriter:
        """Send a command for a stream in a flow of its own (RFC 7425 §5.3.5)."""
        flow = self.flow(stream_id)
        self.write(flow, in_flow(Command(name, 0.0, None, args).message(stream_id)))
        return flow

    def status(self, code: str) -> tuple[FlowReader, Command]:
        """Wait for onStatus with this code; Unmet for one that is an error."""
        for reader, message in self.messages():
            command = command_of(message)
            about = command.args[0] if command and command.args else None
            if not command or command.name != "onStatus" or not isinstance(about, dict):
                continue
            if about.get("code") == code:
                return reader, command
            if about.get("level") == "error":
                raise Unmet(code, str(about.get("code")))
        raise AssertionError("messages do not end")


def connected(peer: RtmfpPeer) -> RtmfpClient:
    """Open a session and a connection; NotApplicable if the target refuses it."""
    return accepted(RtmfpClient(open_session(peer)))


def accepted(client: RtmfpClient) -> RtmfpClient:
    """Connect; NotApplicable if the target refuses it."""
    answer = client.connect()
    if answer.name != "_result":
        raise NotApplicable(f"the target refuses the connection: {answer.args}")
    return client


def published(client: RtmfpClient) -> tuple[str, int, FlowWriter]:
    """Publish a stream of a new name; gives the name, the stream, and its flow for commands."""
    name, stream_id = f"conform-{os.urandom(6).hex()}", client.create_stream()
    flow = client.on_stream("publish", stream_id, name, "live")
    client.status("NetStream.Publish.Start")
    return name, stream_id, flow


def in_flow(message: Message) -> bytes:
    """A message as flows carry it (RFC 7425 §5.1.2)."""
    return encode_message(message.type_id, message.timestamp, message.payload)


def stream_of(reader: FlowReader) -> int | None:
    """The stream of a flow; None for one without, or of another kind (RFC 7425 §5.1.1)."""
    try:
        return FlowMetadata.parse(reader.metadata or b"").stream_id
    except RemoteError:
        return None


def command_of(message: Message) -> Command | None:
    """Read a message as a command; None for any other (RTMP 1.0 §7.1.1)."""
    if message.type_id not in (MessageType.COMMAND, MessageType.COMMAND_AMF3):
        return None
    try:
        return Command.parse(message)
    except RemoteError as error:
        raise Unmet("a command that can be read", str(error)) from None


def user_data(chunks: tuple[Chunk, ...], flow_id: int) -> list[UserData]:
    """The fragments of one flow among chunks (RFC 7016 §2.3.11)."""
    return [each for each in chunks if isinstance(each, UserData) and each.flow_id == flow_id]


def _read(reader: FlowReader, data: bytes) -> Message:
    try:
        return parse_message(data, stream_of(reader) or 0)
    except RemoteError as error:
        raise Unmet("a message with a type and a time", str(error)) from None

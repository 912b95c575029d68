"""What the messages of an RTMP connection ask for: connect, streams, and media upon them.

Implements RTMP 1.0 §7 as a rule book.
"""

import math
from dataclasses import dataclass
from typing import Final

from rtclab.explain.fields.source import fault_of
from rtclab.lint.findings.finding import Findings
from rtclab.lint.findings.packet import SeenPacket
from rtmplite.errors import RtmpError
from rtmplite.rtmp.wire.command import Command
from rtmplite.rtmp.wire.message import Message, MessageType

PATIENCE: Final = 5.0  # s for an answer
ON_ITS_WAY: Final = 2.0  # s in which media may still come for a stream that was closed
_ANSWERS: Final = ("_result", "_error")
_MEDIA: Final = (MessageType.AUDIO, MessageType.VIDEO)
_COMMANDS: Final = (MessageType.COMMAND, MessageType.COMMAND_AMF3)
_AVC, _AAC = 7, 10


@dataclass(slots=True)
class _Stream:
    """A message stream: what is done on it, and when it was deleted."""

    publishes: bool = False
    plays: bool = False
    deleted: float | None = None


class RtmpSession:
    """The messages of one connection, of both ends: §7.2."""

    def __init__(self, findings: Findings, server: str) -> None:
        self._findings, self._server = findings, server
        self._connected = False
        self._streams: dict[int, _Stream] = {}
        self._calls: dict[tuple[bool, float], tuple[str, SeenPacket]] = {}
        self._pings: dict[int, SeenPacket] = {}
        self._times: dict[tuple[bool, int, int], int] = {}
        self._headers: set[tuple[bool, int, int]] = set()
        self._drawn: set[tuple[bool, int, int]] = set()

    def heard(self, packet: SeenPacket, message: Message, *, is_client: bool) -> str:
        """Take a message that is no control; what a diagram calls it, "" for nothing new: §7.1."""
        if message.type_id in _COMMANDS:
            return self._command(packet, message, is_client=is_client)
        if not self._connected:
            what = f"message of type {message.type_id} before connect"
            self._findings.add("rtmp-before-connect", packet, what)
        if message.type_id in _MEDIA:
            self._media(packet, message, is_client=is_client)
        key = is_client, message.stream_id, message.type_id
        if key in self._drawn:
            return ""
        self._drawn.add(key)
        name = MessageType(message.type_id).name.lower().replace("_", " ")
        return f"{name} ({message.stream_id})"

    def ping(self, packet: SeenPacket, time: int) -> None:
        """Take a PingRequest: §7.1.7."""
        self._pings[time] = packet

    def pong(self, time: int) -> None:
        """Take a PingResponse: §7.1.7."""
        self._pings.pop(time, None)

    def finish(self, now: float, *, is_closed: bool) -> None:
        """Report calls and pings that had no answer: §7.2."""
        for (is_client, _), (name, packet) in self._calls.items():
            is_expected = name in ("connect", "createStream")
            if is_client and is_expected and now - packet.time >= PATIENCE:
                what, who = f"no result of {name}", self._server
                self._findings.add("rtmp-no-result", packet, what, who=who)
        for packet in self._pings.values():
            if now - packet.time >= PATIENCE and not is_closed:
                what = "no response to a ping"
                self._findings.add("rtmp-ping", packet, what, who=packet.target)

    # -- commands ------------------------------------------------------------------------

    def _command(self, packet: SeenPacket, message: Message, *, is_client: bool) -> str:
        try:
            command = Command.parse(message)
        except RtmpError as error:
            fault = fault_of(error)
            citation = fault.citation.partition(" [")[0]
            self._findings.add("rtmp-syntax", packet, fault.reason, citation=citation)
            return "?"
        name = command.name
        if name == "connect" and is_client:
            if self._connected:
                self._findings.add("rtmp-connect-twice", packet, "connect again")
            self._connected = True
        elif not self._connected:
            self._findings.add("rtmp-before-connect", packet, f"{name} before connect")
        if name in _ANSWERS:
            self._result(packet, command, is_client=is_client)
            return f"{name} {_code(command)}".strip()
        if command.transaction_id:
            self._calls[is_client, command.transaction_id] = name, packet
        if name == "onStatus":
            return f"onStatus {_code(command)}"
        if is_client:
            self._act(packet, message, command)
        argument = command.args[0] if command.args else None
        return f"{name} {argument}" if isinstance(argument, str) and argument else name

    def _result(self, packet: SeenPacket, command: Command, *, is_client: bool) -> None:
        called = self._calls.pop((not is_client, command.transaction_id), None)
        if called is None:
            what = f"{command.name} {command.transaction_id:g} of no call"
            self._findings.add("rtmp-result-alone", packet, what)
        elif called[0] == "createStream" and command.name == "_result":
            number = _first_number(command)
            if number is not None:
                self._streams[number] = _Stream()

    def _act(self, packet: SeenPacket, message: Message, command: Command) -> None:
        """What a client does with a stream: §7.2.2."""
        name, number = command.name, message.stream_id
        if name in ("publish", "play", "play2"):
            stream = self._streams.get(number)
            if stream is None and not self._is_creating:
                what = f"{name} on stream {number}, which createStream has not given"
                self._findings.add("rtmp-no-create", packet, what)
            if stream is None:
                stream = self._streams[number] = _Stream()
            stream.publishes |= name == "publish"
            stream.plays |= name != "publish"
            self._forget(number)
        elif name == "deleteStream":
            found = self._streams.get(_first_number(command) or 0)
            if found is not None:
                found.deleted = packet.time
        elif name in ("seek", "pause", "closeStream"):
            self._forget(number)

    @property
    def _is_creating(self) -> bool:
        """Whether a createStream has no result yet: some clients guess its number."""
        return any(name == "createStream" for name, _ in self._calls.values())

    def _forget(self, number: int) -> None:
        """Time may begin anew: RTMP Errata §5.2."""
        self._times = {key: at for key, at in self._times.items() if key[1] != number}

    # -- media ---------------------------------------------------------------------------

    def _media(self, packet: SeenPacket, message: Message, *, is_client: bool) -> None:
        number, kind = message.stream_id, MessageType(message.type_id).name.lower()
        stream = self._streams.get(number)
        if stream is None or (
            stream.deleted is not None and packet.time - stream.deleted > ON_ITS_WAY
        ):
            if not self._is_creating:
                what = f"{kind} on stream {number}"
                self._findings.add("rtmp-unknown-stream", packet, what)
        elif is_client and not stream.publishes:
            what = f"{kind} on stream {number} without publish"
            self._findings.add("rtmp-no-publish", packet, what)
        elif not is_client and not stream.plays:
            what = f"{kind} on stream {number} without play"
            citation = "RTMP 1.0 §7.2.2.1"
            self._findings.add("rtmp-no-publish", packet, what, citation=citation)
        self._clock(packet, message, kind, is_client=is_client)
        self._header(packet, message, kind, is_client=is_client)

    def _clock(self, packet: SeenPacket, message: Message, kind: str, *, is_client: bool) -> None:
        key = is_client, message.stream_id, message.type_id
        before = self._times.get(key, message.timestamp)
        back = (before - message.timestamp + (1 << 31)) % (1 << 32) - (1 << 31)
        if back > 0:
            what = f"{kind} of {message.timestamp} ms after {before} ms"
            once = f"{message.stream_id} {kind}"
            self._findings.add("rtmp-timestamp", packet, what, once=once)
        self._times[key] = message.timestamp

    def _header(self, packet: SeenPacket, message: Message, kind: str, *, is_client: bool) -> None:
        """The header of AVC and AAC comes first: FLV 10.1 §E.4.2.2, §E.4.3.2."""
        head = message.payload[:2]
        if len(head) < 2:
            return
        is_video = message.type_id == MessageType.VIDEO
        codec = head[0] & 0x0F if is_video else head[0] >> 4
        if (head[0] & 0x80 and is_video) or codec != (_AVC if is_video else _AAC):
            return
        key = is_client, message.stream_id, message.type_id
        if head[1] == 0:
            self._headers.add(key)
        elif head[1] == 1 and key not in self._headers:
            section = "§E.4.3.2" if is_video else "§E.4.2.2"
            what = f"{kind} on stream {message.stream_id} before its sequence header"
            citation = f"FLV 10.1 {section}"
            self._findings.add("rtmp-no-header", packet, what, citation=citation)


def _first_number(command: Command) -> int | None:
    """The stream that a command names, None if that is no number."""
    value = command.args[0] if command.args else None
    return int(value) if isinstance(value, float) and math.isfinite(value) else None


def _code(command: Command) -> str:
    for value in (*command.args, command.object):
        if isinstance(value, dict) and isinstance(code := value.get("code"), str):
            return code
    return ""

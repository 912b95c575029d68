"""Commands: a name, a transaction id, an object, and any further arguments.

Implements RTMP 1.0 §7.1.1 and §7.2, with RTMP Errata §7.2 for type 17.

    >>> play = Command("play", 4.0, None, ("seed",)).message(stream_id=1)
    >>> Command.parse(play)
    Command(name='play', transaction_id=4.0, object=None, args=('seed',))
"""

from dataclasses import dataclass
from typing import Final, Self

from rtmplite.amf import amf0
from rtmplite.amf.values import Value
from rtmplite.errors import LocalError, RemoteError
from rtmplite.rtmp.wire.message import Message, MessageType

# Own design: reading AMF takes a second for every few megabytes, and nobody else is served
# meanwhile; the longest commands in use are some kilobytes.
MAX_COMMAND: Final = 65536


@dataclass(frozen=True, slots=True)
class Command:
    """One call, or one answer to a call (§7.1.1).

    `transaction_id` is 0 where no answer is wanted; `object` is what the texts call the command
    object, None for null; `args` are the values after it.
    """

    name: str
    transaction_id: float = 0.0
    object: Value = None
    args: tuple[Value, ...] = ()

    @classmethod
    def parse(cls, message: Message) -> Self:
        """Read a message of type 20, or of type 17: §7.1.1, RTMP Errata §7.2.

        A missing number reads as 0 and a missing object as null, since some clients send only a
        name.  Raises RemoteError if there is no name, the AMF is broken, the type is another, or
        there are more than `MAX_COMMAND` bytes.
        """
        if len(message.payload) > MAX_COMMAND:
            raise RemoteError(f"a command of {len(message.payload)} bytes")
        payload: bytes | memoryview = message.payload
        # E-RTMP v1 §"Action Message Format (AMF0 vs AMF3)" [amf3-too], E-RTMP v2 §"Enabling AMF3 in
        # RTMP" [amf3-steps].
        if message.type_id == MessageType.COMMAND_AMF3:  # §7.1.1 [types]
            # RTMP Errata §7.2 [format-zero], E-RTMP v2 §"Important AMF3-encoded Historical
            # Specification Clarification" [format-0].
            if payload[:1] != b"\x00":
                raise RemoteError("a type 17 command in an unknown format")
            payload = memoryview(payload)[1:]
        elif message.type_id != MessageType.COMMAND:  # §7.1.1 [types]
            raise RemoteError(f"message type {message.type_id} is no command")
        values = amf0.decode(payload)
        name = values[0] if values else None  # §7.1.1 [parts]
        number = values[1] if len(values) > 1 else 0.0  # §7.1.1 [parts]
        if not isinstance(name, str) or not isinstance(number, float):
            raise RemoteError("a command begins with its name and its number")
        # §7.1.1 [parts]
        return cls(name, number, values[2] if len(values) > 2 else None, tuple(values[3:]))

    def __bytes__(self) -> bytes:
        return amf0.encode(self.name, self.transaction_id, self.object, *self.args)

    def message(
        self, stream_id: int = 0, timestamp: int = 0, type_id: int = MessageType.COMMAND
    ) -> Message:
        """Wrap the command, in AMF3 by type 17: §7.1.1, RTMP Errata §7.2.  LocalError."""
        match type_id:
            case MessageType.COMMAND:
                # §7.1.1 [types]
                return Message(MessageType.COMMAND, timestamp, stream_id, bytes(self))
            case MessageType.COMMAND_AMF3:
                values = self.name, float(self.transaction_id), self.object, *self.args
                # RTMP Errata §7.2 [format-zero] [switch-by-marker]
                payload = b"\x00" + amf0.encode(*values, avmplus=True)
                # §7.1.1 [types]
                return Message(type_id, timestamp, stream_id, payload)
            case _:
                raise LocalError(f"message type {type_id} is no command")


def result(transaction_id: float, object: Value = None, *args: Value) -> Command:
    """Make the answer to a call; createStream's has the stream's number: §7.2.1.2, §7.2.1.3."""
    # §7.2 [same-id] [result-or-error]
    return Command("_result", transaction_id, object, args)


def error(transaction_id: float, reason: RemoteError, object: Value = None) -> Command:
    """Make the answer to a call that failed for `reason` (§7.2)."""
    # §7.2 [same-id] [result-or-error]
    return Command("_error", transaction_id, object, (_information(reason),))


def on_status(level: str, code: str, description: str, **extra: Value) -> Command:
    """Make a status with `extra` members (§7.2.2); `level` is status, warning or error."""
    # §7.2.2 [on-status]
    information: dict[str, Value] = {"level": level, "code": code, "description": description}
    return Command("onStatus", 0.0, None, (information | extra,))  # §7.2.2 [on-status] [number-0]


def _information(reason: RemoteError) -> dict[str, Value]:
    """The three members of an information object: §7.2.2."""
    return {"level": reason.level, "code": reason.code, "description": reason.description}

"""The chunks of a flow: its data, buffer probes, and the receiver's exceptions.

Implements RFC 7016 §2.3.11, §2.3.12, §2.3.15 and §2.3.16; the two acknowledgements have a module
of their own, `acks`.

    >>> UserData(2, 5, 3, b"012").encode().hex(" ")
    '00 02 05 03 30 31 32'

All parsers raise RemoteError for a payload that is cut off or contradicts itself, and nothing else.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, Final, Self

from rtmplite.errors import LocalError, RemoteError
from rtmplite.rtmfp.wire.option import Option, encode_options, parse_option_list
from rtmplite.rtmfp.wire.vlu import decode_vlu, encode_vlu

USER_METADATA: Final = 0x00  # Source: §2.3.11.1.1, an option type
RETURN_FLOW_ASSOCIATION: Final = 0x0A  # Source: §2.3.11.1.2
FIRST_IGNORABLE_OPTION: Final = 0x2000  # Source: §2.3.11.1
MAX_METADATA: Final = 512  # bytes: §2.3.11.1.1
_OPTIONS_PRESENT, _ABANDON, _FINAL = 0x80, 0x02, 0x01  # bits OPT, ABN and FIN: §2.3.11


class FragmentControl(IntEnum):
    """Which part of a message a chunk contains: §2.3.11."""

    # §2.3.11 [fragment-control]
    WHOLE = 0
    BEGIN = 1
    END = 2
    MIDDLE = 3


_CONTROLS: Final = tuple(FragmentControl)


@dataclass(frozen=True, slots=True)
class UserData:
    """One fragment of a message of a flow: §2.3.11.

    `fsn_offset` is `sequence_number` less the Forward Sequence Number.  `options` is None without
    an option list, () with an empty one.
    """

    type_id: ClassVar[int] = 0x10
    flow_id: int
    sequence_number: int
    fsn_offset: int
    data: bytes = b""
    fragment_control: FragmentControl = FragmentControl.WHOLE
    abandon: bool = False
    final: bool = False
    options: tuple[Option, ...] | None = None

    @property
    def forward_sequence_number(self) -> int:
        """The number up to which nothing will be sent any more: §2.3.11 [user-data-layout]."""
        return self.sequence_number - self.fsn_offset

    @classmethod
    def parse(cls, payload: bytes) -> Self:
        """Read the payload: §2.3.11."""
        flow_id, at = decode_vlu(payload, 1)  # §2.3.11 [user-data-layout]
        number, at = decode_vlu(payload, at)
        offset, at = decode_vlu(payload, at)
        flags = payload[0]
        if offset > number:  # §2.3.11 [fsn-offset-not-greater]
            raise RemoteError(f"a forward sequence number below 0: {offset} behind {number}")
        if not (offset or flags & _ABANDON):  # §2.3.11 [fsn-offset-not-zero]
            raise RemoteError(f"data of number {number} that is never sent")
        options = None
        if flags & _OPTIONS_PRESENT:  # §2.3.11 [user-data-layout]
            options, at = parse_option_list(payload, at)
        # §2.3.11 [user-data-layout]; only the flags that are defined: §2 [reserved-ignored]
        control, abandon = _CONTROLS[flags >> 4 & 3], bool(flags & _ABANDON)
        final = bool(flags & _FINAL)  # §2.3.11 [user-data-layout]
        return cls(flow_id, number, offset, payload[at:], control, abandon, final, options)

    def encode(self) -> bytes:
        """Write the payload: §2.3.11.

        Raises LocalError for a Forward Sequence Number below 0, and for one that includes this
        chunk unless it is abandoned.
        """
        if self.fsn_offset > self.sequence_number:  # §2.3.11 [fsn-offset-not-greater]
            raise LocalError(f"no FSN is {self.fsn_offset} behind {self.sequence_number}")
        if not (self.fsn_offset or self.abandon):  # §2.3.11 [fsn-offset-not-zero]
            raise LocalError(f"data of number {self.sequence_number}, never to be sent")
        numbers = self.flow_id, self.sequence_number, self.fsn_offset
        options = _encode_list(self.options)
        # §2.3.11 [user-data-layout]
        return b"".join((_encode_flags(self), *map(encode_vlu, numbers), options, self.data))


@dataclass(frozen=True, slots=True)
class NextUserData:
    """The fragment that follows that of the chunk before it, and needs no numbers: §2.3.12."""

    type_id: ClassVar[int] = 0x11
    data: bytes = b""
    fragment_control: FragmentControl = FragmentControl.WHOLE
    abandon: bool = False
    final: bool = False
    options: tuple[Option, ...] | None = None

    @classmethod
    def parse(cls, payload: bytes) -> Self:
        """Read the payload: §2.3.12."""
        if not payload:  # §2 [truncation-noticed]
            raise RemoteError("next user data without flags")
        flags, at, options = payload[0], 1, None
        if flags & _OPTIONS_PRESENT:
            options, at = parse_option_list(payload, at)
        # §2.3.12 [next-user-data-layout]
        control, abandon = _CONTROLS[flags >> 4 & 3], bool(flags & _ABANDON)
        return cls(payload[at:], control, abandon, bool(flags & _FINAL), options)

    def encode(self) -> bytes:
        """Write the payload: §2.3.12 [next-user-data-layout]."""
        return _encode_flags(self) + _encode_list(self.options) + self.data

    def after(self, previous: UserData) -> UserData:
        """Return this chunk, which follows `previous`, as User Data: §2.3.12."""
        return UserData(
            previous.flow_id,
            previous.sequence_number + 1,  # §2.3.12 [next-number]
            previous.fsn_offset + 1,  # §2.3.12 [next-number]
            self.data,
            self.fragment_control,
            self.abandon,
            self.final,
            self.options,
        )


@dataclass(frozen=True, slots=True)
class BufferProbe:
    """Asks the receiver of a flow for an acknowledgement with its window: §2.3.15."""

    type_id: ClassVar[int] = 0x18
    flow_id: int

    @classmethod
    def parse(cls, payload: bytes) -> Self:
        """Read the payload: §2.3.15 [buffer-probe-layout]."""
        return cls(decode_vlu(payload)[0])

    def encode(self) -> bytes:
        """Write the payload: §2.3.15 [buffer-probe-layout]."""
        return encode_vlu(self.flow_id)


@dataclass(frozen=True, slots=True)
class FlowException:
    """The receiver rejects a flow; `exception` is a code of the application: §2.3.16."""

    type_id: ClassVar[int] = 0x5E
    flow_id: int
    exception: int = 0

    @classmethod
    def parse(cls, payload: bytes) -> Self:
        """Read the payload: §2.3.16 [flow-exception-layout]."""
        flow_id, at = decode_vlu(payload)
        return cls(flow_id, decode_vlu(payload, at)[0])

    def encode(self) -> bytes:
        """Write the payload: §2.3.16 [flow-exception-layout]."""
        return encode_vlu(self.flow_id) + encode_vlu(self.exception)


def flow_options(metadata: bytes, associated_flow_id: int | None = None) -> tuple[Option, ...]:
    """Give the options that open a flow: its metadata, and which flow it answers.

    §2.3.11.1, §2.3.11.1.1, §2.3.11.1.2.  Raises LocalError for metadata beyond 512 bytes.
    """
    if len(metadata) > MAX_METADATA:  # §2.3.11.1.1 [512-bytes]
        raise LocalError(f"{len(metadata)} bytes of metadata")
    # §2.3.11.1.1 [metadata-layout] [has-metadata], §2.3.11.1 [options-supported]
    options = (Option(USER_METADATA, metadata),)
    if associated_flow_id is None:
        return options
    # §2.3.11.1.2 [association-layout] [one-at-most]
    return (*options, Option(RETURN_FLOW_ASSOCIATION, encode_vlu(associated_flow_id)))


def has_unknown_option(options: Iterable[Option]) -> bool:
    """Whether any option is neither known nor ignorable: §2.3.11.1 [unknown-passed-by]."""
    known = USER_METADATA, RETURN_FLOW_ASSOCIATION
    return any(
        option.type_id not in known and option.type_id < FIRST_IGNORABLE_OPTION
        for option in options
    )


def read_flow_options(options: Sequence[Option]) -> tuple[bytes, int | None]:
    """Give metadata and the flow it answers; RemoteError to reject: §2.3.11.1."""
    if has_unknown_option(options):  # §2.3.11.1 [unknown-rejects]
        raise RemoteError("a flow with an unknown option")
    metadata, associated_flow_id = None, None
    for option in options:
        # §2.3.11.1 [options-supported], §2.3.11.1.1 [metadata-layout]
        if option.type_id == USER_METADATA:
            metadata = option.value
        # §2.3.11.1 [options-supported], §2.3.11.1.2 [association-layout]
        elif option.type_id == RETURN_FLOW_ASSOCIATION:
            if associated_flow_id is not None:  # §2.3.11.1.2 [one-at-most]
                raise RemoteError("a flow that answers two flows")
            associated_flow_id, _ = decode_vlu(option.value)
    if metadata is None:  # §2.3.11.1.1 [has-metadata]
        raise RemoteError("a flow without metadata")
    return metadata, associated_flow_id


def _encode_flags(chunk: UserData | NextUserData) -> bytes:
    """Write the flags, the reserved bits clear: §2."""
    flags = chunk.fragment_control << 4  # §2 [reserved-clear]
    if chunk.options is not None:
        flags |= _OPTIONS_PRESENT
    return bytes((flags | chunk.abandon << 1 | chunk.final,))


def _encode_list(options: tuple[Option, ...] | None) -> bytes:
    return b"" if options is None else encode_options(options, marker=True)

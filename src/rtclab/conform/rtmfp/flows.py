"""The flows of a session: what the target sends is put together, what we send is cut as wanted.

Own design: a reader takes any flow and judges nothing, a writer gives chunks and sends none, so
that a case may put them in any order.
"""

from collections.abc import Container, Iterator

from rtmplite.errors import RemoteError
from rtmplite.rtmfp.session.range_set import RangeSet
from rtmplite.rtmfp.wire.acks import DataAckRanges, range_ack
from rtmplite.rtmfp.wire.flow_chunks import (
    FragmentControl,
    UserData,
    flow_options,
    read_flow_options,
)
from rtmplite.rtmfp.wire.option import Option

_STARTS = (FragmentControl.WHOLE, FragmentControl.BEGIN)
_ENDS = (FragmentControl.WHOLE, FragmentControl.END)


class FlowReader:
    """A flow of the target (RFC 7016 §3.6.3).

    `metadata` and `associated` are those of its first chunk, None if there were none; `final` says
    whether it has ended.
    """

    def __init__(self, first: UserData) -> None:
        self.flow_id, self.first = first.flow_id, first
        self.metadata: bytes | None = None
        self.associated: int | None = None
        if first.options is not None:
            try:
                self.metadata, self.associated = read_flow_options(first.options)
            except RemoteError:
                self.metadata = None
        self.final = False
        self.seen = RangeSet()
        self._fragments: dict[int, UserData] = {}
        self._next = 1
        self._parts: list[bytes] = []

    def take(self, chunk: UserData) -> Iterator[bytes]:
        """Take a fragment; gives the messages that are whole and in order (RFC 7016 §3.6.3.3)."""
        self.final = self.final or chunk.final
        if chunk.sequence_number not in self.seen:
            self._fragments[chunk.sequence_number] = chunk
        self.seen.forward(chunk.forward_sequence_number)
        self.seen.add(chunk.sequence_number)
        for number in sorted(each for each in self._fragments if each <= self.seen.csn):
            part = self._fragments.pop(number)
            is_start = part.fragment_control in _STARTS
            if number != self._next or part.abandon or is_start:
                self._parts.clear()
            self._next = number + 1
            if part.abandon or not (is_start or self._parts):
                continue
            self._parts.append(part.data)
            if part.fragment_control in _ENDS:
                yield b"".join(self._parts)
                self._parts.clear()

    def ack(self, window: int) -> DataAckRanges:
        """Acknowledge all that has come (RFC 7016 §2.3.14)."""
        return range_ack(self.flow_id, window, self.seen.ranges())


class FlowWriter:
    """A flow to the target (RFC 7016 §3.6.2).

    Its options go with every chunk until its identifier is among `known`: RFC 7016 §2.3.11.1.1.
    """

    def __init__(
        self,
        flow_id: int,
        metadata: bytes,
        associated: int | None = None,
        options: tuple[Option, ...] | None = None,
        known: Container[int] = (),
    ) -> None:
        self.flow_id, self.number, self._known = flow_id, 0, known
        self.options = flow_options(metadata, associated) if options is None else options

    def chunk(self, data: bytes, control: FragmentControl = FragmentControl.WHOLE) -> UserData:
        """The next chunk of the flow (RFC 7016 §2.3.11)."""
        self.number += 1
        options = None if self.flow_id in self._known else self.options
        return UserData(self.flow_id, self.number, self.number, data, control, options=options)

    def cut(self, data: bytes, count: int) -> list[UserData]:
        """The next message, in so many fragments, at least two (RFC 7016 §2.3.11)."""
        size = -(-len(data) // count)
        controls = (
            FragmentControl.BEGIN,
            *(FragmentControl.MIDDLE,) * (count - 2),
            FragmentControl.END,
        )
        return [
            self.chunk(data[at * size : (at + 1) * size], control)
            for at, control in enumerate(controls)
        ]

"""The output of a connection: in order until the end of its turn, then in flows.

Implements RFC 7425 §5.1.1 and §5.2.  The bytes of a live stream's message are the same for all
players over RTMFP; which flow they go into, and whether they are worth sending at all, is decided
here for each player.
"""

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Final, Protocol, TypeAlias

from rtmplite.rtmfp.netconnection.media_flows import (
    Lifetimes,
    MediaFlow,
    MediaFlowOwner,
    Medium,
    make_media_flow,
    medium_of,
)
from rtmplite.rtmfp.netconnection.messages import FlowSynchronization, encode_message

# Own design: what a TCP socket would take without a word; only what is more counts as slowness.
ROOM: Final = 128 * 1024

Order: TypeAlias = Callable[[float], None]
"""Something to do with the flows, given the time."""


class OutletOwner(Protocol):
    """Own design: the part of a `connection.FlowTransport` that an outlet uses."""

    lifetimes: Lifetimes

    def enqueue(self, order: Order, size: int = 0) -> None:
        """Do this at the end of the turn, in the order of the queue."""

    def media_flow(self, stream_id: int, medium: Medium) -> MediaFlow:
        """Give the flow for one medium of a stream, new if need be: §5.3.5.1."""

    def abort(self, reason: str, now: float) -> None:
        """End the connection at once."""


class FlowOutlet:
    """Own design: takes a stream's messages for one player, and counts what waits."""

    def __init__(self, owner: OutletOwner, stream_id: int) -> None:
        self.output_size = 0
        self._owner, self._stream_id, self._lifetimes = owner, stream_id, owner.lifetimes

    def put(self, data: bytes) -> None:
        """Queue one message, as `messages.encode_message` gives it: §5.1.2."""
        if self.output_size:
            self.output_size += len(data)
        self._owner.enqueue(partial(self._send, data), len(data))

    def abort(self, reason: str, now: float) -> None:
        """End the connection, which is too slow."""
        self._owner.abort(reason, now)

    def recount(self, queued: int) -> None:
        """Take note of how many bytes of this stream are under way; see `ROOM`."""
        self.output_size = max(0, queued - ROOM)

    def _send(self, data: bytes, now: float) -> None:
        flow = self._owner.media_flow(self._stream_id, medium_of(data[0]))
        flow.send_live(data, now, self._lifetimes)


class Output:
    """The sending flows of a connection, the outlets of its streams, and orders that wait: §5.3.5.

    `size` counts the bytes of these orders, `excess` the bytes beyond `ROOM` that wait for the
    network.

    Own design: everything waits for the end of the turn, so that all of it shares packets.
    """

    def __init__(self, owner: MediaFlowOwner) -> None:
        self._owner = owner
        self.orders: list[Order] = []
        self.size = self.excess = 0
        self.flows: dict[tuple[int, Medium], MediaFlow] = {}
        self.outlets: dict[int, FlowOutlet] = {}
        self._next_barrier = 1
        self._is_slow = False  # at the last count, as a whole or one of the streams

    @property
    def queued(self) -> int:
        """The number of bytes that wait, in orders too."""
        return self.size + sum(flow.queued for flow in self.flows.values())

    @property
    def is_slow(self) -> bool:
        """Whether a stream, or the application, waits for the network: see `recount`."""
        return self._is_slow

    @property
    def undelivered(self) -> int:
        """Bytes of streams that have neither arrived nor been given up by us."""
        return sum(flow.undelivered for flow in self.flows.values() if flow.is_live)

    @property
    def holds_media(self) -> bool:
        """Whether anything of a stream may not have arrived, given up or not."""
        flows = self.flows.values()
        return any(flow.is_live and (flow.undelivered or flow.is_waiting) for flow in flows)

    def add(self, order: Order, size: int) -> None:
        """Do this at the next `run`, in the order of the calls."""
        self.orders.append(order)
        self.size += size

    def run(self, now: float) -> bool:
        """Run the queued jobs; return whether there were any."""
        orders, self.orders, self.size = self.orders, [], 0
        for order in orders:
            order(now)
        return bool(orders)

    def drop(self) -> None:
        """Drop the queued jobs: the session has ended."""
        self.orders.clear()
        self.size = 0

    def flow(self, stream_id: int, medium: Medium) -> MediaFlow:
        """Give a stream's flow for a medium, new if need be: §5.3.5.1, §5.3.5.2 [as-many]."""
        key = stream_id, medium
        found = self.flows.get(key)
        if found is None:
            found = self.flows[key] = make_media_flow(self._owner, stream_id, medium)
        return found

    def put_barrier(self, stream_ids: Collection[int], now: float) -> None:
        """Put a barrier across the flows, if several, of these streams or of all: §5.2."""
        flows = [
            flow
            for flow in self.flows.values()
            if flow.is_open and (not stream_ids or flow.stream_id in stream_ids)
        ]
        if len(flows) < 2:  # §5.2 [count-at-least-2]
            return
        barrier = FlowSynchronization(self._next_barrier, len(flows)).message()
        self._next_barrier = (self._next_barrier + 1) & 0xFFFFFFFF
        for flow in flows:
            flow.send(encode_message(barrier.type_id, 0, barrier.payload), now)

    def close_stream(self, stream_id: int, now: float) -> None:
        """Close the flows of a stream: §5.3.5.3."""
        for key, flow in list(self.flows.items()):
            if flow.stream_id == stream_id:
                flow.close(now)  # §5.3.5.3 [closing-says-nothing]
                del self.flows[key]

    def close(self, now: float) -> bool:
        """Close all flows; return whether the far end was told: §5.3.6 [orderly].

        Own design: the control flow is last, since with its end the other side stops listening,
        and last words about a stream are in a flow that may have only begun.
        """
        flows = self.flows.values()
        for flow in flows:
            if flow.stream_id or _are_over(each for each in flows if each.stream_id):
                flow.close(now)
        return _are_over(flows)

    def recount(self) -> None:
        """Count how much the network has not taken, as a whole and for each outlet; see `ROOM`."""
        by_stream: dict[int, int] = {}
        for flow in self.flows.values():
            by_stream[flow.stream_id] = by_stream.get(flow.stream_id, 0) + flow.queued
        self.excess = max(0, sum(by_stream.values()) - ROOM)
        self._is_slow = self.excess > 0
        for stream_id, outlet in self.outlets.items():
            outlet.recount(by_stream.get(stream_id, 0))
            self._is_slow = self._is_slow or outlet.output_size > 0


def _are_over(flows: Iterable[MediaFlow]) -> bool:
    return all(flow.is_over for flow in flows)

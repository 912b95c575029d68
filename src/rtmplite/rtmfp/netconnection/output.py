"""What a connection has to send: in order until its turn, then in lanes.

Implements RFC 7425 §5.1.1 and §5.2.
"""

from collections.abc import Callable, Collection, Iterable
from typing import TypeAlias

from rtmplite.rtmfp.netconnection.media_flows import LaneOwner, MediaFlow, Medium, make_lane
from rtmplite.rtmfp.netconnection.messages import FlowSynchronization, encode_message
from rtmplite.rtmfp.netconnection.outlet import ROOM, FlowOutlet

Order: TypeAlias = Callable[[float], None]
"""Something to do with the lanes, given the time."""


class Output:
    """The lanes of `owner`, the outlets of what it plays, and the orders that wait: §5.3.5.

    `size` is the bytes in those, `excess` what the network has not taken beyond `ROOM`.
    """

    def __init__(self, owner: LaneOwner) -> None:
        self._owner = owner
        self.orders: list[Order] = []
        self.size = self.excess = 0
        self.lanes: dict[tuple[int, Medium], MediaFlow] = {}
        self.outlets: dict[int, FlowOutlet] = {}
        self._next_barrier = 1
        self._is_slow = False  # at the last count, as a whole or one of the streams

    @property
    def queued(self) -> int:
        """How many bytes wait, in orders too.  Own design: see `Carrier`."""
        return self.size + sum(lane.queued for lane in self.lanes.values())

    @property
    def is_slow(self) -> bool:
        """Whether somebody waits for it to become less.  Own design: see `recount`."""
        return self._is_slow

    @property
    def undelivered(self) -> int:
        """Bytes of streams not arrived nor given up by us.  Own design: see `cut_short`."""
        return sum(lane.undelivered for lane in self.lanes.values() if lane.is_live)

    @property
    def holds_media(self) -> bool:
        """Whether anything of a stream may not have arrived, given up or not.

        Own design: see `cut_short`.
        """
        lanes = self.lanes.values()
        return any(lane.is_live and (lane.undelivered or lane.is_waiting) for lane in lanes)

    def add(self, order: Order, size: int) -> None:
        """Do this at the next `run`, after what was added before.  Own design: see there."""
        self.orders.append(order)
        self.size += size

    def run(self, now: float) -> bool:
        """Do what waits; answer whether there was anything.

        Own design: once in a turn of the loop, so that all it makes shares packets.
        """
        orders, self.orders, self.size = self.orders, [], 0
        for order in orders:
            order(now)
        return bool(orders)

    def drop(self) -> None:
        """Do nothing of what waits.  Own design: as when there is no session any more."""
        self.orders.clear()
        self.size = 0

    def lane(self, stream_id: int, medium: Medium) -> MediaFlow:
        """The flow for one medium of a stream, new if need be: §5.3.5.1, §5.3.5.2 [as-many]."""
        key = stream_id, medium
        found = self.lanes.get(key)
        if found is None:
            found = self.lanes[key] = make_lane(self._owner, stream_id, medium)
        return found

    def put_barrier(self, stream_ids: Collection[int], now: float) -> None:
        """Put a barrier across the flows of these streams, or of all: §5.2 [count-at-least-2].

        One flow alone is in order anyway.
        """
        lanes = [
            lane
            for lane in self.lanes.values()
            if lane.is_open and (not stream_ids or lane.stream_id in stream_ids)
        ]
        if len(lanes) < 2:
            return
        barrier = FlowSynchronization(self._next_barrier, len(lanes)).message()
        self._next_barrier = (self._next_barrier + 1) & 0xFFFFFFFF
        for lane in lanes:
            lane.send(encode_message(barrier.type_id, 0, barrier.payload), now)

    def close_stream(self, stream_id: int, now: float) -> None:
        """Close the flows of a stream: §5.3.5.3 [closing-says-nothing]."""
        for key, lane in list(self.lanes.items()):
            if lane.stream_id == stream_id:
                lane.close(now)
                del self.lanes[key]

    def close(self, now: float) -> bool:
        """Close all flows; answer whether the far end knows: §5.3.6 [orderly].

        Own design: the control flow is last, since with its end the other side stops listening,
        and last words about a stream are in a flow that may have only begun.
        """
        lanes = self.lanes.values()
        for lane in lanes:
            if lane.stream_id or _are_over(each for each in lanes if each.stream_id):
                lane.close(now)
        return _are_over(lanes)

    def recount(self) -> None:
        """See how much the network has not taken.  Own design: `ROOM` of it is no slowness."""
        by_stream: dict[int, int] = {}
        for lane in self.lanes.values():
            by_stream[lane.stream_id] = by_stream.get(lane.stream_id, 0) + lane.queued
        self.excess = max(0, sum(by_stream.values()) - ROOM)
        self._is_slow = self.excess > 0
        for stream_id, outlet in self.outlets.items():
            outlet.recount(by_stream.get(stream_id, 0))
            self._is_slow = self._is_slow or outlet.output_size > 0


def _are_over(lanes: Iterable[MediaFlow]) -> bool:
    return all(lane.is_over for lane in lanes)

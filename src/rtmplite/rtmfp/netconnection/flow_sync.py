"""Flow synchronization: barriers keep the messages of several flows in RTMP's order.

Implements RFC 7425 §5.2.  A flow that meets a barrier waits until all the other flows have met it,
and then all go on; what comes behind it in a flow stays there meanwhile, so it costs no more memory
than the receive window.

    >>> synchronizer, barrier = FlowSynchronizer(), FlowSynchronization(8, 2)
    >>> synchronizer.meet("F1", barrier), synchronizer.meet("F2", barrier)
    ([], ['F1', 'F2'])
"""

from collections.abc import Hashable
from typing import Final, Generic, TypeVar

from rtmplite.errors import RemoteError
from rtmplite.rtmfp.netconnection.messages import FlowSynchronization

F = TypeVar("F", bound=Hashable)

MAX_FLOWS: Final = 64  # own design: of one barrier; a stream has three or four


class FlowSynchronizer(Generic[F]):
    """The barriers at which flows of one connection wait: §5.2."""

    def __init__(self) -> None:
        self._waiting: dict[int, list[F]] = {}

    def __bool__(self) -> bool:
        """Whether any flow waits: §5.2 [suspends]."""
        return bool(self._waiting)

    def __contains__(self, flow: F) -> bool:
        """Whether a flow waits: §5.2 [suspends]."""
        return any(flow in flows for flows in self._waiting.values())

    def meet(self, flow: F, barrier: FlowSynchronization) -> list[F]:
        """Let `flow` arrive; return the flows that may go on now, in order of arrival.

        §5.2.  Raises RemoteError for a count of 0 or one that is beyond reason, and if the flow
        waits already, which means that it was not held.
        """
        if not 1 <= barrier.count <= MAX_FLOWS:  # §5.2 [count-at-least-1]
            raise RemoteError(f"a barrier of {barrier.count} flows")
        if flow in self:
            raise RemoteError("a barrier behind a barrier")
        flows = self._waiting.setdefault(barrier.sync_id, [])
        flows.append(flow)
        if len(flows) < barrier.count:  # §5.2 [suspends]
            return []
        return self._waiting.pop(barrier.sync_id)

    def leave(self, flow: F) -> None:
        """Forget a flow that has ended: §5.2.  Own design: the others wait for one that remains."""
        for sync_id, flows in list(self._waiting.items()):
            if flow in flows:
                flows.remove(flow)
                if not flows:
                    del self._waiting[sync_id]

"""SIP messages between the first worker, which has the listeners, and the others.

Own design: they go over the bus as they are, each with its flow.  So the stack of another worker
writes what it would write at the listeners itself, and a peer cannot tell them apart.  Where one
sends more than a worker reads, they are lost, as datagrams are, and the bus goes on.
"""

from collections.abc import Sequence
from typing import Any

from p2psip.net.clock import monotonic
from p2psip.net.driver import SipDriver
from p2psip.sip.message import Request, Response
from p2psip.transaction.flow import LOCAL, Flow
from siprtmp.calls.neighbours import KnownHost, Neighbours
from siprtmp.core.gateway_core import GatewayCore
from siprtmp.core.steering import HERE, Steering
from siprtmp.edge.workers.bus import Message
from siprtmp.edge.workers.team import Team

FIRST = 0


def neighbours_of(team: Team) -> Neighbours:
    """The other workers, which tell their names and clients over the bus."""
    neighbours = Neighbours(team.place.index, team.place.count, team.bus.tell)
    team.handlers |= neighbours.handlers
    team.greeters.append(neighbours.greeting)
    team.on_lost.append(neighbours.lost)
    return neighbours


class SipHub:
    """The first worker's side: gives messages to the workers they are for, and sends theirs."""

    def __init__(self, team: Team, core: GatewayCore, driver: SipDriver) -> None:
        self._tell, self._offer = team.bus.tell, team.bus.offer
        self._core, self._driver = core, driver
        stack = core.stack
        self._steering = Steering(
            core.neighbours, stack.is_ours, core.passes_proxy, core.worker_for
        )
        stack.divert = self._divert
        driver.on_failure = self._failed
        team.handlers["sip"] = self._take
        team.on_lost.append(self._lost)

    def _divert(self, message: Request | Response, data: bytes, flow: Flow) -> bool:
        worker = self._steering.worker_of(message, flow)
        if worker == HERE:
            return False
        known = self._core.known(flow.remote[0], monotonic())
        about = [known.has_phone, known.is_trunk]
        self._offer({**_packed(data, flow), "known": about}, worker)
        return True

    def _failed(self, flow: Flow) -> None:
        self._tell({**_packed(b"", flow), "do": "sip-failed"})

    def _take(self, worker: int, message: Message) -> None:
        data, flow = _data(message), _flow(message)
        act = self._driver.receive if flow.transport == LOCAL else self._driver.send
        act(data, flow)

    def _lost(self, worker: int) -> None:
        """Forget what went to a worker that has ended, and where its clients have registered."""
        self._steering.lost(worker)
        self._driver.run(self._core.worker_lost, worker, monotonic())


class SipBranch:
    """Another worker's side: has the first one send, and takes what that has received."""

    def __init__(self, team: Team, neighbours: Neighbours) -> None:
        self._offer, self._neighbours = team.bus.offer, neighbours
        self._driver: SipDriver | None = None
        self._core: GatewayCore | None = None
        team.handlers |= {"sip": self._take, "sip-failed": self._failed}
        team.on_lost.append(self._lost)

    def carry(self, data: bytes, flow: Flow) -> bool:
        """Send a message by the first worker."""
        self._offer(_packed(data, flow), FIRST)
        return True

    def serve(self, driver: SipDriver, core: GatewayCore) -> None:
        """Give messages to this driver."""
        self._driver, self._core = driver, core

    def _lost(self, worker: int) -> None:
        if self._core is not None:
            self._core.worker_lost(worker, monotonic())

    def _take(self, worker: int, message: Message) -> None:
        flow = _flow(message)
        self._neighbours.meet(flow.remote[0], KnownHost(*message["known"]))
        if self._driver is not None:
            self._driver.receive_in_turn(_data(message), flow)

    def _failed(self, worker: int, message: Message) -> None:
        if self._driver is not None:
            self._driver.stack.flow_failed(_flow(message), monotonic())
            self._driver.wake()


def _packed(data: bytes, flow: Flow) -> Message:
    where = [flow.transport, flow.remote, flow.local, flow.domain, flow.called]
    return {"do": "sip", "data": data.decode("latin-1"), "flow": where}


def _data(message: Message) -> bytes:
    text: str = message["data"]
    return text.encode("latin-1")


def _flow(message: Message) -> Flow:
    transport, remote, local, domain, called = message["flow"]
    return Flow(transport, _place(remote), local and _place(local), domain, called)


def _place(said: Sequence[Any]) -> tuple[str, int]:
    host, port = said
    return host, port

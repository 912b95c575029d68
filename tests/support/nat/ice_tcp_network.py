"""The network of two agents of ICE with connections of TCP as well, under the same clock."""

from itertools import count

from support.nat.ice_network import Network, Side

from p2psip.nat.ice_candidate import TcpBase, TcpType
from p2psip.nat.ice_connections import IceClose, IceOctets, IceOpen

TCP_PORT = 6000


class Wire:
    """One connection: what its ends say arrives in order, cut as the network likes."""

    def __init__(self, network, near, flow, far, far_flow):
        self.network, self.is_open, self.is_over = network, False, False
        self.ends = {near: flow, far: far_flow}
        self.after = dict.fromkeys(self.ends, 0.0)

    def other(self, side):
        return next(each for each in self.ends if each is not side)

    def later(self, side, act):
        """Have something happen at the end of `side`, after all that is on the way to it."""
        network = self.network
        delay = network.random.uniform(*network.delays)
        self.after[side] = max(self.after[side], network.now + delay)
        network.at(self.after[side], act)

    def send(self, side, data):
        there = self.other(side)
        while data:
            piece = self.network.random.randint(1, max(1, self.network.piece))
            now, data = data[:piece], data[piece:]
            self.later(there, lambda octets=now: self._arrive(there, octets))

    def _arrive(self, side, octets):
        if side.wires.get(self.ends[side]) is self:
            side.read(octets, *self.ends[side])

    def close(self, side):
        """This end has closed; the other one hears of it."""
        side.wires.pop(self.ends[side], None)
        there = self.other(side)
        self.later(there, lambda: self.end(there))

    def end(self, side):
        if side is not None and side.wires.get(self.ends[side]) is self:
            del side.wires[self.ends[side]]
            side.agent.disconnected(*self.ends[side], self.network.now)
            side.send([])


class TcpSide(Side):
    """An agent with candidates of TCP too; `reach` is what becomes of those who connect to it."""

    def __init__(self, network, *rest):
        super().__init__(network, *rest)
        self.wires, self.reach, self.most = {}, "open", 0
        host = self.base[0]
        for direction in network.directions[len(network.made)]:
            self.candidates.append(self.agent.add_tcp(direction, (host, TCP_PORT)))
        self.passive = TcpBase(host, TCP_PORT, TcpType.PASSIVE)
        network.made.append(self)

    def send(self, datagrams):
        super().send(datagrams)
        for order in self.agent.connections.orders():
            flow = order.base, order.to
            if isinstance(order, IceOpen):
                assert flow not in self.wires and order.base.type is TcpType.ACTIVE
                self.network.dial(self, *flow)
            elif isinstance(order, IceOctets):
                self.wires[flow].send(self, order.data)
            elif isinstance(order, IceClose) and flow in self.wires:
                self.wires[flow].close(self)

    def read(self, octets, base, source):
        for packet in self.agent.octets(octets, base, source, self.network.now):
            self.heard.append((packet, base, source))
        self.send([])

    def speak(self, data):
        pair = self.agent.selected
        if isinstance(pair.base, TcpBase):
            self.agent.connections.send_media(data, pair.base, pair.remote.address)
            self.send([])
        else:
            super().speak(data)

    def cut(self):
        """Lose all connections, as when a NAT forgets them."""
        for wire in list(self.wires.values()):
            for side in wire.ends:
                wire.end(side)


class Stranger:
    """Whoever connects and is no agent."""

    def __init__(self):
        self.wires, self.heard = {}, []

    def read(self, octets, *flow):
        self.heard.append(octets)

    @property
    def agent(self):
        return self

    def disconnected(self, *flow):
        pass

    def send(self, datagrams):
        pass


BOTH = (TcpType.ACTIVE, TcpType.PASSIVE)


class TcpNetwork(Network):
    """Two sides; with `udp` false nothing but connections comes through.

    `piece` is the most octets that arrive at once.
    """

    side = TcpSide

    def __init__(self, directions=(BOTH, BOTH), *, udp=False, piece=1000, **rest):
        self.directions, self.made, self.piece = directions, [], piece
        self._ports = count(30000)
        super().__init__(**rest)
        self.is_cut = not udp
        self.dialled = 0

    def dial(self, side, base, to):
        host = base.host if side.nat is None else side.nat.host
        source = host, next(self._ports)
        at = next((e for e in self.made if (e.passive[:2]) == to), None)
        behind = at is not None and at.nat is not None
        reach = "silent" if at is None or behind else at.reach
        wire = Wire(self, side, (base, to), at, at and (at.passive, source))
        side.wires[base, to] = wire
        trying = [e for (_, there), e in side.wires.items() if there[0] == to[0] and not e.is_open]
        side.most, self.dialled = max(side.most, len(trying)), self.dialled + 1
        if reach == "refused":
            wire.later(side, lambda: wire.end(side))
        elif reach == "open":
            wire.later(at, lambda: self._take(wire, side, at))

    def _take(self, wire, side, at):
        if side.wires.get(wire.ends[side]) is not wire:
            return
        at.wires[wire.ends[at]] = wire
        at.agent.accepted(*wire.ends[at], self.now)
        wire.later(side, lambda: self._connected(wire, side))
        at.send([])

    def _connected(self, wire, side):
        if side.wires.get(wire.ends[side]) is wire:
            wire.is_open = True
            side.agent.connected(*wire.ends[side])
            side.send([])

    def intrude(self, at, data, host="198.51.100.66"):
        """Connect as a stranger and say something."""
        stranger, source = Stranger(), (host, next(self._ports))
        wire = Wire(self, stranger, ("stranger", at.passive[:2]), at, (at.passive, source))
        stranger.wires["stranger", at.passive[:2]] = wire
        at.wires[wire.ends[at]] = wire
        at.agent.accepted(*wire.ends[at], self.now)
        at.send([])
        if data:
            wire.send(stranger, data)
        return stranger

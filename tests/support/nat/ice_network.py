"""A network of two agents of ICE, with NATs, loss and delays, under a clock of its own."""

import heapq
import random
from itertools import count

from p2psip.nat.ice import IceAgent, IceState
from p2psip.nat.ice_candidate import CandidateType, IceCandidate
from p2psip.nat.stun import StunMessage

HOST_PORT = 5000


class Nat:
    """A NAT with one public host; `mapping` and `filtering` are "any", "host" or "port".

    RFC 4787's: they say of what of a destination a mapping depends, and who may answer.
    """

    def __init__(self, host, mapping="any", filtering="port"):
        self.host, self.mapping, self.filtering = host, mapping, filtering
        self.ports, self.bases, self.sent = {}, {}, set()

    def out(self, base, to):
        """The public address of a datagram."""
        key = base, {"any": None, "host": to[0], "port": to}[self.mapping]
        if key not in self.ports:
            self.ports[key] = 40000 + len(self.ports)
            self.bases[self.ports[key]] = base
        self.sent.add((self.ports[key], to))
        return self.host, self.ports[key]

    def into(self, port, source):
        """The address inside of a datagram to a public port, None where it is filtered."""
        sent = {to for at, to in self.sent if at == port}
        hosts = {to[0] for to in sent}
        let = {"any": True, "host": source[0] in hosts, "port": source in sent}[self.filtering]
        return self.bases.get(port) if let else None


class Side:
    """An agent at one address, behind a NAT or not."""

    def __init__(self, network, name, host, nat, controlling):
        self.network, self.nat, self.base = network, nat, (host, HOST_PORT)
        drawn = random.Random(f"{network.seed} {name}")
        self.agent = IceAgent(drawn.randbytes, 0.0, controlling=controlling)
        self.heard = []
        self.candidates = [self.agent.add_local(self.base)]

    def reflect(self):
        """Learn a server-reflexive address, as from a server outside."""
        if self.nat is not None:
            public = self.nat.out(self.base, ("198.51.100.1", 3478))
            self.candidates.append(
                self.agent.add_local(public, CandidateType.SERVER_REFLEXIVE, self.base)
            )
        self.agent.gathered()

    def send(self, datagrams):
        for data, base, to in datagrams:
            self.network.send(self, data, base, to)

    def take(self, data, source):
        """A datagram that has arrived."""
        if data[:1] >= b"\x04":
            self.heard.append((data, self.base, source))
        else:
            now = self.network.now
            self.send(self.agent.received(StunMessage.parse(data), self.base, source, now))

    def speak(self, data):
        """Send something by the selected pair."""
        pair = self.agent.selected
        self.network.send(self, data, pair.base, pair.remote.address)


class Network:
    """Two sides, `left` and `right`, and what is on the way between them."""

    side = Side

    def __init__(
        self, nats=(None, None), roles=(True, False), loss=0.0, delays=(0.01, 0.05), seed=0
    ):
        self.seed, self.now, self.loss, self.delays = seed, 0.0, loss, delays
        self.random, self._events, self._count = random.Random(seed), [], count()
        self.is_cut = False
        self.left = self.side(
            self, "left", "192.0.2.1" if nats[0] is None else "10.0.0.1", nats[0], roles[0]
        )
        self.right = self.side(
            self, "right", "192.0.2.2" if nats[1] is None else "10.0.1.1", nats[1], roles[1]
        )
        self.sides = self.left, self.right
        self.agents = self.left.agent, self.right.agent

    def at(self, when, act):
        heapq.heappush(self._events, (when, next(self._count), act))

    def send(self, side, data, base, to):
        if self.is_cut or self.random.random() < self.loss:
            return
        source = base if side.nat is None else side.nat.out(base, to)
        self.at(
            self.now + self.random.uniform(*self.delays), lambda: self._arrive(data, source, to)
        )

    def _arrive(self, data, source, to):
        for side in self.sides:
            is_inside = side.nat is None or source == side.base
            if side.nat is not None and to[0] == side.nat.host:
                if side.nat.into(to[1], source) == side.base:
                    side.take(data, source)
            elif to == side.base and is_inside:
                side.take(data, source)

    def signal(self, delays=(0.0, 0.0)):
        """Exchange credentials and candidates, each of them `delays` later than that before."""
        left, right = self.sides
        for ours, theirs, delay in ((left, right, delays[0]), (right, left, delays[1])):
            credentials = theirs.agent.ours
            self.at(self.now, lambda a=ours.agent, c=credentials: a.begin(c, self.now))
            for number, candidate in enumerate(theirs.candidates, 1):
                read = IceCandidate.parse(str(candidate))
                self.at(self.now + number * delay, lambda a=ours.agent, c=read: a.add_remote(c))
            end = self.now + (len(theirs.candidates) + 1) * delay
            self.at(end, ours.agent.end_of_candidates)

    def run(self, seconds, until=lambda: False):
        """Let time pass."""
        end = self.now + seconds
        while not until():
            due = [each.deadline for each in self.agents if each.deadline is not None]
            due += [self._events[0][0]] if self._events else []
            if not due or min(due) > end:
                break
            self.now = max(self.now, min(due))
            while self._events and self._events[0][0] <= self.now:
                heapq.heappop(self._events)[2]()
            for side in self.sides:
                if side.agent.deadline is not None and side.agent.deadline <= self.now:
                    side.send(side.agent.tick(self.now))
        else:
            return
        self.now = end

    def connect(self, seconds=120.0, **signalled):
        """Reflect, signal and run until both are done."""
        for side in self.sides:
            side.reflect()
        self.signal(**signalled)
        done = (IceState.COMPLETED, IceState.FAILED)
        self.run(seconds, lambda: all(agent.state in done for agent in self.agents))

    @property
    def states(self):
        return tuple(agent.state.name for agent in self.agents)

    def agree(self):
        """Whether both have failed, or what each sends arrives by the pair of the other."""
        if self.states == ("FAILED", "FAILED"):
            return True
        if self.states != ("COMPLETED", "COMPLETED"):
            return False
        loss, self.loss = self.loss, 0.0
        for ours, theirs in (self.sides, self.sides[::-1]):
            theirs.heard.clear()
            ours.speak(b"media")
        self.run(1.0)
        self.loss = loss
        return all(
            [(b"media", each.agent.selected.base, each.agent.selected.remote.address)] == each.heard
            for each in self.sides
        )

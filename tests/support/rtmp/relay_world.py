"""Two servers without a network between them, for relays: the one at home, and the other."""

from support.rtmp.rtmp_world import World, counting

from rtmplite.amf import amf0
from rtmplite.live.slow_consumer import SlowConsumerPolicy
from rtmplite.live.streams import Registry
from rtmplite.relay.link import ReconnectBackoff
from rtmplite.relay.rules import Relays, Rule

BACKOFF = ReconnectBackoff(first=1.0, most=8.0, steady=5.0, answer=4.0)
KEY, FRAME, SOUND = b"\x17\x01\0\0\0key", b"\x27\x01\0\0\0more", b"\xb2sound"
VIDEO_HEADER = b"\x17\x00\0\0\0avcC"
METADATA = amf0.encode("onMetaData", {"width": 320.0})


class Wire:
    """The connection that one `dial` made."""

    def __init__(self, world, near):
        self.world, self.near, self.far = world, near, world.at(near.target.host).server()
        self.deaf = world.deaf

    def carry(self):
        """Move the output of both ends; returns whether there was any."""
        up = b"".join(self.near.transport.take_output())
        down = b"" if self.deaf else b"".join(self.far.transport.take_output())
        if up and not self.deaf:
            self.far.transport.receive(up, self.world.now)
        if down:
            self.near.transport.receive(down, self.world.now)
        if self.far.closed and not self.far.transport.output and not self.near.closed:
            self.near.transport.connection_lost(self.world.now)
        if self.near.closed and not self.far.closed:
            self.far.transport.connection_lost(self.world.now)
        return bool(up or down)

    @property
    def ended(self):
        """Whether both sides know that it is over."""
        return self.near.closed and self.far.closed


class RelayWorld:
    """`home` has relays to `far`, which can be `up` or not, or `deaf`: it takes and never says.

    `others` are more servers, by their hosts; without `groups` a relay waits for a key frame.
    """

    def __init__(self, *, push=(), pull=(), backoff=BACKOFF, others=(), groups=True):
        self.others = {host: World() for host in others}
        self.now, self.up, self.deaf = 0.0, True, False
        self.far, self.registry = (
            World(),
            Registry(SlowConsumerPolicy(skip=1000, limit=2000, seconds=1.0), keeps_groups=groups),
        )
        self.wires, self.dials, self.changes = [], [], []
        self.relays = Relays(
            self.registry,
            self.dial,
            counting(),
            push=[Rule.parse(rule) for rule in push],
            pull=[Rule.parse(rule) for rule in pull],
            backoff=backoff,
            on_change=lambda link, now: self.changes.append((now, link.state)),
        )
        self.home = World(registry=self.registry)

    def at(self, host):
        """The server of that name, None if there is none."""
        return self.others.get(host) if host != "far" else self.far if self.up else None

    def dial(self, machine):
        """Connect, or fail at once as a closed port does."""
        self.dials.append(self.now)
        if self.at(machine.target.host) is not None:
            self.wires.append(Wire(self, machine))
        else:
            machine.transport.connection_lost(self.now, "Connection refused")

    def run(self):
        """Carry bytes until there are none."""
        servers = [self.far, *self.others.values(), self.home]
        for server in servers:
            server.now = self.now
        for _ in range(2):
            while any([wire.carry() for wire in self.wires]):
                pass
            for server in servers:
                server.run()
        self.wires = [wire for wire in self.wires if not wire.ended]

    def wait(self, seconds):
        """Let time pass for the relays."""
        self.run()
        end = self.now + seconds
        while (at := self.relays.deadline) is not None and at <= end:
            self.now = max(self.now, at)
            self.relays.tick(self.now)
            self.run()
        self.now = end

    def cut(self):
        """The network fails: every connection is lost."""
        for wire in self.wires:
            wire.near.transport.connection_lost(self.now, "cut")
        self.run()

    def states(self):
        """How all links are."""
        return [str(link.state) for link in self.relays.links]

"""RTMP connections without a network: both ends' machines, and a clock that is turned by hand."""

from rtmplite.errors import RemoteError
from rtmplite.live.streams import Registry
from rtmplite.rtmp.application import LiveApplication
from rtmplite.rtmp.client import Called, ClientConnection, Reply, Target
from rtmplite.rtmp.server import DEFAULT_LIMITS, ServerConnection
from rtmplite.rtmp.wire.message import Message


def counting():
    """A source of bytes that are different and yet the same in every run."""
    state = [0]

    def some(count):
        state[0] += 1
        return (state[0].to_bytes(4, "big") * (count // 4 + 1))[:count]

    return some


class World:
    """A server with one application, and its clients."""

    def __init__(self, application=None, *, registry=None, limits=DEFAULT_LIMITS):
        self.now = 0.0
        self.random = counting()
        # What players that come late get of the past is shown in tests/rtmplite/live.
        self.registry = Registry(keeps_groups=False) if registry is None else registry
        self.application = LiveApplication() if application is None else application
        self.limits, self.peers = limits, []

    def application_for(self, name):
        return None if name == "nothing" else self.application

    def server(self):
        """A server's end that nobody is connected to."""
        return ServerConnection(
            self.application_for, self.registry, self.random, self.now, limits=self.limits
        )

    def client(self, url="rtmp://host/live", **options):
        """A client, connected as far as the application lets it."""
        target = Target.parse(url, stream=False)
        client = ClientConnection(target, self.random, self.now, **options)
        peer = Peer(self, client, self.server())
        self.peers.append(peer)
        self.run()
        return peer

    def run(self):
        """Carry bytes both ways until there are none."""
        while any([peer.carry() for peer in self.peers]):
            pass

    def wait(self, seconds):
        """Let time pass, and tick the machines whose deadlines pass."""
        end = self.now + seconds
        while True:
            ends = [end_ for peer in self.peers for end_ in (peer.client, peer.server)]
            due = [each.deadline for each in ends if each.deadline is not None]
            if min(due, default=end) >= end:
                break
            self.now = max(self.now, min(due))
            for each in ends:
                each.tick(self.now)
            self.run()
        self.now = end


class Peer:
    """A client and the server's end of its connection."""

    def __init__(self, world, client, server):
        self.world, self.client, self.server = world, client, server
        self.events, self.deaf = [], False

    def carry(self):
        """Move the output of both ends; returns whether there was any."""
        up = b"".join(self.client.transport.take_output())
        down = b"" if self.deaf else b"".join(self.server.transport.take_output())
        if self.deaf:
            self.server.transport.output_size = sum(map(len, self.server.transport.output))
        if up:
            self.server.transport.receive(up, self.world.now)
        if down:
            self.client.transport.receive(down, self.world.now)
        self.events += self.client.events()
        return bool(up or down)

    def reply(self, number):
        """The answer to a call: its values, or the error raised."""
        for event in self.events:
            if isinstance(event, Reply) and event.transaction_id == number:
                if not event.succeeded:
                    information = event.values[-1]
                    raise RemoteError(information["description"], information["code"])
                return event.values
        raise AssertionError(f"no reply to {number}")

    def call(self, name, *args):
        """Call the server and give the values of its answer."""
        number = self.client.call(name, *args)
        self.world.run()
        return self.reply(number)

    def send(self, name, *args, stream_id=0):
        """Call without wanting an answer."""
        self.client.send(name, *args, stream_id=stream_id)
        self.world.run()

    def stream(self):
        """A new message stream, by its number."""
        return int(self.call("createStream")[1])

    def publish(self, name, *kind):
        """Publish on a stream of its own; the number of that."""
        stream_id = self.stream()
        self.send("publish", name, *kind, stream_id=stream_id)
        return stream_id

    def play(self, name, *args):
        """Play on a stream of its own; the number of that."""
        stream_id = self.stream()
        self.send("play", name, *args, stream_id=stream_id)
        return stream_id

    def write(self, type_id, timestamp, stream_id, payload):
        """Publish one message."""
        self.client.send_media(type_id, timestamp, stream_id, payload)
        self.world.run()

    def codes(self):
        """The codes of all onStatus so far, in order."""
        return [code for code, _ in self.statuses()]

    def statuses(self):
        """Code and description of all onStatus so far, in order."""
        calls = [event.command for event in self.events if isinstance(event, Called)]
        found = [call.args[0] for call in calls if call.name == "onStatus"]
        return [(each["code"], each["description"]) for each in found]

    def calls(self):
        """Names and arguments of the server's commands on stream 0, except onStatus."""
        calls = [event.command for event in self.events if isinstance(event, Called)]
        return [(call.name, *call.args) for call in calls if call.name != "onStatus"]

    def media(self):
        """Type, time and payload of the messages played so far, without the server's preamble."""
        return [
            (event.type_id, event.timestamp, event.payload)
            for event in self.events
            if isinstance(event, Message) and b"|RtmpSampleAccess" not in event.payload
        ]

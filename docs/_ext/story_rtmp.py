"""Stories of RTMP: our clients and our server on a link of 20 ms, each octet as it was sent."""

import itertools
import re
from collections.abc import Callable, Iterator, Sequence

from story import Step, Story, named, told
from support.rtmfp.link import Link
from support.sip.elements import random_source

from rtclab.explain.fields.field import Field
from rtmplite.live.streams import Registry
from rtmplite.rtmp.application import LiveApplication
from rtmplite.rtmp.client import ClientConnection, Reply, Target
from rtmplite.rtmp.server import ServerConnection
from rtmplite.rtmp.wire.chunk_writer import ChunkWriter
from rtmplite.rtmp.wire.message import Message, MessageType

DELAY = 0.02  # seconds, one way
SOUND = bytes.fromhex("b2") + bytes(range(0x30, 0x50))  # an audio tag's body: Speex


class End:
    """One end of a connection, as `Link` wants it."""

    deadline = None

    def __init__(self, link: Link, name: str, other: str, machine: ClientConnection) -> None:
        self.machine, self.other = machine, other
        link.join(name, self)

    def tick(self, now: float) -> None:
        """Nothing here waits for time alone."""

    def receive(self, data: bytes, source: str, now: float) -> None:
        """Take what the other end sent."""
        self.machine.transport.receive(data, now)

    def take(self) -> list[tuple[bytes, str, bool]]:
        """What it sends."""
        data = b"".join(self.machine.transport.take_output())
        return [(data, self.other, True)] if data else []


class Stage:
    """A server, and clients that join it by name."""

    def __init__(self) -> None:
        self.link, self.random = Link(reliable_delay=DELAY), random_source("rtmp")
        self.registry, self.application = Registry(), LiveApplication()

    def join(self, name: str) -> ClientConnection:
        """Connect a client, as far as its createStream; its ends are `name` and `server/name`."""
        now = self.link.now
        applications: Callable[[str], LiveApplication | None] = {"live": self.application}.get
        server = ServerConnection(applications, self.registry, self.random, now)
        target = Target.parse("rtmp://192.0.2.1/live", stream=False)
        client = ClientConnection(target, self.random, now)
        End(self.link, name, f"server/{name}", client)
        End(self.link, f"server/{name}", name, server)
        self.run()
        return client

    def create(self, client: ClientConnection) -> int:
        """Create a stream; its number."""
        call = client.call("createStream")
        self.run()
        [reply] = [e for e in client.events() if isinstance(e, Reply) and e.transaction_id == call]
        return int(reply.values[1])  # type: ignore[call-overload]

    def run(self, seconds: float = 0.2) -> None:
        """Go on for a while."""
        self.link.run(until=self.link.now + seconds)

    def steps(self) -> list[Step]:
        """All messages of all connections in the order of time."""
        ways = dict.fromkeys((source, to) for _, source, to, _ in self.link.sent)
        found = [step for way in ways for step in self._way(*way)]
        found.sort(key=lambda step: step.at)
        return found

    def _way(self, source: str, to: str) -> Iterator[Step]:
        ours = [(at, data) for at, *ends, data in self.link.sent if ends == [source, to]]
        return way(ours, source, to)


def way(flights: Sequence[tuple[float, bytes]], source: str, to: str) -> Iterator[Step]:
    """The messages of one direction of a connection, the server's end of which is `server/name`."""
    stream = b"".join(data for _, data in flights)
    whole = told("rtmp", stream)
    pieces = list(handshake(whole, source)) + list(messages(whole.children[-1]))
    who = f"to-{to}" if source.startswith("server") else source
    names = named(f"{who}-{slug}" for slug, _, _ in pieces)
    for name, (_, label, field) in zip(names, pieces, strict=True):
        sent = itertools.accumulate(len(data) for _, data in flights)
        at = next(at for (at, _), end in zip(flights, sent, strict=True) if field.end <= end)
        ends = (each.partition("/")[0] for each in (source, to))
        yield Step(name, at, *ends, label, field, stream)


def handshake(whole: Field, source: str) -> Iterator[tuple[str, str, Field]]:
    """The packets of one end."""
    letter = "S" if source.startswith("server") else "C"
    version, first, second = whole.children[:3]
    if letter == "C":
        yield "c0", "C0, C1", group("C0, C1", version, first)
        yield "c2", "C2", group("C2", second)
    else:
        yield "s0", "S0, S1, S2", group("S0, S1, S2", version, first, second)


def group(name: str, *fields: Field) -> Field:
    """Fields that stand one behind the other, as one."""
    return Field(name, fields[0].start, fields[-1].end, children=fields)


def messages(chunks: Field) -> Iterator[tuple[str, str, Field]]:
    """The messages of one direction, each with its chunks."""
    waiting: list[Field] = []
    for chunk in chunks.children:
        waiting.append(chunk)
        last = chunk.children[-1]
        whole = last.children[0] if last.octets is not None else last
        if whole.name.endswith("message"):
            label = labelled(whole)
            yield slug(label), label, group(label, *waiting)
            waiting.clear()


def slug(label: str) -> str:
    """The words of a label that are not numbers, of an answer its name alone."""
    first = label.partition(" ")[0] if label.startswith(("_result", "onStatus")) else label
    return "-".join(re.findall(r"[A-Za-z]+", first)).lower()


def labelled(message: Field) -> str:
    """A message in a few words."""
    name = message.name.removesuffix(" message")
    if name == "command" or name == "data":
        words = [each.value.strip('"') for each in message.walk() if each.meaning == "string"][:1]
        codes = [each.value.strip('"') for each in message.walk() if each.name == "code"]
        return " ".join(words + [each.partition(".")[2] for each in codes])
    if name == "user control":
        return " ".join(each.meaning or each.value for each in message.children)
    if message.children[0].children:
        return name
    return " ".join([name, *(each.value for each in message.children)])


def steps() -> Story:
    """A publisher, then a player of its stream; the publisher sends four frames of audio."""
    stage = Stage()
    publisher = stage.join("publisher")
    ours = stage.create(publisher)
    publisher.send("publish", "demo", "live", stream_id=ours)
    stage.run()
    player = stage.join("player")
    theirs = stage.create(player)
    player.send("play", "demo", stream_id=theirs)
    stage.run()
    for number in range(4):
        publisher.send_media(MessageType.AUDIO, 1000 + 20 * number, ours, SOUND)
        stage.run(0.02)
    stage.run()
    publisher.send("deleteStream", float(ours))
    stage.run()
    return Story(("publisher", "server", "player"), tuple(stage.steps()), {"stream": ours})


def chunks() -> Story:
    """Messages of one sender, by `ChunkWriter`: three of audio, and one of video between them."""
    writer = ChunkWriter()
    sounds = [Message(MessageType.AUDIO, 1000 + 20 * i, 1, SOUND) for i in range(4)]
    picture = Message(MessageType.VIDEO, 1000, 1, b"\x22" + bytes(range(199)))
    late = Message(MessageType.AUDIO, 0x1000000, 1, SOUND)
    sent: Sequence[tuple[str, Message, int]] = [
        *((f"sound-{i + 1}", each, 4) for i, each in enumerate(sounds)),
        ("picture", picture, 6),
        ("late", late, 5),
        ("far", sounds[0], 70),
    ]
    pieces = [(name, message, writer.write(message, number)) for name, message, number in sent]
    stream = b"".join(data for _, _, data in pieces)
    found = iter(told("rtmp-chunks", stream).children)
    steps, at = [], 0
    for name, message, data in pieces:
        fields = []
        while at < sum(len(other) for *_, other in pieces[: len(steps) + 1]):
            fields.append(next(found))
            at = fields[-1].end
        time = (message.timestamp - 1000) / 1000
        label = f"{message.type_id.name.lower()}, {len(data)} bytes"  # type: ignore[attr-defined]
        steps.append(Step(name, time, "sender", "receiver", label, group(name, *fields), stream))
    return Story(("sender", "receiver"), tuple(steps))

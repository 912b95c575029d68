"""Recorded streams without a disk: a library of bytes, and playbacks woken by a clock."""

from support.rtmp.rtmp_world import World

from rtmplite.flv import file
from rtmplite.flv.describe import Facts, describe
from rtmplite.flv.index import load_index, scan
from rtmplite.flv.tag import Tag
from rtmplite.rtmp.client import Called, Ended
from rtmplite.rtmp.wire.message import Message
from rtmplite.vod.application import VodApplication

AVC, KEY, INTER = b"\x17\x00\0\0\0avcC", b"\x17\x01\0\0\0key", b"\x27\x01\0\0\0inter"
AAC, SOUND = b"\xaf\x00\x12\x10", b"\xaf\x01sound"


def film(seconds, mark=b""):
    """Headers, then every second a key frame, sound 20 ms later, another frame at the half."""
    tags = [Tag(9, 0, AVC + mark), Tag(8, 0, AAC + mark)]
    for at in range(0, seconds * 1000, 1000):
        tags += [Tag(9, at, KEY + mark), Tag(8, at + 20, SOUND + mark)]
        tags += [Tag(9, at + 500, INTER + mark)]
    return tags


def described(tags):
    """The same with an index in front, as tools of others write it."""
    found = scan(file.MemoryFile(file.write_flv(tags)))
    facts = Facts(set(found.kinds), {}, found.duration, 0, found.times, found.positions)
    shift = len(file.framed(Tag(18, 0, describe({}, facts))))
    facts.positions = [position + shift for position in found.positions]
    return [Tag(18, 0, describe({}, facts)), *tags]


class Shelf:
    """A library and its open files; with `slow`, answers wait for `answer`."""

    def __init__(self, world, files):
        self.world, self.files, self.slow = world, files, False
        self.waiting, self.open_files = [], 0

    def open(self, name, then):
        self.later(lambda: then(self.take(name), self.world.now))

    def take(self, name):
        if name not in self.files:
            return None
        self.open_files += 1
        return Opened(self, self.files[name])

    def later(self, call):
        if self.slow:
            self.waiting.append(call)
        else:
            call()

    def answer(self):
        waiting, self.waiting = self.waiting, []
        for call in waiting:
            call()
        self.world.run()


class Opened:
    """One file from the shelf."""

    def __init__(self, shelf, raw):
        self.shelf, self.source, self.closed = shelf, file.MemoryFile(raw), False
        self.index = load_index(self.source)

    def read(self, at, size, then):
        def answer():
            if not self.closed:
                then(self.source.read(at, size), self.shelf.world.now)

        self.shelf.later(answer)

    def close(self):
        assert not self.closed
        self.closed = True
        self.shelf.open_files -= 1


class VodWorld(World):
    """A server that plays `files`, by name, to clients."""

    def __init__(self, **files):
        self.playbacks = {}
        raw = {
            name: tags if isinstance(tags, bytes) else file.write_flv(tags)
            for name, tags in files.items()
        }
        self.shelf = Shelf(self, raw)
        super().__init__(VodApplication(self.shelf, self.wake))

    def wake(self, playback):
        self.playbacks[playback] = None

    def viewer(self, name, *args, buffer=None):
        """A client that plays; its stream's number."""
        peer = self.client("rtmp://host/vod")
        stream_id = peer.stream()
        if buffer is not None:
            peer.buffer(stream_id, buffer)
        peer.send("play", name, *args, stream_id=stream_id)
        return Viewer(peer, stream_id)

    def client(self, url="rtmp://host/vod", **options):
        peer = super().client(url, **options)
        peer.buffer = lambda stream_id, ms: buffer(peer, stream_id, ms)
        return peer

    def wait(self, seconds):
        """Let time pass for playbacks; connections are patient."""
        end = self.now + seconds
        for _ in range(100_000):
            due = [p.deadline for p in self.playbacks if p.deadline is not None]
            if min(due, default=end + 1) > end:
                break
            self.now = max(self.now, min(due))
            for playback in list(self.playbacks):
                playback.tick(self.now)
            self.run()
        else:
            raise AssertionError("time does not pass")
        self.now = end


def buffer(peer, stream_id, milliseconds):
    """Say how much the client wants in hand."""
    from rtmplite.rtmp.wire.control import SetBufferLength

    peer.client.transport.send_control(SetBufferLength(stream_id, milliseconds))
    peer.world.run()


class Viewer:
    """The messages that one client has been played."""

    def __init__(self, peer, stream_id):
        self.peer, self.stream_id = peer, stream_id

    def send(self, name, *args):
        self.peer.send(name, *args, stream_id=self.stream_id)

    @property
    def tags(self):
        """Type, time and payload of the messages from the file."""
        return [each for each in self.peer.media() if b"onPlayStatus" not in each[2]]

    @property
    def pictures(self):
        """The times of all frames, headers left out."""
        return [time for kind, time, data in self.tags if kind == 9 and not data.startswith(AVC)]

    @property
    def codes(self):
        """All onStatus and onPlayStatus codes, in order, and "eof"."""
        out = []
        for each in self.peer.events:
            if isinstance(each, Called) and each.command.name == "onStatus":
                out.append(each.command.args[0]["code"].removeprefix("NetStream."))
            elif isinstance(each, Message) and b"onPlayStatus" in each.payload:
                from rtmplite.amf import amf0

                out.append(amf0.decode(each.payload)[1]["code"].removeprefix("NetStream."))
            elif isinstance(each, Ended):
                out.append("eof")
        return out


def as_played(tags):
    """The messages that a client should receive of these tags."""
    return [(tag.tag_type, tag.timestamp & 0xFFFFFFFF, tag.data) for tag in tags]

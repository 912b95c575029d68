"""A live stream and those who watch it: each with a queue, a socket, and a decoder behind it."""

from rtmplite.live.slow_consumer import SlowConsumerPolicy
from rtmplite.live.streams import Registry
from rtmplite.rtmp.wire.chunk_reader import ChunkReader
from rtmplite.rtmp.wire.chunk_writer import CHUNK_SIZE, ChunkFraming

AAC, SOUND = b"\xaf\x00\x12\x10", b"\xaf\x01sound"
AVC, KEY, INTER = b"\x17\x00\0\0\0avcC", b"\x17\x01\0\0\0key", b"\x27\x01\0\0\0inter"
CUE = b"\x02\0\x01x"
SLOW = SlowConsumerPolicy(skip=1000, limit=5000, seconds=10.0)


class Screen:
    """A player's connection: a queue, a socket that takes it or does not, a decoder behind it."""

    def __init__(self):
        self.queue, self.output_size, self.stuck = [], 0, False
        self.reader = ChunkReader()
        self.reader.chunk_size = CHUNK_SIZE
        self.reason, self.player, self.seen = "", None, []

    def put(self, data):
        if not self.reason:
            self.queue.append(data)
            self.output_size += len(data) if self.stuck else 0

    def abort(self, reason, now):
        self.reason = reason
        self.queue.clear()
        self.player.leave(now)

    def read(self):
        """Take everything, as a fast player does; the new messages."""
        self.queue, queue = [], self.queue
        self.output_size = 0
        new = [(each.type_id, each.timestamp, each.payload)
               for each in self.reader.feed(b"".join(queue))]  # fmt: skip
        self.seen += new
        return new


def theatre(players=1, slow_consumer=SLOW, **options):
    """A stream and those who watch it."""
    registry = Registry(slow_consumer, **options)
    live = registry.open("live", "demo")
    screens = [Screen() for _ in range(players)]
    for screen in screens:
        screen.player = live.join(screen, ChunkFraming(1), None, 0.0)
    return registry, live, screens

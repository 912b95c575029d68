"""A handshake and a connection over a pipe that cuts its bytes anywhere, in either direction."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from support.rtmp.rtmp_world import World, counting

from rtmplite.rtmp.client import ClientConnection, Reply, Target
from rtmplite.rtmp.wire.message import MessageType

SIZES = st.sampled_from((1, 2, 11, 128, 1536, 1537, 3073, 100_000))  # 1536 and more: RTMP 1.0 §5.2
PATIENCE = 5.0  # s, less than any limit of a connection


class Piped(RuleBasedStateMachine):
    """The bytes of each end wait in a pipe until a rule lets some of them through."""

    @initialize(digest=st.booleans())
    def connect(self, digest):
        self.world = World()
        self.server = self.world.server()
        target = Target.parse("rtmp://host/live", stream=False)
        self.client = ClientConnection(target, counting(), 0.0, digest=digest)
        self.ends = (self.client, self.server)
        self.pipes = (bytearray(), bytearray())  # from the client, and from the server
        self.asked, self.events, self.now = [], [], 0.0

    def collect(self):
        for end, pipe in zip(self.ends, self.pipes, strict=True):
            pipe += b"".join(end.transport.take_output())
        self.events += self.client.events()

    @property
    def replies(self):
        """The answers to calls after connect, which has the number 1: RTMP 1.0 §7.2.1.1."""
        return [each for each in self.events if isinstance(each, Reply)][1:]

    @property
    def is_ready(self):
        first = next((each for each in self.events if isinstance(each, Reply)), None)
        assert first is None or (first.transaction_id, first.succeeded) == (1.0, True)
        return first is not None

    @rule(way=st.sampled_from((0, 1)), size=SIZES)
    def flow(self, way, size):
        """Covers RTMP 1.0 §5.2.1: whatever the pieces are, each part is read when it is whole."""
        self.collect()
        piece = bytes(self.pipes[way][:size])
        del self.pipes[way][:size]
        if piece:
            self.ends[1 - way].transport.receive(piece, self.now)
        self.collect()

    @rule(name=st.sampled_from(("createStream", "noSuchCall")))
    def call(self, name):
        """Covers RTMP 1.0 §7.2.1.3 and §7.2.1.2: each call has an answer of its own."""
        if self.is_ready:
            self.asked.append((self.client.call(name), name))

    @rule(octets=st.sampled_from((0, 1, 127, 128, 129, 5000)))
    def publish_some(self, octets):
        """A message of the media, which nobody has asked for: it gets no answer."""
        if self.is_ready:
            self.client.send_media(MessageType.AUDIO, 0, 1, bytes(octets))

    @rule()
    def wait(self):
        if self.now < PATIENCE:
            self.now += 0.5
            for end in self.ends:
                end.tick(self.now)

    @invariant()
    def answers_come_in_order_and_once(self):
        """Covers RTMP 1.0 §7.2: the answer has the number of its call, and says how it went."""
        if hasattr(self, "world"):
            known = self.asked[: len(self.replies)]
            told = [(reply.transaction_id, reply.succeeded) for reply in self.replies]
            assert told == [(number, name == "createStream") for number, name in known]
            streams = [reply.values[1] for reply in self.replies if reply.succeeded]
            assert len(set(streams)) == len(streams)

    def teardown(self):
        if not hasattr(self, "world"):
            return
        self.collect()
        while any(self.pipes):
            for way in (0, 1):
                self.flow(way, 100_000)
        assert self.is_ready and not any(end.transport.closed for end in self.ends)
        assert len(self.replies) == len(self.asked)


TestPiped = Piped.TestCase
TestPiped.settings = settings(max_examples=60, stateful_step_count=40)

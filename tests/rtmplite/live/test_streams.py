"""Live streams: bytes made once, whole messages only, and nobody waits for the slow."""

from collections import defaultdict

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from support.rtmp.theatre import AAC, AVC, CUE, INTER, KEY, SLOW, SOUND, Screen, theatre

from rtmplite.live.slow_consumer import SlowConsumerPolicy
from rtmplite.live.streams import Registry
from rtmplite.rtmp.wire.chunk_writer import ChunkFraming
from rtmplite.rtmp.wire.message import MAX_PAYLOAD


def test_bytes_are_made_once():
    """Own design: one object in every queue."""
    _, live, screens = theatre(players=3)
    live.write(8, 20, SOUND, 0.0)
    assert len({id(screen.queue[0]) for screen in screens}) == 1
    assert [screen.read() for screen in screens] == [[(8, 20, SOUND)]] * 3


def test_who_waits_for_a_picture_hears_nothing_before_it():
    """Start on a key frame when there is video."""
    _, live, _ = theatre(players=0, keeps_groups=False)
    live.write(9, 0, AVC, 0.0)
    live.write(9, 0, KEY, 0.0)
    late = Screen()
    live.join(late, ChunkFraming(1), None, 0.1)
    live.write(8, 20, SOUND, 0.1)
    live.write(9, 40, INTER, 0.1)
    assert late.read() == [(9, 0, AVC)]
    live.write(9, 80, KEY, 0.2)
    live.write(8, 90, SOUND, 0.2)
    assert late.read() == [(9, 80, KEY), (8, 90, SOUND)]


def test_sound_does_not_wait_for_a_camera_that_was_switched_off():
    """Own design: two seconds without a frame are enough."""
    _, live, _ = theatre(players=0, keeps_groups=False)
    live.write(9, 0, KEY, 0.0)
    late = Screen()
    live.join(late, ChunkFraming(1), None, 1.0)
    live.write(8, 1900, SOUND, 1.9)
    live.write(8, 2000, SOUND, 2.0)
    assert late.read() == [(8, 2000, SOUND)]


def test_who_has_video_switched_off_does_not_wait_for_it():
    """Covers RTMP 1.0 §7.2.2.5."""
    _, live, [screen] = theatre()
    screen.player.select(video=False)
    live.write(9, 0, KEY, 0.0)
    live.write(9, 5, AVC, 0.0)
    live.write(8, 20, SOUND, 0.0)
    assert screen.read() == [(8, 20, SOUND)]


def test_the_slow_skip_to_a_key_frame_and_the_fast_never_notice():
    """Own design: `SlowConsumerPolicy.skip`, and back below half of it."""
    _, live, [slow, fast] = theatre(players=2)
    live.write(9, 0, KEY, 0.0)
    slow.stuck, slow.output_size = True, 1
    for time in range(1, 40):
        live.write(9, time, INTER + bytes(100), 0.0)
    assert len(fast.read()) == 40
    assert 1000 < slow.output_size < 1300
    live.write(9, 50, KEY, 0.1)
    assert slow.output_size < 1300  # still too far behind
    before = slow.read()
    slow.stuck = False
    live.write(9, 60, INTER, 0.2)
    live.write(9, 70, KEY, 0.2)
    live.write(9, 80, INTER, 0.2)
    assert slow.read() == [(9, 70, KEY), (9, 80, INTER)] and len(before) < 15
    assert [time for _, time, _ in fast.read()] == [50, 60, 70, 80]


def test_headers_are_never_skipped():
    """Without a new one, nothing after it decodes."""
    _, live, [slow] = theatre()
    live.write(9, 0, KEY, 0.0)
    slow.stuck, slow.output_size = True, 2000
    live.write(9, 10, INTER, 0.0)
    live.write(9, 20, AVC, 0.0)
    live.write(8, 20, AAC, 0.0)
    assert [time for _, time, _ in slow.read()] == [0, 20, 20]


@pytest.mark.parametrize("sound_only", [True, False])
def test_the_hopeless_are_closed(sound_only):
    """Own design: `SlowConsumerPolicy.seconds` after it began to skip, whatever is sent."""
    registry, live, [slow, fast] = theatre(players=2)
    frame = (8, SOUND) if sound_only else (9, KEY)
    live.write(frame[0], 0, frame[1], 0.0)
    slow.stuck, slow.output_size = True, 1001
    for now in (1.0, 5.0, 11.0):
        live.write(frame[0], int(now * 1000), frame[1], now)
        assert not slow.reason
    live.write(frame[0], 11001, frame[1], 11.1)
    assert slow.reason.startswith("too slow") and live.players == 1
    assert len(fast.read()) == 5
    assert list(registry) == [live]


def test_too_much_at_once_closes_too():
    """Own design: `SlowConsumerPolicy.limit` is a bound on memory."""
    _, live, [slow, fast] = theatre(players=2)
    live.write(9, 0, KEY, 0.0)
    slow.stuck, slow.output_size = True, 5001
    live.write(9, 10, KEY, 0.0)
    assert slow.reason and slow.queue == [] and len(fast.read()) == 2


def test_who_is_there_first_misses_nothing():
    """From the first message on, whatever it is; who comes later waits for a key frame."""
    _, live, [screen] = theatre()
    messages = [(18, 0, CUE), (9, 0, AVC), (8, 0, SOUND), (9, 9, KEY)]
    for type_id, time, payload in messages:
        live.write(type_id, time, payload, 0.0)
    assert screen.read() == messages


def test_headers_alone_are_nothing_missed():
    """Own design: they are repeated, so who comes after them has everything too."""
    _, live, _ = theatre(players=0)
    live.write(9, 0, AVC, 0.0)
    late = Screen()
    live.join(late, ChunkFraming(1), None, 0.0)
    live.write(8, 5, SOUND, 0.0)
    assert late.read() == [(9, 0, AVC), (8, 5, SOUND)]


def test_a_new_publisher_starts_afresh():
    """Old headers are forgotten, and players hear it from its first message on."""
    _, live, [screen] = theatre()
    live.write(9, 0, AVC, 0.0)
    live.write(9, 0, KEY, 0.0)
    live.end(1.0)
    live.end(1.0)
    late = Screen()
    live.join(late, ChunkFraming(1), None, 1.5)
    screen.read()
    live.write(8, 0, SOUND, 2.0)
    live.write(9, 40, KEY, 2.0)
    assert screen.read() == late.read() == [(8, 0, SOUND), (9, 40, KEY)]


def test_players_are_counted_aloud():
    """The gateway asks for a key frame when somebody starts to watch."""
    _, live, _ = theatre(players=0)
    counts = []
    live.on_players_changed = lambda live, now: counts.append((live.players, now))
    player = live.join(Screen(), 1, None, 1.0)
    player.leave(2.0)
    player.leave(3.0)
    assert counts == [(1, 1.0), (0, 2.0)]


def test_an_idle_stream_is_forgotten_and_can_be_opened_again():
    """Own design: the registry holds what is in use."""
    registry, live, [screen] = theatre()
    assert registry.streams == 1 and registry.open("live", "demo") is live
    live.begin(0.0)
    screen.player.leave(0.0)
    assert registry.get("live", "demo") is live
    live.end(0.0)
    assert registry.get("live", "demo") is None and registry.streams == 0
    assert registry.open("live", "demo") is not live and registry.streams == 0


def test_the_largest_message_goes_through():
    """16 MiB less a byte: RTMP Errata §7."""
    _, live, [screen] = theatre(slow_consumer=SlowConsumerPolicy())
    payload = KEY + bytes(MAX_PAYLOAD - len(KEY))
    live.write(9, 0xFFFFFFFF, payload, 0.0)
    assert screen.read() == [(9, 0xFFFFFFFF, payload)]


class AnyAudience(RuleBasedStateMachine):
    """Publishers come and go, players join, leave, stop reading and read again.

    Every message has a time of its own, so what a player has seen can be found in what was sent.
    """

    @initialize()
    def open(self):
        """An empty house."""
        self.registry = Registry(SLOW)
        self.now, self.time = 0.0, 0
        self.screens, self.sent = [], []
        self.joined = {}
        self.always_fast = defaultdict(bool)

    @property
    def live(self):
        return self.registry.open("live", "demo")

    @rule(stream_id=st.integers(1, 3))
    def join(self, stream_id):
        """Somebody new, with a message stream of any number."""
        screen = Screen()
        self.screens.append(screen)
        self.joined[screen] = len(self.sent)
        self.always_fast[screen] = True
        screen.player = self.live.join(screen, ChunkFraming(stream_id), None, self.now)

    @rule(data=st.data())
    def leave(self, data):
        """Somebody goes."""
        if self.screens:
            screen = data.draw(st.sampled_from(self.screens))
            screen.read()
            screen.player.leave(self.now)
            self.screens.remove(screen)

    @rule(data=st.data())
    def stop_reading(self, data):
        """Somebody's socket takes no more."""
        if self.screens:
            screen = data.draw(st.sampled_from(self.screens))
            screen.read()
            screen.stuck, screen.output_size = True, 1
            self.always_fast[screen] = False

    @rule(data=st.data())
    def read_again(self, data):
        """And takes it again."""
        if self.screens:
            screen = data.draw(st.sampled_from(self.screens))
            screen.stuck = False
            screen.read()

    @rule(data=st.data(), audio=st.booleans(), video=st.booleans(), paused=st.booleans())
    def choose(self, data, audio, video, paused):
        """Covers RTMP 1.0 §7.2.2.4, §7.2.2.5 and §7.2.2.8."""
        if self.screens:
            screen = data.draw(st.sampled_from(self.screens))
            screen.player.select(audio=audio, video=video, paused=paused)
            self.always_fast[screen] = False

    @rule(
        kinds=st.lists(
            st.sampled_from(
                [(8, AAC), (8, SOUND), (9, AVC), (9, KEY), (9, INTER), (18, b"\x02\0\x01x")]
            ),
            min_size=1,
            max_size=12,
        ),
        size=st.sampled_from([0, 100, 2000, 9000]),
    )
    def publish(self, kinds, size):
        """A burst of messages, each with its own time."""
        for type_id, payload in kinds:
            self.time += 1
            payload += bytes(size if payload in (KEY, INTER, SOUND) else 0)
            self.sent.append((type_id, self.time, payload))
            self.live.write(type_id, self.time, payload, self.now)

    @rule()
    def unpublish(self):
        """The publisher goes."""
        self.live.end(self.now)

    @rule(seconds=st.sampled_from([0.5, 3.0, 11.0]))
    def wait(self, seconds):
        """Time passes."""
        self.now += seconds

    @invariant()
    def everybody_has_whole_messages_in_order(self):
        """And sees nothing that was not sent."""
        sent = set(self.sent)
        for screen in self.screens:
            if not screen.stuck:
                screen.read()
            times = [time for _, time, _ in screen.seen]
            assert times == sorted(times)
            late = [each for each in screen.seen if each not in sent]
            assert all(payload in (AAC, AVC) for _, _, payload in late)  # repeated for late joiners

    @invariant()
    def who_keeps_up_misses_nothing_once_begun(self):
        """Whatever the slow do: from the first frame or sound on, a player has all of them."""
        for screen in self.screens:
            assert not (self.always_fast[screen] and screen.reason)
            headers = (AAC, AVC)
            begun = [each for each in screen.seen if each[2] not in headers]
            if self.always_fast[screen] and begun:
                wanted = [each for each in self.sent if each[1] >= begun[0][1]]
                assert [each for each in wanted if each[2] not in headers] == begun

    @invariant()
    def the_slow_cost_no_more_than_agreed(self):
        """A message more than the limit, at most: then they are closed."""
        for screen in self.screens:
            assert screen.output_size <= SLOW.limit + 9100
            assert screen.player in self.live._players or screen.reason

    @invariant()
    def the_registry_has_what_is_in_use(self):
        """No more and no less."""
        live = self.registry.get("live", "demo")
        watching = sum(not screen.reason for screen in self.screens)
        assert (live.players if live else 0) == watching
        assert self.registry.streams == (live is not None)


TestAnyAudience = AnyAudience.TestCase

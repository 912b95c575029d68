"""A viewer that waits, pauses, goes on and seeks in any order, and what it may count on.

The film has a key frame each second, another frame at the half, and sound 20 ms after the key.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support.rtmp.vod_world import AAC, AVC, KEY, VodWorld, film

SECONDS = 20
AHEAD = 100  # ms that are sent before their time


class Viewing(RuleBasedStateMachine):
    """`at` is the place in the film, in ms, that a punctual server has come to."""

    @initialize()
    def play(self):
        self.world = VodWorld(demo=film(SECONDS))
        self.viewer = self.world.viewer("demo")
        self.at, self.paused, self.seen = 0.0, False, 0
        self.sought = 0.0  # where this run of messages began

    @property
    def ended(self):
        return "eof" in self.viewer.codes

    @property
    def run(self):
        """What has come since the last seek."""
        return self.viewer.tags[self.seen :]

    @rule(seconds=st.sampled_from((0.1, 0.5, 1.3, 4.0)))
    def wait(self, seconds):
        before = len(self.viewer.tags)
        self.world.wait(seconds)
        if self.paused:  # RTMP 1.0 §7.2.2.8
            assert len(self.viewer.tags) == before
        else:
            self.at += 1000 * seconds

    @precondition(lambda self: not self.paused and not self.ended)
    @rule()
    def pause(self):
        self.viewer.send("pause", True, self.at)
        self.paused = True

    @precondition(lambda self: self.paused and not self.ended)
    @rule()
    def go_on(self):
        """Own design: a client has what was sent; nothing comes twice."""
        self.viewer.send("pause", False, self.at)
        self.paused = False

    @precondition(lambda self: not self.ended)
    @rule(to=st.sampled_from((0.0, 999.0, 1000.0, 7700.0, 12_345.0, 19_400.0)))
    def seek(self, to):
        """Covers RTMP 1.0 §7.2.2.7."""
        self.seen = len(self.viewer.tags)
        self.viewer.send("seek", to)
        assert "Seek.Notify" in self.viewer.codes
        self.at = self.sought = to // 1000 * 1000  # it plays from the key frame before

    @invariant()
    def it_is_neither_early_nor_late(self):
        if not hasattr(self, "world") or self.ended:
            return
        times = [time for kind, time, data in self.run if data not in (AVC, AAC)]
        assert all(time <= self.at + AHEAD for time in times if time > self.sought)
        last = min(self.at, 1000 * SECONDS - 500)
        if not self.paused and self.at >= self.sought + 1000:
            assert max(times, default=0) >= last - 500

    @invariant()
    def a_run_begins_with_what_decoders_need(self):
        if not hasattr(self, "world"):
            return
        pictures = [(time, data) for kind, time, data in self.run if kind == 9]
        frames = [each for each in pictures if not each[1].startswith(AVC)]
        if frames:
            assert pictures[0][1] == AVC and frames[0][1] == KEY
            assert frames[0][0] == self.sought
        times = [time for time, _ in frames]
        assert times == sorted(set(times))

    def teardown(self):
        """The end comes, once, and the file is closed."""
        if not hasattr(self, "world"):
            return
        if self.paused:
            self.viewer.send("pause", False, self.at)
        self.world.wait(2.0 * SECONDS)
        assert self.viewer.codes.count("eof") == 1 and self.world.shelf.open_files == 0
        assert max(self.viewer.pictures) == 1000 * SECONDS - 500


TestViewing = Viewing.TestCase
TestViewing.settings = settings(max_examples=60, stateful_step_count=15)

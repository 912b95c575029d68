"""A conference of audio: each seat hears all others together, and not itself.

Own design: everybody's audio has one rate, by default the 8 kHz that every phone has, and is mixed
in blocks of 20 ms by one clock.  Each seat has a queue that takes up jitter and drift.  A seat that
is silent hears the whole mix, which is added up and encoded once for all of these; only those who
talk at the moment have a mix of their own.

    >>> from array import array
    >>> mixer, heard = Mixer(), []
    >>> ann = mixer.sit(lambda sound, at, now: heard.append(sound.samples[0]), now=0.0)
    >>> bob = mixer.sit(lambda sound, at, now: None, now=0.0)
    >>> for seat, level in ((ann, 100), (bob, 200)):
    ...     seat.put(array("h", [level] * PREFILL))
    >>> mixer.tick(mixer.deadline)
    >>> heard
    [200]
"""

from array import array
from collections.abc import Callable
from functools import cached_property
from typing import Final

from p2psip.rtp.payload import g711

CLOCK_RATE: Final = g711.CLOCK_RATE
MS: Final = 20  # of a block
SECONDS: Final = MS / 1000
BLOCK: Final = CLOCK_RATE * MS // 1000  # samples
WAITING: Final = 3  # blocks that are in a queue before it is heard: two packets may be late
PREFILL: Final = WAITING * BLOCK
PLENTY: Final = 8  # blocks beyond which a silent one is left out
LIMIT: Final = 25  # blocks beyond which audio is left out
QUIET: Final = 64  # of 32768: the noise of a silent line
STALL: Final = 5  # blocks by which the clock may be late and still catch up
WINDOW: Final = 50  # blocks by which the speaker is judged


class MixedAudio:
    """A block of the mix, encoded at most once for all who hear it."""

    def __init__(self, samples: "array[int]") -> None:
        self.samples = samples

    @cached_property
    def ulaw(self) -> bytes:
        """The block in mu-law, if it has 8 kHz: RFC 3551 §4.5.14."""
        return g711.encode_ulaw(self.samples)


Hear = Callable[[MixedAudio, int, float], object]


class Seat:
    """One who talks and hears, until `leave`; `loudness` is the mean of the latest, to 32768."""

    def __init__(self, mixer: "Mixer", hear: Hear | None) -> None:
        self._mixer, self.hear, self._block = mixer, hear, mixer.block
        self._queue = array("h")
        self._is_ready = False
        self.loudness = 0.0

    def put(self, samples: "array[int]") -> None:
        """Say something; what comes far too fast is left out but for its end."""
        queue = self._queue
        queue.extend(samples)
        if len(queue) > LIMIT * self._block:
            del queue[: -WAITING * self._block]

    @property
    def delay(self) -> float:
        """The seconds until audio is heard that is put now."""
        blocks = len(self._queue) / self._block
        return SECONDS * (blocks if self._is_ready else max(blocks, WAITING - 1))

    def leave(self) -> None:
        """Hear and say nothing more.  Idempotent."""
        self._mixer.leave(self)

    def take(self) -> "array[int] | None":
        """The next block, None for silence."""
        queue, size = self._queue, self._block
        self._is_ready = len(queue) >= (size if self._is_ready else WAITING * size)
        block = None
        while self._is_ready:
            block, self._queue = queue[:size], queue[size:]
            if max(block) >= QUIET or min(block) <= -QUIET:
                break
            block, queue = None, self._queue
            self._is_ready = len(queue) > PLENTY * size
        else:
            self._is_ready = len(self._queue) >= size
        level = sum(map(abs, block[::8])) / (size / 8) if block is not None else 0.0
        self.loudness += (level - self.loudness) / WINDOW
        return block


class Mixer:
    """The seats of one conference, and the clock that they share.

    `deadline` is when to call `tick`, None while nobody sits.  Whoever makes a mixer wakes it after
    `sit`.
    """

    def __init__(self, rate: int = CLOCK_RATE) -> None:
        self.block = rate * MS // 1000  # samples
        self._silence = (
            SILENCE if rate == CLOCK_RATE else MixedAudio(array("h", bytes(2 * self.block)))
        )
        self.seats: list[Seat] = []
        self.deadline: float | None = None
        self._blocks = 0

    def sit(self, hear: Hear | None, now: float) -> Seat:
        """Take a seat.  `hear(audio, at, now)` gets blocks, `at` in ms; None to hear nothing."""
        seat = Seat(self, hear)
        self.seats.append(seat)
        if self.deadline is None:
            self.deadline = now + SECONDS
        return seat

    def leave(self, seat: Seat) -> None:
        """Give up a seat; with the last one the clock stops."""
        if seat in self.seats:
            self.seats.remove(seat)
        if not self.seats:
            self.deadline = None

    def clock(self, now: float) -> int:
        """The time of the conference, in ms."""
        ahead = 0.0 if self.deadline is None else self.deadline - now
        return max(0, int(1000 * (self._blocks * SECONDS - ahead)))

    @property
    def speaker(self) -> Seat | None:
        """The seat that is the loudest for about a second, None while all are silent."""
        loudest = max(self.seats, key=lambda seat: seat.loudness, default=None)
        return loudest if loudest is not None and loudest.loudness >= QUIET else None

    def tick(self, now: float) -> None:
        """Mix the blocks that are due; the time of a long stall of the loop is skipped."""
        if self.deadline is not None and now - self.deadline > STALL * SECONDS:
            missed = int((now - self.deadline) / SECONDS)
            self._blocks, self.deadline = self._blocks + missed, self.deadline + missed * SECONDS
        while self.deadline is not None and self.deadline <= now:
            self.deadline += SECONDS
            self._mix(now)

    def _mix(self, now: float) -> None:
        at, self._blocks = self._blocks * MS, self._blocks + 1
        seats = list(self.seats)
        blocks = {seat: block for seat in seats if (block := seat.take()) is not None}
        total = [sum(column) for column in zip(*blocks.values(), strict=True)]
        whole = MixedAudio(_clipped(total)) if blocks else self._silence
        for seat in seats:
            own = blocks.get(seat)
            if seat.hear is None:
                continue
            if own is None:
                seat.hear(whole, at, now)
            elif len(blocks) == 1:
                seat.hear(self._silence, at, now)
            else:
                rest = [a - b for a, b in zip(total, own, strict=True)]
                seat.hear(MixedAudio(_clipped(rest)), at, now)


def _clipped(samples: list[int]) -> "array[int]":
    """The samples as 16 bits have them; what is too loud is cut off."""
    if max(samples) > 32767 or min(samples) < -32768:
        samples = [max(-32768, min(32767, each)) for each in samples]
    return array("h", samples)


SILENCE: Final = MixedAudio(array("h", bytes(2 * BLOCK)))

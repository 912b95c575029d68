"""What one client has seen, by the arithmetic of OvenRtcTester, and more.

Own design: `video_delay` and `audio_delay` are OvenRtcTester's, which any stream allows: how far
the last frame lags behind the first by its timestamp.  The delays of stamps are the true ones,
from the publisher to here; a stream has them if this program publishes it.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any, Final, Self

from rtclab.load.figures.delays import Delays
from rtclab.load.figures.stamp import Stamp

STALL: Final = 1.0  # s without a frame
VIDEO, AUDIO, SETUP, FIRST_PACKET, FIRST_VIDEO, FIRST_AUDIO = KINDS = (
    "video",
    "audio",
    "set-up",
    "first packet",
    "first picture",
    "first sound",
)


class State(StrEnum):
    """How far a client is: the words of OvenRtcTester, which are those of ICE."""

    NEW = "new"
    CHECKING = "checking"  # connects
    CONNECTED = "connected"
    COMPLETED = "completed"  # has done what it came for
    DISCONNECTED = "disconnected"  # had connected, and was left by the server
    FAILED = "failed"  # never connected
    CLOSED = "closed"  # by us


@dataclass(slots=True)
class Rate:
    """What came per second: least, most and the mean since the first frame."""

    average: float = 0.0
    least: float | None = None
    most: float = 0.0

    def add(self, current: float) -> None:
        """Take the figure of one second."""
        self.least = current if self.least is None else min(self.least, current)
        self.most = max(self.most, current)


@dataclass(slots=True)
class _Track:
    """One kind of media: what its first frame began."""

    first_ms: int | None = None  # timestamp of the first frame
    delay: float = 0.0  # ms, of the last frame
    number: int | None = None  # that its last stamp has


@dataclass(slots=True)
class Tally:
    """All figures of one client; times are monotonic seconds."""

    name: str
    state: State = State.NEW
    reason: str = ""
    refused: bool = False  # by the server's own word
    asked: float = 0.0
    started: float | None = None  # when the first frame came
    packets: int = 0
    lost: int = 0
    bytes: int = 0
    frames: int = 0
    key_frames: int = 0
    stalls: int = 0
    stalled: float = 0.0  # s
    running: float = 0.0  # s since the first frame
    jitter: float = 0.0  # ms, of packets of RTP, the most of its lines (RFC 3550 §6.4.1)
    fps: Rate = field(default_factory=Rate)
    bps: Rate = field(default_factory=Rate)
    delays: dict[str, Delays] = field(default_factory=lambda: {kind: Delays() for kind in KINDS})
    tracks: dict[str, _Track] = field(
        default_factory=lambda: {kind: _Track() for kind in (VIDEO, AUDIO)}
    )
    _last: float = 0.0  # when a frame came
    _is_stalled: bool = False
    _second: tuple[float, int, int] = (0.0, 0, 0)  # time, frames and bytes at the last look

    def begin(self, now: float) -> None:
        """Note that the client connects, perhaps once more."""
        self.state, self.asked = State.CHECKING, now
        self.tracks = {kind: _Track() for kind in (VIDEO, AUDIO)}

    def connect(self, now: float, state: State = State.CONNECTED) -> None:
        """Note that the server has accepted the client, or done what it asked for."""
        self.state = state
        self.delays[SETUP].add(1000 * (now - self.asked))

    def fail(self, reason: str, *, refused: bool) -> None:
        """Note the end that the client did not want; the reason is for the report."""
        had = self.state in (State.CONNECTED, State.COMPLETED)
        self.state = State.DISCONNECTED if had else State.FAILED
        self.reason, self.refused = reason, refused

    # -- media --------------------------------------------------------------------------

    def sent(self, now: float, size: int, *, frame: bool, key: bool = False) -> None:
        """Count what was published; to wait for the server is a stall, too."""
        self._start(now)
        self._unstall(now)
        self.packets += 1
        self.bytes += size
        self.frames += frame
        self.key_frames += key

    def heard(
        self,
        kind: str,
        now: float,
        timestamp: int | None,
        size: int,
        stamp: Stamp | None,
        *,
        key: bool = False,
    ) -> None:
        """Count a frame of video or audio; `timestamp` in ms, `stamp` where it has one."""
        self._start(now)
        self._unstall(now)
        self.packets += 1
        self.bytes += size
        track = self.tracks[kind]
        if track.first_ms is None:
            track.first_ms = timestamp
            self.came(FIRST_VIDEO if kind == VIDEO else FIRST_AUDIO, now)
        if kind == VIDEO:
            self.frames += 1
            self.key_frames += key
        assert self.started is not None
        if timestamp is not None and track.first_ms is not None:
            media = timestamp - track.first_ms
            track.delay = abs(int(1000 * (now - self.started)) - media)
        if stamp is not None:
            self._stamped(kind, track, stamp, 1000 * (now - self.asked))

    def came(self, kind: str, now: float) -> None:
        """Note that something has come first: a packet, a whole picture or a sound."""
        self.delays[kind].add(1000 * (now - self.asked))

    def flowed(self, now: float, packets: int, size: int, frames: int) -> None:
        """Count a run of packets of RTP, the last of which came at `now`, unread."""
        self._start(now)
        self._unstall(now)
        self.packets += packets
        self.bytes += size
        self.frames += frames

    def lag(self, kind: str, now: float, media_ms: int) -> None:
        """Compare the time of the last frame with its timestamp, since the first frame."""
        track = self.tracks[kind]
        if track.first_ms is None:
            track.first_ms = media_ms
        assert self.started is not None
        track.delay = abs(int(1000 * (now - self.started)) - (media_ms - track.first_ms))

    def _stamped(self, kind: str, track: _Track, stamp: Stamp, here_ms: float) -> None:
        if track.number is not None and stamp.number > track.number:
            self.lost += stamp.number - track.number - 1
        track.number = stamp.number
        if stamp.age_ms <= here_ms:  # else the server kept it for those who join
            self.delays[kind].add(stamp.age_ms)

    def _start(self, now: float) -> None:
        if self.started is None:
            self.started = self._last = now
            self._second = (now, 0, 0)

    def _unstall(self, now: float) -> None:
        if now - self._last > STALL:
            self.stalls += not self._is_stalled
            self.stalled += now - self._last
        self._last, self._is_stalled = now, False

    def second(self, now: float) -> None:
        """Take the rates of the second that is over."""
        if self.started is None or self.state is not State.CONNECTED:
            return
        then, frames, size = self._second
        self.running = now - self.started
        if now > then:
            self.fps.add((self.frames - frames) / (now - then))
            self.bps.add(8 * (self.bytes - size) / (now - then))
            self.fps.average = self.frames / self.running
            self.bps.average = 8 * self.bytes / self.running
        self._second = (now, self.frames, self.bytes)
        if now - self._last > STALL and not self._is_stalled:
            self._is_stalled, self.stalls = True, self.stalls + 1

    # -- between processes ----------------------------------------------------------------

    def as_json(self) -> dict[str, Any]:
        """A JSON object; `parse` reads it."""
        found = {
            each.name: getattr(self, each.name)
            for each in fields(self)
            if not each.name.startswith("_")
        }
        found["delays"] = {kind: delays.as_json() for kind, delays in self.delays.items()}
        found["tracks"] = {kind: asdict(track) for kind, track in self.tracks.items()}
        return found | {"fps": asdict(self.fps), "bps": asdict(self.bps)}

    @classmethod
    def parse(cls, found: Mapping[str, Any]) -> Self:
        """Read what `as_json` gave."""
        built = {
            "state": State(found["state"]),
            "fps": Rate(**found["fps"]),
            "bps": Rate(**found["bps"]),
            "delays": {kind: Delays.parse(each) for kind, each in found["delays"].items()},
            "tracks": {kind: _Track(**each) for kind, each in found["tracks"].items()},
        }
        return cls(**{**found, **built})

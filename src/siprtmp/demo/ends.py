"""The code that client and phone share: they talk at a steady pace, listen, and note times.

Own design: each reports events to the demo as JSON objects, one a line on standard output.
Times are those of the system's monotonic clock, which all its processes share.
"""

import argparse
import json
import sys
from collections.abc import Callable

import gevent
from gevent.event import Event

from p2psip.errors import LocalError, RemoteError
from p2psip.net.clock import monotonic
from p2psip.net.phone.wav import Recording
from rtmplite.errors import RemoteError as RtmpError
from siprtmp.demo.tones import FRAME_SECONDS, judge

TELL_SECONDS = 0.1  # between lines about progress


class CallEnd:
    """One end of the call: `frames` to send and to hear, `expected` (Hz) the other end's tone."""

    def __init__(self, frames: int, expected: int) -> None:
        self.frames, self._expected = frames, expected
        self.spoken_to = Event()
        self._recording = Recording("PCMU")
        self._sent: list[float] = []
        self._heard: list[tuple[float, int]] = []
        self._count = 0
        self._heard_at = 0.0
        self._teller = gevent.spawn(self._keep_telling)

    def talk(self, say: Callable[[int], object]) -> None:
        """Call `say(number)` for each frame, when its time has come."""
        began = monotonic()
        for number in range(self.frames):
            gevent.sleep(max(0.0, began + number * FRAME_SECONDS - monotonic()))
            self._sent.append(monotonic())
            say(number)

    def hear(self, payload: bytes, timestamp: int) -> None:
        """Take audio of the other end; `timestamp` in samples."""
        now = monotonic()
        self._heard.append((now, self._recording.add(payload, timestamp)))
        self._count += 1
        self._heard_at = now
        self.spoken_to.set()

    def hear_out(self, silence: float, is_over: Callable[[], bool]) -> None:
        """Wait for all frames, for `patience` seconds of silence, or for the end of the call."""
        self._heard_at = max(self._heard_at, monotonic())
        while self._count < self.frames and not is_over():
            if monotonic() - self._heard_at > silence:
                return
            gevent.sleep(FRAME_SECONDS)

    def conclude(self, **more: object) -> None:
        self._teller.kill()
        self._tell_progress()
        heard = judge(self._recording.samples, self._expected)
        tell(
            "result",
            frames=self._count,
            missing=self._recording.missing,
            windows=heard.windows,
            right=heard.right,
            loudest=heard.loudest,
            **more,
        )

    def _keep_telling(self) -> None:
        while True:
            gevent.sleep(TELL_SECONDS)
            self._tell_progress()

    def _tell_progress(self) -> None:
        if self._sent or self._heard:
            tell("progress", sent=self._sent, heard=self._heard)
            self._sent, self._heard = [], []


def parser(program: str) -> argparse.ArgumentParser:
    """Make a parser of the arguments that both ends have."""
    shared = argparse.ArgumentParser(prog=f"python -m siprtmp.demo.{program}")
    shared.add_argument("--frames", type=int, required=True)
    shared.add_argument("--tone", type=int, required=True, help="Hz")
    shared.add_argument("--expect", type=int, required=True, help="Hz")
    shared.add_argument("--mute", action="store_true")
    return shared


def tell(event: str, **values: object) -> None:
    print(json.dumps({"event": event, **values}), flush=True)


def act(play: Callable[[], None]) -> int:
    """Run an end, and report an error in one line; returns the exit code of its process."""
    try:
        play()
    except BrokenPipeError:
        sys.stderr.close()  # the demo has ended
        return 1
    except (RemoteError, RtmpError, LocalError, TimeoutError, OSError) as error:
        tell("failed", reason=" ".join(str(error).split()))
        return 1
    return 0

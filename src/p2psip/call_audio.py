"""The audio of a call at the command line: plays a file or a tone, records to a file.

Own design: packets are as long as the other side wants them, but no shorter than 10 ms.
"""

import argparse
import math
import os
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Final

from gevent.event import Event

from p2psip.agent import Call
from p2psip.errors import LocalError
from p2psip.net.clock import monotonic
from p2psip.net.phone.wav import LAWS, Recording, read_wav, write_wav
from p2psip.rtp.payload.g711 import CLOCK_RATE

SHORTEST: Final = 10  # ms; RFC 3551 §4.2 allows less, at the price of headers
LOUDNESS: Final = 10_000  # of 32767


class CallAudio:
    """The audio of one call: what is played, and what is recorded.  Raises LocalError."""

    def __init__(self, options: argparse.Namespace, stop: Event) -> None:
        self._samples = read_wav(options.play) if options.play else None
        self._tone = _tone(options.tone) if options.tone else None
        self._record: Path | None = options.record
        if self._record is not None:
            _check_place(self._record)
        self._limit = float("inf") if options.seconds is None else options.seconds
        self._stop = stop
        self._heard: list[tuple[bytes, int]] = []

    def hear(self, payload: bytes, timestamp: int) -> None:
        """Keep a received payload, if the call is recorded."""
        if self._record is not None:
            self._heard.append((payload, timestamp))

    def run(self, call: Call) -> None:
        """Talk until either side hangs up, the file is over, or time is up."""
        law = call.codec.name.upper() if call.codec else "PCMU"
        say(f"talking to {call.remote.uri} in {law}")
        began = monotonic()
        self._speak(call, LAWS[law][0], began)
        call.hangup()
        say(f"over after {monotonic() - began:.1f} s: {call.reason}")
        if call.statistics is not None:
            for name in ("packets_sent", "packets_received", "lost", "jitter_ms"):
                say(f"  {name} {getattr(call.statistics, name):g}")
        if self._record is not None:
            recording = Recording(law)
            for payload, timestamp in self._heard:
                recording.add(payload, timestamp)
            write_wav(self._record, recording.samples)

    def _speak(self, call: Call, encode: Callable[["array[int]"], bytes], began: float) -> None:
        position = 0
        while not (call.is_over or self._stop.is_set() or position / CLOCK_RATE >= self._limit):
            length = max(call.ptime, SHORTEST) * CLOCK_RATE // 1000
            packet = self._next(position, length)
            if not packet:
                return
            call.send_audio(encode(packet))
            position += length
            call.wait_ended(max(0.0, began + position / CLOCK_RATE - monotonic()))

    def _next(self, position: int, length: int) -> "array[int]":
        if self._samples is not None:
            return self._samples[position : position + length]
        if self._tone is not None:
            return self._tone[position % CLOCK_RATE :][:length]
        return array("h", bytes(2 * length))


def _tone(hz: int) -> "array[int]":
    """Two seconds of a tone, of which a packet may begin anywhere in the first: it joins on."""
    turn = 2 * math.pi * hz / CLOCK_RATE
    return array("h", (round(LOUDNESS * math.sin(turn * n)) for n in range(2 * CLOCK_RATE)))


def _check_place(path: Path) -> None:
    """Raise LocalError if the file cannot be written; after the call it would be too late."""
    folder = path.absolute().parent
    if not folder.is_dir():
        raise LocalError(f"{path}: there is no folder {folder}")
    if path.is_dir() or not os.access(path if path.exists() else folder, os.W_OK):
        raise LocalError(f"{path}: cannot be written")


def say(text: str) -> None:
    """Print a line at once, for programs that read it."""
    print(text, flush=True)

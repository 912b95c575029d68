"""Runs the demo: the order of events, the lines for the user, and the verdict."""

import json
import shutil
import signal
import sys
import time
import urllib.request
from collections.abc import Iterator
from types import FrameType
from typing import Any, Final

from siprtmp.demo.figures import Direction, bar, cost
from siprtmp.demo.stage import CpuMeter, Process, ProcessGroup, clock_mhz
from siprtmp.demo.tones import FRAME_SECONDS

ANY_PORT: Final = "127.0.0.1:0"
LISTENERS: Final = "--rtmp", ANY_PORT, "--sip", ANY_PORT, "--http", ANY_PORT, "--rtmfp", "off"
CLIENT_TONE: Final = 440  # Hz
PHONE_TONE: Final = 660
START_SECONDS: Final = 15.0  # for a process to be ready
TALK_MARGIN: Final = 15.0  # beyond the talking, for what surrounds it
CLEAN_SECONDS: Final = 3.0  # for the gateway to forget the call
TTY_REFRESH: Final = 0.1  # s between live lines on a terminal, and elsewhere
FILE_REFRESH: Final = 1.0


class FailedError(Exception):
    """The call did not hold; the message says why in one line."""


class Demo:
    """One run of the demo."""

    def __init__(self, seconds: float, *, mute: str | None = None, verbose: bool = False) -> None:
        self._frames = round(seconds / FRAME_SECONDS)
        self._seconds, self._mute, self._verbose = seconds, mute, verbose
        self._directions = {
            "client": Direction("client", "phone", CLIENT_TONE, self._frames),
            "phone": Direction("phone", "client", PHONE_TONE, self._frames),
        }
        self._mhz = clock_mhz()
        self._ended: dict[str, str] = {}
        self._is_interrupted = False
        self._tty = sys.stdout.isatty()
        self._shown_at = 0.0
        self._began: float | None = None
        self._meter: CpuMeter
        self._gateway: Process

    def run(self) -> int:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._interrupt)  # but nohup is obeyed
        try:
            with ProcessGroup(verbose=self._verbose) as processes:
                self._play(processes)
        except FailedError as failure:
            print(f"verdict  FAILED: {failure}", flush=True)
            return 1
        print("verdict  the call held: both tones arrived, nothing was lost", flush=True)
        return 0

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        """Take a signal; an exception from here would get lost if it came during a fork."""
        self._is_interrupted = True

    def _play(self, processes: ProcessGroup) -> None:
        self._gateway = processes.start("gateway", "siprtmp", *LISTENERS)
        ready = self._await(processes, "ready ")
        listeners = dict(word.split("=", 1) for word in ready.split()[1:])
        print(f"gateway  pid {self._gateway.pid}  {ready}", flush=True)
        sip = listeners["sip"]
        self._start(processes, "phone", "--user", "bob", "--domain", sip)
        self._await(processes, '{"event": "registered"')
        print(f"phone    registered as sip:bob@{sip}", flush=True)
        idle = _status(listeners["http"])
        url = f"rtmp://{listeners['rtmp']}/sip/alice@{sip}"
        self._start(processes, "client", "--url", url, "--dest", f"sip:bob@{sip}")
        print(f"client   {url} invites bob", flush=True)
        print("live     frames heard (one-way latency), CPU of the gateway", flush=True)
        try:
            self._listen(processes)
        finally:
            self._leave_line()
        self._report(idle, listeners["http"])

    def _start(self, processes: ProcessGroup, name: str, *arguments: str) -> None:
        other = "phone" if name == "client" else "client"
        tones = (
            "--tone",
            str(self._directions[name].tone),
            "--expect",
            str(self._directions[other].tone),
        )
        mute = ["--mute"] if self._mute == name else []
        frames = "--frames", str(self._frames)
        processes.start(name, f"siprtmp.demo.{name}", *arguments, *frames, *tones, *mute)

    def _await(self, processes: ProcessGroup, beginning: str) -> str:
        """The next line that begins so; lines before it are passed over."""
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            for process, line in self._lines(processes):
                if line is not None and line.startswith(beginning):
                    return line
                self._take(process, line)
        raise FailedError(f"no {beginning.strip()!r} within {START_SECONDS:g} s")

    def _listen(self, processes: ProcessGroup) -> None:
        self._meter = CpuMeter(self._gateway.pid)
        end = time.monotonic() + self._seconds + TALK_MARGIN
        while len(self._ended) < len(self._directions):
            if time.monotonic() > end:
                raise FailedError("the call does not come to its end")
            for process, line in self._lines(processes):
                self._take(process, line)
            self._show()

    def _lines(self, processes: ProcessGroup) -> Iterator[tuple[Process, str | None]]:
        if self._is_interrupted:
            raise FailedError("interrupted")
        return processes.lines(TTY_REFRESH)

    def _take(self, process: Process, line: str | None) -> None:
        name = process.name
        if line is None:
            if name not in self._ended:
                raise FailedError(f"the {name} {process.fate()}")
            return
        if name == "gateway":
            return
        event = json.loads(line)
        match event.pop("event"):
            case "failed":
                self._blame(process, event["reason"])
            case "progress":
                self._progress(name, event)
            case "result":
                self._ended[name] = event["ended"]
                self._other(name).result = event

    def _blame(self, process: Process, reason: str) -> None:
        """Report an end's failure; the cause may be that the gateway has died."""
        if self._gateway.is_gone():
            raise FailedError(f"the gateway {self._gateway.fate()} during the call")
        raise FailedError(f"the {process.name}: {reason}")

    def _progress(self, name: str, event: dict[str, Any]) -> None:
        if self._began is None:
            self._began = time.monotonic()
            self._meter.restart()
        self._directions[name].add_sent(event["sent"])
        self._other(name).add_heard([(at, place) for at, place in event["heard"]])

    def _other(self, name: str) -> Direction:
        return self._directions["phone" if name == "client" else "client"]

    # -- what the user sees -------------------------------------------------------------

    def _show(self) -> None:
        now = time.monotonic()
        if self._began is None or self._ended:
            return  # not talking yet, or no more
        if now - self._shown_at < (TTY_REFRESH if self._tty else FILE_REFRESH):
            return
        self._shown_at = now
        elapsed = min(now - self._began, self._seconds)
        live = "  ".join(
            f"{direction.listener} heard {direction.heard} ({direction.latency:.1f} ms)"
            for direction in self._directions.values()
        )
        gateway = cost(self._meter.share(), self._mhz).partition(" (")[0]
        line = f"{bar(elapsed / self._seconds)} {elapsed:4.1f} s  {live}  {gateway}"
        if self._tty:
            width = shutil.get_terminal_size().columns - 1
            print("\r" + line[:width].ljust(width), end="", flush=True)
        else:
            print(line, flush=True)

    def _leave_line(self) -> None:
        if self._tty and self._began is not None:
            print(flush=True)

    def _report(self, idle: dict[str, Any], http: str) -> None:
        share = self._meter.share()
        for direction in self._directions.values():
            print(direction.summary(), flush=True)
        print(f"gateway took {cost(share, self._mhz)}", flush=True)
        faults = [fault for direction in self._directions.values() if (fault := direction.fault())]
        if self._ended != {"client": "bye", "phone": "BYE"}:
            faults.append(
                "the call ended {client} for the client, {phone} for the phone".format(
                    **self._ended
                )
            )
        if not faults:
            self._check_clean(idle, http)
            code = self._gateway.stop()
            faults += [f"the gateway ended with {code}"] if code else []
        if faults:
            raise FailedError("; ".join(faults))

    def _check_clean(self, idle: dict[str, Any], http: str) -> None:
        """See that the gateway has let go of the call."""
        end = time.monotonic() + CLEAN_SECONDS
        while True:
            now = _status(http)
            kept = [name for name in ("calls", "dialogs", "media_legs") if now[name] > idle[name]]
            if not kept:
                return
            if time.monotonic() > end:
                raise FailedError(f"the gateway keeps {', '.join(kept)} of an ended call")
            time.sleep(TTY_REFRESH)


def _status(http: str) -> dict[str, Any]:
    try:
        with urllib.request.urlopen(f"http://{http}/status", timeout=5) as answer:
            figures: dict[str, Any] = json.load(answer)
            return figures
    except (OSError, ValueError) as error:
        raise FailedError(f"the gateway's status: {error}") from None

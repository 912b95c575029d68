"""Runs the demo: the order of events, the lines for the user, and the verdict."""

import shutil
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

import gevent
from gevent.event import Event

from siprtmp.demo.ends import CallEnd, be_client, be_phone
from siprtmp.demo.figures import Direction, bar, cost
from siprtmp.demo.gateway_process import CpuMeter, GatewayProcess, clock_mhz
from siprtmp.demo.tones import FRAME_SECONDS

CLIENT_TONE: Final = 440  # Hz
PHONE_TONE: Final = 660
START_SECONDS: Final = 15.0  # for the gateway to be ready, and for the phone to register
TALK_MARGIN: Final = 15.0  # beyond the talking, for what surrounds it
CLEAN_SECONDS: Final = 3.0  # for the gateway to forget the call
GRACE_SECONDS: Final = 0.2  # between what others notice of a death and the death
TTY_REFRESH: Final = 0.1  # s between live lines on a terminal, and elsewhere
FILE_REFRESH: Final = 1.0


class FailedError(Exception):
    """The call did not hold; the message says why in one line."""


class Demo:
    """One run of the demo."""

    def __init__(self, seconds: float, *, mute: str | None = None, verbose: bool = False) -> None:
        frames = round(seconds / FRAME_SECONDS)
        to_phone = Direction("client", "phone", CLIENT_TONE, frames)
        to_client = Direction("phone", "client", PHONE_TONE, frames)
        self._seconds, self._verbose = seconds, verbose
        self._directions = to_phone, to_client
        self._client = CallEnd(to_phone, to_client, mute=mute == "client")
        self._phone = CallEnd(to_client, to_phone, mute=mute == "phone")
        self._mhz = clock_mhz()
        self._is_interrupted = False
        self._tty = sys.stdout.isatty()
        self._shown_at = 0.0
        self._began: float | None = None
        self._meter: CpuMeter
        self._gateway: GatewayProcess

    def run(self) -> int:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._interrupt)  # but nohup is obeyed
        try:
            with GatewayProcess(verbose=self._verbose) as self._gateway:
                self._play()
        except FailedError as failure:
            print(f"verdict  FAILED: {failure}", flush=True)
            return 1
        print("verdict  the call held: both tones arrived, nothing was lost", flush=True)
        return 0

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        """Take a signal; an exception from here would get lost if it came during a fork."""
        self._is_interrupted = True

    def _play(self) -> None:
        gateway, registered = self._gateway, Event()
        self._watch(gateway.is_ready, START_SECONDS, "the gateway is not ready")
        print(f"gateway  pid {gateway.pid}  {gateway.ready_line}", flush=True)
        sip, rtmp = gateway.listeners["sip"], gateway.listeners["rtmp"]
        phone = gevent.spawn(self._phone.act, be_phone, sip, registered)
        self._watch(registered.is_set, START_SECONDS, "the phone is not registered")
        print(f"phone    registered as sip:bob@{sip}", flush=True)
        idle = self._status()
        url = f"rtmp://{rtmp}/sip/alice@{sip}"
        self._meter = CpuMeter(gateway.pid)
        client = gevent.spawn(self._client.act, be_client, url, f"sip:bob@{sip}")
        print(f"client   {url} invites bob", flush=True)
        print("live     frames heard (one-way latency), CPU of the gateway", flush=True)
        try:
            late = "the call does not come to its end"
            self._watch(lambda: phone.dead and client.dead, self._seconds + TALK_MARGIN, late)
        finally:
            if self._tty and self._began is not None:
                print(flush=True)
        self._report(idle)

    def _watch(self, is_done: Callable[[], bool], seconds: float, late: str) -> None:
        """Let the call go on until something is done.  Raises FailedError."""
        end = time.monotonic() + seconds
        while not is_done():
            if self._is_interrupted:
                raise FailedError("interrupted")
            if fate := self._gateway.fate():
                raise FailedError(f"the gateway {fate}")
            self._check_failures()
            if time.monotonic() > end:
                raise FailedError(late)
            self._show()
            gevent.sleep(TTY_REFRESH)
        self._check_failures()

    def _check_failures(self) -> None:
        """Report an end's failure; the cause may be that the gateway has died."""
        for name, end in (("client", self._client), ("phone", self._phone)):
            if end.failure:
                fate = self._gateway.fate(GRACE_SECONDS)
                why = f"gateway {fate} during the call" if fate else f"{name}: {end.failure}"
                raise FailedError(f"the {why}")

    # -- what the user sees -------------------------------------------------------------

    def _show(self) -> None:
        now = time.monotonic()
        if self._began is None and any(each.heard for each in self._directions):
            self._began = now
            self._meter.restart()
        if self._began is None or self._client.ended or self._phone.ended:
            return  # not talking yet, or no more
        if now - self._shown_at < (TTY_REFRESH if self._tty else FILE_REFRESH):
            return
        self._shown_at = now
        elapsed = min(now - self._began, self._seconds)
        live = "  ".join(
            f"{direction.listener} heard {direction.heard} ({direction.latency:.1f} ms)"
            for direction in self._directions
        )
        gateway = cost(self._meter.share(), self._mhz).partition(" (")[0]
        line = f"{bar(elapsed / self._seconds)} {elapsed:4.1f} s  {live}  {gateway}"
        if self._tty:
            width = shutil.get_terminal_size().columns - 1
            print("\r" + line[:width].ljust(width), end="", flush=True)
        else:
            print(line, flush=True)

    def _report(self, idle: dict[str, Any]) -> None:
        """Print the figures, and judge them.  Raises FailedError."""
        share, ended = self._meter.share(), (self._client.ended, self._phone.ended)
        self._client.judge()
        self._phone.judge()
        for direction in self._directions:
            print(direction.summary(), flush=True)
        print(f"gateway took {cost(share, self._mhz)}", flush=True)
        faults = [fault for direction in self._directions if (fault := direction.fault())]
        if ended != ("bye", "BYE"):
            faults.append(f"the call ended {ended[0]} for the client, {ended[1]} for the phone")
        if not faults:
            self._check_clean(idle)
            code = self._gateway.stop()
            faults += [f"the gateway ended with {code}"] if code else []
        if faults:
            raise FailedError("; ".join(faults))

    def _check_clean(self, idle: dict[str, Any]) -> None:
        """See that the gateway has let go of the call."""
        end = time.monotonic() + CLEAN_SECONDS
        while True:
            now = self._status()
            kept = [name for name in ("calls", "dialogs", "media_legs") if now[name] > idle[name]]
            if not kept:
                return
            if time.monotonic() > end:
                raise FailedError(f"the gateway keeps {', '.join(kept)} of an ended call")
            time.sleep(TTY_REFRESH)

    def _status(self) -> dict[str, Any]:
        try:
            return self._gateway.status()
        except (OSError, ValueError) as error:
            raise FailedError(f"the gateway's status: {error}") from None

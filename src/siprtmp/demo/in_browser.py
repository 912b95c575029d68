"""`siprtmp demo --browser`: a page calls a phone that says a tone, and the phone hears the page.

Own design: the page is the gateway's own phone, with its fields filled in.  The user presses the
buttons, since a link that called by itself would give the microphone to whoever writes links.
"""

import signal
import time
import webbrowser
from importlib.util import find_spec
from typing import Final
from urllib.parse import urlencode

import gevent
from gevent.event import Event
from gevent.queue import Empty, Queue

from p2psip.agent import Agent, Call
from p2psip.net.phone.settings import Account, CallSettings
from siprtmp.demo.ends import CallEnd
from siprtmp.demo.figures import Direction
from siprtmp.demo.gateway_process import ANY_PORT, GatewayProcess
from siprtmp.demo.show import PHONE_TONE, START_SECONDS
from siprtmp.demo.tones import FRAME_SECONDS, Tone
from siprtmp.operation.arguments import ConfigError, needs_extra

PATIENCE: Final = 300.0  # s for the user to press the buttons
END_SECONDS: Final = 5.0
POLL: Final = 0.05  # s
USER: Final = "tone"


class BrowserDemo:
    """One run; raises ConfigError without the extra that browsers need."""

    def __init__(self, seconds: float, *, verbose: bool = False) -> None:
        if find_spec("OpenSSL") is None or find_spec("pylibsrtp") is None:
            raise ConfigError(needs_extra("demo --browser", "webrtc"))
        frames = round(seconds / FRAME_SECONDS)
        self._seconds, self._verbose = seconds, verbose
        to_page = Direction("phone", "page", PHONE_TONE, frames)
        self._end = CallEnd(to_page, Direction("page", "phone", 0, frames), mute=False)
        self._registered, self._is_stopped = Event(), False

    def run(self) -> int:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: setattr(self, "_is_stopped", True))
        with GatewayProcess("--webrtc", ANY_PORT, verbose=self._verbose) as gateway:
            failure = self._play(gateway)
        heard = self._end.hears.heard
        if not failure and not heard:
            failure = "the phone has heard nothing of the page"
        if failure:
            print(f"verdict  FAILED: {failure}", flush=True)
            return 1
        print(f"verdict  the call held: the phone heard {heard} frames of the page", flush=True)
        return 0

    def _play(self, gateway: GatewayProcess) -> str:
        """Have the call; the reason if there was none."""
        began = time.monotonic()
        if failure := self._wait(gateway, gateway.is_ready, START_SECONDS):
            return failure
        sip = gateway.listeners["sip"]
        phone = gevent.spawn(self._end.act, self._be_phone, sip)
        if failure := self._wait(gateway, self._registered.is_set, START_SECONDS):
            return failure
        fields = urlencode({"name": "guest", "to": f"{USER}@{sip}"})
        url = f"http://{gateway.listeners['http']}/phone/#call?{fields}"
        print(f"gateway  ready after {time.monotonic() - began:.1f} s", flush=True)
        print(f"page     {url}", flush=True)
        print("         press Sign in, then Call: you hear a tone", flush=True)
        webbrowser.open(url)
        failure = self._wait(gateway, lambda: phone.dead, PATIENCE + self._seconds)
        return failure or self._end.failure

    def _wait(self, gateway: GatewayProcess, is_done: object, seconds: float) -> str:
        """Wait for something; the reason if that was in vain."""
        end = time.monotonic() + seconds
        assert callable(is_done)
        while not is_done():
            if self._is_stopped:
                return "interrupted"
            if fate := gateway.fate():
                return f"the gateway {fate}; --verbose shows its log"
            if time.monotonic() > end:
                return "that took too long"
            gevent.sleep(POLL)
        return ""

    def _be_phone(self, end: CallEnd, domain: str) -> None:
        """Register at `domain`, answer one call, and say the tone until it ends."""
        calls: Queue[Call] = Queue()
        with Agent(Account(USER, domain), calls=CallSettings(codecs=("PCMU",))) as agent:
            agent.on_call = calls.put
            agent.register()
            self._registered.set()
            try:
                call = calls.get(timeout=PATIENCE)
            except Empty:
                raise TimeoutError("nobody has called") from None
            call.on_audio = end.hear
            call.answer()
            print("phone    answered", flush=True)
            tone, began = Tone(end.talks.tone), time.monotonic()
            for number in range(end.talks.frames):
                gevent.sleep(max(0.0, began + number * FRAME_SECONDS - time.monotonic()))
                if call.is_over:
                    return
                call.send_audio(tone.frame(number))
            call.hangup()
            call.wait_ended(END_SECONDS)

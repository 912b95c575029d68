"""Both ends of the call: each talks at a steady pace, listens, and notes when frames come and go.

Own design: the client does what a user of the application `sip` would, in that order: connect,
`invite`, wait for `accepted`, play `remote`, publish `local`, talk, `bye`.  The phone waits for the
caller's audio, since the caller hears nothing before it plays.
"""

from collections.abc import Callable

import gevent
from gevent.event import Event
from gevent.queue import Empty, Queue

from p2psip.agent import Agent, Call
from p2psip.errors import LocalError, RemoteError
from p2psip.net.clock import monotonic
from p2psip.net.phone.settings import Account, CallSettings
from p2psip.net.phone.wav import Recording
from rtmplite.amf.values import Value
from rtmplite.errors import RemoteError as RtmpError
from rtmplite.net.client.client import ClientStream
from rtmplite.net.client.rtmp_client import RtmpClient
from rtmplite.rtmp.wire.message import MessageType
from siprtmp.demo.figures import Direction
from siprtmp.demo.tones import FRAME_SECONDS, Tone, judge
from siprtmp.media.translate.audio_formats import PCMU

CALL_SECONDS = 15.0  # until the call must have come to the phone
HELLO_SECONDS = 0.5  # of silence, after which the phone talks anyway
END_SECONDS = 5.0  # until the caller must have hung up
ANSWER_SECONDS = 10.0
SILENCE_SECONDS = 1.0  # of silence that ends the listening of the client
SAMPLES_PER_MS = 8
TAIL_SECONDS = 0.3  # as long as the last frames may wait in the gateway after a late one


class CallEnd:
    """One end of the call, which `talks` in one direction and `hears` the other."""

    def __init__(self, talks: Direction, hears: Direction, *, mute: bool) -> None:
        self.talks, self.hears, self._mute = talks, hears, mute
        self.ended = self.failure = ""  # how the call ended, or why there was none
        self._spoken_to, self._recording = Event(), Recording("PCMU")
        self._heard_at = 0.0

    def act(self, play: Callable[..., None], *arguments: object) -> None:
        """Play this end's part in the call, and keep the reason if it fails."""
        try:
            play(self, *arguments)
        except (RemoteError, RtmpError, LocalError, TimeoutError, OSError) as error:
            self.failure = " ".join(str(error).split()) or type(error).__name__

    def talk(self, say: Callable[[int, bytes], object]) -> None:
        """Say each frame when its time has come, unless this end is muted."""
        tone, began = Tone(self.talks.tone), monotonic()
        for number in range(0 if self._mute else self.talks.frames):
            gevent.sleep(max(0.0, began + number * FRAME_SECONDS - monotonic()))
            self.talks.add_sent([monotonic()])
            say(number, tone.frame(number))

    def hear(self, payload: bytes, timestamp: int) -> None:
        """Take audio of the other end; `timestamp` in samples."""
        self._heard_at = monotonic()
        self.hears.add_heard([(self._heard_at, self._recording.add(payload, timestamp))])
        self._spoken_to.set()

    def wait_for_audio(self) -> None:
        """Wait until the other end talks, for a moment at most."""
        self._spoken_to.wait(HELLO_SECONDS)

    def hear_out(self, silence: float, is_over: Callable[[], bool]) -> None:
        """Wait for all frames, for `silence` seconds without any, or for the end of the call."""
        self._heard_at = max(self._heard_at, monotonic())
        while self.hears.heard < self.hears.frames and not is_over():
            if monotonic() - self._heard_at > silence:
                return
            gevent.sleep(FRAME_SECONDS)

    def judge(self) -> None:
        """Look for the other end's tone in all that was heard."""
        heard, missing = judge(self._recording.samples, self.hears.tone), self._recording.missing
        self.hears.result = {"missing": missing, "right": heard.right, "loudest": heard.loudest}


def be_phone(end: CallEnd, domain: str, registered: Event) -> None:
    """Register as bob at `domain`, answer one call, and talk."""
    calls: Queue[Call] = Queue()
    with Agent(Account("bob", domain), calls=CallSettings(codecs=("PCMU",))) as agent:
        agent.on_call = calls.put
        agent.register()
        registered.set()
        try:
            call = calls.get(timeout=CALL_SECONDS)
        except Empty:
            raise TimeoutError(f"nobody called within {CALL_SECONDS:g} s") from None
        call.on_audio = end.hear
        call.answer()
        end.wait_for_audio()
        end.talk(lambda number, frame: call.send_audio(frame))
        end.hear_out(END_SECONDS, lambda: call.is_over)
        call.wait_ended(END_SECONDS)
        end.ended = call.reason or "not at all"


def be_client(end: CallEnd, url: str, callee: str) -> None:
    """Call a URI by the application `sip`, and talk."""
    calls: Queue[tuple[str, tuple[Value, ...]]] = Queue()
    client = RtmpClient.connect(url, on_call=lambda name, args: calls.put((name, args)))
    client.call("invite", callee, "pcmu")
    _expect(calls, "accepted")
    remote = client.create_stream()
    remote.play("remote")
    local = client.create_stream()
    local.publish("local")
    listening = gevent.spawn(_listen, remote, end)
    head = bytes([PCMU.tag_byte])
    end.talk(lambda number, frame: local.write(MessageType.AUDIO, 20 * number, head + frame))
    end.hear_out(SILENCE_SECONDS, lambda: remote.ended)
    gevent.sleep(TAIL_SECONDS)
    early = [name for name, _ in calls.queue]
    client.call("bye")
    listening.kill()
    end.ended = f"early, with {early[0]}" if early else "bye"
    client.close()


def _listen(remote: ClientStream, end: CallEnd) -> None:
    while not remote.ended:
        message = remote.read(timeout=None)
        if message is None or message.type_id != MessageType.AUDIO:
            continue
        if message.payload[0] >> 4 == PCMU.sound_format:
            end.hear(message.payload[1:], message.timestamp * SAMPLES_PER_MS)


def _expect(calls: "Queue[tuple[str, tuple[Value, ...]]]", wanted: str) -> None:
    """Wait until the gateway calls `wanted`; it may ring before."""
    while True:
        try:
            name, args = calls.get(timeout=ANSWER_SECONDS)
        except Empty:
            raise TimeoutError(f"not {wanted} within {ANSWER_SECONDS:g} s") from None
        if name == wanted:
            return
        if name != "ringing":
            raise RemoteError(f"{name}{args} instead of {wanted}")

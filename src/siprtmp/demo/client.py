"""The client of the demo: calls bob through the API of the application `sip`.

Own design: it does what a user of that API would, in that order: connect, `invite`, wait for
`accepted`, play `remote`, publish `local`, talk, `bye`.
"""

import argparse
import sys
from functools import partial

import gevent
from gevent.queue import Empty, Queue

from rtmplite.amf.values import Value
from rtmplite.errors import RemoteError
from rtmplite.net.client.client import ClientStream
from rtmplite.net.client.rtmp_client import RtmpClient
from rtmplite.rtmp.wire.message import MessageType
from siprtmp.demo.ends import CallEnd, act, parser, tell
from siprtmp.demo.tones import Tone
from siprtmp.media.translate.audio_formats import PCMU

ANSWER_SECONDS = 10.0
SILENCE_SECONDS = 1.0  # of silence that ends the listening
SAMPLES_PER_MS = 8
TAIL_SECONDS = 0.3  # as long as the last frames may wait in the gateway after a late one


def main() -> int:
    arguments = parser("client")
    arguments.add_argument("--url", required=True, help="rtmp://HOST:PORT/sip/USER@DOMAIN")
    arguments.add_argument("--dest", required=True, help="the URI to invite")
    return act(partial(_play, arguments.parse_args()))


def _play(options: argparse.Namespace) -> None:
    end, tone = CallEnd(options.frames, options.expect), Tone(options.tone)
    calls: Queue[tuple[str, tuple[Value, ...]]] = Queue()
    client = RtmpClient.connect(options.url, on_call=lambda name, args: calls.put((name, args)))
    client.call("invite", options.dest, "pcmu")
    _expect(calls, "accepted")
    remote = client.create_stream()
    remote.play("remote")
    local = client.create_stream()
    local.publish("local")
    listening = gevent.spawn(_listen, remote, end)
    tell("talking")

    def say(number: int) -> None:
        local.write(MessageType.AUDIO, 20 * number, bytes([PCMU.tag_byte]) + tone.frame(number))

    if not options.mute:
        end.talk(say)
    end.hear_out(SILENCE_SECONDS, lambda: remote.ended)
    gevent.sleep(TAIL_SECONDS)
    early = [name for name, _ in calls.queue]
    client.call("bye")
    listening.kill()
    end.conclude(ended=f"early, with {early[0]}" if early else "bye")
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


if __name__ == "__main__":
    sys.exit(main())

"""The phone of the demo: registers as bob, answers one call, and talks once it hears audio.

Own design: it waits for the caller's audio, since the caller hears nothing before it plays.
"""

import argparse
import sys
from functools import partial

from gevent.queue import Empty, Queue

from p2psip.agent import Agent, Call
from p2psip.net.phone.settings import Account, CallSettings
from siprtmp.demo.ends import CallEnd, act, parser, tell
from siprtmp.demo.tones import Tone

CALL_SECONDS = 15.0  # until the call must have come
HELLO_SECONDS = 0.5  # of silence, after which it talks anyway
END_SECONDS = 5.0  # until the caller must have hung up


def main() -> int:
    arguments = parser("phone")
    arguments.add_argument("--user", required=True)
    arguments.add_argument("--domain", required=True, help="HOST:PORT of the registrar")
    return act(partial(_play, arguments.parse_args()))


def _play(options: argparse.Namespace) -> None:
    end, tone = CallEnd(options.frames, options.expect), Tone(options.tone)
    calls: Queue[Call] = Queue()
    with Agent(
        Account(options.user, options.domain), calls=CallSettings(codecs=("PCMU",))
    ) as agent:
        agent.on_call = calls.put
        agent.register()
        tell("registered")
        try:
            call = calls.get(timeout=CALL_SECONDS)
        except Empty:
            raise TimeoutError(f"nobody called within {CALL_SECONDS:g} s") from None
        call.on_audio = end.hear
        call.answer()
        end.spoken_to.wait(HELLO_SECONDS)
        if not options.mute:
            end.talk(lambda number: call.send_audio(tone.frame(number)))
        end.hear_out(END_SECONDS, lambda: call.is_over)
        call.wait_ended(END_SECONDS)
        end.conclude(ended=call.reason or "not at all")


if __name__ == "__main__":
    sys.exit(main())

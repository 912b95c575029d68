"""A phone that answers, and keeps what each caller says as message-1.wav, message-2.wav...

python sip_record.py 127.0.0.1 5070    then call sip:messages@127.0.0.1:5070 and speak
"""

import itertools
import sys
from pathlib import Path

from p2psip import Account, Agent, Call, CallSettings, NetworkSettings, Recording, write_wav

LONGEST = 120.0  # s
numbers = itertools.count(1)


def on_call(call: Call) -> None:
    """Answer, listen until the caller hangs up or has said enough, and write the file."""
    heard = Recording("PCMU")
    call.on_audio = heard.add
    call.answer()
    call.wait_ended(LONGEST)
    call.hangup()
    path = Path(f"message-{next(numbers)}.wav")
    write_wav(path, heard.samples)
    print(f"{path}: {len(heard.samples) / 8000:.1f} s from {call.remote.uri}", flush=True)


host, port = sys.argv[1:]
with Agent(
    Account("messages"), NetworkSettings(listen=(host, int(port))), CallSettings(codecs=["PCMU"])
) as agent:
    agent.on_call = on_call
    print(f"ready: {agent.contact}", flush=True)
    agent.serve_forever()

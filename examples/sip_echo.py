"""A phone that answers every call and says back what it hears.

python sip_echo.py 127.0.0.1 5070    then call sip:echo@127.0.0.1:5070 from any phone
"""

import sys

from p2psip import Account, Agent, Call, NetworkSettings


def on_call(call: Call) -> None:
    """Answer a call; each has a greenlet of its own, so this may wait."""
    call.on_audio = lambda payload, timestamp: call.send_audio(payload)
    call.answer()
    print(f"{call.remote.uri} is listening to itself", flush=True)
    call.wait_ended()
    print(f"{call.remote.uri}: {call.reason}", flush=True)


host, port = sys.argv[1:]
with Agent(Account("echo"), NetworkSettings(listen=(host, int(port)))) as agent:
    agent.on_call = on_call
    print(f"ready: {agent.contact}", flush=True)
    agent.serve_forever()

"""Click-to-dial: call one phone, then another, and let the two talk to each other.

python sip_click_to_dial.py 192.0.2.1 sip:alice@192.0.2.7 sip:bob@192.0.2.8

The first argument is the address of this machine that both phones reach.
"""

import sys

from p2psip import Account, Agent, Call, CallSettings, NetworkSettings, SipError


def connect(one: Call, other: Call) -> None:
    """Give each the sound of the other, and hang up both when either does."""
    one.on_audio = lambda payload, timestamp: other.send_audio(payload)
    other.on_audio = lambda payload, timestamp: one.send_audio(payload)
    one.on_ended = lambda reason: other.hangup()
    other.on_ended = lambda reason: one.hangup()


host, first, second = sys.argv[1:]
with Agent(
    Account("click-to-dial"), NetworkSettings(listen=(host, 0)), CallSettings(codecs=["PCMU"])
) as agent:
    try:
        clicker = agent.call(first, timeout=30)
        callee = agent.call(second, timeout=30)
    except (SipError, TimeoutError) as error:
        sys.exit(f"no call: {error}")
    connect(clicker, callee)
    print(f"{clicker.remote.uri} talks to {callee.remote.uri}", flush=True)
    callee.wait_ended()
    print("over", flush=True)

"""An attended transfer: call two phones, and have the first take our place at the second.

python sip_introduce.py 192.0.2.1 sip:alice@192.0.2.7 sip:bob@192.0.2.8

The first argument is the address of this machine that both phones reach.  Unlike in click-to-dial
no sound passes through here once the two have been introduced.
"""

import sys

from p2psip import Account, Agent, NetworkSettings, SipError

host, first, second = sys.argv[1:]
with Agent(Account("receptionist"), NetworkSettings(listen=(host, 0))) as agent:
    try:
        caller = agent.call(first, timeout=30)
        caller.hold()
        callee = agent.call(second, timeout=30)
        print(f"{caller.remote.uri} is put through to {callee.remote.uri}", flush=True)
        caller.transfer(callee, timeout=30)
    except (SipError, TimeoutError) as error:
        sys.exit(f"not put through: {error}")
    caller.hangup()  # the second call has ended by then: its place is taken
    callee.wait_ended(30)
    print("they talk to each other", flush=True)

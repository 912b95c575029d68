"""What phones do in tests: answer, talk, wait."""

import gevent
from support.sockets import until

FRAMES = [bytes([number]) * 160 for number in range(10)]


def wait_for(condition):
    """Let other greenlets run until it is so."""
    assert until(condition)


def uri(agent):
    host, port = agent.address
    return f"sip:{agent.user}@{host}:{port}"


def answering(agent, heard=None):
    """Have an agent answer its calls; the list they will be in."""
    calls = []

    def on_call(call):
        if heard is not None:
            call.on_audio = lambda payload, timestamp: heard.append((payload, timestamp))
        call.answer(timeout=20)
        calls.append(call)

    agent.on_call = on_call
    return calls


def talk(sender, frames=FRAMES):
    for frame in frames:
        assert sender.send_audio(frame)
        gevent.sleep(0.002)

"""Two gateways back to back: what their clients publish crosses as it is, by x-flv."""

import sys
from itertools import pairwise
from pathlib import Path

import gevent
import pytest
from support.gateway import lossy_gateway
from support.gateway.gateway import Gateway
from support.gateway.richclient import RichClient
from support.peers.process import PATIENCE

VIDEO, AUDIO = 9, 8
AVC_HEADER = b"\x17\0\0\0\0" + b"avcC" * 8
SOUND = b"\xaf\x01" + bytes(200)


def picture(number):
    """A picture that says its number; one in ten is a key frame, and larger than a packet."""
    is_key = number % 10 == 0
    head = b"\x17\x01\0\0\0" if is_key else b"\x27\x01\0\0\0"
    return head + number.to_bytes(2, "big") + bytes(3000 if is_key else 300)


@pytest.mark.parametrize("loss", [0.0, lossy_gateway.LOSS])
def test_pictures_and_sound_cross(start, loss):
    """Own design: without loss all of it; with loss no picture whose predecessor is missing."""
    program = (sys.executable, str(Path(lossy_gateway.__file__))) if loss else ()
    near, far = start(Gateway, program=program), start(Gateway)
    bob = RichClient(far.rtmp, "bob@127.0.0.1")
    alice = RichClient(near.rtmp, "alice@127.0.0.1")
    alice.call("invite", f"sip:bob@{far.sip}", "pcmu", "flv")
    assert "alice@" in bob.expect("invited")[0]
    bob.call("accept", "pcmu", "flv")
    alice.expect("ringing")
    assert alice.expect("accepted") == ("default", "default") == bob.expect("accepted")
    alice.open_streams()
    bob.open_streams()
    talking = gevent.spawn(publish, alice.local)
    numbers, sounds = [], 0
    while not numbers or numbers[-1] < 100:
        message = bob.remote.read(timeout=PATIENCE)
        assert message is not None, "the stream is over"
        sounds += message.type_id == AUDIO
        if message.type_id == VIDEO and message.payload[1] == 1:
            numbers.append(int.from_bytes(message.payload[5:7], "big"))
    talking.kill()
    assert all(b == a + 1 or b % 10 == 0 for a, b in pairwise(numbers))
    assert numbers[0] % 10 == 0 and sounds > 80
    whole = numbers == list(range(numbers[0], numbers[-1] + 1))
    assert whole == (not loss)
    alice.call("bye")
    bob.expect("byed")
    alice.close()
    bob.close()
    for server in (near, far):
        server.wait_status({"calls": 0, "dialogs": 0, "lines": 0})


def publish(stream):
    """Publish a minute, 25 pictures and sounds a second."""
    stream.write(VIDEO, 0, AVC_HEADER)
    for number in range(1500):
        stream.write(VIDEO, 40 * number, picture(number))
        stream.write(AUDIO, 40 * number, SOUND)
        gevent.sleep(0.04)

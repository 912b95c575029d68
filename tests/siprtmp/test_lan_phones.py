"""Phones beside a gateway that the internet knows by another address: they are told the inside one.

The outside address leads nowhere here, so a packet that is sent there is lost.
"""

import pytest
from gevent.event import Event
from support.gateway.gateway import Gateway
from support.peers.process import PATIENCE

from p2psip.agent import Agent
from p2psip.net.phone.settings import Account
from rtmplite.net.client.rtmp_client import RtmpClient
from rtmplite.rtmp.wire.message import MessageType

OUTSIDE = "203.0.113.7"
SOUND = b"\x82" + b"s" * 160


@pytest.fixture(params=["127.0.0.1:0", "0.0.0.0:0"])
def gateway(tmp_path, request):
    words = ["--sip", request.param, "--external-ip", OUTSIDE, "--allow-anonymous"]
    with Gateway(tmp_path / "gateway", *words) as running:
        yield running


@pytest.fixture
def bob(gateway):
    with Agent(Account("bob", f"127.0.0.1:{gateway.sip.rpartition(':')[2]}")) as phone:
        yield phone


def test_a_stream_calls_a_phone_of_the_local_network_that_hangs_up(gateway, bob):
    """Covers RFC 3261 §16.6: Record-Route leads the phone back to where it can reach us."""
    heard = Event()

    def take(call):
        call.on_audio = lambda *sound: heard.set()
        call.answer()

    bob.on_call = take
    bob.register()
    client = RtmpClient.connect(gateway.url("call"))
    stream = client.create_stream()
    stream.publish("bob@127.0.0.1")
    for number in range(20):
        stream.write(MessageType.AUDIO, 20 * number, SOUND)
    assert heard.wait(PATIENCE)
    [call] = bob.calls
    call.hangup()
    assert call.wait_ended(20)
    gateway.wait_until(lambda: "reason=BYE" in gateway.output, what="the BYE")
    client.close()


def test_a_phone_of_the_local_network_calls_a_stream(gateway, bob):
    """Covers RFC 3261 §13.2.2.4: its ACK and its BYE arrive."""
    client = RtmpClient.connect(gateway.url("call"))
    stream = client.create_stream()
    stream.publish("studio")
    heard = Event()
    call = bob.call("studio", timeout=20, on_audio=lambda *sound: heard.set())
    gateway.wait_until(lambda: "call-answer" in gateway.output, what="the ACK")
    for number in range(20):
        stream.write(MessageType.AUDIO, 20 * number, SOUND)
    assert heard.wait(PATIENCE)
    call.hangup()
    assert call.wait_ended(20)
    gateway.wait_until(lambda: "reason=BYE" in gateway.output, what="the BYE")
    client.close()

"""A gateway at an address of IPv4 and one of IPv6: a phone of each family calls a stream."""

import pytest
from gevent.event import Event
from support.gateway.gateway import Gateway

from p2psip.agent import Agent
from rtmplite.net.client.rtmp_client import RtmpClient
from rtmplite.rtmp.wire.message import MessageType

SOUND = b"\x82" + b"s" * 160


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gateway")
    with Gateway(folder, "--sip", "127.0.0.1:0", "[::1]:0", "--domain", "home") as running:
        yield running


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_phone_of_either_family_has_sound_both_ways(gateway, host):
    """Covers RFC 8866 §5.7: signalling and media have the family of the phone."""
    [server] = [each for each in gateway.sip.split(",") if host in each]
    with Agent((host, 0), "bob", "home", registrar=server) as bob:
        bob.register(20)
        client = RtmpClient.connect(gateway.url("call"))
        stream = client.create_stream()
        name = f"studio{len(host)}"
        stream.publish(name)
        heard = Event()
        call = bob.call(f"{name}@home", timeout=20, on_audio=lambda *sound: heard.set())
        assert host in call._signalling.dialog.target.host
        for number in range(20):
            stream.write(MessageType.AUDIO, 20 * number, SOUND)
        assert heard.wait(20)
        call.hangup()
        assert call.wait_ended(20)
        client.close()


def test_a_stream_calls_a_phone_of_ipv6(gateway):
    """Covers RFC 8866 §5.7: the offer names the address of the phone's family."""
    [server] = [each for each in gateway.sip.split(",") if "::1" in each]
    with Agent(("::1", 0), "carol", "home", registrar=server) as carol:
        heard = Event()

        def take(call):
            call.on_audio = lambda *sound: heard.set()
            call.answer()

        carol.on_call = take
        carol.register(20)
        client = RtmpClient.connect(gateway.url("call"))
        stream = client.create_stream()
        stream.publish("carol@home")
        for number in range(20):
            stream.write(MessageType.AUDIO, 20 * number, SOUND)
        assert heard.wait(20)
        [call] = carol.calls
        call.hangup()
        assert call.wait_ended(20)
        client.close()

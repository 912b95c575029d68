"""A gateway at an address of IPv4 and one of IPv6: a phone of each family calls a stream."""

import pytest
from gevent.event import Event
from support.certificates import certificate
from support.gateway.gateway import Gateway

from p2psip.agent import Agent
from p2psip.net.phone.settings import Account, NetworkSettings
from p2psip.net.tls import TlsContexts, client_context
from rtmplite.net.client.rtmp_client import RtmpClient
from rtmplite.rtmp.wire.message import MessageType

DOORS = ("sip", "sips", "ws")
SOUND = b"\x82" + b"s" * 160


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The certificate that the gateway shows."""
    return certificate(tmp_path_factory.mktemp("certificate"), "IP:127.0.0.1,IP:::1")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory, made):
    folder = tmp_path_factory.mktemp("gateway")
    words = [each for door in DOORS for each in (f"--{door}", "127.0.0.1:0", "[::1]:0")]
    words += ["--tls-cert", str(made.file), "--tls-key", str(made.key)]
    with Gateway(folder, *words, "--domain", "home") as running:
        yield running


def test_every_door_of_phones_is_open_to_both_families(gateway):
    """Own design: the ready line has an address of each."""
    for door in DOORS:
        old, new = gateway.listeners[door].split(",")
        assert old.startswith("127.0.0.1:") and new.startswith("[::1]:")


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("transport", ["udp", "tls"])
def test_a_phone_of_either_family_has_sound_both_ways(gateway, made, host, transport):
    """Covers RFC 8866 §5.7: signalling and media have the family of the phone."""
    tls = TlsContexts(client_context(made.file)) if transport == "tls" else None
    places = gateway.sip if tls is None else gateway.sips
    [place] = [each for each in places.split(",") if host in each]
    server = f"sip:{place};transport={transport}"
    with Agent(
        Account("bob", "home", registrar=server), NetworkSettings(listen=(host, 0), tls=tls)
    ) as bob:
        bob.register(20)
        client = RtmpClient.connect(gateway.url("call"))
        stream = client.create_stream()
        name = f"studio-{transport}-{len(host)}"
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
    with Agent(
        Account("carol", "home", registrar=server), NetworkSettings(listen=("::1", 0))
    ) as carol:
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

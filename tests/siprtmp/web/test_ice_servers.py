"""The servers that answers of WHIP and WHEP name, and the clients that are told of them."""

import pytest
from support.gateway.whip_world import World, offer

from siprtmp.web.ice_servers import LIFETIME, IceServers, TurnAccess

STUN = '<stun:stun.example.net:3478>; rel="ice-server"'
URI = "turn:turn.example.net:3478?transport=udp"


@pytest.fixture
def world():
    """One whose clients prove themselves by `key=secret`."""
    return made(TurnAccess(URI, 'ga"te', "north"))


def made(turn):
    class Named(World):
        servers = IceServers(
            ["stun.example.net:3478"], turn, lambda *asked: asked[2] == "key=secret", lambda: 1e9
        )

    return Named()


def test_an_answer_names_the_servers(world):
    """Covers RFC 9725 §4.6 [created-may-have-links] [links-name-servers] [links-have-credentials].

    Covers WHEP §4.7 [created-may-have-links] [links-name-servers].
    """
    known = {"HTTP_AUTHORIZATION": "Bearer secret"}
    login = f'username="{10**9 + LIFETIME}:ga\\"te"; credential="{SIGNED_QUOTE}"'
    turn = f'<{URI}>; rel="ice-server"; {login}'
    assert world.publish(**known).links == [STUN, turn]
    world.live()
    got = world.ask("POST", "/live/obs/whep", offer("audio", "h264", flow="recvonly"), **known)
    assert got.status == 201 and got.links[-2:] == [STUN, turn]  # behind those of layers
    assert "Link" in got.headers["Access-Control-Expose-Headers"]


def test_who_has_proved_nothing_learns_no_password(world):
    got = world.publish()
    assert got.status == 201 and got.links == [STUN]
    for refused in (world.publish(kind="text/plain"), world.ask("GET", got.headers["Location"])):
        assert refused.links == []
    assert "north" not in repr(world.servers._turn)


def test_options_name_what_all_may_know_but_not_to_a_browser(world):
    """Covers RFC 9725 §4.6 [options-may-have-links] [no-links-before-a-page]."""
    assert world.ask("OPTIONS", "/live/cam/whip").links == [STUN]
    before = {"HTTP_ACCESS_CONTROL_REQUEST_METHOD": "POST"}
    assert world.ask("OPTIONS", "/live/cam/whip", **before).links == []


def test_a_secret_makes_passwords_that_end():
    """Covers Field §"Logins of a TURN server that end" [names-have-their-end].

    Covers Field §"Logins of a TURN server that end" [signed-by-the-secret].
    """
    got = made(TurnAccess(URI, "gate", "north")).publish(HTTP_AUTHORIZATION="Bearer secret")
    name = f"{10**9 + LIFETIME}:gate"
    assert f'username="{name}"; credential="{SIGNED}"' in got.links[1]


# openssl dgst -sha1 -hmac north -binary | base64
SIGNED = "EO5PTxna8nQWbe1GoJsDehSxSZc="
SIGNED_QUOTE = "AtF0YG7xy1pVrFyeOVvx2j0xLk4="

"""The tutorials about rooms, run as they are written: only the addresses and the phones differ."""

import pytest
from support.pages import Tutorial
from support.peers.baresip import Baresip
from support.peers.peers import Ffmpeg, decode_audio, frame_hashes
from support.peers.rtmp_servers import Server
from support.peers.tones import levels, trimmed

STUDIO = 600  # Hz, as the page has it
PHONE = 900  # Hz, of the phone in examples/baresip
OTHER = 1300  # Hz, of a second one
PRESENT = 20.0  # dB over what no tone accounts for
GATEWAY = ".venv/bin/python -m siprtmp"
FAR = ".venv/bin/python -m rtmplite serve --rtmp 127.0.0.1:1940"


def tones(samples, *expected):
    """The levels of the tones in dB; those that are expected must be there."""
    found = levels(samples, 8000, (STUDIO, PHONE, OTHER))
    assert all(found[hz] > PRESENT for hz in expected), (found, expected)
    return found


def caller(start, page, hz, user):
    """A phone that has dialled what the page says, and was answered."""
    phone = start(Baresip, user, hz=hz)
    phone.dial(page.typed("/dial"))
    phone.wait_event("CALL_ESTABLISHED")
    return phone


def run(gateway, page):
    """The gateway of the page."""
    server = gateway(*page.words(GATEWAY))
    page.places |= {"rtmp://127.0.0.1/": f"rtmp://{server.rtmp}/", "@127.0.0.1": f"@{server.sip}"}
    return server


@pytest.mark.needs("baresip", "ffmpeg")
def test_livestream_a_phone_call_with_one_command(start, gateway, tmp_path):
    """Both sides are heard at the other server, and with a picture at the platform."""
    page = Tutorial("7-livestream-a-phone-call")
    far = start(Server, *page.words(FAR))
    page.places["rtmp://127.0.0.1:1940/live"] = far.url("").rstrip("/")
    server = run(gateway, page)
    for user, hz in (("ann", PHONE), ("bob", OTHER)):
        caller(start, page, hz, user)
    server.wait_status({"room_members": 2})
    start(Ffmpeg, *page.words("ffmpeg", "libx264"))
    far.joined(2)  # the push, and what goes to the platform
    seen = tmp_path / "seen.flv"
    players = [
        start(Ffmpeg, *page.words("ffmpeg", "heard.flv")),
        start(Ffmpeg.play, far.url("key"), to=seen, seconds=3),
    ]
    assert [player.finish() for player in players] == [0, 0]
    for file in (players[0].folder / "heard.flv", seen):
        tones(decode_audio(file), PHONE, OTHER)
    assert len(frame_hashes(seen)) > 10


@pytest.mark.needs("baresip", "ffmpeg")
def test_obs_in_a_conference(start, gateway):
    """The phone hears the studio, and the studio hears the phone."""
    pytest.importorskip("av")
    page = Tutorial("8-obs-in-a-conference")
    server = run(gateway, page)
    studio = start(Ffmpeg, *page.words("ffmpeg", "-re"))
    server.wait_status({"room_members": 1})
    phone = caller(start, page, PHONE, "ann")
    server.wait_status({"room_members": 2})
    player = start(Ffmpeg, *page.words("ffmpeg", "conference.flv"))
    assert player.finish() == 0
    phone.hangup()
    phone.wait_event("CALL_CLOSED")
    assert studio.child.poll() is None
    stored = player.folder / "conference.flv"
    tones(decode_audio(stored), STUDIO, PHONE)
    assert len(frame_hashes(stored)) > 10
    heard = tones(trimmed(*phone.heard()), STUDIO)
    assert heard[PHONE] < heard[STUDIO] - PRESENT, heard  # not itself

"""A real phone calls addresses with routes: it hears files, and its own sound goes elsewhere."""

from array import array

import numpy as np
import pytest
from support.peers.baresip import Baresip
from support.peers.tones import WINDOW_SECONDS, peaks, tone

from p2psip.rtp.payload.g711 import encode_ulaw
from rtmplite.flv.file import write_flv
from rtmplite.flv.tag import Tag

WELCOME_HZ, FILM_HZ = 600, 1000
SECONDS = 3


def film(path, hz):
    """A file with a tone as G.711, in packets of 20 ms."""
    sound = encode_ulaw(array("h", (round(32000 * each) for each in tone(hz, SECONDS))))
    pieces = [sound[at : at + 160] for at in range(0, len(sound), 160)]
    path.write_bytes(write_flv(Tag(8, 20 * i, b"\x82" + each) for i, each in enumerate(pieces)))


@pytest.fixture
def routed(gateway, tmp_path):
    """`routed(TABLE)`: a gateway with one route, and two films."""

    def run(table):
        folder = tmp_path / "films"
        folder.mkdir()
        film(folder / "welcome.flv", WELCOME_HZ)
        film(folder / "feature.flv", FILM_HZ)
        path = tmp_path / "siprtmp.toml"
        path.write_text(f'vod = "films"\n[[route]]\nmatch = "+4930*"\n{table}\n')
        return gateway("--config", str(path), "--sip-t1", "100")

    return run


@pytest.mark.needs("baresip")
def test_an_announcement_before_the_answer_and_a_file_after_it(start, routed):
    server = routed('announce = "welcome"\nfile = "feature"')
    phone = start(Baresip, "carol")
    phone.dial(f"sip:+49-30-123@{server.sip}")
    phone.wait_event("CALL_PROGRESS")
    phone.wait_event("CALL_ESTABLISHED")
    phone.wait_event("CALL_CLOSED")
    found = peaks(*phone.heard())
    before, after = (np.flatnonzero(abs(found - hz) < 5) for hz in (WELCOME_HZ, FILM_HZ))
    assert before.size and before.max() < after.min()
    assert after.size * WINDOW_SECONDS > SECONDS / 2
    server.wait_status({"calls": 0, "media_legs": 0})
    assert 'reason="file played"' in server.output


@pytest.mark.needs("baresip")
def test_an_announcement_that_costs_nothing(start, routed):
    server = routed('announce = "welcome"')
    phone = start(Baresip, "carol")
    phone.dial(f"sip:+4930123@{server.sip}")
    phone.wait_event("CALL_PROGRESS")
    assert "480" in phone.wait_event("CALL_CLOSED")["param"]
    server.wait_status({"calls": 0, "media_legs": 0})


@pytest.mark.needs("baresip")
def test_a_call_is_published_to_another_server(start, gateway, routed):
    far = gateway()
    server = routed(f'stream = "studio"\npush = "{far.url("live", "show")}"')
    phone = start(Baresip, "carol")
    phone.dial(f"sip:+4930123@{server.sip}")
    phone.wait_event("CALL_ESTABLISHED")
    far.wait_status({"streams": 1})
    phone.hangup()
    phone.wait_event("CALL_CLOSED")
    far.wait_status({"streams": 0})
    server.wait_status({"calls": 0, "names": 0})


@pytest.mark.needs("baresip")
def test_a_call_goes_on_to_another_phone(start, routed):
    callee = start(Baresip, "dave", hz=FILM_HZ)
    server = routed(f'to = "sip:dave@127.0.0.1:{callee.port}"')
    phone = start(Baresip, "carol")
    phone.dial(f"sip:+4930123@{server.sip}")
    for each in (phone, callee):
        each.wait_event("CALL_ESTABLISHED")
    phone.hangup()
    callee.wait_event("CALL_CLOSED")
    server.wait_status({"proxied_dialogs": 0}, timeout=60)

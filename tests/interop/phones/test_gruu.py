"""A phone of others with a GRUU: linphonec is called by the one that it was given, and uses it."""

import re

import pytest
from interop.phones.test_registrar import Place
from support.peers.linphone import Linphone

import p2psip

PATIENCE = 20.0


def gruu_of(server, user):
    """The public GRUU of a user's only device, asked for by a REGISTER without a Contact."""
    place = Place(server)
    name = f"sip:{user}@127.0.0.1"
    fields = {"To": f"<{name}>", "From": f"<{name}>;tag=ask", "Supported": "gruu"}
    status, text = place.ask("REGISTER", "sip:127.0.0.1", **fields)
    assert status == 200
    return re.search(r'pub-gruu="([^"]+)"', text)[1]


@pytest.mark.needs("linphonec")
def test_linphonec_is_called_by_its_gruu_and_shows_it(start, gateway):
    """Covers RFC 5627 §5.2 and §6.1 with a phone of others; its 200 has the GRUU as Contact."""
    server = gateway("--allow-anonymous")
    start(Linphone, "bob", codec="PCMU/8000", registrar=server.sip)
    gruu = gruu_of(server, "bob")
    assert gruu.startswith("sip:bob@127.0.0.1;gr=urn:uuid:")
    heard = []
    with p2psip.Agent(p2psip.Account("alice", "127.0.0.1", registrar=server.sip)) as alice:
        alice.register(PATIENCE)
        call = alice.call(gruu, PATIENCE, on_audio=lambda *sound: heard.append(sound))
        assert call._signalling.dialog.target.is_gruu
        server.wait_until(lambda: len(heard) > 20, what="the phone's tone")
        call.hangup()
        assert call.wait_ended(PATIENCE)

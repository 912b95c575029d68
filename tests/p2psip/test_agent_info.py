"""Two agents on loopback that tell each other things within a call, by Info Packages."""

import pytest
from support.sip.phones import answering, uri, wait_for

from p2psip.errors import LocalError, RemoteError


@pytest.fixture
def call(make, alice):
    """A call of Alice, and its other side, which takes the package "Weather"."""
    bob = make("rob", info_packages=("Weather",))
    taken = answering(bob)
    call = alice.call(uri(bob), timeout=20)
    wait_for(lambda: taken)
    return call, taken[0]


def test_an_info_reaches_the_script(call):
    """Covers RFC 6086 §4.2.1 and §5.2.2: the package as its taker writes it, or the old kind."""
    ours, theirs = call
    heard = []
    theirs.on_info = lambda *what: heard.append(what)
    assert ours.send_info("weather", "text/plain", b"rain")
    assert ours.send_info(None, "application/x-old", b"\x00\xff")
    wait_for(lambda: len(heard) == 2)
    assert heard == [
        ("Weather", "text/plain", b"rain"),
        (None, "application/x-old", b"\x00\xff"),
    ]
    with pytest.raises(LocalError):
        theirs.send_info("Weather", "text/plain", b"alice has not asked for it")
    with pytest.raises(LocalError):
        ours.send_info("sport", "text/plain", b"")
    ours.hangup()
    assert not ours.send_info("weather", "text/plain", b"too late")


def test_a_script_may_refuse_an_info(call):
    """Covers RFC 6086 §4.2.2 and §4.2.1 [469-keeps-the-call]: the call goes on."""
    ours, theirs = call
    statuses = []

    def refuse(package, content_type, body):
        raise RemoteError("Unsupported Media Type", 415)

    theirs.on_info = refuse
    refused = ours._signalling.handler.on_refused
    ours._signalling.handler.on_refused = lambda call, request, response, now: (
        statuses.append(response.status),
        refused(call, request, response, now),
    )
    assert ours.send_info("Weather", "image/png", b"a cloud")
    wait_for(lambda: statuses == [415])
    assert ours.is_up and theirs.is_up

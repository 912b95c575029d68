"""The gateways that are attacked, and the doors by which attackers come.

A test that takes `door` runs once by UDP, once by TLS and once by WebSocket, against a gateway that
listens for it; the others have a gateway without those listeners.
"""

import pytest
from support.attacks.hostile import honest_users
from support.certificates import certificate
from support.gateway.accounts import PASSWORD, users_file
from support.gateway.gateway import ANY_PORT

T1 = ("--sip-t1", "30")  # ms, so that transactions are soon forgotten


@pytest.fixture(params=["UDP", pytest.param("TLS", marks=pytest.mark.needs("openssl")), "WS"])
def door(request):
    """How attackers come in."""
    return request.param


@pytest.fixture
def listening(request, tmp_path):
    """The options of a gateway that has the test's door."""
    door = request.getfixturevalue("door") if "door" in request.fixturenames else "UDP"
    if door == "WS":
        return ("--ws", ANY_PORT)
    if door == "TLS":
        made = certificate(tmp_path / "certificate")
        return ("--sips", ANY_PORT, "--tls-cert", str(made.file), "--tls-key", str(made.key))
    return ()


@pytest.fixture
def world(gateway, listening, corpus):
    """Honest users of a gateway where everybody may speak for anybody."""
    with honest_users(gateway(*T1, *listening), corpus) as world:
        yield world


@pytest.fixture
def guarded(gateway, listening, corpus, tmp_path):
    """Honest users of a gateway where alice, bob and carol have passwords."""
    users = users_file(tmp_path, "alice", "bob", "carol")
    with honest_users(gateway(*T1, *listening, "--users", users), corpus, PASSWORD) as world:
        yield world

"""Wrong passwords of rich clients: the host they came from waits, and no other client."""

from functools import partial

import pytest
from support.gateway.accounts import PASSWORD, users_file
from support.gateway.richclient import RichClient

from p2psip.server.guess_limit import BURST
from rtmplite.errors import RemoteError
from rtmplite.net.client import rtmp_client


def test_a_client_that_guesses_makes_no_other_wait(gateway, tmp_path, monkeypatch):
    """Covers RFC 3261 §22.1: their REGISTERs all come from the gateway itself."""
    server = gateway("--users", users_file(tmp_path, "alice", "bob"), "--sip-t1", "50")
    connect = rtmp_client.socket.create_connection
    thief = partial(connect, source_address=("127.0.0.2", 0))
    with monkeypatch.context() as patched:
        patched.setattr(rtmp_client.socket, "create_connection", thief)
        for number in range(BURST + 2):
            with pytest.raises(RemoteError, match="503" if number >= BURST else "401"):
                RichClient(server.rtmp, "alice@127.0.0.1", "", f"guess{number}")
    assert server.tail().count("source=RTMP:127.0.0.2 ") == BURST
    for name in ("alice", "bob"):
        client = RichClient(server.rtmp, f"{name}@127.0.0.1", "", PASSWORD)
        client.call("invite", "sip:nobody@127.0.0.1")
        assert client.expect("rejected") == ("480 No Such User",)
        client.close()

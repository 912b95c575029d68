"""Phones in browsers: JsSIP in Chromium registers by WebSocket and calls through the proxy."""

import pytest
from support.gateway.accounts import PASSWORD, users_file
from support.peers.browser_phone import Chromium, phone_page, wait_event

from rtclab.lint.command import lint
from rtclab.lint.packets import read_capture


@pytest.mark.needs("chromium")
def test_a_browser_calls_a_browser(start, gateway, tmp_path):
    """Covers RFC 7118 §5: requests of the dialog come by the connections that browsers opened.

    The capture has them, frames and all.
    """
    users, path = users_file(tmp_path, "alice", "bob"), tmp_path / "web.pcap"
    options = "--users", users, "--ws", "127.0.0.1:0", "--capture", str(path)
    server = gateway(*options)
    with phone_page() as ours, phone_page() as theirs:
        bob = start(Chromium, theirs.phone(f"ws://{server.ws}", "bob", PASSWORD))
        assert ";gr=urn:uuid:" in wait_event(bob, theirs, "registered")["contact"]
        url = ours.phone(
            f"ws://{server.ws}", "alice", PASSWORD, call="sip:bob@127.0.0.1", seconds=1
        )
        alice = start(Chromium, url)
        assert wait_event(bob, theirs, "incoming")["from"] == "sip:alice@127.0.0.1"
        for browser, shown in ((alice, ours), (bob, theirs)):
            wait_event(browser, shown, "confirmed")
        server.wait_status({"registrations": 2, "sip_connections": 2})
        assert " proxy-answer " in server.output
        assert wait_event(bob, theirs, "ended")["by"] == "remote"  # the BYE has come
        assert wait_event(alice, ours, "ended")["by"] == "local"
        server.wait_status({"proxied_dialogs": 0})
        alice.stop()
        server.wait_status({"registrations": 1, "sip_connections": 1})
    server.stop()
    report = lint(read_capture(path.read_bytes()))
    assert report.findings == [] and report.notes == {}
    call = max(report.diagrams, key=lambda each: len(each.arrows))
    hops = {(row.label, row.source, row.target) for row in call.arrows}  # a slow browser says 200
    labels = [label for label, *_ in hops]  # again
    assert labels.count("200 OK (SDP)") == labels.count("ACK") == labels.count("BYE") == 2
    assert [row.label for row in call.arrows].count("ACK") >= 3  # that of the 407 too

"""What a rich client and a real phone ask of each other while they talk."""

import pytest
from support.gateway.richclient import RichClient
from support.peers.baresip import Baresip


@pytest.fixture
def server(gateway):
    return gateway("--sip-t1", "20")


@pytest.fixture
def phone(start, server):
    return start(Baresip, "bob", hz=600, contact=f"sip:alice@{server.sip}")


@pytest.fixture
def alice(server, phone):
    """Alice's client, who has called the phone."""
    client = RichClient(server.rtmp, "alice@127.0.0.1")
    client.call("invite", phone.uri, "pcmu", "dtmf")
    assert client.expect("ringing") == ("180 Ringing",)
    assert client.expect("accepted") == ("pcmu", None)
    phone.wait_event("CALL_ESTABLISHED")
    yield client
    client.close()
    server.wait_status({"calls": 0, "dialogs": 0, "lines": 0})


@pytest.mark.needs("baresip")
def test_keys_both_ways(alice, phone):
    """Covers RFC 4733 §2.5 with a peer's phone."""
    alice.call("sendDTMF", "15#")
    for key in "15#":
        assert phone.wait_event("CALL_DTMF_START")["param"] == key
    phone.command("sndcode", "7*")
    assert [alice.expect("dtmf") for _ in "7*"] == [("7",), ("*",)]


@pytest.mark.needs("baresip")
def test_hold_and_resume_both_ways(alice, phone):
    """Covers RFC 3264 §8.4 with a peer's phone."""
    alice.open_streams()
    alice.heard(10)
    phone.command("hold")
    assert alice.expect("holded") == (True,)
    phone.command("resume")
    assert alice.expect("holded") == (False,)
    alice.heard(10)
    for on, word in ((True, "recvonly"), (False, "sendrecv")):
        said = phone.output.count(f"a={word}")
        alice.call("hold", on)
        phone.wait_until(lambda: phone.output.count(f"a={word}") > said, what=word)  # noqa: B023
    alice.heard(50)
    alice.call("bye")
    phone.wait_event("CALL_CLOSED")


@pytest.mark.needs("baresip")
def test_messages_both_ways(alice, phone):
    """Covers RFC 3428 §7 with a peer's phone: to it, within the call and outside, and from it."""
    for number, to in enumerate(((), (phone.uri,))):
        alice.call("sendMessage", f"good evening {number}", *to)
        phone.wait_until(lambda: f"good evening {number}" in phone.output, what="text")  # noqa: B023
    phone.command("message", "good morning")
    sender, text = alice.expect("receivedMessage")
    assert text == "good morning" and "sip:bob@" in sender


@pytest.mark.needs("baresip")
def test_keys_of_a_client_that_does_not_name_them(server, phone):
    """Covers RFC 6086 §4.2.1 with a peer's phone: they go by INFO."""
    alice = RichClient(server.rtmp, "alice@127.0.0.1")
    alice.call("invite", phone.uri, "pcmu")
    phone.wait_event("CALL_ESTABLISHED")
    alice.expect("ringing"), alice.expect("accepted")
    alice.call("sendDTMF", "15#")
    for key in "15#":
        assert phone.wait_event("CALL_DTMF_START")["param"] == key
    assert "application/dtmf-relay" in phone.output
    alice.close()

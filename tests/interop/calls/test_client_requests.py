"""What a rich client and a real phone ask of each other while they talk.

T1 is the usual one: baresip answers INFO and MESSAGE without a transaction, so that it takes a
retransmission for one more press of a key.
"""

import pytest
from support.gateway.accounts import PASSWORD, users_file
from support.gateway.richclient import RichClient
from support.peers.baresip import Baresip

from rtmplite.amf import amf0
from rtmplite.net.client.rtmp_client import RtmpClient


@pytest.fixture
def server(gateway):
    return gateway()


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
def test_keys_of_a_client_that_does_not_name_them(gateway, start):
    """Covers RFC 6086 §4.2.1 with a peer's phone: they go by INFO."""
    server = gateway()
    phone = start(Baresip, "bob", hz=600, contact=f"sip:alice@{server.sip}")
    alice = RichClient(server.rtmp, "alice@127.0.0.1")
    alice.call("invite", phone.uri, "pcmu")
    phone.wait_event("CALL_ESTABLISHED")
    alice.expect("ringing"), alice.expect("accepted")
    alice.call("sendDTMF", "15#")
    for key in "15#":
        assert phone.wait_event("CALL_DTMF_START")["param"] == key
    assert "application/dtmf-relay" in phone.output
    alice.close()


@pytest.fixture
def office(start, gateway, tmp_path):
    """Two rich clients and a phone, who are users of one domain; alice and the phone talk."""
    names = ("alice", "bob", "carol")
    server = gateway("--users", users_file(tmp_path, *names))
    phone = start(Baresip, "bob", registrar=server.sip, password=PASSWORD)
    alice, carol = (
        RichClient(server.rtmp, f"{name}@127.0.0.1", name, PASSWORD) for name in ("alice", "carol")
    )
    alice.call("invite", "bob@127.0.0.1", "pcmu")
    alice.expect("ringing"), alice.expect("accepted")
    phone.wait_event("CALL_ESTABLISHED")
    yield alice, phone, carol
    for client in (alice, carol):
        client.close()
    server.wait_status({"calls": 0, "lines": 0})


@pytest.mark.needs("baresip")
def test_a_client_transfers_its_phone(office):
    """Covers RFC 3515 §2.4 with a peer's phone."""
    alice, phone, carol = office
    alice.call("transfer", "carol@127.0.0.1")
    assert "bob@" in carol.expect("invited")[0]
    carol.call("accept", "pcmu")
    assert carol.expect("accepted") == ("pcmu", None)
    said = alice.expect("transferred")
    while said != ("200 OK",):
        assert said[0][:1] == "1"
        said = alice.expect("transferred")
    alice.expect("byed")
    carol.open_streams()
    carol.heard(10)
    carol.call("bye")
    phone.wait_event("CALL_CLOSED")


@pytest.mark.needs("baresip")
def test_a_phone_transfers_its_client(office):
    """Covers RFC 3515 §2.4.2 with a peer's phone, which is a user of the same domain."""
    alice, phone, carol = office
    phone.command("transfer", "sip:carol@127.0.0.1")
    assert "alice@" in carol.expect("invited")[0]
    carol.call("accept", "pcmu")
    assert carol.expect("accepted") == ("pcmu", None)
    name, _ = alice.calls.get(timeout=20)
    if name == "ringing":  # the phone has hung up already
        name, _ = alice.calls.get(timeout=20)
    assert name == "accepted"
    phone.wait_event("CALL_CLOSED")
    carol.call("bye")
    alice.expect("byed")


@pytest.mark.needs("baresip")
def test_a_stock_tool_hears_keys_and_states(server, phone):
    """Covers RFC 4733 §2.5.2 with a peer's phone, for a client that can only publish."""
    tool = RtmpClient.connect(f"rtmp://{server.rtmp}/call")
    stream = tool.create_stream()
    stream.publish(phone.uri.removeprefix("sip:"))
    phone.wait_event("CALL_ESTABLISHED")
    phone.command("sndcode", "7")
    told = []
    while not told or told[-1] != ("NetStream.Call.Digit", "7"):
        message = stream.read(timeout=20)
        assert message is not None, told
        name, information = amf0.decode(message.payload)
        assert (message.type_id, name) == (18, "onStatus")
        told.append((information["code"], information["description"]))
    codes = [code.rpartition(".")[2] for code, _ in told]
    assert codes == ["Ringing", "Answered", "Digit"]
    tool.close()
    phone.wait_event("CALL_CLOSED")

"""The rich client's API end to end: through the gateway alone, and through a real registrar."""

import gevent
import pytest
from support.gateway.accounts import PASSWORD, users_file
from support.gateway.richclient import RichClient, wait_for
from support.peers.peers import Kamailio
from support.peers.process import PATIENCE

from rtmplite.errors import RemoteError
from rtmplite.flv import file

FRAMES = 100  # two seconds


@pytest.fixture
def speex(corpus):
    """Tag bodies of real wideband Speex, one 20 ms frame each."""
    data = (corpus / "flv" / "audio_speex16k.flv").read_bytes()
    tags = [tag.data for tag in file.tags(data) if tag.tag_type == 8]
    return [tag for tag in tags if len(tag) == 71 or len(tag) == len(tags[10])][:FRAMES]


def talk(sender, listener, tags):
    """Send tags in real time; the frames that came out at the other end."""
    done = gevent.spawn(listener.heard, len(tags))
    for i, tag in enumerate(tags):
        sender.local.write(8, 20 * i, tag)
        gevent.sleep(0.02)
    return done.get(timeout=PATIENCE)


def call_and_compare(alice, bob, dest, speex, *names):
    """A call by Speex where codecs are named, else by the tunnel, in which nothing changes."""
    alice.call("invite", dest, *names)
    caller, callee = bob.expect("invited")
    assert "alice@" in caller and "bob@" in callee
    assert alice.expect("ringing") == ("180 Ringing",)
    bob.call("accept", *names)
    told = ("speex", None) if names else ()
    assert alice.expect("accepted") == told == bob.expect("accepted")
    alice.open_streams()
    bob.open_streams()
    right = [b"\xb2" + tag[1:] for tag in speex] if names else speex
    assert talk(alice, bob, speex) == right  # bit by bit
    assert talk(bob, alice, speex) == right
    bob.call("bye")
    assert alice.expect("byed") == ()


def test_two_clients_call_each_other_in_one_domain(gateway, tmp_path, speex):
    server = gateway("--users", users_file(tmp_path, "alice", "bob"), "--sip-t1", "20")
    idle = server.status()
    alice = RichClient(server.rtmp, "alice@127.0.0.1", "alice", PASSWORD, "Alice")
    bob = RichClient(server.rtmp, "bob@localhost", "bob", PASSWORD, "Bob")
    assert len(speex) == FRAMES
    call_and_compare(alice, bob, "bob@127.0.0.1", speex, "wideband")
    call_and_compare(alice, bob, "sip:bob@localhost", speex[:10])
    alice.close()
    bob.close()
    server.wait_status({k: v for k, v in idle.items() if k != "sip_repeated"})


def test_a_call_through_kamailio(start, gateway, speex):
    kamailio = start(Kamailio, users={"alice": PASSWORD, "bob": PASSWORD})
    server = gateway("--sip-t1", "100")
    alice = RichClient(server.rtmp, f"alice@{kamailio.address}", "alice", PASSWORD)
    bob = RichClient(server.rtmp, f"bob@{kamailio.address}", "bob", PASSWORD)
    call_and_compare(alice, bob, f"sip:bob@{kamailio.address}", speex, "wideband", "dtmf")
    alice.close()
    bob.close()


def test_a_wrong_password_is_rejected_with_the_sip_status(gateway, tmp_path):
    server = gateway("--users", users_file(tmp_path, "alice"))
    for password in ("wrong", ""):
        with pytest.raises(RemoteError) as refused:
            RichClient(server.rtmp, "alice@127.0.0.1", "alice", password)
        assert refused.value.code == "NetConnection.Connect.Rejected"
        assert refused.value.description.startswith("40")


def test_reject_cancel_and_busy(gateway):
    server = gateway()
    alice = RichClient(server.rtmp, "alice@127.0.0.1")
    bob = RichClient(server.rtmp, "bob@127.0.0.1")
    alice.call("invite", "bob@127.0.0.1", "pcmu", "dtmf")
    bob.expect("invited")
    alice.expect("ringing")
    alice.call("invite", "carol@127.0.0.1")
    assert alice.expect("rejected") == ("486 Busy Here",)
    bob.call("reject", "486 Not Now")
    assert alice.expect("rejected") == ("486 Not Now",)
    alice.call("invite", "bob@127.0.0.1", "pcma")
    bob.expect("invited")
    alice.expect("ringing")
    alice.call("bye")
    caller, callee = bob.expect("cancelled")
    assert "alice@" in caller and "bob@" in callee
    alice.call("invite", "nobody@127.0.0.1")
    assert alice.expect("rejected")[0].startswith("480")
    alice.call("invite", "bob@127.0.0.1", "wideband")
    bob.expect("invited")
    alice.expect("ringing")
    bob.call("accept", "pcmu")  # nothing in common is left
    bob.expect("byed")
    assert alice.expect("rejected")[0].startswith("488")
    alice.call("invite", "bob@127.0.0.1", "pcmu")
    bob.expect("invited")
    alice.expect("ringing")
    bob.call("accept", "pcma", "pcmu")
    assert alice.expect("accepted") == ("pcmu", None) == bob.expect("accepted")
    alice.close()
    bob.expect("byed")
    bob.close()
    server.wait_status({"calls": 0, "dialogs": 0, "media_legs": 0, "lines": 0})


def test_a_second_login_closes_the_first(gateway):
    server = gateway()
    first = RichClient(server.rtmp, "alice@127.0.0.1")
    second = RichClient(server.rtmp, "alice@127.0.0.1")
    wait_for(lambda: first.client.closed, "the end of the first")
    assert not second.client.closed
    second.close()

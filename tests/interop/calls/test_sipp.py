"""Many calls with SIPp at the other end: none fails, none is repeated, all are forgotten."""

import gevent
import pytest
from support.attacks.stalls import void_if_stalled
from support.gateway.richclient import RichClient, wait_for
from support.peers.peers import HERE, Sipp

T1 = 100  # ms, more than SIPp ever needs for an answer: at 20 it is asked twice now and then
pytestmark = [pytest.mark.alone, pytest.mark.needs("sipp")]

AT_ONCE = 50
CALLS = 200
BURST = (
    *("-m", str(AT_ONCE), "-l", str(AT_ONCE), "-r", "100", "-d", "2000"),
    *("-timeout", "60s", "-timeout_error", "-inf", "../names.csv"),
)


def finished(sipp):
    """Let our clients' greenlets run until SIPp has ended; what it counted."""
    wait_for(lambda: sipp.child.poll() is not None, "sipp to end", timeout=100)
    return sipp.expect_success()


@pytest.fixture
def settle(measured):
    """`settle(server, idle)`: poll until every figure is as it was; of repetitions there were none.

    That takes a transaction's lifetime, in which the other workers may go on.
    """

    def run(server, idle):
        assert server.status()["sip_repeated"] == idle["sip_repeated"]
        measured()
        server.wait_status(idle, timeout=40)

    return run


def each_to_another(target, folder):
    """The UAC scenario with user u0 for the first call, u1 for the second..."""
    text = (HERE / "sipp" / "uac.xml").read_text().replace("[service]", "[field0]")
    (folder / "uac_each.xml").write_text(text)
    names = "".join(f"u{i};\n" for i in range(AT_ONCE))
    (folder / "names.csv").write_text(f"SEQUENTIAL\n{names}")
    return str(folder / "uac_each"), target


def answering(client, names):
    """A greenlet that accepts every call and notes how each ended."""
    ended = []

    def run():
        while True:
            name, _ = client.calls.get()
            if name == "invited":
                client.call("accept", *names)
            elif name == "byed":
                ended.append(name)

    return gevent.spawn(run), ended


@void_if_stalled(T1 / 2000)
@pytest.mark.needs("sipp")
def test_200_calls_in_a_row_to_a_rich_client(start, gateway, settle):
    server = gateway("--sip-t1", str(T1))
    idle = server.status()
    bob = RichClient(server.rtmp, "bob@127.0.0.1")
    loop, ended = answering(bob, ("wideband",))
    caller = start(
        Sipp.uac, server.sip, user="bob", calls=CALLS, at_once=1, per_second=100, hold_ms=10
    )
    counted = finished(caller)
    assert (counted.successful, counted.failed, counted.retransmissions) == (CALLS, 0, 0)
    wait_for(lambda: len(ended) == CALLS, "byed for each call")
    loop.kill()
    bob.close()
    settle(server, idle)


@void_if_stalled(T1 / 2000)
@pytest.mark.needs("sipp")
def test_50_calls_at_once_to_as_many_rich_clients(start, gateway, settle, tmp_path):
    server = gateway("--sip-t1", str(T1))
    idle = server.status()
    clients = [RichClient(server.rtmp, f"u{i}@127.0.0.1") for i in range(AT_ONCE)]
    loops = [answering(client, ("narrowband",))[0] for client in clients]
    caller = start(Sipp, *each_to_another(server.sip, tmp_path), codec="speex/8000", options=BURST)
    wait_for(lambda: server.status()["calls"] == AT_ONCE, "50 calls at once", timeout=30)
    counted = finished(caller)
    assert (counted.successful, counted.failed, counted.retransmissions) == (AT_ONCE, 0, 0)
    for loop, client in zip(loops, clients, strict=True):
        loop.kill()
        client.close()
    settle(server, idle)


@void_if_stalled(T1 / 2000)
@pytest.mark.needs("sipp")
def test_rich_clients_call_sipp_50_at_once(start, gateway, settle):
    server = gateway("--sip-t1", str(T1))
    idle = server.status()
    callee = start(Sipp.uas)
    clients = [RichClient(server.rtmp, f"u{i}@127.0.0.1") for i in range(AT_ONCE)]
    for round_ in range(4):
        for client in clients:
            client.call("invite", f"sip:sipp{round_}@127.0.0.1:{callee.port}")
        for client in clients:
            client.expect("ringing")
            client.expect("accepted")
        assert server.status()["calls"] == AT_ONCE
        for client in clients:
            client.call("bye")
    wait_for(lambda: callee.calls().successful == CALLS, "SIPp to count 200 calls")
    assert callee.calls().failed == callee.calls().retransmissions == 0
    for client in clients:
        client.close()
    settle(server, idle)

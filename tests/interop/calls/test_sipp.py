"""Many calls with SIPp at the other end: none fails, none is repeated, all are forgotten.

A request is repeated by the wall, so one is forgiven where the machine withheld a core for as long.
"""

import gevent
import pytest
from support.gateway.richclient import RichClient, wait_for
from support.limits import Clock
from support.peers.peers import HERE, Sipp

T1 = 100  # ms, more than SIPp ever needs for an answer: at 20 it is asked twice now and then
WITHHELD = T1 / 2000  # s without a core in 0.1 s, by which an answer may come after T1
HOLD = 2  # s
FOR_EVER = 1200  # s of the wall, as long as a test may take
PATIENT = ("-max_invite_retrans", "20", "-max_non_invite_retrans", "20")  # it counts by the wall
pytestmark = [pytest.mark.alone, pytest.mark.needs("sipp")]

AT_ONCE = 50
CALLS = 200
BURST = (
    *("-m", str(AT_ONCE), "-l", str(AT_ONCE), "-r", "100", "-d", str(HOLD * 1000)),
    *("-inf", "../names.csv", *PATIENT),
)


def finished(sipp):
    """Let our clients' greenlets run until SIPp has ended; what it counted."""
    wait_for(lambda: sipp.child.poll() is not None, "sipp to end", timeout=100)
    return sipp.expect_success()


@pytest.fixture
def settle(measured, watch):
    """`settle(server, idle, repeated)`: nothing was repeated, and all becomes as it was.

    It polls every figure.  That takes a transaction's lifetime, in which the other workers may go
    on.
    """

    def run(server, idle, repeated_by_sipp):
        repeated = server.status()["sip_repeated"]
        none = (repeated_by_sipp, repeated) == (0, idle["sip_repeated"])
        assert none or watch.worst >= WITHHELD
        measured()
        server.wait_status(idle | {"sip_repeated": repeated}, timeout=40)

    return run


def each_to_another(target, folder):
    """The UAC scenario with user u0 for the first call, u1 for the second..."""
    text = (HERE / "sipp" / "uac.xml").read_text().replace("[service]", "[field0]")
    (folder / "uac_each.xml").write_text(text)
    names = "".join(f"u{i};\n" for i in range(AT_ONCE))
    (folder / "names.csv").write_text(f"SEQUENTIAL\n{names}")
    return str(folder / "uac_each"), target


def that_tells_repeats(folder):
    """The UAS scenario, whose first counter counts repeated INVITEs: it would end a call by one."""
    text = (HERE / "sipp" / "uas.xml").read_text()
    ack = '<recv request="ACK" crlf="true"/>'
    assert ack in text
    repeated = '<recv request="INVITE" optional="true" counter="1"/>'
    (folder / "uas_told.xml").write_text(text.replace(ack, f"{repeated}\n  {ack}"))
    return str(folder / "uas_told")


def answering(client):
    """A greenlet that accepts every call and notes how each ended."""
    ended = []

    def run():
        while True:
            name, _ = client.calls.get()
            if name == "invited":
                client.call("accept", "wideband")
            elif name == "byed":
                ended.append(name)

    return gevent.spawn(run), ended


@pytest.mark.needs("sipp")
def test_200_calls_in_a_row_to_a_rich_client(start, gateway, watch, settle):
    server = gateway("--sip-t1", str(T1))
    idle = server.status()
    bob = RichClient(server.rtmp, "bob@127.0.0.1")
    loop, ended = answering(bob)
    watch.begin()
    caller = start(
        Sipp.uac,
        server.sip,
        user="bob",
        calls=CALLS,
        per_second=100,
        hold_ms=10,
        timeout=FOR_EVER,
    )
    counted = finished(caller)
    assert (counted.successful, counted.failed) == (CALLS, 0)
    wait_for(lambda: len(ended) == CALLS, "byed for each call")
    loop.kill()
    bob.close()
    settle(server, idle, counted.retransmissions)


@pytest.mark.needs("sipp")
def test_50_calls_at_once_to_as_many_rich_clients(start, gateway, watch, settle, tmp_path):
    """All ring at once, and all talk at once: SIPp hangs up after HOLD seconds of the wall."""
    server = gateway("--sip-t1", str(T1))
    idle = server.status()
    clients = [RichClient(server.rtmp, f"u{i}@127.0.0.1") for i in range(AT_ONCE)]
    watch.begin()
    words = each_to_another(server.sip, tmp_path)
    caller = start(Sipp, *words, codec="speex/8000", options=BURST)
    for client in clients:
        client.expect("invited")
    assert server.status()["calls"] == AT_ONCE
    clock = Clock()
    for client in clients:
        client.call("accept", "narrowband")
    calls = server.status()["calls"]
    assert calls == AT_ONCE or clock.own() < HOLD < clock.wall
    for client in clients:
        client.expect("accepted")
    counted = finished(caller)
    assert (counted.successful, counted.failed) == (AT_ONCE, 0)
    for client in clients:
        client.expect("byed")
        client.close()
    settle(server, idle, counted.retransmissions)


@pytest.mark.needs("sipp")
def test_rich_clients_call_sipp_50_at_once(start, gateway, watch, settle, tmp_path):
    server = gateway("--sip-t1", str(T1))
    idle = server.status()
    callee = start(Sipp, that_tells_repeats(tmp_path))
    clients = [RichClient(server.rtmp, f"u{i}@127.0.0.1") for i in range(AT_ONCE)]
    watch.begin()
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
    assert callee.calls().failed == 0
    for client in clients:
        client.close()
    settle(server, idle, callee.calls().retransmissions + callee.total("GenericCounter1(C)"))

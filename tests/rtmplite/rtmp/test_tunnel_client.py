"""RTMPT on the client's side, against the server's side, in virtual time and without HTTP."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.rtmp.rtmp_world import World, counting

from rtmplite.errors import LocalError, RemoteError
from rtmplite.rtmp.tunnel import INTERVALS, Tunnels
from rtmplite.rtmp.tunnel_client import MOST, TunnelClient

PEER = ("192.0.2.1", 4711)


class Pair:
    """A tunnel's two sides, whose requests and answers are carried by `ask`."""

    def __init__(self):
        self.world = World()
        self.tunnels = Tunnels(lambda address: self.world.server(), counting())
        self.client, self.asked, self.now = TunnelClient(), [], 0.0

    def ask(self, times=1):
        """Carry the request that is due, perhaps again; give what has come, None without one."""
        request = self.client.request(self.now)
        if request is None:
            return None
        self.asked.append(request)
        for _ in range(times):
            answer = self.tunnels.request(request.path, request.body, PEER, self.now)
        return self.client.take(answer.status, answer.body, self.now)


def hello():
    """What a client of RTMP says first."""
    return b"\x03" + bytes(1536)


def test_each_request_has_the_next_number_and_carries_what_waits():
    """Covers Field §"HTTP tunnel"."""
    pair = Pair()
    assert pair.ask() == b"" and pair.asked[0].path == "/open/1"
    pair.client.write(hello())
    answer = pair.ask()
    assert answer[0] == 3 and len(answer) == 1 + 2 * 1536
    pair.now += 1
    pair.ask()
    assert [each.path.split("/")[1] for each in pair.asked] == ["open", "send", "idle"]
    assert [each.path.split("/")[3] for each in pair.asked[1:]] == ["0", "1"]
    assert pair.asked[1].body == hello() and pair.asked[2].body == b"\0"


def test_without_anything_to_say_the_server_is_asked_as_often_as_it_wishes():
    """Covers Field §"HTTP tunnel"."""
    pair = Pair()
    pair.ask()
    pair.client.write(hello())
    pair.ask()
    for _ in range(80):
        assert pair.ask() is None
        pair.now = pair.client.deadline
        pair.ask()
    seen = []
    for _ in range(2):
        begun, pair.now = pair.now, pair.client.deadline
        seen.append(pair.now - begun)
        pair.ask()
    assert seen[-1] == pytest.approx(INTERVALS[-1] / 64) and 0.4 < seen[-1] < 0.6


def test_an_end_follows_what_waits():
    """Covers Field §"HTTP tunnel"."""
    pair = Pair()
    pair.ask()
    pair.client.write(hello() + bytes(MOST))
    assert pair.client.is_full
    pair.client.close()
    while pair.ask() is not None:
        pass
    assert [each.path.split("/")[1] for each in pair.asked] == ["open", "send", "send", "close"]
    assert pair.client.is_over and pair.client.deadline is None
    assert not pair.tunnels.connections


def test_a_request_whose_answer_was_lost_may_be_sent_again():
    pair = Pair()
    pair.ask()
    pair.client.write(hello())
    assert len(pair.ask(times=2)) == 1 + 2 * 1536
    pair.now += 1
    assert pair.ask() == b""


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ([(503, b"")], "HTTP 503 instead of a tunnel"),
        ([(200, b"\n")], "no name of a tunnel"),
        ([(200, b"../evil\n")], "no name of a tunnel"),
        ([(200, b"x" * 200)], "no name of a tunnel"),
        ([(200, b"x\n"), (404, b"")], "HTTP 404 instead of the tunnel"),
        ([(200, b"x\n"), (200, b"")], "without the first byte"),
    ],
)
def test_an_answer_that_is_none_is_the_servers_error(answers, said):
    client = TunnelClient()
    with pytest.raises(RemoteError, match=said):
        for status, body in answers:
            assert client.request(0.0) is not None
            client.take(status, body, 0.0)


def test_an_answer_to_nothing_is_an_error_of_ours():
    with pytest.raises(LocalError):
        TunnelClient().take(200, b"x\n", 0.0)


@given(st.lists(st.tuples(st.sampled_from([200, 200, 200, 404]), st.binary(max_size=40))))
def test_whatever_comes_it_ends_or_goes_on(answers):
    client, now = TunnelClient(), 0.0
    client.write(b"hello")
    for status, body in answers:
        while (request := client.request(now)) is None and client.deadline is not None:
            now = max(now, client.deadline)
        if request is None:
            break
        try:
            client.take(status, body, now)
        except RemoteError:
            break
    event(f"over: {client.is_over}")

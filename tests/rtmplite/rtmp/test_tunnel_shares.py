"""RTMPT for many hosts: each has its share of the tunnels, and few that it does not use."""

from support.rtmp.rtmp_world import World, counting

from rtmplite.rtmp.application import LiveApplication
from rtmplite.rtmp.tunnel import FIRST_LIMIT, MAX_SILENT, Tunnels


def many(**options):
    """Tunnels to a server."""
    world = World(LiveApplication())
    return Tunnels(lambda address: world.server(), counting(), **options)


def opened(tunnels, host):
    """The answer to who opens a tunnel from there."""
    return tunnels.request("/open/1", b"\0", (host, 1), 0.0)


def test_one_host_has_its_share_and_another_one_room():
    """Own design: a thousand tunnels are for more than one host, and a /64 is one."""
    tunnels = many(max_sessions=6, max_of_host=3)
    for number in range(4):
        answer = opened(tunnels, f"2001:db8::{number}")
        assert answer.status == (200 if number < 3 else 503)
        if answer.status == 200:
            name = answer.body.decode().strip()
            tunnels.request(f"/send/{name}/0", b"\x03", ("2001:db8::1", 1), 0.0)
    for status in (200, 200, 200, 503):
        assert opened(tunnels, "2001:db8:0:1::1").status == status
    assert len(tunnels.connections) == 6


def test_who_opens_and_says_nothing_holds_a_few_places_for_a_moment():
    """Own design: the newest of a host stay, and nobody else is refused because of it."""
    over = []
    tunnels = many(over=over.append)
    numbers = [opened(tunnels, "192.0.2.9").body.decode().strip() for _ in range(500)]
    assert len(tunnels.connections) == MAX_SILENT and len(over) == 500 - MAX_SILENT
    last = ("192.0.2.9", 1)
    assert tunnels.request(f"/idle/{numbers[-1]}/0", b"\0", last, 0.0).status == 200
    assert tunnels.request(f"/idle/{numbers[0]}/0", b"\0", last, 0.0).status == 404
    assert opened(tunnels, "192.0.2.1").status == 200
    tunnels.tick(FIRST_LIMIT)
    assert not tunnels.connections and len(over) == 501

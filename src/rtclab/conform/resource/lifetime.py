"""Cases of transient and persistent resources, and of the connections that the former end with.

Implements Resources §7, from the side of a client.

Own design: an end is judged by what a neighbour is told, and its time is that of the notification.
"""

import time
from collections.abc import Callable
from functools import partial

import gevent

from rtclab.conform.case import Unmet
from rtclab.conform.checks import expect_equal
from rtclab.conform.resource.line import ResourceLine
from rtclab.conform.resource.peer import SOCKET, ResourceClient, ResourcePeer, by

GONE = 1.0  # s until what a client has made ends, and is told
_case = partial(by, SOCKET)


def _ends(peer: ResourcePeer, end: Callable[[ResourceLine], None]) -> None:
    """Unmet unless what a client has made ends with its connection, and is told."""
    keeper, client = peer.client(), peer.client()
    room = peer.room(keeper)
    keeper.ask("SUBSCRIBE", room).expect(200)
    client.make(f"{room}/a", 1)
    client.make(f"{room}/a/b", 2)
    keeper.line.hear()
    keeper.ask("SUBSCRIBE", f"{room}/a").expect(200)
    start = time.monotonic()
    with gevent.Timeout(GONE, Unmet("an end that is told", f"nothing within {GONE:g} s")):
        end(client.line)
        found: list[tuple[str, str]] = []
        while len(found) < 2 or found[-1][1] != room:
            heard = keeper.line.hear()
            found.append((heard["notify"], heard["resource"]))
    if time.monotonic() - start > GONE:
        raise Unmet(f"the end within {GONE:g} s", f"after {time.monotonic() - start:.1f} s")
    if ("DELETE", f"{room}/a") not in found or ("UPDATE", room) not in found:
        raise Unmet("DELETE to its subscribers and UPDATE to those above", repr(found))
    expect_equal("children", [], keeper.read(room, view="children"))


@_case("7", "transient-ends")
def transient_ends_with_a_closed_connection(peer: ResourcePeer) -> None:
    """What a client has made ends within a second of its message that closes."""
    _ends(peer, ResourceLine.leave)


@_case("7", "transient-ends")
def transient_ends_with_a_lost_connection(peer: ResourcePeer) -> None:
    """What a client has made ends within a second of the end of its stream."""
    _ends(peer, ResourceLine.close)


@_case("7", "transient-ends")
def transient_ends_with_a_reset_connection(peer: ResourcePeer) -> None:
    """What a client has made ends within a second of a reset."""
    _ends(peer, ResourceLine.reset)


def _leave(peer: ResourcePeer, keeper: ResourceClient, client: ResourceClient, room: str) -> None:
    """End a client, and wait until what it has made has ended."""
    client.make(f"{room}/transient", 1)
    keeper.ask("SUBSCRIBE", room).expect(200)
    client.line.close()
    while keeper.line.hear().get("delete") != "transient":
        pass


@_case("7")
def persistent_stays(peer: ResourcePeer) -> None:
    """A resource that was made persistent stays without its connection."""
    keeper, client = peer.client(), peer.client()
    room = peer.room(keeper)
    keeper.ask("PUT", room, entity=1, persistent=True).expect(200)
    for name, persistent in (("a", True), ("b", False)):
        client.make(f"{room}/{name}", 1, persistent=persistent)
    expect_equal("persistent", True, keeper.read(f"{room}/a", view="access")["persistent"])
    _leave(peer, keeper, client, room)
    expect_equal("children", ["a"], keeper.read(room, view="children"))
    keeper.ask("DELETE", room).expect(2)


@_case("7")
def resource_becomes_persistent(peer: ResourcePeer) -> None:
    """A transient resource becomes persistent by a PUT of its owner that says so."""
    keeper, client = peer.owner(), peer.owner()
    room = peer.room(keeper)
    keeper.ask("PUT", room, entity=1, persistent=True).expect(200)
    client.make(f"{room}/a", 1)
    client.ask("PUT", f"{room}/a", entity=2, persistent=True).expect(200)
    _leave(peer, keeper, client, room)
    expect_equal("entity", 2, keeper.read(f"{room}/a"))


@_case("7", "persistent-below-persistent")
def persistent_below_transient_is_refused(peer: ResourcePeer) -> None:
    """PUT and POST of a persistent resource below a transient one are refused."""
    client = peer.client()
    room = peer.room(client)
    client.ask("PUT", f"{room}/a", entity=1, persistent=True).expect(4)
    client.ask("POST", room, entity=1, persistent=True).expect(4)
    client.make(f"{room}/b", 1)
    client.ask("PUT", f"{room}/b", entity=1, persistent=True).expect(4)
    expect_equal("children", ["b"], client.read(room, view="children"))
    expect_equal("persistent", False, client.read(f"{room}/b", view="access")["persistent"])


@_case("4.2", "owner-takes-over")
def owner_takes_over_what_it_replaces(peer: ResourcePeer) -> None:
    """What its owner replaces by another connection ends with that one from then on."""
    keeper, first, second = peer.owner(), peer.owner(), peer.owner()
    room = peer.room(keeper)
    first.make(f"{room}/a", 1)
    second.ask("PUT", f"{room}/a", entity=2).expect(200)
    _leave(peer, keeper, first, room)
    expect_equal("entity", 2, keeper.read(f"{room}/a"))
    second.line.close()
    while keeper.line.hear().get("delete") != "a":
        pass


@_case("4.2")
def others_take_nothing_over(peer: ResourcePeer) -> None:
    """What somebody else replaces still ends with the connection of its owner."""
    keeper, second = peer.owner(), peer.second()
    room = peer.room(keeper)
    client = peer.owner()
    client.make(f"{room}/a", 1)
    second.ask("PUT", f"{room}/a", entity=2).expect(200)
    _leave(peer, keeper, client, room)
    keeper.ask("GET", f"{room}/a").expect(404)

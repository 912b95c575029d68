"""Cases of tags and of the conditions that name them, by plain HTTP and by WebSocket.

Implements Resources §4.6, from the side of a client.

Own design: that a refused request changes nothing is judged by reading the resource behind it.
"""

from typing import Any

from rtclab.conform.case import Unmet
from rtclab.conform.checks import expect_equal
from rtclab.conform.resource.peer import ResourceClient, ResourcePeer, is_refused, ways


def _tag(client: ResourceClient, path: str) -> str:
    if not (tag := client.ask("GET", path).expect(200).tag):
        raise Unmet("an etag", "none")
    return tag


@ways("4.6")
def get_and_put_have_the_same_tag(peer: ResourcePeer) -> None:
    """The answer to PUT has the tag that GET has then."""
    client = peer.client()
    path = f"{peer.room(client)}/a"
    made = client.make(path, 1).tag
    expect_equal("etag", _tag(client, path), made)


@ways("4.6")
def tag_changes_with_what_is_held(peer: ResourcePeer) -> None:
    """A resource that holds something else has another tag."""
    client = peer.client()
    room = peer.room(client, 1)
    before = _tag(client, room)
    client.ask("PATCH", room, entity=2).expect(2)
    if _tag(client, room) == before:
        raise Unmet("another etag", before)


@ways("4.6")
def right_tag_lets_it_be(peer: ResourcePeer) -> None:
    """PUT, PATCH and DELETE with the right tag in if-match succeed."""
    client = peer.client()
    path = f"{peer.room(client)}/a"
    client.make(path, {})
    client.ask("PUT", path, entity={"a": 1}, if_match=_tag(client, path)).expect(2)
    client.ask("PATCH", path, entity={"a": 2}, if_match=f'"x", {_tag(client, path)}').expect(2)
    client.ask("DELETE", path, if_match=_tag(client, path)).expect(2)


def _stale(peer: ResourcePeer, method: str, **members: Any) -> None:
    client = peer.client()
    room = peer.room(client, {"a": 1})
    stale = _tag(client, room)
    client.ask("PUT", room, entity={"a": 2}).expect(200)
    client.ask(method, room, if_match=stale, **members).expect(412)
    expect_equal("entity", {"a": 2}, client.read(room))


@ways("4.6", "if-match-is-412")
def put_by_an_old_tag_has_412(peer: ResourcePeer) -> None:
    """PUT with an outdated tag has 412, and changes nothing."""
    _stale(peer, "PUT", entity={"a": 3})


@ways("4.6", "if-match-is-412")
def patch_by_an_old_tag_has_412(peer: ResourcePeer) -> None:
    """PATCH with an outdated tag has 412, and changes nothing."""
    _stale(peer, "PATCH", entity={"a": 3})


@ways("4.6", "if-match-is-412")
def delete_by_an_old_tag_has_412(peer: ResourcePeer) -> None:
    """DELETE with an outdated tag has 412, and changes nothing."""
    _stale(peer, "DELETE")


@ways("4.6", "if-match-is-412")
def any_tag_of_nothing_has_412(peer: ResourcePeer) -> None:
    """PUT of an absent resource with if-match of * has 412, and makes nothing."""
    client = peer.client()
    path = f"{peer.room(client)}/a"
    answer = client.ask("PUT", path, entity=1, if_match="*").expect(412)
    is_refused(answer, client, path)


@ways("4.6")
def any_tag_lets_be_what_is_there(peer: ResourcePeer) -> None:
    """PUT of a present resource with if-match of * succeeds."""
    client = peer.client()
    client.ask("PUT", peer.room(client), entity=1, if_match="*").expect(200)


@ways("4.6")
def only_what_is_new_is_made(peer: ResourcePeer) -> None:
    """With if-none-match of * the first PUT makes, and the second has 412 and changes nothing."""
    client = peer.client()
    path = f"{peer.room(client)}/a"
    client.ask("PUT", path, entity=1, if_none_match="*").expect(201)
    client.ask("PUT", path, entity=2, if_none_match="*").expect(412)
    expect_equal("entity", 1, client.read(path))


@ways("4.6")
def tag_that_must_not_be_has_412(peer: ResourcePeer) -> None:
    """PUT with the current tag in if-none-match has 412, with another one it succeeds."""
    client = peer.client()
    room = peer.room(client, 1)
    client.ask("PUT", room, entity=2, if_none_match=f'"x", {_tag(client, room)}').expect(412)
    client.ask("PUT", room, entity=3, if_none_match='"x"').expect(200)
    expect_equal("entity", 3, client.read(room))

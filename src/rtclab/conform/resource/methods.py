"""Cases of each method, by plain HTTP and by WebSocket.

Implements Resources §4, from the side of a client.

Own design: a case is the same by both ways, so that neither is judged by the other's forms.
"""

from typing import Any, Final

from rtclab.conform.case import Unmet
from rtclab.conform.checks import expect_equal
from rtclab.conform.resource.peer import ResourcePeer, is_refused, ways

_VALUES: Final[tuple[Any, ...]] = (
    None,
    True,
    0,
    -1.5,
    "",
    "\u00e9\U0001f600\n\x00",
    [],
    {},
    [[{"": None}]],
)


@ways("4.2", "put-makes-or-replaces")
def put_makes_with_201(peer: ResourcePeer) -> None:
    """PUT of an absent resource has 201, and GET reads it."""
    client = peer.client()
    room = peer.room(client)
    client.ask("PUT", f"{room}/a", entity={"n": 1}).expect(201)
    expect_equal("entity", {"n": 1}, client.read(f"{room}/a"))


@ways("4.2", "put-makes-or-replaces")
def put_replaces_with_200(peer: ResourcePeer) -> None:
    """PUT of a present resource has 200 and replaces all of it."""
    client = peer.client()
    room = peer.room(client, {"old": 1})
    client.ask("PUT", room, entity={"new": 2}).expect(200)
    expect_equal("entity", {"new": 2}, client.read(room))


@ways("4.2", "parent-is-there")
def put_below_nothing_is_refused(peer: ResourcePeer) -> None:
    """PUT where nothing is above is refused, and makes nothing."""
    client = peer.client()
    path = f"{peer.room(client)}/absent/a"
    is_refused(client.ask("PUT", path, entity=1), client, path)


@ways("4.2")
def values_come_back_as_they_were(peer: ResourcePeer) -> None:
    """Each kind of value of JSON is read as it was put."""
    client = peer.client()
    room = peer.room(client)
    for value in _VALUES:
        client.ask("PUT", room, entity=value).expect(200)
        expect_equal("entity", repr(value), repr(client.read(room)))


@ways("2.1")
def octets_come_back_with_their_type(peer: ResourcePeer) -> None:
    """An entity of a type that is not JSON is read octet by octet, with its type."""
    client = peer.client()
    path = f"{peer.room(client)}/a"
    client.ask("PUT", path, type="image/conform", entity=bytes(range(256))).expect(201)
    answer = client.ask("GET", path).expect(200)
    expect_equal("type", "image/conform", answer.type.partition(";")[0])
    expect_equal("entity", bytes(range(256)), answer.entity)


@ways("4.1")
def get_of_nothing_has_404(peer: ResourcePeer) -> None:
    """GET of an absent resource has 404."""
    client = peer.client()
    client.ask("GET", f"{peer.room(client)}/absent").expect(404)


@ways("4.1")
def children_are_named(peer: ResourcePeer) -> None:
    """The view called children has the names directly below."""
    client = peer.client()
    room = peer.room(client)
    for name in ("a", "b", "b/c"):
        client.make(f"{room}/{name}")
    expect_equal("children", ["a", "b"], sorted(client.read(room, view="children")))


@ways("4.1")
def access_is_told(peer: ResourcePeer) -> None:
    """The view called access has owner, group, mode, and whether it is persistent."""
    client = peer.client()
    access = client.read(peer.room(client), view="access")
    expect_equal("members", {"owner", "group", "mode", "persistent"}, set(access))
    expect_equal("mode", "cruws" * 4, access["mode"])
    expect_equal("persistent", peer.way == "http", access["persistent"])


@ways("4.1")
def unknown_view_is_refused(peer: ResourcePeer) -> None:
    """GET with a view that is not named is refused."""
    client = peer.client()
    client.ask("GET", peer.room(client), view="conform").expect(4)


@ways("4.3", "post-tells-the-identifier")
def post_tells_the_name(peer: ResourcePeer) -> None:
    """POST has 201 and the name of the new resource, which is there."""
    client = peer.client()
    room = peer.room(client)
    answer = client.ask("POST", room, entity={"n": 1}).expect(201)
    if not isinstance(answer.entity, dict) or not isinstance(answer.entity.get("id"), str):
        raise Unmet('{"id": NAME}', str(answer))
    name = answer.entity["id"]
    expect_equal("resource", f"{room}/{name}", answer.path)
    expect_equal("entity", {"n": 1}, client.read(f"{room}/{name}"))
    expect_equal("children", [name], client.read(room, view="children"))


@ways("4.3")
def posts_have_names_of_their_own(peer: ResourcePeer) -> None:
    """Two POST of the same make two resources."""
    client = peer.client()
    room = peer.room(client)
    for _ in range(2):
        client.ask("POST", room, entity=1).expect(201)
    expect_equal("count of children", 2, len(set(client.read(room, view="children"))))


@ways("4.3")
def post_to_nothing_has_404(peer: ResourcePeer) -> None:
    """POST below what is not there has 404."""
    client = peer.client()
    client.ask("POST", f"{peer.room(client)}/absent", entity=1).expect(404)


@ways("4.4")
def patch_adds_and_replaces(peer: ResourcePeer) -> None:
    """PATCH adds and replaces members, also within others, and leaves the rest."""
    client = peer.client()
    room = peer.room(client, {"a": 1, "b": {"c": 2, "d": 3}})
    client.ask("PATCH", room, entity={"e": [4], "b": {"d": 5}}).expect(2)
    expect_equal("entity", {"a": 1, "b": {"c": 2, "d": 5}, "e": [4]}, client.read(room))


@ways("4.4")
def patch_of_null_removes(peer: ResourcePeer) -> None:
    """A member of null in a PATCH is taken out, and one that is not there does no harm."""
    client = peer.client()
    room = peer.room(client, {"a": 1, "b": {"c": 2}})
    client.ask("PATCH", room, entity={"a": None, "b": {"c": None}, "d": None}).expect(2)
    expect_equal("entity", {"b": {}}, client.read(room))


@ways("4.4")
def patch_of_a_list_replaces(peer: ResourcePeer) -> None:
    """A PATCH that is no object replaces what was there."""
    client = peer.client()
    room = peer.room(client, {"a": 1})
    client.ask("PATCH", room, entity=[None, 1]).expect(2)
    expect_equal("entity", [None, 1], client.read(room))


@ways("4.4")
def patch_of_nothing_has_404(peer: ResourcePeer) -> None:
    """PATCH of an absent resource has 404."""
    client = peer.client()
    client.ask("PATCH", f"{peer.room(client)}/absent", entity={}).expect(404)


@ways("4.5")
def delete_ends_it(peer: ResourcePeer) -> None:
    """What was deleted has 404."""
    client = peer.client()
    path = f"{peer.room(client)}/a"
    client.make(path)
    client.ask("DELETE", path).expect(2)
    client.ask("GET", path).expect(404)


@ways("4.5", "delete-takes-all-below")
def delete_takes_all_below(peer: ResourcePeer) -> None:
    """What stands below what was deleted has 404, also once its parent is made anew."""
    client = peer.client()
    room = peer.room(client)
    for name in ("a", "a/b", "a/b/c"):
        client.make(f"{room}/{name}")
    client.ask("DELETE", f"{room}/a").expect(2)
    client.make(f"{room}/a")
    for name in ("a/b", "a/b/c"):
        client.ask("GET", f"{room}/{name}").expect(404)


@ways("4.5")
def delete_of_nothing_has_404(peer: ResourcePeer) -> None:
    """DELETE of an absent resource has 404."""
    client = peer.client()
    client.ask("DELETE", f"{peer.room(client)}/absent").expect(404)


@ways("2.3")
def event_changes_nothing(peer: ResourcePeer) -> None:
    """NOTIFY succeeds, and the resource holds what it held."""
    client = peer.client()
    room = peer.room(client, "same")
    client.ask("NOTIFY", room, entity="other").expect(2)
    expect_equal("entity", "same", client.read(room))


@ways("2.3")
def event_to_nothing_has_404(peer: ResourcePeer) -> None:
    """NOTIFY of an absent resource has 404."""
    client = peer.client()
    client.ask("NOTIFY", f"{peer.room(client)}/absent", entity=1).expect(404)

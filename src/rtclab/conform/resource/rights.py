"""Cases of rights, by plain HTTP and by WebSocket; most need two users.

Implements Resources §5, from the side of a client.

Own design: each right is judged by all requests, so that it allows neither less nor more.
"""

from typing import Any, Final

from rtclab.conform.case import Unmet
from rtclab.conform.checks import expect_equal
from rtclab.conform.resource.peer import (
    ALL,
    OWNER,
    SOCKET,
    ResourceClient,
    ResourcePeer,
    by,
    ways,
)

_NO: Final = "-----"
_REQUESTS: Final[tuple[tuple[str, str, str, dict[str, Any]], ...]] = (
    ("c", "POST", "", {"entity": 1}),
    ("c", "PUT", "/new", {"entity": 1}),
    ("r", "GET", "", {}),
    ("r", "GET", "", {"view": "children"}),
    ("w", "NOTIFY", "", {"entity": 1}),
    ("u", "PUT", "", {"entity": 1}),
    ("u", "PATCH", "", {"entity": 1}),
    ("u", "DELETE", "", {}),
)


def _allowed(letters: str, status: int, room: str, client: ResourceClient) -> None:
    """Unmet unless these rights are enough for their requests, and others have the status."""
    asked = [*_REQUESTS, *([("s", "SUBSCRIBE", "", {})] if client.way == SOCKET else [])]
    for right, method, below, members in sorted(asked, key=lambda each: each[0] in letters):
        answer = client.ask(method, room + below, **members)
        if right in letters:
            answer.expect(2)
        else:
            answer.expect(status)


@ways("5.4", "401-or-403")
def user_without_rights_has_403(peer: ResourcePeer) -> None:
    """A user without any right has 403 for each request."""
    room = peer.room(peer.owner(), mode=OWNER)
    _allowed("", 403, room, peer.second())


@ways("5.4", "401-or-403")
def anonymous_without_rights_has_401(peer: ResourcePeer) -> None:
    """A client without a user and without any right has 401 for each request."""
    room = peer.room(peer.owner(), mode=OWNER)
    _allowed("", 401, room, peer.anonymous())


@ways("5.1")
def right_to_create_allows_that(peer: ResourcePeer) -> None:
    """The right c allows POST and PUT of a new resource, and nothing else."""
    room = peer.room(peer.owner(), mode=OWNER[:10] + "c----" + _NO)
    _allowed("c", 403, room, peer.second())


@ways("5.1")
def right_to_read_allows_that(peer: ResourcePeer) -> None:
    """The right r allows GET, and nothing else."""
    room = peer.room(peer.owner(), mode=OWNER[:10] + "-r---" + _NO)
    _allowed("r", 403, room, peer.second())


@ways("5.1")
def right_to_update_allows_that(peer: ResourcePeer) -> None:
    """The right u allows PUT, PATCH and DELETE of a present resource, and nothing else."""
    room = peer.room(peer.owner(), mode=OWNER[:10] + "--u--" + _NO)
    client = peer.second()
    client.ask("DELETE", f"{room}/absent").expect(404)
    for right, method, below, members in _REQUESTS:
        answer = client.ask(method, room + below, **members)
        answer.expect(2 if right == "u" else 403)


@ways("5.1")
def right_to_write_allows_that(peer: ResourcePeer) -> None:
    """The right w allows NOTIFY, and nothing else."""
    room = peer.room(peer.owner(), mode=OWNER[:10] + "---w-" + _NO)
    _allowed("w", 403, room, peer.second())


@by(SOCKET, "5.1")
def right_to_subscribe_allows_that(peer: ResourcePeer) -> None:
    """The right s allows SUBSCRIBE, and nothing else."""
    room = peer.room(peer.owner(), mode=OWNER[:10] + "----s" + _NO)
    _allowed("s", 403, room, peer.second())


@ways("5.1", "first-class-counts")
def owner_has_the_rights_of_self_alone(peer: ResourcePeer) -> None:
    """An owner without a right is refused, though all others have it."""
    owner = peer.owner()
    room = peer.room(owner, mode="c-uws" + "cruws" * 3)
    owner.ask("GET", room).expect(403)
    peer.second().ask("GET", room).expect(200)


@ways("5.1", "first-class-counts")
def group_has_the_rights_of_the_group_alone(peer: ResourcePeer) -> None:
    """A member of the group has its rights, and not those of users."""
    group, owner = peer.group(), peer.owner()
    room = peer.room(owner, mode="cruws" + "-r---" + "---w-" + _NO)
    member = peer.second()
    member.ask("NOTIFY", room, entity=1).expect(2)
    owner.ask("PATCH", room, view="access", entity={"group": group}).expect(2)
    member.ask("NOTIFY", room, entity=1).expect(403)
    member.ask("GET", room).expect(200)


@ways("5.1", "first-class-counts")
def user_has_not_the_rights_of_anonymous(peer: ResourcePeer) -> None:
    """A user without a right is refused, though clients without a user have it."""
    room = peer.room(peer.owner(), mode="cruws" + _NO * 2 + "cruws")
    peer.second().ask("GET", room).expect(403)
    peer.anonymous().ask("GET", room).expect(200)


@ways("5.1")
def owner_of_what_is_above_is_self(peer: ResourcePeer) -> None:
    """The owner of a resource has the rights of self for resources of others below it."""
    owner = peer.owner()
    room = peer.room(owner)
    peer.second().make(f"{room}/a", 1, mode=OWNER)
    expect_equal("entity", 1, owner.read(f"{room}/a"))
    owner.ask("DELETE", f"{room}/a").expect(2)


@ways("5.2")
def owner_is_told(peer: ResourcePeer) -> None:
    """Two users have made a resource each, and access tells two owners."""
    owner, second = peer.owner(), peer.second()
    room = peer.room(owner)
    second.make(f"{room}/a", 1)
    found = [owner.read(path, view="access")["owner"] for path in (room, f"{room}/a")]
    if None in found or found[0] == found[1]:
        raise Unmet("two owners", repr(found))


@ways("5.2", "owner-alone-gives-rights")
def others_give_no_rights(peer: ResourcePeer) -> None:
    """Whoever does not own a resource may not change its mode or its group, by PATCH or by PUT."""
    owner = peer.owner()
    room = peer.room(owner)
    second = peer.second()
    for change in ({"mode": OWNER}, {"group": "conform"}):
        second.ask("PATCH", room, view="access", entity=change).expect(403)
        second.ask("PUT", room, entity=1, **change).expect(403)
    access = owner.read(room, view="access")
    expect_equal("mode", ALL, access["mode"])
    expect_equal("group", None, access["group"])


@by(SOCKET, "5.2", "owner-alone-gives-rights")
def others_make_nothing_persistent(peer: ResourcePeer) -> None:
    """Whoever does not own a resource may not make it persistent."""
    owner = peer.owner()
    room = peer.room(owner)
    peer.second().ask("PUT", room, entity=1, persistent=True).expect(403)
    expect_equal("persistent", False, owner.read(room, view="access")["persistent"])


@by(SOCKET, "5.2")
def anonymous_owns_by_its_connection(peer: ResourcePeer) -> None:
    """What a client without a user has made is its own, and not that of another such client."""
    client, other = peer.anonymous(), peer.anonymous()
    room = peer.room(client, 1, mode=OWNER)
    expect_equal("entity", 1, client.read(room))
    other.ask("GET", room).expect(401)


@ways("5.3", "mode-is-inherited")
def mode_is_that_of_what_is_above(peer: ResourcePeer) -> None:
    """A resource without a mode has that of the one above, also when that changes."""
    owner = peer.owner()
    room = peer.room(owner)
    owner.make(f"{room}/a", 1)
    owner.make(f"{room}/b", 1, mode=ALL)
    second = peer.second()
    second.ask("GET", f"{room}/a").expect(200)
    owner.ask("PATCH", room, view="access", entity={"mode": OWNER}).expect(2)
    second.ask("GET", f"{room}/a").expect(403)
    second.ask("GET", f"{room}/b").expect(200)


@ways("5.3", "mode-is-inherited")
def null_gives_a_mode_back(peer: ResourcePeer) -> None:
    """A mode of null in access stands for the mode of the resource above."""
    owner = peer.owner()
    room = peer.room(owner)
    owner.make(f"{room}/a", 1, mode=OWNER)
    second = peer.second()
    second.ask("GET", f"{room}/a").expect(403)
    owner.ask("PATCH", f"{room}/a", view="access", entity={"mode": None}).expect(2)
    second.ask("GET", f"{room}/a").expect(200)


@ways("5.4")
def what_is_hidden_is_refused_if_absent_too(peer: ResourcePeer) -> None:
    """Where nothing is, a client is told so if it may read what is above, and refused if not."""
    owner = peer.owner()
    room = peer.room(owner)
    owner.make(f"{room}/a", 1, mode=OWNER)
    second = peer.second()
    second.ask("GET", f"{room}/absent").expect(404)
    second.ask("GET", f"{room}/a/absent").expect(403)


@ways("4.1")
def names_of_what_may_be_read_are_listed(peer: ResourcePeer) -> None:
    """The view called children leaves out what the client may not read."""
    owner = peer.owner()
    room = peer.room(owner)
    owner.make(f"{room}/open", 1)
    owner.make(f"{room}/closed", 1, mode=OWNER)
    expect_equal("children", ["open"], peer.second().read(room, view="children"))


@ways("5.1")
def malformed_mode_is_refused(peer: ResourcePeer) -> None:
    """A mode of other letters, of another order or another length is refused."""
    client = peer.client()
    room = peer.room(client)
    for mode in ("", "cruws", "x" * 20, "urcws" * 4, ALL + "-"):
        client.ask("PUT", f"{room}/a", entity=1, mode=mode or "-").expect(4)
    client.ask("GET", f"{room}/a").expect(404)

"""Cases of the limits of a tree: size of an entity, pace of a client, number of its resources.

Implements Resources §8, from the side of a client.

Own design: how many resources and subscriptions there may be is the target's own choice, so a case
about them does not apply where its requests do not reach the limit.
"""

from typing import Any, Final

from rtclab.conform.case import NotApplicable, Unmet
from rtclab.conform.checks import expect_equal
from rtclab.conform.resource.peer import SOCKET, ResourceClient, ResourcePeer, by, ways

_ENTITY: Final = 64 << 10  # octets, the quotes of a text among them
_FAST: Final = 3000  # requests at once
_MANY: Final = 250  # subscriptions
_LARGE: Final = 400  # resources of nearly that size


@ways("8")
def entity_has_64_kib(peer: ResourcePeer) -> None:
    """An entity of 64 KiB is taken and read."""
    client = peer.client()
    room = peer.room(client)
    client.ask("PUT", room, entity="x" * (_ENTITY - 2)).expect(200)
    expect_equal("length", _ENTITY - 2, len(client.read(room)))


@ways("8")
def larger_entity_has_413(peer: ResourcePeer) -> None:
    """PUT, POST and NOTIFY of one octet more have 413, and change nothing."""
    client = peer.client()
    room = peer.room(client, 1)
    for method in ("PUT", "POST", "NOTIFY"):
        client.ask(method, room, entity="x" * (_ENTITY - 1)).expect(413)
    expect_equal("entity", 1, client.read(room))
    expect_equal("children", [], client.read(room, view="children"))


@ways("8")
def resource_grows_no_further(peer: ResourcePeer) -> None:
    """PATCH by which a resource would hold more than 64 KiB has 413, and changes nothing."""
    client = peer.client()
    room = peer.room(client, {"a": "x" * 40_000})
    client.ask("PATCH", room, entity={"b": "x" * 40_000}).expect(413)
    expect_equal("members", ["a"], list(client.read(room)))


@by(SOCKET, "8", "too-fast-is-429")
def too_many_requests_have_429(peer: ResourcePeer) -> None:
    """Of 3000 requests at once some have 429; all have an answer, and later ones are served."""
    client = peer.client()
    client.line.send(*({"method": "GET", "resource": "/", "id": i} for i in range(_FAST)))
    statuses = set()
    for number in range(_FAST):
        answer = client.line.answer()
        expect_equal("id", number if answer["status"] != 429 else None, _id(answer, number))
        statuses.add(answer["status"])
    if 429 not in statuses:
        raise Unmet("429", repr(statuses))
    other = peer.client()
    if other.ask("GET", "/").status == 429:
        raise Unmet("another client that is served", "429")


def _id(answer: dict[str, Any], number: int) -> Any:
    """The id of an answer; one that is refused for its pace may have it or not."""
    return None if answer["status"] == 429 and answer.get("id") == number else answer.get("id")


def _until_refused(client: ResourceClient, count: int, method: str, paths: Any, **more: Any) -> int:
    """Ask for each path until the limit is reached; how many were taken."""
    for taken in range(count):
        answer = client.ask(method, paths(taken), **more)
        if answer.status == 507:
            return taken
        if answer.status == 429:
            break
        answer.expect(2)
    raise NotApplicable(f"no limit of {count} requests of {method}")


@by(SOCKET, "8", "limits-are-507")
def too_many_subscriptions_have_507(peer: ResourcePeer) -> None:
    """SUBSCRIBE beyond the limit of a connection has 507, and what it has goes on."""
    maker, client = peer.client(), peer.client()
    room = peer.room(maker)
    maker.line.send(
        *({"method": "PUT", "resource": f"{room}/{i}", "entity": i} for i in range(_MANY))
    )
    for _ in range(_MANY):
        if maker.line.answer()["status"] != 201:
            raise NotApplicable(f"a client may not make {_MANY} resources")
    _until_refused(client, _MANY, "SUBSCRIBE", lambda number: f"{room}/{number}")
    maker.ask("PUT", f"{room}/0", entity=1).expect(200, 429)
    other = peer.client()
    other.ask("PUT", f"{room}/0", entity="heard").expect(200)
    while client.line.hear().get("entity") != "heard":
        pass
    client.ask("UNSUBSCRIBE", f"{room}/0").expect(2)
    client.ask("SUBSCRIBE", f"{room}/{_MANY - 1}").expect(200)


@by(SOCKET, "8", "limits-are-507")
def too_much_of_one_has_507(peer: ResourcePeer) -> None:
    """PUT beyond what a client may have has 507 and makes nothing; there is room after DELETE."""
    client = peer.client()
    room = peer.room(client)
    large = "x" * (_ENTITY - 2)
    taken = _until_refused(client, _LARGE, "PUT", lambda number: f"{room}/{number}", entity=large)
    client.ask("GET", f"{room}/{taken}").expect(404)
    client.ask("DELETE", f"{room}/0").expect(2)
    client.make(f"{room}/{taken}", large)

"""Cases of subscriptions: what is told, to whom, in which form, and what was missed.

Implements Resources §2.3 and §6, from the side of a client.

Own design: that nothing is told is judged by an event behind it, which must be the next that comes.
"""

from functools import partial
from typing import Any

from rtclab.conform.case import NotApplicable, Unmet
from rtclab.conform.checks import expect_equal
from rtclab.conform.resource.line import Message
from rtclab.conform.resource.peer import (
    ALL,
    JSON,
    OWNER,
    SOCKET,
    ResourceClient,
    ResourcePeer,
    by,
)

_case = partial(by, SOCKET)
_BIG = "x" * 60_000
_MOST = 200  # events of that size, sent to a client that does not read


def _pair(peer: ResourcePeer, entity: Any = 1) -> tuple[ResourceClient, ResourceClient, str]:
    """A subscriber, another client, and the resource between them."""
    subscriber, other = peer.client(), peer.client()
    room = peer.room(subscriber, entity)
    subscriber.ask("SUBSCRIBE", room).expect(200)
    return subscriber, other, room


def _expect_heard(client: ResourceClient, **members: Any) -> Message:
    """Unmet unless the next notification has these members and its number, and no others."""
    heard = client.line.hear()
    expect_equal("notification", members, {k: v for k, v in heard.items() if k != "seq"})
    if not isinstance(heard.get("seq"), int):
        raise Unmet("seq, a number", repr(heard.get("seq")))
    return heard


def _hears_nothing(client: ResourceClient, other: ResourceClient, room: str) -> None:
    """Unmet unless the next that this client hears is the event that is sent now."""
    other.ask("NOTIFY", room, data="behind").expect(2)
    _expect_heard(client, notify="NOTIFY", resource=room, type=JSON, data="behind")


def _state(client: ResourceClient, room: str, **members: Any) -> Message:
    client.line.send({"method": "SUBSCRIBE", "resource": room} | members)
    answer = client.line.answer()
    expect_equal("status", 200, answer["status"])
    return answer


# -- the forms of notifications -------------------------------------------------------------


@_case("2.3")
def put_is_told(peer: ResourcePeer) -> None:
    """PUT of a resource is told as PUT, with its type and what it holds."""
    subscriber, other, room = _pair(peer)
    other.ask("PUT", room, entity={"n": 2}).expect(200)
    _expect_heard(subscriber, notify="PUT", resource=room, type=JSON, entity={"n": 2})


@_case("2.3")
def patch_is_told_as_put(peer: ResourcePeer) -> None:
    """PATCH is told as PUT, with all that the resource holds then."""
    subscriber, other, room = _pair(peer, {"a": 1})
    other.ask("PATCH", room, entity={"b": 2}).expect(2)
    _expect_heard(subscriber, notify="PUT", resource=room, type=JSON, entity={"a": 1, "b": 2})


@_case("2.3")
def delete_is_told(peer: ResourcePeer) -> None:
    """DELETE is told as DELETE."""
    subscriber, other, room = _pair(peer)
    other.ask("DELETE", room).expect(2)
    heard = subscriber.line.hear()
    expect_equal("notify", ("DELETE", room), (heard["notify"], heard.get("resource")))


@_case("2.3", "update-names-the-child")
def post_is_told_as_a_new_child(peer: ResourcePeer) -> None:
    """POST is told as UPDATE, with the new name in create."""
    subscriber, other, room = _pair(peer)
    name = other.ask("POST", room, entity=[1]).expect(201).entity["id"]
    _expect_heard(subscriber, notify="UPDATE", resource=room, type=JSON, entity=[1], create=name)


@_case("2.3", "update-names-the-child")
def changes_of_a_child_are_told(peer: ResourcePeer) -> None:
    """PUT, PATCH and DELETE of a child are told as UPDATE, with its name in the right member."""
    subscriber, other, room = _pair(peer)
    told = partial(_expect_heard, subscriber, notify="UPDATE", resource=room, type=JSON)
    other.make(f"{room}/a", 1)
    told(entity=1, create="a")
    other.ask("PUT", f"{room}/a", entity=2).expect(200)
    told(entity=2, update="a")
    other.ask("PATCH", f"{room}/a", entity=3).expect(2)
    told(entity=3, update="a")
    other.ask("DELETE", f"{room}/a").expect(2)
    heard = subscriber.line.hear()
    expect_equal("notify", ("UPDATE", "a"), (heard["notify"], heard.get("delete")))


@_case("2.3")
def event_is_told(peer: ResourcePeer) -> None:
    """NOTIFY brings its data."""
    subscriber, other, room = _pair(peer)
    other.ask("NOTIFY", room, data={"n": 1}).expect(2)
    _expect_heard(subscriber, notify="NOTIFY", resource=room, type=JSON, data={"n": 1})


@_case("2.3")
def octets_are_told_as_base64(peer: ResourcePeer) -> None:
    """An entity of a type that is not JSON is told with its type, as base64."""
    subscriber, other, room = _pair(peer)
    other.ask("PUT", room, type="image/conform", entity=b"\xff\x00").expect(200)
    _expect_heard(subscriber, notify="PUT", resource=room, type="image/conform", entity="/wA=")


@_case("2.3")
def numbers_grow(peer: ResourcePeer) -> None:
    """Each notification has a larger number than the one before, and none is that of SUBSCRIBE."""
    subscriber, other = peer.client(), peer.client()
    room = peer.room(subscriber)
    last = _state(subscriber, room)["seq"]
    for number in range(5):
        other.ask("PUT", room, entity=number).expect(200)
        heard = subscriber.line.hear()["seq"]
        if heard <= last:
            raise Unmet(f"seq above {last}", repr(heard))
        last = heard


# -- to whom ------------------------------------------------------------------------------


@_case("6.1")
def what_is_further_below_is_not_told(peer: ResourcePeer) -> None:
    """What happens two names below is not told."""
    subscriber, other, room = _pair(peer)
    other.make(f"{room}/a", 1)
    subscriber.line.hear()
    other.make(f"{room}/a/b", 1)
    other.ask("NOTIFY", f"{room}/a", data=1).expect(2)
    _hears_nothing(subscriber, other, room)


@_case("6.1", "not-its-own")
def own_changes_are_not_told(peer: ResourcePeer) -> None:
    """The connection that caused a change or an event is not told of it."""
    subscriber, other, room = _pair(peer)
    subscriber.ask("PUT", room, entity=2).expect(200)
    subscriber.make(f"{room}/a", 1)
    subscriber.ask("NOTIFY", room, data=1).expect(2)
    _hears_nothing(subscriber, other, room)


@_case("6.1")
def all_subscribers_are_told(peer: ResourcePeer) -> None:
    """Each of ten subscribers is told of a change once."""
    subscriber, other, room = _pair(peer)
    clients = [subscriber, *(peer.client() for _ in range(9))]
    for each in clients[1:]:
        each.ask("SUBSCRIBE", room).expect(200)
    other.ask("PUT", room, entity=2).expect(200)
    for each in clients:
        _expect_heard(each, notify="PUT", resource=room, type=JSON, entity=2)
    other.ask("NOTIFY", room, data="behind").expect(2)
    for each in clients:
        _expect_heard(each, notify="NOTIFY", resource=room, type=JSON, data="behind")


@_case("6.1")
def unsubscribe_ends_it(peer: ResourcePeer) -> None:
    """After UNSUBSCRIBE nothing is told of the resource, and another subscription goes on."""
    subscriber, other, room = _pair(peer)
    other.make(f"{room}/a", 1)
    subscriber.line.hear()
    subscriber.ask("SUBSCRIBE", f"{room}/a").expect(200)
    subscriber.ask("UNSUBSCRIBE", room).expect(2)
    other.ask("PUT", room, entity=2).expect(200)
    _hears_nothing(subscriber, other, f"{room}/a")


@_case("6.1")
def unsubscribe_without_a_subscription_is_refused(peer: ResourcePeer) -> None:
    """UNSUBSCRIBE without a subscription is refused."""
    client = peer.client()
    client.ask("UNSUBSCRIBE", peer.room(client)).expect(4)


@_case("6.1")
def subscribe_to_nothing_has_404(peer: ResourcePeer) -> None:
    """SUBSCRIBE to an absent resource has 404."""
    client = peer.client()
    client.ask("SUBSCRIBE", f"{peer.room(client)}/absent").expect(404)


@_case("6.1")
def subscription_ends_with_its_resource(peer: ResourcePeer) -> None:
    """What is made anew at the path of a resource that has ended is not told."""
    subscriber, other, room = _pair(peer)
    other.make(f"{room}/a", 1)
    subscriber.line.hear()
    subscriber.ask("SUBSCRIBE", f"{room}/a").expect(200)
    subscriber.ask("UNSUBSCRIBE", room).expect(2)
    other.ask("DELETE", f"{room}/a").expect(2)
    expect_equal("notify", "DELETE", subscriber.line.hear()["notify"])
    other.make(f"{room}/a", 2)
    other.ask("PUT", f"{room}/a", entity=3).expect(200)
    subscriber.ask("SUBSCRIBE", room).expect(200)
    _hears_nothing(subscriber, other, room)


# -- rights -------------------------------------------------------------------------------


@_case("6.2", "judged-each-time")
def subscriber_without_the_right_is_not_told(peer: ResourcePeer) -> None:
    """A subscriber that has lost its right hears nothing, and hears again once it has it."""
    owner, second = peer.owner(), peer.second()
    room = peer.room(owner)
    second.ask("SUBSCRIBE", room).expect(200)
    owner.ask("PATCH", room, view="access", entity={"mode": OWNER}).expect(2)
    owner.ask("PUT", room, entity=2).expect(200)
    owner.ask("NOTIFY", room, data=1).expect(2)
    owner.ask("PATCH", room, view="access", entity={"mode": ALL}).expect(2)
    _hears_nothing(second, owner, room)


@_case("6.2", "readers-alone-hear")
def what_it_holds_is_told_to_readers(peer: ResourcePeer) -> None:
    """A subscriber that may not read hears of a change, and not what the resource holds."""
    owner, second = peer.owner(), peer.second()
    room = peer.room(owner, mode="cruws" + "-----" + "----s" + "-----")
    second.ask("SUBSCRIBE", room).expect(200)
    owner.ask("PUT", room, entity="secret").expect(200)
    _expect_heard(second, notify="PUT", resource=room)


@_case("6.2", "readers-alone-hear")
def hidden_child_is_not_told(peer: ResourcePeer) -> None:
    """A change of a child is not told to those who may not read the child."""
    owner, second = peer.owner(), peer.second()
    room = peer.room(owner)
    second.ask("SUBSCRIBE", room).expect(200)
    owner.make(f"{room}/a", "secret", mode=OWNER)
    owner.ask("PUT", f"{room}/a", entity=2).expect(200)
    owner.ask("DELETE", f"{room}/a").expect(2)
    _hears_nothing(second, owner, room)


# -- what was missed ------------------------------------------------------------------------


@_case("6.3")
def subscribe_tells_number_and_epoch(peer: ResourcePeer) -> None:
    """The answer to SUBSCRIBE has seq, a number, and epoch, a text, the same for all clients."""
    subscriber, other, room = _pair(peer)
    first, second = _state(subscriber, room), _state(other, room)
    for each in (first, second):
        if not isinstance(each.get("seq"), int) or not isinstance(each.get("epoch"), str):
            raise Unmet("seq and epoch", repr(each)[:100])
    expect_equal("epoch", first["epoch"], second["epoch"])


@_case("6.3", "events-follow-the-answer")
def missed_events_follow_the_answer(peer: ResourcePeer) -> None:
    """A client that comes back hears all that it has missed, in its order, and nothing twice."""
    lost, other = peer.client(), peer.client()
    room = peer.room(other, 0)
    state = _state(lost, room)
    other.ask("PUT", room, entity=1).expect(200)
    last = lost.line.hear()["seq"]
    lost.line.close()
    other.ask("PUT", room, entity=2).expect(200)
    other.make(f"{room}/a", 3)
    other.ask("NOTIFY", room, data=4).expect(2)
    back = peer.client()
    if "missed" in _state(back, room, since=last, epoch=state["epoch"]):
        raise NotApplicable("the target does not remember three events")
    _expect_heard(back, notify="PUT", resource=room, type=JSON, entity=2)
    _expect_heard(back, notify="UPDATE", resource=room, type=JSON, entity=3, create="a")
    _expect_heard(back, notify="NOTIFY", resource=room, type=JSON, data=4)
    _hears_nothing(back, other, room)


@_case("6.3", "missed-is-told")
def number_of_another_epoch_has_missed(peer: ResourcePeer) -> None:
    """A client that says another epoch, or none, is told that it has missed something."""
    subscriber, _, room = _pair(peer)
    seq = _state(subscriber, room)["seq"]
    for more in ({"epoch": "conform"}, {}):
        expect_equal("missed", True, _state(subscriber, room, since=seq, **more).get("missed"))


@_case("6.3", "missed-is-told")
def number_to_come_has_missed(peer: ResourcePeer) -> None:
    """A client that says a number which no event has had yet is told that it has missed some."""
    subscriber, _, room = _pair(peer)
    state = _state(subscriber, room)
    again = _state(subscriber, room, since=state["seq"] + 1000, epoch=state["epoch"])
    expect_equal("missed", True, again.get("missed"))


@_case("6.3")
def nothing_missed_is_nothing_told(peer: ResourcePeer) -> None:
    """A client that has heard all is told nothing again."""
    subscriber, other, room = _pair(peer)
    other.ask("PUT", room, entity=2).expect(200)
    last, epoch = subscriber.line.hear()["seq"], _state(subscriber, room)["epoch"]
    if "missed" in _state(subscriber, room, since=last, epoch=epoch):
        raise Unmet("nothing missed", "missed")
    _hears_nothing(subscriber, other, room)


@_case("6.2", "readers-alone-hear")
def what_was_hidden_is_not_told_later(peer: ResourcePeer) -> None:
    """What a client might not read when it happened is not told when it comes back either."""
    owner, second = peer.owner(), peer.second()
    room = peer.room(owner)
    state = _state(second, room)
    owner.make(f"{room}/a", "secret", mode=OWNER)
    owner.ask("PATCH", f"{room}/a", view="access", entity={"mode": ALL}).expect(2)
    _state(second, room, since=state["seq"], epoch=state["epoch"])
    _hears_nothing(second, owner, room)


# -- slow clients ---------------------------------------------------------------------------


@_case("6.4", "missed-is-said")
def slow_client_is_told_missed(peer: ResourcePeer) -> None:
    """A client that does not read is told MISSED when it does; others wait for nothing.

    It is told with the members of the answer to SUBSCRIBE, and hears again from then on.
    """
    proof = peer.proofs[0] if peer.proofs else ""
    subscriber, other, room = _pair(peer)
    slow = peer.line(proof, small=True)
    slow.send({"method": "SUBSCRIBE", "resource": room})
    epoch = slow.answer().get("epoch")
    for number in range(_MOST):
        other.ask("NOTIFY", room, data=[number, _BIG]).expect(2)
        expect_equal("data", number, subscriber.line.hear()["data"][0])
    other.ask("NOTIFY", room, data="behind").expect(2)
    numbers, last = [], 0
    while (heard := slow.hear())["notify"] == "NOTIFY" and heard["data"] != "behind":
        numbers.append(heard["data"][0])
        last = heard["seq"]
    if heard["notify"] != "MISSED":
        raise NotApplicable(f"a slow client has all of {_MOST} events")
    expect_equal("events before MISSED", list(range(len(numbers))), numbers)
    expect_equal("epoch", epoch, heard.get("epoch"))
    if not isinstance(heard.get("seq"), int) or heard["seq"] <= last:
        raise Unmet(f"seq above {last}", repr(heard.get("seq")))
    other.ask("NOTIFY", room, data="again").expect(2)
    while (again := slow.hear()).get("data") != "again":
        if again["seq"] <= heard["seq"] and again["notify"] != "MISSED":
            raise Unmet("later events alone", repr(again)[:100])

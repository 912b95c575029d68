"""Cases of the messages of a WebSocket: their members, their order, and the connection itself.

Implements Resources §2 and §9, from the side of a client.

Own design: a message is wrong in one member, and what it would make must then not be there.
"""

from functools import partial
from typing import Any, Final

from rtclab.conform.case import Unmet
from rtclab.conform.checks import expect_equal
from rtclab.conform.resource.line import PROTOCOL, Message
from rtclab.conform.resource.peer import SOCKET, ResourcePeer, by

_case = partial(by, SOCKET)
_MANY: Final = 50


def _refused(answer: Message) -> Message:
    if not 400 <= answer["status"] < 500:
        raise Unmet("4xx", repr(answer)[:100])
    return answer


def _unasked(peer: ResourcePeer, **members: Any) -> None:
    """Unmet unless PUT with these members is refused, and nothing is made."""
    client = peer.client()
    path = f"{peer.room(client)}/a"
    whole = {"method": "PUT", "resource": path, "entity": 1} | members
    client.line.send({name: value for name, value in whole.items() if value != "absent"})
    _refused(client.line.answer())
    client.ask("GET", path).expect(404)


@_case("2.1", "unknown-members-are-refused")
def unknown_member_is_refused(peer: ResourcePeer) -> None:
    """A request with a member that is not named is refused, and makes nothing."""
    _unasked(peer, conform=1)


@_case("2.1", "unknown-members-are-refused")
def misspelled_condition_is_refused(peer: ResourcePeer) -> None:
    """A request with if_match in place of if-match is refused, and makes nothing."""
    _unasked(peer, if_match="*")


@_case("2.1")
def put_without_an_entity_is_refused(peer: ResourcePeer) -> None:
    """PUT without an entity is refused, and makes nothing."""
    _unasked(peer, entity="absent")


@_case("2.1")
def octets_that_are_no_base64_are_refused(peer: ResourcePeer) -> None:
    """An entity of a type that is not JSON is refused unless it is base64."""
    entities: tuple[Any, ...] = ("*", "A", 1, [], "QQ==\n")
    for entity in entities:
        _unasked(peer, type="image/conform", entity=entity)


@_case("2.1")
def member_of_another_type_is_refused(peer: ResourcePeer) -> None:
    """A member that is no text, no number or no boolean where it has to be is refused."""
    for members in ({"persistent": "yes"}, {"if-match": 1}, {"type": 1}, {"mode": [], "id": 1}):
        _unasked(peer, **members)


@_case("2.1")
def request_without_a_path_is_refused(peer: ResourcePeer) -> None:
    """A request without a resource, or with one that is no text, is refused."""
    line = peer.client().line
    for more in ({}, {"resource": None}, {"resource": 1}, {"resource": ["/"]}):
        line.send({"method": "GET"} | more)
        _refused(line.answer())


@_case("2.1")
def unknown_method_is_refused(peer: ResourcePeer) -> None:
    """A request with no method, or one that is not named, is refused."""
    line = peer.client().line
    for more in ({}, {"method": "CONFORM"}, {"method": "get"}, {"method": 1}):
        line.send({"resource": "/"} | more)
        _refused(line.answer())


@_case("2")
def what_is_no_request_is_refused(peer: ResourcePeer) -> None:
    """What is no object of JSON has an answer, and the connection goes on."""
    client = peer.client()
    room = peer.room(client, 1)
    for text in ("", "conform", "[]", "1", "null", '{"method": "GET"', "[" * 5000, '{"a": NaN}'):
        client.line.send(text)
        _refused(client.line.answer())
    expect_equal("entity", 1, client.read(room))


@_case("2.1", "data-is-the-entity")
def event_may_have_data(peer: ResourcePeer) -> None:
    """NOTIFY with data in place of an entity brings the same event."""
    client, other = peer.client(), peer.client()
    room = peer.room(client)
    client.ask("SUBSCRIBE", room).expect(200)
    for name in ("data", "entity"):
        other.ask("NOTIFY", room, **{name: {"n": 1}}).expect(2)
        expect_equal("data", {"n": 1}, client.line.hear().get("data"))


@_case("2.2", "id-is-repeated")
def id_is_repeated(peer: ResourcePeer) -> None:
    """An answer has the id of its request, a number or a string, also if it is a refusal."""
    line = peer.client().line
    for identifier in (1, 0, -7, 1 << 50, "", "a", "1", "\u00e9"):
        for path in ("/", "/.."):
            line.send({"method": "GET", "resource": path, "id": identifier})
            expect_equal("id", repr(identifier), repr(line.answer().get("id")))


@_case("2.2")
def request_without_an_id_has_none(peer: ResourcePeer) -> None:
    """The answer to a request without an id has none."""
    line = peer.client().line
    line.send({"method": "GET", "resource": "/"})
    if "id" in (answer := line.answer()):
        raise Unmet("no id", repr(answer["id"]))


@_case("2.2")
def refusal_has_a_reason(peer: ResourcePeer) -> None:
    """An answer to a request that fails has a reason, which is a text."""
    client = peer.client()
    client.line.send({"method": "GET", "resource": f"{peer.room(client)}/absent"})
    answer = _refused(client.line.answer())
    if not isinstance(answer.get("reason"), str):
        raise Unmet("a reason", repr(answer)[:100])


@_case("2.2")
def answers_have_the_order_of_the_requests(peer: ResourcePeer) -> None:
    """Requests that are sent at once, good and bad ones, are answered in their order."""
    client = peer.client()
    room = peer.room(client, 0)
    sent: list[Message | str] = []
    for number in range(_MANY):
        sent += [
            {"method": "PUT", "resource": room, "entity": number, "id": 3 * number},
            {"method": "GET", "resource": f"{room}/absent", "id": 3 * number + 1},
            {"method": "GET", "resource": room, "id": 3 * number + 2},
        ]
    client.line.send(*sent)
    for number in range(_MANY):
        answers = [client.line.answer() for _ in range(3)]
        found = [(each.get("id"), each["status"], each.get("entity")) for each in answers]
        wanted = (3 * number, 200, None), (3 * number + 1, 404, None), (3 * number + 2, 200, number)
        expect_equal("answers", list(wanted), found)


@_case("9")
def subprotocol_is_chosen(peer: ResourcePeer) -> None:
    """The handshake chooses resource.v1, also among others."""
    proof = peer.proofs[0] if peer.proofs else ""
    for protocols in ((PROTOCOL,), ("conform", PROTOCOL)):
        line = peer.line(proof, protocols=protocols)
        expect_equal("subprotocol", PROTOCOL, line.protocol)


@_case("9")
def other_subprotocols_are_refused(peer: ResourcePeer) -> None:
    """A handshake that asks for another subprotocol, or none, gets no WebSocket of it."""
    proof = peer.proofs[0] if peer.proofs else ""
    for protocols in (("conform",), ("resource.v2", "v1"), ()):
        line = peer.line(proof, protocols=protocols)
        if not line.refused and line.protocol is not None:
            raise Unmet("no subprotocol", repr(line.protocol))
        if not line.refused:
            raise Unmet("a refusal by HTTP", "a WebSocket")


@_case("9", "other-sites-are-refused")
def page_of_another_site_gets_no_websocket(peer: ResourcePeer) -> None:
    """A handshake with an Origin of another site is refused, and one of the same site is not."""
    proof = peer.proofs[0] if peer.proofs else ""
    for origin in ("http://conform.example", "https://conform.example:8080", "null"):
        line = peer.line(proof, headers=[("Origin", origin)])
        if line.refused // 100 != 4:
            raise Unmet("4xx", str(line.refused or "a WebSocket"))
    line = peer.line(proof, headers=[("Origin", f"http://{peer.url.netloc}")])
    expect_equal("refused", 0, line.refused)


@_case("9")
def wrong_proof_gets_no_websocket(peer: ResourcePeer) -> None:
    """A handshake with a user that is not known, or a token that is none, is refused by 401."""
    for proof in ("Basic Y29uZm9ybTpjb25mb3Jt", "Bearer conform"):
        expect_equal("status", 401, peer.line(proof, small=False).refused)

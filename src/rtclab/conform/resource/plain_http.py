"""Cases of plain HTTP alone: its header fields and its refusals.

Implements Resources §10, from the side of a client.

Own design: what is refused is read again by the same way, so that a refusal alone does not pass.
"""

from functools import partial

from rtclab.conform.case import Unmet
from rtclab.conform.checks import expect_equal
from rtclab.conform.resource.peer import (
    HTTP,
    JSON,
    SOCKET,
    ResourceClient,
    ResourcePeer,
    by,
    fresh_name,
)

_case = partial(by, HTTP)


def _proof(peer: ResourcePeer) -> str:
    return peer.proofs[0] if peer.proofs else ""


@_case("10", "location-of-the-new")
def location_is_the_new_path(peer: ResourcePeer) -> None:
    """Location of the answer to POST is the path of the new resource, and can be read."""
    client = peer.client()
    room = peer.room(client)
    answer = client.ask("POST", room, entity=1).expect(201)
    if not answer.path.startswith(f"{room}/"):
        raise Unmet(f"a Location below {room}", repr(answer.path))
    expect_equal("entity", 1, client.read(answer.path))


@_case("10", "persistent-by-http")
def transient_is_refused(peer: ResourcePeer) -> None:
    """PUT and POST of a transient resource are refused, and make nothing."""
    client = peer.client()
    room = peer.room(client)
    for query in ("", "persistent=false"):
        for method, path in (("PUT", f"{room}/a"), ("POST", room)):
            answer = peer.ask(method, path, b"1", JSON, query, Authorization=_proof(peer))
            answer.expect(4)
    expect_equal("children", [], client.read(room, view="children"))


@_case("10", "patch-is-a-merge-patch")
def patch_of_another_type_is_refused(peer: ResourcePeer) -> None:
    """PATCH with a body that is no JSON by its type is refused, and changes nothing."""
    client = peer.client()
    room = peer.room(client, {"a": 1})
    answer = peer.ask("PATCH", room, b'{"a": 2}', "text/plain", Authorization=_proof(peer))
    answer.expect(4)
    expect_equal("entity", {"a": 1}, client.read(room))


@_case("10")
def body_that_is_no_json_is_refused(peer: ResourcePeer) -> None:
    """PUT of a body that is no JSON, though its type is, is refused and changes nothing."""
    client = peer.client()
    room = peer.room(client, 1)
    for body in (b"", b"conform", b"{", b'"\xff"', b"NaN", b"[" * 5000):
        peer.ask("PUT", room, body, JSON, Authorization=_proof(peer)).expect(4)
    expect_equal("entity", 1, client.read(room))


@_case("10")
def subscribe_has_405(peer: ResourcePeer) -> None:
    """SUBSCRIBE has 405."""
    client = peer.client()
    client.ask("SUBSCRIBE", peer.room(client)).expect(405)


@_case("10")
def path_is_unescaped_once(peer: ResourcePeer) -> None:
    """In a path of HTTP %2541 is the name %41."""
    client = peer.client()
    room = peer.room(client)
    client.make(f"{room}/%41", 1)
    expect_equal("children", ["%41"], client.read(room, view="children"))


@_case("10")
def both_ways_show_one_tree(peer: ResourcePeer) -> None:
    """What was made by HTTP is read, changed and heard of by WebSocket, and the other way."""
    client = peer.client()
    room = peer.room(client, 1)
    other = ResourceClient(peer, SOCKET, _proof(peer))
    other.ask("SUBSCRIBE", room).expect(200)
    client.ask("PUT", room, entity=2).expect(200)
    expect_equal("entity", 2, other.line.hear().get("entity"))
    other.ask("PATCH", room, entity=3).expect(2)
    expect_equal("entity", 3, client.read(room))


@_case("9", "other-sites-are-refused")
def page_of_another_site_is_refused(peer: ResourcePeer) -> None:
    """A request with an Origin of another site is refused, and one of the same site is not."""
    client = peer.client()
    room = peer.room(client, 1)
    proof = _proof(peer)
    for origin in ("http://conform.example", "null"):
        answer = peer.ask("PUT", room, b"2", JSON, Authorization=proof, Origin=origin)
        answer.expect(4)
        peer.ask("GET", room, Authorization=proof, Origin=origin).expect(4)
    peer.ask("GET", room, Authorization=proof, Origin=f"http://{peer.url.netloc}").expect(200)
    expect_equal("entity", 1, client.read(room))


@_case("9")
def wrong_proof_has_401(peer: ResourcePeer) -> None:
    """A user that is not known has 401, and so has a token that is none."""
    for proof in ("Basic Y29uZm9ybTpjb25mb3Jt", "Bearer conform"):
        peer.ask("GET", f"/{fresh_name()}", Authorization=proof).expect(401)

"""Cases of subscriptions with a URL, which need a web service that the target may post to.

Implements Resources §13, from the side of a client and of the service.

Own design: that nothing is posted is judged by what another subscription to the same resource has
posted meanwhile, twice.  That a redirection is not followed is judged by the next try.
"""

import hmac
import json
from functools import partial
from hashlib import sha256
from typing import Any, Final

import gevent

from rtclab.conform.case import Unmet
from rtclab.conform.checks import expect_equal
from rtclab.conform.resource.peer import (
    HTTP,
    JSON,
    SOCKET,
    ResourceClient,
    ResourcePeer,
    Told,
    by,
    ways,
)
from rtclab.conform.resource.service import Posted, PostedTo

_case = partial(by, HTTP)
_SIGNATURE: Final = "X-Siprtmp-Signature"
_SECRET: Final = "the key of conform, in ASCII"
_LOOK: Final = 0.05  # s between looks whether a subscription has ended


def _tell(client: ResourceClient, room: str, url: str, **chosen: Any) -> Told:
    """Ask that a resource be posted to a URL, for good."""
    if client.way == HTTP:
        return client.ask("SUBSCRIBE", room, entity={"url": url} | chosen, persistent=True)
    return client.ask("SUBSCRIBE", room, url=url, persistent=True, **chosen)


def _pair(peer: ResourcePeer) -> tuple[ResourceClient, str, PostedTo, dict[str, Any]]:
    """A user, a resource, and where it is posted: the path, and what the target says of it."""
    client, hook = peer.owner(), peer.hook()
    room = peer.room(client, 1)
    answer = _tell(client, room, hook.url, secret=_SECRET)
    return client, room, hook, peer.told_url(answer)


def _content(post: Posted) -> dict[str, Any]:
    try:
        said = json.loads(post.body)
    except ValueError:
        raise Unmet("an object of JSON", repr(post.body[:80])) from None
    if not isinstance(said, dict):
        raise Unmet("an object of JSON", repr(post.body[:80]))
    return said


def _expect_silence(peer: ResourcePeer, client: ResourceClient, room: str, hook: PostedTo) -> None:
    """Unmet if something is posted there while another service hears of two changes."""
    other = peer.hook()
    peer.told_url(_tell(client, room, other.url))
    for number in (10, 11):
        client.ask("PUT", room, entity=number).expect(200)
        expect_equal("entity", number, _content(other.next()).get("entity"))
    if not hook.posts.empty():
        raise Unmet("no post", repr(hook.next().body[:80]))


def _expect_end(client: ResourceClient, identifier: str) -> None:
    """Wait until a subscription is not listed any more."""
    while client.ask("GET", f"/subscription/{identifier}").status == 200:
        gevent.sleep(_LOOK)


def _expect_signed(post: Posted, secret: str) -> None:
    """Unmet unless the signature is that of the time in it and of the body."""
    said = post.headers.get(_SIGNATURE, "")
    time, _, code = said.removeprefix("t=").partition(",v1=")
    wanted = hmac.digest(secret.encode(), time.encode() + b"." + post.body, sha256).hex()
    if not time.isdecimal() or not hmac.compare_digest(code.encode(), wanted.encode()):
        raise Unmet(f"{_SIGNATURE}: t=TIME,v1={wanted}", said[:120])


@ways("13.1")
def user_may_give_a_url(peer: ResourcePeer) -> None:
    """SUBSCRIBE of a user with a URL has 201, an id, and number and epoch, without the secret."""
    _, room, hook, said = _pair(peer)
    shown = {name: said.get(name) for name in ("resource", "url")}
    expect_equal("resource and url", {"resource": room, "url": hook.url}, shown)
    if not isinstance(said.get("seq"), int) or not isinstance(said.get("epoch"), str):
        raise Unmet("seq and epoch", repr(said)[:100])
    if "secret" in said:
        raise Unmet("no secret, which the client has chosen", "one")


@ways("13.1")
def same_url_again_has_200(peer: ResourcePeer) -> None:
    """The same resource and URL again have 200 and the same id, and the new secret counts."""
    client, room, hook, said = _pair(peer)
    answer = _tell(client, room, hook.url, secret=_SECRET[::-1]).expect(200)
    expect_equal("id", said["id"], answer.entity["id"])
    client.ask("PUT", room, entity=2).expect(200)
    _expect_signed(hook.next(), _SECRET[::-1])


@ways("13.1", "proven-users-alone")
def anonymous_may_give_no_url(peer: ResourcePeer) -> None:
    """SUBSCRIBE with a URL of a client without a user is refused, and nothing is posted."""
    owner, hook = peer.owner(), peer.hook()
    room = peer.room(owner, 1)
    peer.told_url(_tell(owner, room, peer.hook().url))
    _tell(peer.anonymous(), room, hook.url).expect(401, 403)
    _expect_silence(peer, owner, room, hook)


@_case("13.1", "persistent-urls-by-http")
def transient_url_is_refused(peer: ResourcePeer) -> None:
    """By plain HTTP, SUBSCRIBE with a URL that is not to be persistent is refused."""
    client, hook = peer.owner(), peer.hook()
    room = peer.room(client, 1)
    peer.told_url(_tell(client, room, peer.hook().url))
    client.ask("SUBSCRIBE", room, entity={"url": hook.url}).expect(4)
    _expect_silence(peer, client, room, hook)


@ways("13.2", "listed-hosts-alone")
def host_that_is_not_listed_is_refused(peer: ResourcePeer) -> None:
    """SUBSCRIBE with a URL has 403 where no operator has listed the host."""
    client = peer.owner()
    room = peer.room(client, 1)
    for host in ("conform.invalid", "conform.invalid:8443"):
        _tell(client, room, f"http://{host}/").expect(403)


@_case("13.2", "no-redirection")
def redirection_is_not_followed(peer: ResourcePeer) -> None:
    """What is answered by a redirection is posted again to the URL, and not where that leads."""
    client, room, hook, _ = _pair(peer)
    hook.answers.append((307, f"{hook.url}/elsewhere"))
    client.ask("PUT", room, entity=2).expect(200)
    for _ in range(2):
        expect_equal("path", hook.path, hook.next().path)


@_case("13.3")
def change_is_posted(peer: ResourcePeer) -> None:
    """A change by the user itself is posted as JSON, with the subscription, number and time."""
    client, room, hook, said = _pair(peer)
    client.ask("PUT", room, entity={"n": 2}).expect(200)
    post = hook.next()
    expect_equal("Content-Type", JSON, post.headers.get_content_type())
    content = _content(post)
    seq, at = content.pop("seq", None), content.pop("at", None)
    wanted = {"notify": "PUT", "resource": room, "type": JSON, "entity": {"n": 2}}
    wanted |= {"subscription": said["id"], "epoch": said["epoch"]}
    expect_equal("content", wanted, content)
    if not isinstance(seq, int) or seq <= said["seq"] or not isinstance(at, str):
        raise Unmet(f"seq above {said['seq']}, and at, a text", repr((seq, at)))


@_case("13.3")
def what_is_refused_is_posted_again(peer: ResourcePeer) -> None:
    """What is answered by 503 is posted again with its number, and before what follows it."""
    client, room, hook, _ = _pair(peer)
    hook.answers.append((503, ""))
    client.ask("PUT", room, entity=2).expect(200)
    refused = _content(hook.next())
    client.ask("PUT", room, entity=3).expect(200)
    again, later = _content(hook.next()), _content(hook.next())
    expect_equal("seq and entity", (refused["seq"], 2), (again["seq"], again["entity"]))
    expect_equal("entity", 3, later["entity"])


@_case("13.4", "signed-with-the-secret")
def post_is_signed_with_the_chosen_secret(peer: ResourcePeer) -> None:
    """The signature of a post is that of its time and its body, by the secret of the client."""
    client, room, hook, _ = _pair(peer)
    client.ask("PUT", room, entity="signed").expect(200)
    _expect_signed(hook.next(), _SECRET)


@_case("13.4", "secret-is-told-once")
def secret_that_was_made_is_told_once(peer: ResourcePeer) -> None:
    """Without a secret of the client the target makes one, which the answer alone has."""
    client, hook = peer.owner(), peer.hook()
    room = peer.room(client, 1)
    said = peer.told_url(_tell(client, room, hook.url))
    secret = said.get("secret")
    if not isinstance(secret, str) or not 16 <= len(secret) <= 128:
        raise Unmet("a secret of 16 to 128 letters", type(secret).__name__)
    client.ask("PUT", room, entity=2).expect(200)
    _expect_signed(hook.next(), secret)
    if secret in json.dumps(client.read(f"/subscription/{said['id']}")):
        raise Unmet("no secret below /subscription", "it")


@_case("13.5", "listed-for-the-owner")
def url_is_listed_for_its_owner(peer: ResourcePeer) -> None:
    """The owner reads what is posted where, and another user does not."""
    _, room, hook, said = _pair(peer)
    listed = peer.owner().read(f"/subscription/{said['id']}")
    shown = {name: listed.get(name) for name in ("resource", "url", "failing")}
    wanted = {"resource": room, "url": hook.url, "failing": False}
    expect_equal("resource, url and failing", wanted, shown)
    peer.second().ask("GET", f"/subscription/{said['id']}").expect(4)


@ways("13.5")
def delete_ends_what_is_posted(peer: ResourcePeer) -> None:
    """DELETE below /subscription ends it: nothing more is posted."""
    client, room, hook, said = _pair(peer)
    client.ask("DELETE", f"/subscription/{said['id']}").expect(2)
    client.ask("GET", f"/subscription/{said['id']}").expect(403, 404)
    _expect_silence(peer, client, room, hook)


@by(SOCKET, "13.5")
def unsubscribe_ends_what_is_posted(peer: ResourcePeer) -> None:
    """UNSUBSCRIBE with the URL ends it: nothing more is posted."""
    client, room, hook, said = _pair(peer)
    client.ask("UNSUBSCRIBE", room, url=hook.url).expect(2)
    client.ask("GET", f"/subscription/{said['id']}").expect(403, 404)
    _expect_silence(peer, client, room, hook)


@_case("13.5", "gone-ends-it")
def answer_of_410_ends_what_is_posted(peer: ResourcePeer) -> None:
    """An answer of 410 ends the subscription."""
    client, room, hook, said = _pair(peer)
    hook.answers.append((410, ""))
    client.ask("PUT", room, entity=2).expect(200)
    hook.next()
    _expect_end(client, said["id"])

"""Proof: passwords, Adobe's challenge, keys, signed links; and everything that is none."""

from base64 import b64encode
from hashlib import md5

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rtmp_world import World, counting

from rtmplite.access import Event, GuardedApplication
from rtmplite.credentials import (
    FRESH,
    KeysGuard,
    SignedGuard,
    Users,
    UsersGuard,
    fields,
    sign,
    user_line,
)
from rtmplite.errors import LocalError
from rtmplite.rtmp.client import Reply
from rtmplite.rtmp.live import LiveApplication

LINES = "# users\n\n" + user_line("ann", "secret", "3f9c") + "\n"
ENCODER = {"flashVer": "FMLE/3.0 (compatible; FMSc/1.0)"}


def guarded(guard):
    return World(GuardedApplication(LiveApplication(), guard))


def users(**options):
    return guarded(UsersGuard(Users.parse(LINES), counting(), **options))


def refusal(peer):
    """The description that connect was refused with, None if it was not."""
    (reply,) = [event for event in peer.events if isinstance(event, Reply)][:1]
    return None if reply.succeeded else reply.values[-1]["description"]


def publishes(peer, name="demo"):
    peer.publish(name)
    return peer.codes()[-1] == "NetStream.Publish.Start"


def test_lines_are_read_or_complained_about():
    """Own design: no password is in them."""
    assert "secret" not in LINES
    for line in ("ann", "ann:b", "a:b:c:d", ":b:c", "a::c"):
        with pytest.raises(LocalError, match="line 2"):
            Users.parse("#\n" + line)
    for name in ("", "a:b", "a&b", "a=b", "a b", "a\nb", "a/b"):
        with pytest.raises(LocalError):
            user_line(name, "secret", "salt")
    with pytest.raises(LocalError):
        user_line("ann", "", "salt")


@given(st.text(min_size=1), st.text(), st.text(min_size=1))
def test_only_the_password_is_the_password(password, guess, salt):
    """Own design: whatever anybody types."""
    known = Users({"ann": tuple(user_line("ann", password, salt).split(":", 1)[1].rsplit(":", 1))})
    same = guess.encode(errors="replace") == password.encode(errors="replace")
    assert known.knows("ann", password) and known.knows("ann", guess) == same
    assert not known.knows("bob", password)


@pytest.mark.parametrize(
    "url", ["rtmp://host/live?user=ann&pass=secret", "rtmp://host/live?x&pass=secret&user=ann"]
)
def test_user_and_password_in_the_url(url):
    """Covers RTMP Errata §8.1.6: the second of its places."""
    assert publishes(users().client(url, properties=ENCODER))


@pytest.mark.parametrize("query", ["user=ann&pass=wrong", "user=bob&pass=secret", "user=ann"])
def test_a_wrong_password_ends_it_at_once(query):
    """And says no more than that."""
    peer = users().client(f"rtmp://host/live?{query}")
    assert refusal(peer) == "Wrong user or password." and peer.server.closed


def test_players_need_no_password_and_may_not_publish():
    """Who calls itself no encoder is let in, and asked when it publishes."""
    world = users()
    peer = world.client()
    peer.play("demo")
    assert peer.codes()[-1] == "NetStream.Play.Start"
    assert not publishes(peer) and peer.server.closed
    assert publishes(world.client(), "demo?user=ann&pass=secret")
    assert not publishes(world.client(), "demo2?user=ann&pass=secrets")


def test_nobody_comes_in_if_all_must_be_users():
    """Whatever it calls itself."""
    world = users(for_all=True)
    assert "code=403 need auth; authmod=adobe" in refusal(world.client())
    assert publishes(world.client("rtmp://host/live?user=ann&pass=secret"))


def b64md5(*words):
    return b64encode(md5("".join(words).encode()).digest()).decode()


def answer(world, user="ann", password="secret", wait=0.0, **changes):
    """Go through Adobe's challenge as the tools do; the client at the end of it."""
    need = refusal(world.client(properties=ENCODER))
    assert "code=403 need auth" in need and "authmod=adobe" in need
    ask = refusal(world.client(f"rtmp://host/live?authmod=adobe&user={user}", properties=ENCODER))
    said = fields(ask.partition("?")[2])
    assert said["reason"] == "needauth" and said["user"] == user
    world.wait(wait)
    proof = b64md5(b64md5(user, said["salt"], password), said["opaque"], "1234abcd")
    words = {"challenge": "1234abcd", "response": proof, "opaque": said["opaque"]} | changes
    query = "&".join(f"{name}={value}" for name, value in words.items())
    url = f"rtmp://host/live?authmod=adobe&user={user}&{query}"
    return world.client(url, properties=ENCODER)


def test_adobes_challenge_is_answered_as_encoders_do():
    """Covers Field §"authmod=adobe"."""
    peer = answer(users())
    assert refusal(peer) is None and publishes(peer)


@pytest.mark.parametrize(
    "wrong",
    [
        {"password": "secrets"},
        {"user": "bob"},
        {"response": ""},
        {"challenge": "other"},
        {"opaque": "0-aa-bb"},
        {"opaque": "nan-aa"},
        {"opaque": ""},
        {"wait": FRESH + 1.0},
    ],
)
def test_no_other_answer_is_right(wrong):
    """Covers Field §"authmod=adobe": nor one that is too old, or to another question."""
    assert "?reason=authfailed" in refusal(answer(users(), **wrong))


@given(st.text(alphabet="authmodresponse=&-?123456789.", max_size=60))
def test_no_query_breaks_the_guard(query):
    """Own design: a verdict comes, whatever is asked."""
    assert refusal(users().client(f"rtmp://host/live?authmod=adobe&{query}")) is not None


def test_keys():
    """Own design: for those streams that have one, or for all."""
    world = guarded(KeysGuard({"demo": "k1", "room/a": "k2"}, {"demo": "k3"}))
    assert publishes(world.client(), "demo?key=k1")
    assert publishes(world.client("rtmp://host/live/room"), "a?x&key=k2")
    for name in ("demo2?key=k1", "demo?key=", "demo", "demo?key=k2", "other?key=", "other"):
        assert not publishes(world.client(), name)
    player = world.client()
    player.play("demo?key=k3")
    assert player.codes()[-1] == "NetStream.Play.Start"
    player.play("demo?key=k1")
    assert player.codes()[-1] == "NetStream.Play.Failed"
    world = guarded(KeysGuard({"*": "any", "demo": "k1"}))
    assert publishes(world.client(), "whatever?key=any")
    assert not publishes(world.client(), "demo?key=any")
    player = world.client()
    player.play("demo")
    assert player.codes()[-1] == "NetStream.Play.Start"


def test_signed_links():
    """Own design: for one thing, one stream and some time."""
    secret, clock = b"0123456789abcdef", [1000.0]
    world = guarded(SignedGuard(secret, lambda: clock[0], frozenset({Event.PUBLISH})))
    token = sign(secret, Event.PUBLISH, "demo", "1060")
    assert publishes(world.client(), f"demo?expires=1060&token={token}")
    other = sign(b"another secret..", Event.PUBLISH, "demo", "1060")
    for name in (
        f"demo2?expires=1060&token={token}",
        f"demo?expires=1061&token={token}",
        f"demo?expires=1060&token={other}",
        f"demo?expires=1060&token={sign(secret, Event.PLAY, 'demo', '1060')}",
        f"demo?expires=x&token={sign(secret, Event.PUBLISH, 'demo', 'x')}",
        "demo",
    ):
        assert not publishes(world.client(), name)
    clock[0] = 1060.0
    assert not publishes(world.client(), f"demo?expires=1060&token={token}")
    player = world.client()
    player.play("demo")
    assert player.codes()[-1] == "NetStream.Play.Start"
    player.server.close(0.0)

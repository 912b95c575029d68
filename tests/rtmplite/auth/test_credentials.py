"""Proof: passwords, Adobe's challenge, keys, signed links; and everything that is none."""

from base64 import b64encode
from hashlib import md5, sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.rtmp.rtmp_world import World, counting

from p2psip.server.users import UserStore
from p2psip.sip.auth import ha1
from rtmplite.auth import credentials
from rtmplite.auth.credentials import (
    BURST,
    FRESH,
    TOO_FAST,
    KeysGuard,
    SignedGuard,
    Users,
    UsersGuard,
    fields,
    in_words,
    sign,
    user_lines,
)
from rtmplite.auth.guard import Event, GuardedApplication, Question, Verdict
from rtmplite.errors import LocalError
from rtmplite.rtmp.application import LiveApplication
from rtmplite.rtmp.client import Reply

LINES = "# users\n\n" + "\n".join(user_lines("ann", "example.org", "secret")) + "\n"
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


HASH = md5(b"ann:example.org:secret").hexdigest()


def test_lines_are_read_or_complained_about():
    """Covers RFC 7616 §3.4.2, RFC 7616 §3.4: as htdigest writes them, no password in them."""
    assert "secret" not in LINES and f"ann:example.org:{HASH}\n" in LINES
    assert Users.parse(f" ann:a:b:{HASH.upper()} ").salted("ann")[0] == ":a:b:"
    for line in ("ann", "ann:b", "a:b:c:d", f":b:{HASH}", f"a::{HASH}", f"a:b:{HASH}0"):
        with pytest.raises(LocalError, match="line 2"):
            Users.parse("#\n" + line)
    for name in ("", "a:b", "a&b", "a=b", "a b", "a\nb", "a/b"):
        with pytest.raises(LocalError):
            user_lines(name, "example.org", "secret")
    for realm, password in (("", "secret"), ("a b", "secret"), ("a&b", "secret"), ("a", "")):
        with pytest.raises(LocalError):
            user_lines("ann", realm, password)


def test_the_file_is_the_one_of_phones():
    """Own design: what is read here is read there, and the other way round."""
    store = UserStore.parse(LINES)
    assert store.lookup("ann", "example.org", "MD5") == HASH
    for algorithm in ("MD5", "SHA-256"):
        hashed = ha1("zoë", "home", "pä:ss", algorithm)
        assert Users.parse(f"zoë:home:{hashed}").knows("zoë", "pä:ss")
        assert not Users.parse(f"zoë:home:{hashed}").knows("zoë", "pä:s")


@given(st.text(min_size=1), st.text(), st.text(min_size=1), st.sampled_from([md5, sha256]))
def test_only_the_password_is_the_password(password, guess, realm, algorithm):
    """Own design: whatever anybody types."""
    hashed = algorithm(f"ann:{realm}:{password}".encode(errors="replace")).hexdigest()
    known = Users([("ann", realm, hashed)])
    same = guess.encode(errors="replace") == password.encode(errors="replace")
    assert known.knows("ann", password) and known.knows("ann", guess) == same
    assert not known.knows("bob", password) and not Users([]).knows("ann", password)


def test_every_hash_is_compared_whoever_asks(monkeypatch):
    """Own design: the time taken does not tell a user from nobody, or near from far."""
    compared, compare = [], credentials.hmac.compare_digest
    monkeypatch.setattr(
        credentials.hmac, "compare_digest", lambda a, b: compared.append((a, b)) or compare(a, b)
    )
    known, counts = Users.parse(LINES + f"bob:other:{HASH}"), []
    for query in ("user=ann&pass=secret", "user=ann&pass=x", "user=eve&pass=x", "user=bob&pass=x"):
        assert known.proves(query) == query.endswith("secret")
        counts.append(len(compared))
        assert all(len(a) == len(b) for a, b in compared)
        compared.clear()
    assert len(set(counts)) == 1


@pytest.mark.parametrize(
    ("query", "works"),
    [
        ("user=ann&pass=secret", True),
        ("password=secret&user=ann", True),
        ("user=%61nn&password=sec%72et", True),
        ("user=ann&pass=Secret", False),
        ("user=Ann&pass=secret", False),
        ("user=ann", False),
        ("pass=secret", False),
        ("user=&pass=", False),
        ("", False),
        ("x&" * 40 + "user=ann&pass=secret", False),
    ],
)
def test_two_spellings_of_a_password(query, works):
    """Own design: as most servers have it and as most people write it, escaped or not."""
    assert Users.parse(LINES).proves(query) == works


def test_letters_that_look_escaped():
    """Own design: a password may have a per cent sign; tools send it as it stands."""
    known = Users.parse("\n".join(user_lines("ann", "home", "50%41")))
    assert known.proves("user=ann&pass=50%41") and known.proves("user=ann&pass=50%2541")
    assert not known.proves("user=ann&pass=50A")


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


@pytest.mark.parametrize("query", ["response=x", "opaque=x&challenge=y&response=z"])
def test_an_answer_that_nobody_asked_for_is_no_proof(query):
    """Who calls itself no encoder is not challenged, and has proved nothing."""
    peer = users().client(f"rtmp://host/live?{query}")
    assert refusal(peer) is None and not publishes(peer)


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
    better = user_lines("ann", "example.org", "secret")[0]
    world = guarded(UsersGuard(Users.parse(better), counting()))
    assert "?reason=authfailed" in refusal(answer(world))  # there is no MD5 to answer with


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
    description = refusal(answer(users(), **wrong))
    assert "?reason=authfailed" in description
    assert in_words(Verdict(False, description)) == "Wrong user or password."


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
    assert not publishes(world.client("rtmp://host/live?key=any"), "other?key=k1")
    assert publishes(world.client("rtmp://host/live?key=any"), "other")  # who cannot choose a name
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


def test_who_guesses_has_to_wait():
    """Own design: by the query or by the challenge; where ann has proved it, she may."""
    guard = UsersGuard(Users.parse(LINES), counting(), for_all=True)

    def said(query, host, now):
        verdicts = []
        words = ["", "live", "", "", "", "", query, (), "demo", "demo", ""]
        guard.ask(Question(Event.CONNECT, host, 1, *words), lambda v, now: verdicts.append(v), now)
        return verdicts[0]

    good = "user=ann&password=secret"
    assert said(good, "192.0.2.2", 0.0).is_allowed
    for host in ("192.0.2.1", "192.0.2.2"):
        for number in range(BURST):
            way = f"user=bob&password={number}" if number % 2 else "authmod=adobe&user=b&response=x"
            assert not said(way, host, 0.0).is_allowed
    assert said(good, "192.0.2.1", 9.0).description == TOO_FAST
    assert said(good, "192.0.2.1", 10.0).is_allowed and said(good, "192.0.2.2", 0.0).is_allowed
    assert said(good, "2001:db8::1", 0.0).is_allowed

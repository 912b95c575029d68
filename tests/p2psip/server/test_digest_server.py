"""The server's side of Digest."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations
from support.sip.elements import random_source
from support.sip.homes import PASSWORD, register, request, signed, store

from p2psip.errors import RemoteError
from p2psip.server.digest_server import NONCE_SECONDS, DigestServer, without_credentials
from p2psip.server.domains import Domains
from p2psip.server.guess_limit import BURST, BURST_OF_ALL
from p2psip.server.users import UserStore
from p2psip.sip.auth import Challenge, Credentials, answer
from p2psip.sip.build import response_to
from p2psip.sip.headers import Headers
from p2psip.transaction.flow import Flow
from p2psip.ua.requests.request_validation import RefusalError

DOMAINS = Domains(["home"], lambda host, port: False, distinct=True)
BOB = ("bob", "home")


def verifier(*names, **options):
    return DigestServer(store(*(names or ("bob", "ann")), **options), random_source("v"))


HERE = Flow("UDP", ("10.0.0.3", 5060))


def demand(judge, message, now=0.0, *, aor=BOB, proxy=False, source=HERE):
    return judge.demand(message, aor, DOMAINS, now, proxy=proxy, source=source)


def challenged(judge, message, now=0.0, *, proxy=False, source=HERE):
    asked = demand(judge, message, now, proxy=proxy, source=source)
    return response_to(message, 407 if proxy else 401, headers=asked)


@pytest.mark.parametrize("proxy", [False, True])
def test_a_stranger_is_asked_for_the_better_hash_first(proxy):
    """Covers RFC 8760 §2.3 and §2.6: one header an algorithm, each with qop.

    Covers RFC 8760 §2.6 [never-basic] [server-sends-qop].
    Covers RFC 7616 §3.3 [qop-in-challenge] and RFC 7616 §3.8 [proxy-asks-by-407].
    Covers RFC 3261 §22 [no-basic-asked], §22.2 [401-has-challenge], §22.3 [407-has-challenge]
    [digest-has-realm].
    """
    asked = demand(verifier(), register(), proxy=proxy)
    assert {name for name, _ in asked} == {f"{'Proxy' if proxy else 'WWW'}-Authenticate"}
    challenges = [challenge for _, challenge in asked]
    assert [each.algorithm for each in challenges] == ["SHA-256", "MD5"]
    assert all(each.is_digest for each in challenges)
    basic = register("bob", None, ("Authorization", "Basic Ym9iOnNlc2FtZQ=="))
    assert len(demand(verifier(), basic)) == 2
    assert {(each.realm, each.qop, each.stale) for each in challenges} == {
        ("home", ("auth",), False)
    }


@pytest.mark.parametrize("proxy", [False, True])
@pytest.mark.parametrize("algorithms", [["SHA-256"], ["MD5"]])
def test_who_knows_the_password_is_admitted(algorithms, proxy):
    """Covers RFC 3261 §22.2 and §22.3."""
    judge = verifier(algorithms=algorithms)
    told = signed(register(), challenged(judge, register(), proxy=proxy))
    assert demand(judge, told, 1.0, proxy=proxy) == ()
    assert demand(judge, told, 1.0, proxy=not proxy)  # an answer to the other question


@pytest.mark.parametrize("algorithm", ["MD5-sess", "SHA-256-sess"])
@pytest.mark.parametrize("qop", ["auth", "auth-int"])
def test_other_ways_to_say_it_are_understood(algorithm, qop):
    """Covers RFC 7616 §3.4.2: session algorithms, and integrity of the body."""
    judge = verifier()
    nonce = demand(judge, register())[0][1].nonce
    other = Challenge.digest("home", nonce=nonce, algorithm=algorithm, qop=qop)
    told = answer(other, "REGISTER", "sip:home", "bob", PASSWORD, cnonce="1", body=b"x")
    message = register("bob", None, ("Authorization", told))
    assert demand(judge, message.replace(body=b"x")) == ()
    if qop == "auth-int":
        judge = verifier()
        assert demand(judge, message.replace(body=b"y"))


def test_who_is_wrong_learns_nothing():
    """Covers RFC 7616 §3.3: a wrong password is not a stale nonce."""
    judge = verifier()
    wrong = signed(register(), challenged(judge, register()), password="sesame")
    nobody = signed(register(), challenged(judge, register()), user="eve")
    asked = [demand(judge, message) for message in (wrong, nobody)]
    shapes = [[(c.realm, c.algorithm, c.stale) for _, c in each] for each in asked]
    assert shapes[0] == shapes[1] == [("home", "SHA-256", False), ("home", "MD5", False)]


def test_a_nonce_is_counted_upwards():
    """Covers RFC 7616 §3.4: what was overheard can't be sent again."""
    judge = verifier()
    first = challenged(judge, register())
    assert demand(judge, signed(register(), first, nc=1)) == ()
    assert demand(judge, signed(register(), first, nc=3)) == ()
    for nc in (1, 2, 3):
        again = demand(judge, signed(register(), first, nc=nc))
        assert [challenge.stale for _, challenge in again] == [True, True]
    assert demand(judge, signed(register(), first, nc=4)) == ()


def test_a_nonce_is_good_for_the_host_that_was_challenged():
    """So that a user cannot register from the address of a victim, who has heard no nonce."""
    judge, message = verifier(), register()
    said = signed(message, challenged(judge, message))
    forged = Flow("UDP", ("10.0.0.9", 5060))
    again = demand(judge, said, source=forged)
    assert again and all("stale=true" in str(value) for _, value in again)
    assert not demand(judge, said, source=Flow("TCP", ("10.0.0.3", 40001)))


def test_a_client_that_does_not_count_uses_a_nonce_once():
    """Covers RFC 3261 §22.4 [2069-is-served] [qop-tells]."""
    judge = verifier(algorithms=["MD5"])
    nonce = demand(judge, register())[0][1].nonce
    old = Challenge.digest("home", nonce=nonce, qop=None)
    told = answer(old, "REGISTER", "sip:home", "bob", PASSWORD, cnonce="")
    assert told.qop is None
    message = register("bob", None, ("Authorization", told))
    assert demand(judge, message) == ()
    [(_, again)] = demand(judge, message)
    assert again.stale


def test_a_nonce_ages_and_is_not_forged():
    """Covers RFC 7616 §5.4 and §3.3: then the answer is right and the nonce stale.

    Covers RFC 7616 §3.3 [stale-for-the-nonce].
    """
    judge = verifier()
    first = challenged(judge, register(), 10.0)
    assert demand(judge, signed(register(), first), 10.0 + NONCE_SECONDS - 1) == ()
    late = demand(judge, signed(register(), first, nc=2), 10.0 + NONCE_SECONDS + 1)
    foreign = challenged(DigestServer(store("bob"), random_source("w")), register())
    forged = demand(judge, signed(register(), foreign), 10.0)
    assert late[0][1].stale and forged[0][1].stale


def test_who_proves_to_be_somebody_else_is_refused():
    judge = verifier()
    told = signed(register(), challenged(judge, register()), user="ann")
    with pytest.raises(RemoteError) as refusal:
        demand(judge, told)
    assert refusal.value.status == 403


def test_what_was_signed_must_suit_what_is_asked():
    """Covers RFC 8760 §2.6: the URIs need not be equal, but name one user and one domain.

    Covers RFC 8760 §2.6 [uri-is-checked].  RFC 7616 §3.4.6 has the 400.
    """
    judge = verifier()

    def judged(asked, *uris, proxy=True, vias=()):
        first = challenged(judge, asked, proxy=proxy)
        for nc, uri in enumerate(uris, 1):
            told = signed(asked, first, nc=nc, uri=uri)
            headers = told.headers.with_("Via", *told.headers.values("Via"), *vias)
            try:
                yield demand(judge, told.replace(headers=headers), proxy=proxy)
            except RemoteError as error:
                yield error.status

    good = ["sip:home:5060;transport=udp", "sip:bob@home", "sip:HOME"]
    assert list(judged(register(), *good, proxy=False)) == [()] * 3
    assert list(judged(register(), "sip:away", "urn:home", "home", proxy=False)) == [400] * 3
    abroad = request("INVITE", "sip:carol@away", user="bob")
    assert list(judged(abroad, "sip:carol@away;x", "sip:carol@AWAY")) == [()] * 2
    assert list(judged(abroad, "sip:dora@away", "sip:home", "sip:carol@home")) == [400] * 3
    inside = request("INVITE", "sip:carol@home", user="bob")
    assert list(judged(inside, "sip:carol@home:5060", "sip:c%61rol@home")) == [()] * 2
    assert list(judged(inside, "sip:dora@home", "sip:home", "sip:carol@away")) == [400] * 3
    behind = {"vias": ["SIP/2.0/UDP p;branch=z9hG4bKp"]}  # a proxy, which may have forwarded it
    assert list(judged(inside, "sip:dora@home", "sip:dora@away", **behind)) == [(), 400]


def test_a_phone_that_chokes_on_a_choice_gets_none():
    """Covers Field §"Digest choice in libre"."""
    agent = ("User-Agent", "baresip v1.0.0 (x86_64/linux)")
    message = register("bob", None, agent)
    assert [c.algorithm for _, c in demand(verifier(), message)] == ["MD5"]
    assert [c.algorithm for _, c in demand(verifier(algorithms=["SHA-256"]), message)] == [
        "SHA-256"
    ]


@pytest.mark.sources
def test_counts_are_kept_for_a_bounded_number_of_nonces(monkeypatch):
    monkeypatch.setattr("p2psip.server.digest_server.NONCES", 3)
    judge = verifier()
    firsts = [challenged(judge, register()) for _ in range(5)]
    for first in firsts:
        assert demand(judge, signed(register(), first)) == ()
    assert len(judge._counts) == 3
    assert demand(judge, signed(register(), firsts[-1]))  # a recent one is still remembered


def test_credentials_go_no_further_than_they_were_meant():
    """Covers RFC 3261 §22.3 [others-stay] [adds-none]: another proxy needs the others."""
    judge = verifier()
    told = signed(request(user="bob"), challenged(judge, request(user="bob"), proxy=True))
    other = 'Digest username="b", realm="away", nonce="n", uri="sip:x", response="r"'
    for value in (other, "Digest nonsense", "Basic b64"):
        told = told.replace(headers=told.headers.append("Proxy-Authorization", value))
    left = without_credentials(told, "home").headers.values("Proxy-Authorization")
    assert left == (other, "Digest nonsense", "Basic b64")
    alone = request("INVITE", "sip:bob@home", ("Proxy-Authorization", other), user="bob")
    for _ in range(BURST + 1):
        assert demand(judge, alone, proxy=True)  # they are no guess at a password here
    assert demand(judge, told, proxy=True) == ()  # by the one of ours
    assert without_credentials(request(), "home") == request()


def test_knowing_a_user_is_having_a_hash():
    judge = verifier()
    assert judge.knows(BOB) and not judge.knows(("eve", "home"))
    assert not DigestServer(UserStore(), random_source("v")).knows(BOB)


def guess(judge, host, now, *, user="bob", password="sesame"):
    """What a password gets from there: "in", "again", or how long to wait."""
    flow = Flow("UDP", (host, 5060))
    asked = challenged(judge, register(), now, source=flow)
    told = signed(register(), asked, user=user, password=password)
    try:
        return "again" if demand(judge, told, now, aor=(user, "home"), source=flow) else "in"
    except RefusalError as refusal:
        assert refusal.status == 503
        return int(dict(refusal.headers)["Retry-After"])


def test_a_host_that_guesses_has_to_wait():
    """Own design: so many at once, then one in ten seconds; and the right one is not seen."""
    judge = verifier()
    said = [guess(judge, "192.0.2.66", 0.0) for _ in range(20)]
    assert said == ["again"] * BURST + [10] * (20 - BURST)
    assert guess(judge, "192.0.2.66", 5.0, password=PASSWORD) == 5
    assert [guess(judge, "192.0.2.66", 10.0 * n) for n in (1, 2, 3)] == ["again"] * 3
    assert guess(judge, "192.0.2.66", 30.0, password=PASSWORD) == 10
    assert guess(judge, "192.0.2.67", 30.0, password=PASSWORD) == "in"
    assert guess(judge, "192.0.2.66", 3600.0, password=PASSWORD) == "in"


def test_a_prefix_guesses_as_one():
    """Own design: as for transactions, a /64 is one host."""
    judge = verifier()
    said = [guess(judge, f"2001:db8::{n}", 0.0) for n in range(BURST + 1)]
    assert said[-1] == 10 and guess(judge, "2001:db8:0:1::1", 0.0) == "again"


def test_many_hosts_that_guess_one_password_have_to_wait_but_not_its_owner():
    """Own design: where bob has proved to be bob, nobody else keeps him out."""
    judge = verifier()
    assert guess(judge, "192.0.2.9", 0.0, password=PASSWORD) == "in"
    said = [guess(judge, f"198.51.100.{n}", 1.0) for n in range(100)]
    assert said == ["again"] * BURST_OF_ALL + [2] * (100 - BURST_OF_ALL)
    assert guess(judge, "192.0.2.9", 1.0, password=PASSWORD) == "in"
    assert guess(judge, "198.51.100.1", 1.0, user="ann", password=PASSWORD) == "in"
    assert [guess(judge, "192.0.2.9", 1.0) for _ in range(BURST + 1)][-1] == 10  # also of his own


@pytest.mark.sources
def test_guesses_are_kept_for_a_bounded_number_of_hosts(monkeypatch):
    monkeypatch.setattr("p2psip.server.guess_limit.MAX_KEYS", 5)
    judge = verifier()
    for n in range(20):
        guess(judge, f"192.0.2.{n}", 0.0, user=f"u{n}")
        guess(judge, f"192.0.2.{n}", 0.0, password=PASSWORD)
    guesses = judge.guesses
    sizes = [guesses._hosts._until, guesses._accounts._until, guesses._owners]
    assert [len(table) for table in sizes] == [5, 5, 5]


GOOD = 'Digest username="bob", realm="home", nonce="1.ab.cd", uri="sip:home", response="00"'


@given(mutations(st.just(GOOD.encode())))
def test_any_credentials_are_judged(value):
    """Covers RFC 7616 §3.4: they admit nobody, and nothing but a challenge comes of them."""
    text = value.decode("latin-1").replace("\r", " ").replace("\n", " ")
    message = register("bob", None)
    message = message.replace(headers=Headers([*message.headers, ("Authorization", text)]))
    try:
        event(f"is credentials: {Credentials.parse(text).is_digest}")
    except RemoteError:
        event("is credentials: no")
    assert len(demand(verifier(), message)) == 2

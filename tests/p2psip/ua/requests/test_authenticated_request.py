"""Challenges are answered while that can help, and no longer."""

import pytest
from support.rtmfp.link import Link
from support.sip.cores import TakesAll
from support.sip.elements import PORT, Element, Phone, random_source

from p2psip.sip.auth import Challenge, Credentials, ha1, verify
from p2psip.sip.build import response_to
from p2psip.sip.headers import Headers
from p2psip.sip.message import Request
from p2psip.sip.uri import Uri
from p2psip.stack.stack import Flow
from p2psip.ua.requests.authenticated_request import MAX_ROUNDS, AuthenticatedRequest
from p2psip.ua.requests.digest_client import DigestClient, Login, copy_credentials
from p2psip.ua.ua import CallState

A, B = "10.0.0.1", "10.0.0.2"


class Guard(TakesAll):
    """Lets in whoever knows the password; a nonce is good for `uses` requests.

    `inner` takes what was let in.  The challenges are one per realm and algorithm.
    """

    def __init__(self, inner=None, realms=("b.com",), algorithms=("MD5",), uses=1, status=401):
        self.inner, self.realms, self.algorithms = inner, realms, algorithms
        self.uses, self.status = uses, status
        self.requests, self.nonces, self.count, self.acks = [], {}, 0, []
        self.stale_by_word = True

    def on_request(self, server, request, now):
        self.requests.append(request)
        stale = False
        for realm in self.realms:
            verdict = self.judge(request, realm)
            stale |= verdict == "stale"
            if verdict != "good":
                headers = self.challenge(realm, stale and self.stale_by_word)
                server.reply(self.status, now, None, headers)
                return
        if self.inner is None:
            server.reply(200, now)
        else:
            self.inner.recipient(request, server.flow, now).take(server, request, now)

    def on_ack(self, request, flow, now):
        self.acks.append(request)
        if self.inner is not None:
            self.inner.on_ack(request, flow, now)

    def challenge(self, realm, stale):
        name = "WWW-Authenticate" if self.status == 401 else "Proxy-Authenticate"
        challenges = []
        for algorithm in self.algorithms:
            self.count += 1
            nonce = f"n{self.count}"
            self.nonces[nonce] = 0
            challenges.append(
                (name, Challenge.digest(realm, nonce=nonce, algorithm=algorithm, stale=stale))
            )
        return challenges

    def judge(self, request, realm):
        name = "Authorization" if self.status == 401 else "Proxy-Authorization"
        for value in request.headers.values(name):
            told = Credentials.parse(value)
            secret = ha1("alice", realm, "secret", told.algorithm)
            if told.realm == realm and verify(told, request.method, secret, request.body):
                used = self.nonces[told.nonce] = self.nonces[told.nonce] + 1
                assert told.nc is None or told.nc == used  # never twice, never skipped
                return "good" if used <= self.uses else "stale"
        return "unknown"


class Asker:
    def __init__(self):
        self.heard = []

    def on_response(self, exchange, response, now):
        self.heard.append(response.status)


def request(cseq=1, method="MESSAGE"):
    fields = [
        ("From", "<sip:alice@b.com>;tag=a"),
        ("To", "<sip:bob@b.com>"),
        ("Call-ID", "call"),
        ("CSeq", f"{cseq} {method}"),
    ]
    return Request(method, Uri.parse(f"sip:{B}"), Headers(fields), b"hello")


def ask(guard, digest_client, link=None, times=1):
    """Put a question `times` times; what was heard, and the guard's log."""
    link = link or Link()
    client, server = Element(link, A), Element(link, B)
    client.stack.core = server.stack.core = guard
    asker, numbers = Asker(), iter(range(2, 99))
    for n in range(times):
        exchange = AuthenticatedRequest(client.stack, asker, lambda: next(numbers), digest_client)
        exchange.send(request(1 if n == 0 else next(numbers)), link.now)
        link.run()
        assert exchange.done
    assert client.stack.transactions == server.stack.transactions == 0
    return asker.heard


def login(password="secret", server=f"sip:{B}", **options):
    return Login("alice", password, Uri.parse(server) if server else None, **options)


def digest_client(password="secret"):
    return DigestClient(login(password), random_source("keys"))


@pytest.mark.parametrize("status", [401, 407])
def test_a_challenge_is_answered_once_with_the_next_number(status):
    """Covers RFC 3261 §8.1.3.5 [answers-challenges] [again-within-the-call].

    And §22.2 [answers-401] [next-cseq], §22.3 [answers-407].
    """
    guard = Guard(status=status)
    assert ask(guard, digest_client()) == [200]
    first, second = guard.requests
    assert (first.cseq.number, second.cseq.number) == (1, 2) and first.call_id == second.call_id
    assert first.via.branch != second.via.branch and len(second.vias) == 1
    assert (first.from_, first.to) == (second.from_, second.to)


def test_without_a_password_the_challenge_is_the_answer():
    guard = Guard()
    assert ask(guard, None) == [401] and len(guard.requests) == 1


def test_what_is_forbidden_is_not_asked_again():
    """Covers RFC 3261 §21.4 [not-the-same-again], §21.4.4 [403-is-final]: with a challenge too."""
    guard = Guard(status=403)
    assert ask(guard, digest_client()) == [403] and len(guard.requests) == 1


def met(keys, headers):
    """Have a digest_client meet challenges."""
    keys.learn(keys.asked(response_to(request(), 401, headers=headers)))


PLACE = frozenset({(B, PORT)})
STRANGERS = {
    "nobody named": (login(server=None), False, 401),
    "the server": (login(), False, 200),
    "its other spelling": (login(server=f"sip:{B}:{PORT};transport=udp"), False, 200),
    "its address": (login(server="sip:b.com", addresses=PLACE), False, 200),
    "its route": (login(), True, 200),
    "another port": (login(server=f"sip:{B}:{PORT + 1}"), False, 401),
    "another host": (login(server="sip:b.com"), False, 401),
    "its realm": (login(realms=frozenset({"b.com"})), False, 200),
    "another realm": (login(realms=frozenset({"c.com"})), False, 401),
}


@pytest.mark.parametrize("name", STRANGERS)
def test_a_password_is_for_one_server_in_its_realm(name):
    """Covers RFC 3261 §22.1: a proof that anybody may ask for is one to try passwords on."""
    (known, route, expected), link = STRANGERS[name], Link()
    keys = DigestClient(known, random_source("keys"))
    client, server, asker = Element(link, A), Element(link, B), Asker()
    guard = client.stack.core = server.stack.core = Guard()
    message = request()
    if route:
        headers = message.headers.append("Route", f"<sip:{B};lr>")
        message = message.replace(headers=headers, uri=Uri.parse("sip:bob@b.com"))
    exchange = AuthenticatedRequest(client.stack, asker, lambda: 2, keys)
    exchange.send(message, link.now)
    link.run()
    assert asker.heard == [expected]
    told = [r for r in guard.requests if "Authorization" in r.headers]
    assert len(told) == (expected == 200)


def test_within_a_dialog_nobody_behind_a_route_is_answered():
    """The proxy lets the callee's challenges through, and would let our answer through as well."""
    keys = DigestClient(login(addresses=PLACE), random_source("keys"))
    met(keys, Guard().challenge("b.com", False))
    plain = request(2, "BYE")
    within = plain.replace(headers=plain.headers.with_("To", "<sip:bob@b.com>;tag=b"))
    routed = within.replace(headers=within.headers.append("Route", f"<sip:{B};lr>"))
    flow = Flow("UDP", (B, PORT))
    for message, expected in ((plain, True), (within, True), (routed, False)):
        assert keys.is_for(message, flow) == keys.may_sign(message) == expected
        assert ("Authorization" in keys.sign(message).headers) == expected


def test_nothing_is_told_unasked_beyond_the_server():
    """A BYE or an ACK may go where the INVITE did not: straight to the callee."""
    keys, asked = digest_client(), request()
    met(keys, Guard().challenge("b.com", False))
    signed = keys.sign(asked)
    away = request().replace(uri=Uri.parse("sip:bob@10.0.0.9"))
    assert "Authorization" in signed.headers and "Authorization" not in keys.sign(away).headers
    assert "Authorization" not in copy_credentials(signed, away, keys).headers
    assert "Authorization" not in copy_credentials(signed, asked, None).headers
    assert copy_credentials(signed, asked, keys).headers["Authorization"]


def test_a_callee_behind_the_proxy_is_told_nothing_in_its_name():
    """A realm has one answer to one question: the next who asks in it is another."""

    class Both(Guard):
        def on_request(self, server, request, now):
            super().on_request(server, request, now)
            self.status, self.uses = 401, 9  # and now the callee asks, in the same realm

    guard = Both(status=407)
    assert ask(guard, digest_client()) == [401] and len(guard.requests) == 2


def test_who_says_stale_at_once_is_told_no_more():
    """Covers RFC 7616 §3.3: a nonce of just now is not stale; somebody else may have said so."""
    guard = Guard(uses=0)
    assert ask(guard, digest_client()) == [401] and len(guard.requests) == 2


def test_a_wrong_password_is_tried_once():
    """Covers RFC 8760 §2.4 [gives-up] and RFC 7616 §3.3 [refused-is-final].

    Covers RFC 3261 §22.1 [refused-is-final].
    """
    guard = Guard()
    assert ask(guard, digest_client("wrong")) == [401] and len(guard.requests) == 2


@pytest.mark.parametrize("status", [401, 407])
def test_every_realm_on_the_way_is_answered(status):
    """Covers RFC 7616 §3.8 [answers-the-proxy], RFC 3261 §22.3 [by-realm] [same-credentials]."""
    guard = Guard(realms=("a.com", "b.com", "c.com"), uses=9, status=status)
    assert ask(guard, digest_client()) == [200] and len(guard.requests) == 4


def test_a_path_of_too_many_realms_is_given_up():
    guard = Guard(realms=[f"{n}.com" for n in range(9)], uses=9)
    assert ask(guard, digest_client()) == [401] and len(guard.requests) == MAX_ROUNDS + 1


@pytest.mark.parametrize("status", [401, 407])
def test_a_nonce_is_used_again_and_counted(status):
    """Covers RFC 7616 §3.6 [remembers].

    Covers RFC 3261 §22.2 [credentials-kept], §22.3 [credentials-kept].
    """
    guard = Guard(uses=9, status=status)
    keys = digest_client()
    assert ask(guard, keys, times=3) == [200] * 3 and len(guard.requests) == 4


@pytest.mark.parametrize("by_word", [True, False])
def test_a_nonce_that_is_used_up_is_replaced(by_word):
    """RFC 7616 §3.3: `stale` says so; some servers only send a new nonce."""
    guard = Guard(uses=2)
    guard.stale_by_word = by_word
    assert ask(guard, digest_client(), times=4) == [200] * 4 and len(guard.requests) == 6


def test_the_next_nonce_saves_a_challenge():
    """Covers RFC 7616 §3.5 [takes-next-nonce], where the server takes each nonce once."""

    class Renewing(Guard):
        def on_request(self, server, request, now):
            self.requests.append(request)
            if self.judge(request, "b.com") != "good":
                server.reply(401, now, None, self.challenge("b.com", False))
                return
            self.count += 1
            self.nonces[f"n{self.count}"] = 0
            server.reply(200, now, headers=[("Authentication-Info", f'nextnonce="n{self.count}"')])

    guard = Renewing(uses=1)
    assert ask(guard, digest_client(), times=4) == [200] * 4 and len(guard.requests) == 5


def test_the_strongest_algorithm_is_taken():
    """RFC 8760 §2.4."""
    guard = Guard(algorithms=("MD5", "SHA-256"))
    assert ask(guard, digest_client()) == [200]
    told = Credentials.parse(guard.requests[1].headers["Authorization"])
    assert told.algorithm == "SHA-256"


def test_a_nonce_that_does_not_change_is_counted_on():
    class Stubborn(Guard):
        def challenge(self, realm, stale):
            self.nonces.setdefault("n", 0)
            return [("WWW-Authenticate", Challenge.digest(realm, nonce="n"))]

    guard = Stubborn(uses=2)
    assert ask(guard, digest_client(), times=3) == [200, 200, 401] and len(guard.requests) == 5


def test_a_challenge_that_nobody_can_read_is_passed_on():
    """Covers RFC 8760 §2.4 [gives-up]."""
    guard = Guard(algorithms=("ROT-13",))
    assert ask(guard, digest_client()) == [401] and len(guard.requests) == 1


def test_each_proof_has_a_line_of_its_own():
    """Covers RFC 3261 §20.7 [never-combined], §20.28 [never-combined]."""
    keys = digest_client()
    for name in ("WWW-Authenticate", "Proxy-Authenticate"):
        met(keys, [(name, Challenge.digest(realm, nonce="x")) for realm in ("a.com", "b.com")])
    headers = keys.sign(request()).headers
    for name in ("Authorization", "Proxy-Authorization"):
        assert [Credentials.parse(line).realm for line in headers.values(name)] == [
            "a.com",
            "b.com",
        ]


def test_the_memory_for_realms_is_bounded():
    keys = digest_client()
    for n in range(50):
        challenge = Challenge.digest(f"{n}.com", nonce="x")
        headers = [("WWW-Authenticate", challenge)]
        met(keys, headers)
    assert len(keys.sign(request()).headers.values("Authorization")) == 8


def test_silence_and_no_route_come_as_responses():
    link, asker = Link(), Asker()
    client = Element(link, A)
    for uri in (f"sip:{B}", "sip:nowhere.com"):
        exchange = AuthenticatedRequest(client.stack, asker, lambda: 2, None)
        exchange.send(request().replace(uri=Uri.parse(uri)), link.now)
        link.run()
    assert asker.heard == [408, 503]


def test_a_call_signs_whatever_it_sends():
    """Covers RFC 3261 §13.2.2.4 [same-credentials] [ack-for-each], §22.3 [same-call-signs]."""
    link = Link()
    alice, bob = Phone(link, A), Phone(link, B)
    guard = bob.stack.core = Guard(bob, uses=99, status=407)
    call = alice.dial(B, 0.0, credentials=login())
    link.run(until=1.0)
    call.reinvite(b"hold", link.now)
    link.run(until=2.0)
    assert call.state is CallState.UP and alice.events() == ["accepted", "answer"]
    call.bye(link.now)
    link.run()
    assert [r.method for r in guard.requests] == ["INVITE", "INVITE", "INVITE", "BYE"]
    assert [r.cseq.number for r in guard.requests] == [1, 2, 3, 4]
    for accepted, ack in zip(guard.requests[1:3], guard.acks, strict=True):
        assert ack.cseq.number == accepted.cseq.number
        name = "Proxy-Authorization"
        assert ack.headers.values(name) == accepted.headers.values(name) != ()
    assert alice.idle and bob.idle


def test_a_new_call_shows_no_proof_of_the_one_before():
    """Covers RFC 3261 §22.3 [not-across-dialogs]."""
    link, credentials = Link(), login()
    alice, bob = Phone(link, A), Phone(link, B)
    guard = bob.stack.core = Guard(bob, uses=99, status=407)
    for _ in range(2):
        call = alice.dial(B, link.now, credentials=credentials)
        link.run(until=link.now + 1.0)
        call.bye(link.now)
        link.run(until=link.now + 1.0)
    shown = ["Proxy-Authorization" in each.headers for each in guard.requests]
    assert [each.method for each in guard.requests] == ["INVITE", "INVITE", "BYE"] * 2
    assert shown == [False, True, True] * 2


def test_a_cancelled_call_does_not_try_again():
    link = Link()
    alice, bob = Phone(link, A), Phone(link, B)
    guard = bob.stack.core = Guard(bob, status=407)
    call = alice.dial(B, 0.0, credentials=login())
    call.bye(0.0)
    link.run()
    assert len(guard.requests) == 1 and alice.idle and alice.log == []

"""What a service says of a client: who it is, for how long that is kept, and what is no answer."""

import json

import pytest

from p2psip.errors import RemoteError
from siprtmp.web.resources import proofs
from siprtmp.web.resources.proofs import KnownProofs, Proof, Questions, Refusal, identity_of

BOB = {"user": "bob", "groups": ["friends"], "roles": ["operator"], "seconds": 600}


def answer(**said):
    return identity_of(200, json.dumps(said).encode())


def test_a_question_has_what_the_client_presents_and_its_address():
    """Covers Resources §14.1 [proof-is-posted]."""
    assert json.loads(Proof("192.0.2.7", "t").question) == {"address": "192.0.2.7", "token": "t"}
    by_name = Proof("192.0.2.7", "", "bob", "se:cret")
    said = {"address": "192.0.2.7", "user": "bob", "password": "se:cret"}
    assert json.loads(by_name.question) == said
    assert "se:cret" not in repr(by_name) and "'t'" not in repr(Proof("a", "t"))


def test_an_answer_names_the_user_its_groups_and_its_roles():
    """Covers Resources §14.2 [roles-are-groups]."""
    assert answer(**BOB) == ("bob", frozenset({"friends", "operator"}), 600.0)
    assert answer(user="bob", more=1) == ("bob", frozenset(), 0.0)


def test_a_proof_that_nobody_has_is_refused():
    """Covers Resources §14.2 [unknown-is-401]."""
    assert identity_of(401, b"") == identity_of(403, json.dumps(BOB).encode()) == Refusal(5.0)


@pytest.mark.parametrize(
    "said",
    [
        *({}, {"user": ""}, {"user": 7}, {"user": "a\nb"}, {"user": "x" * 129}),
        *({"groups": "admin"}, {"groups": [1]}, {"roles": {}}, {"groups": ["a"] * 33}),
        *({"seconds": "9"}, {"seconds": -1}, {"seconds": True}, {"seconds": None}),
    ],
)
def test_an_answer_of_another_form_decides_nothing(said):
    """Covers Resources §14.2 [else-503]."""
    with pytest.raises(RemoteError):
        answer(**({"user": "bob"} if said and "user" not in said else {}) | said)


@pytest.mark.parametrize("status", [204, 201, 302, 404, 500])
@pytest.mark.parametrize("content", [json.dumps(BOB).encode(), b"", b"[]", b"{", b"\xff"])
def test_no_other_answer_decides(status, content):
    """Covers Resources §14.2 [else-503]."""
    with pytest.raises(RemoteError):
        identity_of(status, content)
    if content[:1] != b"{" or len(content) == 1:
        with pytest.raises(RemoteError):
            identity_of(200, content)


def test_an_answer_is_kept_as_long_as_it_says_and_an_hour_at_most(monkeypatch):
    """Covers Resources §14.3 [kept-an-hour-at-most]: under a code, which has the address in it."""
    known, proof = KnownProofs(), Proof("192.0.2.7", "token")
    code = proof.code(b"key")
    assert code not in (proof.code(b"other"), Proof("192.0.2.8", "token").code(b"key"))
    for seconds, until in ((9, 9.0), (1e9, 3600.0)):
        found = answer(user="bob", seconds=seconds)
        known.keep(code, found, 0.0)
        assert known.find(code, until - 0.1) == found
        assert known.find(code, until) is None and not len(known)
    known.keep(code, Refusal(), 0.0)
    assert known.find(code, 4.9) == Refusal() and known.find(code, 5.0) is None
    known.keep(code, answer(user="bob"), 0.0)
    assert not len(known)
    monkeypatch.setattr(proofs, "MAX_KNOWN", 2)
    for name in (b"a", b"b", b"c"):
        known.keep(name, Refusal(), 0.0)
    assert known.find(b"a", 1.0) is None and known.find(b"c", 1.0) is not None


def test_one_host_takes_the_place_of_no_other():
    """Covers Resources §14.4 [questions-are-bounded]."""
    questions = Questions()
    for host in "abcd":
        for _ in range(8):
            questions.begin(host)
        with pytest.raises(RemoteError) as caught:
            questions.begin(host)
        assert caught.value.status == 503
    with pytest.raises(RemoteError):
        questions.begin("e")
    questions.end("a")
    questions.begin("e")

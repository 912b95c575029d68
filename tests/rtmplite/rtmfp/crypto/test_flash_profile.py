"""Identities, and the key agreement between them."""

import functools
import hashlib

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations

from rtmplite.errors import LocalError, RemoteError
from rtmplite.rtmfp.crypto import certificate as certificates
from rtmplite.rtmfp.crypto import fields
from rtmplite.rtmfp.crypto.certificate import Certificate
from rtmplite.rtmfp.crypto.dh import GROUPS, KeyPair
from rtmplite.rtmfp.crypto.epd import Epd
from rtmplite.rtmfp.crypto.flash_profile import FlashProfile, Passwords
from rtmplite.rtmfp.crypto.keying import Component, Negotiation, Policy
from rtmplite.rtmfp.crypto.profile import CryptoProfile, Keys
from rtmplite.strategies.rtmfp_crypto import certificates as any_certificates
from rtmplite.strategies.rtmfp_crypto import components, epds, key_pairs, policies

OFF = Negotiation()


def drawing(name):
    """A source of bytes that differ each time, and are the same in each run."""
    count = 0

    def random(size):
        nonlocal count
        count += 1
        return hashlib.shake_256(f"{name} {count}".encode()).digest(size)

    return random


@functools.cache
def profile(name, static, groups=(2,)):
    """An endpoint, static or ephemeral."""
    if static:
        return FlashProfile.client(drawing(name), groups=groups)
    return FlashProfile(drawing(name), groups=groups)


def talk(near: Keys, far: Keys):
    """Whether both ends have the same keys and nonces."""
    assert far.cipher.open(near.cipher.seal(b"there"))[:5] == b"there"
    assert near.cipher.open(far.cipher.seal(b"back"))[:4] == b"back"
    assert (near.near_nonce, near.far_nonce) == (far.far_nonce, far.near_nonce)
    assert near.near_nonce != near.far_nonce


def keyed(initiator: CryptoProfile, responder: CryptoProfile):
    """The two components of an agreement that worked."""
    agreement = initiator.initiate(responder.certificate)
    answer = responder.respond(agreement.component, initiator.certificate)
    talk(agreement.agree(answer.component), answer.keys)
    return Component.parse(agreement.component), Component.parse(answer.component)


@pytest.mark.parametrize("group", sorted(GROUPS))
@pytest.mark.parametrize("initiator", ["static", "ephemeral"])
@pytest.mark.parametrize("responder", ["static", "ephemeral"])
def test_all_four_combinations(group, initiator, responder):
    """Covers RFC 7425 §4.6.1.1 [same-group] and RFC 7425 §4.6.1.2 [responder-salts].

    RFC 7425 §4.6.1.3 [initiator-salts], RFC 7425 §4.6.1.4 [both-salt], RFC 7425 §4.5.2.2
    [salt-size], RFC 7425 §4.5.2.1 [no-key-if-static] [key-if-ephemeral] and
    RFC 7425 §4.5.2.3 [select-if-static] [select-only-if-static].
    """
    near = profile("i", initiator == "static", (group,))
    far = profile("r", responder == "static", (group,))
    skic, skrc = keyed(near, far)
    if initiator == "static":
        assert (skic.group_select, skic.ephemeral_key) == (group, None)
        assert len(skic.extra_randomness) == 64
    else:
        assert skic.group_select is None
        assert skic.ephemeral_key[0] == group
        assert not skic.extra_randomness
    assert skrc.group_select is None
    if responder == "static":
        assert skrc.ephemeral_key is None
        assert len(skrc.extra_randomness) == 64
    else:
        assert skrc.ephemeral_key[0] == group
        assert not skrc.extra_randomness


@pytest.mark.parametrize("initiator", [True, False])
@pytest.mark.parametrize("responder", [True, False])
def test_the_initiator_prefers(initiator, responder):
    """RFC 7425 §4.6.1: it takes its first group of those that both have."""
    near, far = profile("i", initiator, (16, 5, 2)), profile("r", responder, (2, 14, 5))
    skic, _ = keyed(near, far)
    assert (skic.group_select or skic.ephemeral_key[0]) == 5
    with pytest.raises(RemoteError, match="in common"):
        near.initiate(profile("o", responder, (14,)).certificate)


@given(policies(), policies(), key_pairs())
def test_any_policies(ours, theirs, pair):
    """RFC 7425 §4.6.4, §4.6.6: both ends come to the same protection."""
    near = FlashProfile(drawing("near"), keys=[pair], policy=ours)
    far = FlashProfile(drawing("far"), groups=(2,), policy=theirs)
    keyed(near, far)


def test_salt_makes_each_session_differ():
    """RFC 7425 §4.5.2.2: two static ends do not get the same keys twice."""
    near, far = profile("i", True), profile("r", True)
    first, second = near.initiate(far.certificate), near.initiate(far.certificate)
    one = far.respond(first.component, near.certificate)
    two = far.respond(second.component, near.certificate)
    talk(second.agree(two.component), two.keys)
    assert first.agree(one.component).near_nonce != second.agree(two.component).near_nonce
    with pytest.raises(RemoteError):
        first.agree(two.component).cipher.open(two.keys.cipher.seal(b"x"))


BAD_KEYS = [0, 1, 2, GROUPS[2].prime - 1, GROUPS[2].prime, GROUPS[2].prime + 3, 1 << 1000]


@pytest.mark.parametrize("public", BAD_KEYS)
def test_unacceptable_keys(public):
    """Covers RFC 7425 §4.6.2 [no-session-with-bad-key], wherever the key stands."""
    ephemeral, static = profile("e", False), profile("s", True)
    bad_certificate = certificates.build(keys=[(2, public)])
    bad_key = Policy().component(ephemeral_key=(2, public)).encode()
    select = Policy().component(group_select=2).encode()
    for near in (ephemeral, static):
        with pytest.raises(RemoteError, match="not acceptable"):
            near.initiate(bad_certificate)
        with pytest.raises(RemoteError, match="not acceptable"):
            near.respond(select, bad_certificate)
        with pytest.raises(RemoteError, match="not acceptable"):
            near.respond(bad_key, profile("o", False).certificate)
        with pytest.raises(RemoteError, match="not acceptable"):
            near.initiate(ephemeral.certificate).agree(bad_key)


def test_strangers_with_unacceptable_keys_cost_nothing():
    """Covers RFC 7425 §4.6.2 [no-session-with-bad-key]: no key of ours is made for one."""
    drawn = []

    def random(count):
        drawn.append(count)
        return b"\x55" * count

    near = FlashProfile(random, groups=(2,))
    drawn.clear()
    with pytest.raises(RemoteError, match="not acceptable"):
        near.respond(
            Policy().component(ephemeral_key=(2, 1)).encode(), profile("o", False).certificate
        )
    assert drawn == []


def test_components_that_do_not_fit_the_certificate():
    """Covers RFC 7425 §4.5.2.1 [no-key-if-static] [key-if-ephemeral].

    RFC 7425 §4.5.2.3 [select-if-static] [select-only-if-static], RFC 7425 §4.6.1.1 [same-group].
    """
    near = profile("r", False, (2, 5, 15))
    ephemeral, static = profile("e", False, (2, 14)), profile("s", True, (2, 14))
    key = (2, KeyPair.of(GROUPS[2], 1 << 100).public)
    for far, arguments, reason in (
        (static, {"ephemeral_key": key}, "with static ones"),
        (static, {"ephemeral_key": key, "group_select": 2}, "with static ones"),
        (static, {}, "none of its static"),
        (static, {"group_select": 5}, "none of its static"),
        (static, {"group_select": 14}, "not among ours"),
        (ephemeral, {}, "no ephemeral key"),
        (ephemeral, {"group_select": 2}, "no ephemeral key"),
        (ephemeral, {"group_select": 2, "ephemeral_key": key}, "no ephemeral key"),
        (ephemeral, {"ephemeral_key": (14, key[1])}, "not among ours"),
        (ephemeral, {"ephemeral_key": (5, key[1])}, "not among the initiator's"),
    ):
        component = Policy().component(**arguments).encode()
        with pytest.raises(RemoteError, match=reason):
            near.respond(component, far.certificate)
    unknown = certificates.build(groups=[77], extra=b"x")
    with pytest.raises(RemoteError, match="not known"):
        near.respond(Policy().component(ephemeral_key=(77, 5)).encode(), unknown)
    with pytest.raises(RemoteError, match="no ephemeral key"):
        near.respond(Policy().component().encode(), b"")


def test_answers_that_do_not_fit_the_certificate():
    """Covers RFC 7425 §4.5.2.1 [no-key-if-static] [key-if-ephemeral].

    RFC 7425 §4.6.1.1 [same-group].
    """
    near, key = profile("i", True, (2,)), KeyPair.of(GROUPS[2], 1 << 100).public
    for far, arguments, reason in (
        (profile("r", False), {}, "no ephemeral key in group 2"),
        (profile("r", False), {"ephemeral_key": (14, key)}, "no ephemeral key in group 2"),
        (profile("r", True), {"ephemeral_key": (2, key)}, "with static ones"),
    ):
        agreement = near.initiate(far.certificate)
        with pytest.raises(RemoteError, match=reason):
            agreement.agree(Policy().component(**arguments).encode())
        skrc = far.respond(agreement.component, near.certificate).component
        agreement.agree(skrc)  # a wrong answer does not spoil the right one


def test_required_protection():
    """Covers RFC 7425 §4.6.4 [reject-without-hmac] and RFC 7425 §4.6.6 [reject-without-sseq]."""
    for strict, lax in (
        (Policy(requires_hmac=True), Policy(hmac=OFF)),
        (Policy(requires_sequence_numbers=True), Policy(sequence_numbers=OFF)),
    ):
        server = FlashProfile(drawing("s"), groups=(2,), policy=strict)
        client = FlashProfile(drawing("c"), groups=(2,), policy=lax)
        with pytest.raises(RemoteError, match="sends no"):
            keyed(client, server)
        with pytest.raises(RemoteError, match="sends no"):
            keyed(server, client)


def test_server():
    """Covers RFC 7425 §7 [ephemeral-servers] and RFC 7425 §4.3.3.3 [extra-unique].

    RFC 7425 §4.3.3.4 [several-groups] [ephemeral-excludes-static].
    """
    random = drawing("servers")
    one, other = FlashProfile.server(random), FlashProfile.server(random)
    parsed = Certificate.parse(one.certificate)
    assert parsed.ephemeral_groups == (14, 5, 2)
    assert not parsed.static_keys
    assert one.peer_id != other.peer_id
    assert one.selects(Epd(ancillary_data=b"rtmfp://x/live").encode())
    skic = [one.initiate(other.certificate).component for _ in range(2)]
    assert skic[0] != skic[1], "a new key for every session"


def test_client():
    """Covers RFC 7425 §7 [static-clients] [new-certificate].

    RFC 7425 §4.3.3.5 [several-keys] [one-key-per-group] [static-excludes-ephemeral], and
    RFC 7425 §4.3.3.3 [extra-unique] without need of it.
    """
    random = drawing("clients")
    one, other = FlashProfile.client(random), FlashProfile.client(random)
    parsed = Certificate.parse(one.certificate)
    assert list(parsed.static_keys) == [14, 5, 2]
    assert not parsed.ephemeral_groups
    assert not parsed.extra_randomness, "keys are random enough"
    assert one.peer_id != other.peer_id
    assert not one.selects(Epd(ancillary_data=b"rtmfp://x/live").encode())
    assert one.selects(Epd(fingerprint=one.peer_id).encode())
    assert not one.selects(Epd(fingerprint=other.peer_id).encode())


def test_one_key_per_group():
    """Covers RFC 7425 §4.3.3.5 [one-key-per-group]."""
    pairs = [KeyPair.of(GROUPS[2], 1 << 100), KeyPair.of(GROUPS[2], 1 << 101)]
    made = FlashProfile(drawing("x"), keys=pairs)
    static = fields.values(fields.read(made.certificate), 0x1D)
    assert static == [fields.write_key(2, pairs[1].public)]


def test_no_groups():
    """Own design: our caller's mistake."""
    for groups in ((), (3,), (2, 77)):
        with pytest.raises(LocalError):
            FlashProfile(drawing("x"), groups=groups)


def test_names():
    """Covers RFC 7425 §4.3.2 [fingerprint] and RFC 7425 §4.4.4 [canonical-epd]."""
    one, other = profile("a", False), profile("b", True)
    digest = hashlib.sha256(other.certificate).digest()
    assert one.fingerprint(other.certificate) == other.peer_id == digest
    epd = one.canonical_epd(other.certificate)
    assert epd == b"\x21\x0f" + digest
    assert one.wanted_fingerprint(epd) == digest
    assert one.is_selected(other.certificate, epd)
    assert not one.is_selected(one.certificate, epd)
    assert one.wanted_fingerprint(Epd(ancillary_data=b"rtmfp:").encode()) is None
    assert one.wanted_fingerprint(b"\x05") is None
    for call in (one.fingerprint, one.canonical_epd):
        with pytest.raises(RemoteError):
            call(b"\x05")


def test_hostname():
    """RFC 7425 §4.4.3: an identity with a name is found by it."""
    named = FlashProfile(drawing("n"), groups=(2,), hostname=b"a.example")
    assert named.selects(Epd(b"a.example", b"rtmfp://a.example/").encode())
    assert not named.selects(Epd(b"b.example", b"rtmfp://b.example/").encode())


@given(any_certificates())
def test_any_certificate_is_authentic(pair):
    """Covers RFC 7425 §4.3.4 [encoded-is-authentic]."""
    assert profile("a", False).is_authentic(pair[0])
    assert not profile("a", False).is_authentic(pair[0] + b"\x05")


def test_glare_and_override():
    """Covers RFC 7425 §4.3.6 [glare-order] and RFC 7425 §4.3.7 [only-identical-overrides]."""
    near = profile("a", False)
    own = near.certificate
    assert near.wins_glare(own)
    assert near.wins_glare(own + b"\x00")
    assert not near.wins_glare(own[:-1])
    assert not near.wins_glare(bytes([own[0] - 1]) + own[1:] * 2)
    assert near.wins_glare(b"\xff")
    assert near.overrides(own, own)
    assert not near.overrides(own, own + b"\x00")
    far = profile("b", True)
    assert near.wins_glare(far.certificate) != far.wins_glare(own)


def test_passwords():
    """Covers RFC 7425 §4.3.5 [x-for-none] [may-require]."""
    plain = profile("a", False)
    alice = FlashProfile(drawing("x"), groups=(2,), passwords=Passwords(((b"alice", b"secret"),)))
    gate = Passwords(theirs={b"alice": b"secret"}, required=True)
    server = FlashProfile(drawing("y"), groups=(2,), passwords=gate)
    assert plain.sign(b"parameters") == b"X"
    signature = alice.sign(b"parameters")
    assert server.verify(alice.certificate, b"parameters", signature)
    assert plain.verify(alice.certificate, b"parameters", signature)
    assert not server.verify(alice.certificate, b"others", signature)
    assert not server.verify(plain.certificate, b"parameters", b"X")
    for shown in (gate, alice, server, Passwords(((b"alice", b"secret"),))):
        assert "secret" not in repr(shown)


def test_nothing_secret_is_shown():
    """Own design: no repr shows a secret."""
    near, far = profile("i", True), profile("r", False)
    agreement = near.initiate(far.certificate)
    answer = far.respond(agreement.component, near.certificate)
    shown = repr([near, far, agreement, answer, agreement.agree(answer.component)])
    assert answer.keys.near_nonce.hex()[:8] not in shown
    assert repr(answer.keys.near_nonce) not in shown
    assert near.peer_id.hex() in shown


@given(mutations(components().map(lambda pair: pair[0])), st.booleans(), st.booleans(), st.data())
def test_never_crashes(component, static, plain, data):
    """RFC 7425 §3: components and certificates are accepted, or refused with RemoteError."""
    near = profile("n", static)
    far = profile("f", static).certificate
    agreement = near.initiate(far)
    if plain:
        component = near.initiate(profile("n", not static).certificate).component
    certificate = data.draw(
        st.just(far) | mutations(any_certificates().map(lambda pair: pair[0]) | st.just(far))
    )
    for step in (
        lambda: near.respond(component, certificate),
        lambda: agreement.agree(component),
        lambda: near.initiate(certificate),
    ):
        try:
            step()
            event("agreed")
        except RemoteError as error:
            event(str(error)[-30:])


@given(
    mutations(any_certificates().map(lambda pair: pair[0])), mutations(epds().map(lambda e: e[0]))
)
def test_questions_never_raise(certificate, epd):
    """RFC 7016 §3.2: methods that return a bool never raise."""
    near = profile("n", False)
    assert near.selects(epd) == near.is_selected(near.certificate, epd)
    assert near.is_authentic(certificate) or not near.is_selected(certificate, epd)
    near.wanted_fingerprint(epd)
    near.wins_glare(certificate)

"""Keying components, and the protection and keys that two of them make."""

import hmac
import itertools

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations, peak

from rtmplite.errors import LocalError, RemoteError
from rtmplite.rtmfp.crypto.cipher import FlashCipher
from rtmplite.rtmfp.crypto.keying import Component, Negotiation, Policy, derive, protections
from rtmplite.strategies.rtmfp_crypto import components, negotiations, policies

FLAGS = [Negotiation(*flags) for flags in itertools.product((False, True), repeat=3)]


@given(components())
def test_what_is_read(pair):
    """Covers RFC 7425 §4.5.2 [unknown-ignored]."""
    encoded, expected = pair
    assert Component.parse(encoded) == expected


def test_layout():
    """Covers RFC 7425 §4.5.2.4 [hmac-layout] and RFC 7425 §4.5.2.5 [sseq-layout]."""
    policy = Policy(Negotiation(True, False, True), 10, Negotiation(False, True, False))
    assert policy.component(ephemeral_key=(2, 0x0304)).encode().hex(" ") == (
        "04 0d 02 03 04 03 1a 05 0a 02 1e 02"
    )
    assert policy.component(group_select=200, extra_randomness=b"salt").encode().hex(" ") == (
        "03 1d 81 48 05 0e 73 61 6c 74 03 1a 05 0a 02 1e 02"
    )


def test_flags():
    """Covers RFC 7425 §3 [reserved-zero] [reserved-ignored]."""
    assert [flags.flags for flags in FLAGS] == list(range(8))
    for byte in range(256):
        assert Negotiation.parse(byte) == FLAGS[byte & 7]


@pytest.mark.parametrize("length", [0, 1, 3, 33, 1000])
@pytest.mark.parametrize("flags", [2, 4, 6, 7])
def test_impossible_hmac_lengths(length, flags):
    """Covers RFC 7425 §4.5.2.4 [hmac-length] and RFC 7425 §4.6.4 [hmac-length-4-to-32]."""
    value = bytes([0x1A, flags]) + (b"\x87\x68" if length == 1000 else bytes([length]))
    with pytest.raises(RemoteError, match=f"HMACs of {length} bytes"):
        Component.parse(bytes([len(value)]) + value)
    with pytest.raises(LocalError):
        Policy(hmac_length=length)


@pytest.mark.parametrize("flags", [0, 1])
def test_length_of_hmacs_never_sent(flags):
    """Covers RFC 7425 §4.5.2.4 [hmac-length]: we write 0, and accept any length of others."""
    policy = Policy(hmac=FLAGS[flags])
    assert policy.component().encode() == bytes([3, 0x1A, flags, 0, 2, 0x1E, 7])
    for length in (0, 1, 16, 99):
        assert Component.parse(bytes([3, 0x1A, flags, length])).hmac == FLAGS[flags]


@pytest.mark.parametrize(
    "encoded",
    [
        "03 0d 02 07 03 0d 02 07",
        "02 1d 02 02 1d 02",
        "01 1a",
        "02 1a 07",
        "02 1a 00",
        "01 1e",
        "01 0d",
        "01 1d",
        "02 1d",
    ],
)
def test_refused(encoded):
    """Covers RFC 7425 §4.5.2.1 [ephemeral-key-once] and RFC 7425 §4.5.2.3 [group-select-once].

    RFC 7425 §3 [truncation-noticed].
    """
    with pytest.raises(RemoteError):
        Component.parse(bytes.fromhex(encoded))


@pytest.mark.parametrize("near", FLAGS)
@pytest.mark.parametrize("far", FLAGS)
def test_what_is_settled(near, far):
    """Covers RFC 7425 §4.6.4 [hmac-always] [hmac-on-request] [else-checksum].

    RFC 7425 §4.6.6 [sseq-always] [sseq-on-request], RFC 7425 §4.7.3.2 [each-end-its-length].
    """
    ours = Policy(near, 8, Negotiation()).component()
    theirs = Policy(far, 20, Negotiation()).component()
    send, receive = protections(derive(b"secret", b"near", b"far"), ours, theirs)
    we_do = near.will_send_always or (near.will_send_on_request and far.request)
    they_do = far.will_send_always or (far.will_send_on_request and near.request)
    assert (send.hmac_length, receive.hmac_length) == (8 * we_do, 20 * they_do)
    assert not send.numbered
    ours = Policy(sequence_numbers=near).component()
    theirs = Policy(sequence_numbers=far).component()
    send, receive = protections(derive(b"secret", b"near", b"far"), ours, theirs)
    assert (send.numbered, receive.numbered) == (we_do, they_do)


@given(policies(), policies(), st.binary(min_size=1))
def test_both_ends_settle_the_same(ours, theirs, packet):
    """Covers RFC 7425 §4.6.4 [hmac-send-key] [hmac-recv-key].

    RFC 7425 §4.6.3 [encrypt-key] [decrypt-key].
    """
    near, far = ours.component(), theirs.component()
    here, there = derive(b"secret", b"near", b"far"), derive(b"secret", b"far", b"near")
    one = FlashCipher(*protections(here, near, far))
    other = FlashCipher(*protections(there, far, near))
    assert other.open(one.seal(packet))[: len(packet)] == packet
    assert one.open(other.seal(packet))[: len(packet)] == packet


def test_derivation():
    """Covers RFC 7425 §4.6.3 [encrypt-key] [decrypt-key], RFC 7425 §4.6.5 [near-nonce] [far-nonce].

    RFC 7425 §4.6.4 [hmac-send-key] [hmac-recv-key].
    """

    def mac(key, message):
        return hmac.new(key, message, "sha256").digest()

    keys = derive(b"secret", b"near", b"far")
    assert keys.encrypt_key == mac(b"secret", mac(b"far", b"near"))
    assert keys.decrypt_key == mac(b"secret", mac(b"near", b"far"))
    assert keys.hmac_send_key == mac(b"secret", keys.encrypt_key)
    assert keys.hmac_recv_key == mac(b"secret", keys.decrypt_key)
    assert keys.near_nonce == mac(b"secret", b"near")
    assert keys.far_nonce == mac(b"secret", b"far")
    assert "'" not in repr(keys)


@given(negotiations())
def test_what_is_required(flags):
    """Covers RFC 7425 §4.6.4 [reject-without-hmac] and RFC 7425 §4.6.6 [reject-without-sseq]."""
    sends = flags.will_send_always or flags.will_send_on_request
    for policy, far in (
        (Policy(requires_hmac=True), Policy(hmac=flags).component()),
        (Policy(requires_sequence_numbers=True), Policy(sequence_numbers=flags).component()),
    ):
        Policy().check(far)
        refusal = ""
        try:
            policy.check(far)
        except RemoteError as error:
            refusal = str(error)
        assert ("sends no" in refusal, refusal == "") == (not sends, sends)


def test_default_policy():
    """Covers RFC 7425 §7 [numbers-against-replay] [numbers-against-likeness] [hmac]."""
    near = Policy().component()
    send, receive = protections(derive(b"secret", b"near", b"far"), near, near)
    assert send.numbered
    assert receive.numbered
    assert send.hmac_length == receive.hmac_length == 16


@given(mutations(components().map(lambda pair: pair[0])))
def test_never_crashes(data):
    """RFC 7425 §3: a component, or RemoteError."""

    def attempt():
        try:
            Component.parse(data)
            event("a component")
        except RemoteError:
            event("refused")

    assert peak(attempt) <= 32 * len(data) + 65536

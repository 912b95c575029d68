"""STUN messages survive the round trip, and nobody but the owner of the key signs them."""

import hmac
import json

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations, peak

from p2psip.errors import LocalError, RemoteError
from p2psip.nat.stun import (
    BINDING,
    StunClass,
    StunMessage,
    StunType,
    TransportAddress,
    is_stun,
    long_term_key,
    read_address,
    write_address,
    write_error,
)
from p2psip.strategies.stun import addresses, messages, transaction_ids

KEYS = st.none() | st.binary(min_size=1, max_size=64)
spoiled = mutations(messages(KEYS).map(lambda message: message.data))


@given(messages(KEYS))
def test_reading_undoes_writing(message):
    """Covers RFC 8489 §5 [length-without-header], §14 [type-length-value] [ends-on-four].

    §14 [length-before-padding] [padding-zero].
    """
    read = StunMessage.parse(message.data)
    assert read == message
    assert is_stun(message.data) and len(message.data) % 4 == 0


@given(spoiled | spoiled | spoiled | st.binary(max_size=80))
def test_any_octets_are_read_or_refused(data):
    """Covers RFC 8489 §6.3."""
    if is_stun(data):
        event("passed the first fields")
    try:
        message = StunMessage.parse(data)
        message.integrity_holds(b"key")
        message.fingerprint_holds()
        message.unknown(())
        message.mapped_address()
        message.error()
        message.text(StunType.REALM)
    except RemoteError:
        event("refused")


@given(spoiled)
def test_memory_is_bounded_by_the_input(data):
    def read():
        try:
            StunMessage.parse(data)
        except RemoteError:
            return

    assert peak(read) <= 32 * len(data) + (1 << 16)


@given(messages(st.binary(min_size=1, max_size=64)), st.binary(min_size=1, max_size=64))
def test_another_key_signs_differently(message, key):
    """Covers RFC 8489 §14.5."""
    again = StunMessage.write(message.kind, message.method, message.transaction_id, (), key=key)
    assert again.integrity_holds(key)
    assert not again.integrity_holds(key + b"x")
    assert not message.integrity_holds(b"another" + key)


@given(messages(st.just(b"key")), st.data())
def test_a_changed_bit_breaks_signature_and_fingerprint(message, data):
    """Covers RFC 8489 §14.5, §14.7."""
    at = data.draw(st.integers(8, 19))  # the transaction ID, which leaves the frame as it is
    changed = bytearray(message.data)
    changed[at] ^= 1 << data.draw(st.integers(0, 7))
    read = StunMessage.parse(bytes(changed))
    assert message.integrity_holds(b"key") and not read.integrity_holds(b"key")
    assert not read.fingerprint_holds()


@given(addresses, transaction_ids)
def test_addresses_survive_the_round_trip(address, identifier):
    """Covers RFC 8489 §14.1 [ipv4-32-bits] [ipv6-128-bits] [first-octet], §14.2."""
    assert read_address(write_address(address)) == address
    assert read_address(write_address(address, identifier), identifier) == address
    assert write_address(address, identifier)[4:] != write_address(address)[4:]


def test_the_vectors_of_rfc_5769(corpus):
    """Covers RFC 8489 §14.5, §14.7, §9.2.2."""
    vectors = json.loads((corpus / "stun" / "rfc5769_vectors.json").read_text())["vectors"]
    assert len(vectors) >= 4
    for vector in vectors:
        message, wanted = StunMessage.parse(bytes.fromhex(vector["hex"])), vector["expect"]
        key = wanted["password"].encode()
        if vector["credential"] == "long-term":
            key = long_term_key(wanted["username"], wanted["realm"], wanted["password"])
        assert message.integrity_holds(key) is vector["integrity_verifies"]
        assert message.fingerprint_holds() is bool(vector["fingerprint_verifies"])
        mapped = message.mapped_address()
        if mapped is not None:
            host = f"[{mapped.host}]" if ":" in mapped.host else mapped.host
            assert f"{host}:{mapped.port}" == wanted["xor_mapped"]


def test_a_conversation_with_coturn_is_read(capture):
    """Covers RFC 8489 §9.2.2, §14.5, §14.7: what another implementation has signed."""
    datagrams = [packet.data for packet in capture("stun/coturn_turn_udp.pcap")]
    stun = [StunMessage.parse(data) for data in datagrams if is_stun(data)]
    assert len(stun) == 160
    assert sum(message.fingerprint_holds() for message in stun) == 158
    right, wrong = (long_term_key("user1", "example.org", word) for word in ("pass1", "wrong"))
    signed = [message for message in stun if message.get(StunType.MESSAGE_INTEGRITY)]
    assert sum(message.integrity_holds(right) for message in signed) == 70
    assert sum(message.integrity_holds(wrong) for message in signed) == 31
    refusals = {message.error() for message in stun if message.kind is StunClass.ERROR}
    assert (401, "Unauthorized") in refusals


def test_old_stun_is_told_from_new(capture):
    """Covers RFC 8489 §6.3: no magic cookie, no message."""
    for packet in capture("stun/stun_classic.pcap"):
        if packet.data[:2] in (b"\x00\x01", b"\x01\x01"):
            with pytest.raises(RemoteError):
                StunMessage.parse(packet.data)


@pytest.mark.parametrize("digest", ["sha1", "sha256"])
def test_what_stands_behind_the_signature_does_not_count(digest):
    """Covers RFC 8489 §14.5, §9 [ends-at-sha1] [ends-at-sha256]."""
    name = [(StunType.USERNAME, b"ann")]
    signed = StunMessage.write(StunClass.REQUEST, BINDING, bytes(12), name, key=b"k", digest=digest)
    forged = signed.data + b"\x00\x14\x00\x04evil"
    forged = forged[:2] + (len(forged) - 20).to_bytes(2) + forged[4:]
    read = StunMessage.parse(forged)
    assert read.get(StunType.REALM) is None and read.text(StunType.USERNAME) == "ann"
    assert read.integrity_holds(b"k")


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x01\x00\x00",
        b"\xc0\x01\x00\x00\x21\x12\xa4\x42" + bytes(12),
        b"\x00\x01\x00\x00\x21\x12\xa4\x43" + bytes(12),
        b"\x00\x01\x00\x04\x21\x12\xa4\x42" + bytes(12),
        b"\x00\x01\x00\x02\x21\x12\xa4\x42" + bytes(14),
        b"\x00\x01\x00\x04\x21\x12\xa4\x42" + bytes(12) + b"\x00\x06\x00\x01",
    ],
    ids=["short", "first bits", "cookie", "length", "odd length", "attribute"],
)
def test_what_is_no_stun_is_refused(data):
    """Covers RFC 8489 §5 [top-bits-zero] [magic-cookie] [length-without-header]."""
    assert StunMessage.parse(b"\x00\x01\x00\x00\x21\x12\xa4\x42" + bytes(12)).method == BINDING
    with pytest.raises(RemoteError):
        StunMessage.parse(data)


@pytest.mark.parametrize(("size", "family"), [(4, 1), (8, 2), (20, 1), (8, 0), (3, 1), (9, 1)])
def test_an_address_has_the_length_of_its_family(size, family):
    """Covers RFC 8489 §14.1 [ipv4-32-bits] [ipv6-128-bits]."""
    with pytest.raises(RemoteError, match="length"):
        read_address(bytes([0, family]) + bytes(size - 2))


def test_wrong_arguments_are_the_callers_fault():
    for wrong in (
        lambda: StunMessage.write(StunClass.REQUEST, 0x1000, bytes(12)),
        lambda: StunMessage.write(StunClass.REQUEST, BINDING, bytes(11)),
        lambda: write_address(("example.com", 1)),
        lambda: write_address(("192.0.2.1", 65_536)),
        lambda: write_error(200, "OK"),
    ):
        with pytest.raises(LocalError):
            wrong()


def test_unknown_types_below_8000_demand_to_be_understood():
    """Covers RFC 8489 §6.3 [optional-ignored] [unexpected-ignored], §14."""
    listed = [(0x0024, b"1234"), (0x8000, b""), (0x7FFF, b""), (StunType.USERNAME, b"ann")]
    message = StunMessage.write(StunClass.REQUEST, BINDING, bytes(12), listed)
    assert message.unknown(StunType) == (0x0024, 0x7FFF)
    assert TransportAddress("192.0.2.1", 1) == ("192.0.2.1", 1)


def test_of_two_attributes_of_a_type_the_first_counts():
    """Covers RFC 8489 §14 [may-appear-again] [first-counts]."""
    twice = StunMessage.write(StunClass.REQUEST, BINDING, bytes(12), [(6, b"ann"), (6, b"bob")])
    assert StunMessage.parse(twice.data).text(StunType.USERNAME) == "ann"


def test_padding_and_reserved_bits_are_not_looked_at():
    """Covers RFC 8489 §14 [padding-zero], §14.1 [first-octet], §14.8 [reserved-ignored]."""
    message = StunMessage.write(StunClass.ERROR, BINDING, bytes(12), [(6, b"ann")])
    assert message.data[-1:] == b"\0"
    assert StunMessage.parse(message.data[:-1] + b"\xff").text(StunType.USERNAME) == "ann"
    address = write_address(("192.0.2.1", 1))
    assert address[0] == 0 and read_address(b"\xff" + address[1:]) == ("192.0.2.1", 1)
    code = b"\xff\xff\xfc\x0fwhy\xff"
    assert StunMessage.write(StunClass.ERROR, BINDING, bytes(12), [(9, code)]).error() == (
        415,
        "why\N{REPLACEMENT CHARACTER}",
    )


@pytest.mark.parametrize(("code", "why"), [(300, ""), (420, "why"), (699, "why")])
def test_an_error_code_is_written_in_two_parts(code, why):
    """Covers RFC 8489 §14.8 [reserved-zero] [class-3-to-6] [number-0-to-99]."""
    value = write_error(code, why)
    assert value == bytes((0, 0, code // 100, code % 100)) + why.encode()
    assert StunMessage.write(StunClass.ERROR, BINDING, bytes(12), [(9, value)]).error() == (
        code,
        why,
    )


@pytest.mark.parametrize("code", [299, 700])
def test_no_other_error_code_is_written(code):
    """Covers RFC 8489 §14.8 [class-3-to-6]."""
    with pytest.raises(LocalError):
        write_error(code, "why")


@pytest.mark.parametrize("value", [b"\0\0\x02\0", b"\0\0\x07\0", b"\0\0\x04\x64", b"\0\0\x04"])
def test_an_error_code_out_of_range_is_refused(value):
    """Covers RFC 8489 §14.8 [class-3-to-6] [number-0-to-99]."""
    message = StunMessage.write(StunClass.ERROR, BINDING, bytes(12), [(9, value)])
    with pytest.raises(RemoteError):
        message.error()


@pytest.mark.parametrize(("size", "holds"), [(32, True), (16, True), (12, False), (18, False)])
def test_a_longer_digest_may_be_cut(size, holds):
    """Covers RFC 8489 §14.6 [cut-to-16-or-more] [cut-by-fours]."""

    def head(length):
        return bytes.fromhex("0001") + length.to_bytes(2) + b"\x21\x12\xa4\x42" + bytes(12)

    digest, padding = hmac.digest(b"key", head(4 + size), "sha256")[:size], bytes(-size % 4)
    integrity = b"\x00\x1c" + size.to_bytes(2) + digest + padding
    message = StunMessage.parse(head(len(integrity)) + integrity)
    assert message.integrity_holds(b"key") is holds
    assert not message.integrity_holds(b"yek")


def test_the_fingerprint_comes_last():
    """Covers RFC 8489 §14.7 [fingerprint-last]."""
    signed = StunMessage.write(
        StunClass.REQUEST, BINDING, bytes(12), (), key=b"k", fingerprint=True
    )
    assert [kind for kind, _ in signed.attributes] == [
        StunType.MESSAGE_INTEGRITY,
        StunType.FINGERPRINT,
    ]
    assert signed.integrity_holds(b"k") and signed.fingerprint_holds()

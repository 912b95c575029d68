"""DTLS of a real handshake, explained to the certificate and the profile of SRTP."""

from contextlib import suppress

import pytest
from support.explained import hold

from p2psip.net.dtls import DtlsIdentity, DtlsServer
from rtclab.explain import dtls
from rtclab.explain.fields.context import Context
from rtclab.explain.fields.field import Span
from rtclab.explain.guess import datagram

SSL = pytest.importorskip("OpenSSL.SSL")


def handshake():
    """The datagrams of both sides, of a client and a server with a certificate of its own."""
    ours, theirs = DtlsIdentity(), DtlsIdentity()
    server = DtlsServer(ours, theirs.fingerprint)
    client = SSL.Connection(theirs.context, None)
    client.set_connect_state()
    client.set_ciphertext_mtu(1200)
    sent = []
    for _ in range(4):
        with suppress(SSL.WantReadError):
            client.do_handshake()
        try:
            said = client.bio_read(1 << 16)
        except SSL.WantReadError:
            break
        answers = server.received(said, 0.0)
        sent += [said, *answers]
        for each in answers:
            client.bio_write(each)
    assert server.keys is not None
    return ours, theirs, sent


def test_a_handshake_is_explained():
    """The profile is named, and a certificate by the hash that its description has."""
    ours, theirs, sent = handshake()
    fields = [datagram(Span.all(each), Context()) for each in sent]
    for field, data in zip(fields, sent, strict=True):
        hold(field, data)
        assert field.name == "DTLS" and list(field.faults()) == []
    told = [each for field in fields for each in field.walk()]
    assert {each.meaning for each in told if each.name == "profile"} == {
        "SRTP_AES128_CM_HMAC_SHA1_80"
    }
    prints = {each.value for each in told if each.name == "certificate" and each.value}
    shown = {f"sha-256 {each.fingerprint}"[:120] for each in (ours, theirs)}
    assert {each.removesuffix("...") for each in prints} == shown
    names = [each.name for each in told]
    assert names.index("client hello") < names.index("server hello") < names.index("encrypted")


def test_a_fragment_and_an_alert_are_told():
    part = bytes.fromhex("16fefd0000000000000001000f 01000020 0001 000004 000003 aabbcc")
    alert = bytes.fromhex("15fefd00000000000000020002 0228")
    field = dtls.datagram(Span.all(part + alert), Context())
    hold(field, part + alert)
    told = {each.name: (each.value, each.meaning) for each in field.walk()}
    assert told["fragment"][1] == "a part of the message"
    assert told["level"] == ("2", "fatal") and told["description"] == ("40", "handshake failure")


def test_a_record_that_is_cut_is_a_fault():
    data = bytes.fromhex("16fefd00000000000000010100 0100")
    field = dtls.datagram(Span.all(data), Context())
    hold(field, data)
    assert [each.reason for each in field.faults()] == ["handshake ends too soon"]

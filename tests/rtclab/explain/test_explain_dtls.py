"""DTLS of a real handshake, explained to the certificate and the profile of SRTP."""

from support.explained import hold
from support.lint.dtls_handshake import dtls_handshake

from rtclab.explain import dtls
from rtclab.explain.fields.context import Context
from rtclab.explain.fields.field import Span
from rtclab.explain.guess import datagram


def test_a_handshake_is_explained():
    """The profile is named, and a certificate by the hash that its description has."""
    ours, theirs, _, told = dtls_handshake()
    sent = [data for _, data in told]
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

"""The audio of two phones whose keys come by DTLS on the way that ICE has found."""

import re

import pytest
from support.sip.audio_ends import LOOPBACK, AudioEnd, closed, converse, exchange
from support.sip.phones import wait_for

from p2psip.errors import RemoteError
from p2psip.net.media.dtls_flow import DtlsSettings
from p2psip.net.media.ice_port import IcePlaces
from p2psip.net.media.port_pool import PortPool

dtls = pytest.importorskip("p2psip.net.dtls")
HASH = re.compile(r"^a=fingerprint:sha-256 (?:[0-9A-F]{2}:){31}[0-9A-F]{2}\r$", re.M)


class End(AudioEnd):
    """One with a certificate of its own."""

    def __init__(self, *, has_dtls=True):
        pool, identity = PortPool(), dtls.DtlsIdentity()
        settings = DtlsSettings(
            identity.fingerprint,
            lambda theirs, is_client: dtls.DtlsEnd(identity, theirs, is_client=is_client),
        )
        ice = IcePlaces([(LOOPBACK, pool)])
        super().__init__(pool, ice=ice, dtls=settings if has_dtls else None)
        self.transport = self.stream._transport


@pytest.fixture
def end():
    yield from closed(End)


def setup(sdp):
    return re.findall(r"^a=setup:(\w+)\r$", sdp, re.M)


@pytest.mark.parametrize(("offered", "answered"), [("actpass", "active"), ("active", "passive")])
def test_keys_come_by_a_handshake(end, offered, answered):
    """Covers RFC 5763 §5 [offers-actpass] [answers-active-or-passive] [answers-active].

    Covers RFC 5763 §5 [fingerprint-is-said] [active-begins].
    """
    alice, bob = end(), end()

    def changed(sdp):
        return sdp.replace(b"setup:actpass", b"setup:" + offered.encode())

    offer, answer = exchange(alice, bob, in_offer=changed)
    assert setup(bytes(alice.stream._offered).decode()) == ["actpass"]
    assert setup(offer) == [offered] and setup(answer) == [answered]
    for said in (offer, answer):
        assert " UDP/TLS/RTP/SAVPF " in said and "a=mid:0\r" in said and "a=rtcp-mux\r" in said
        assert len(HASH.findall(said)) == 1
    assert not alice.stream.is_ready and not alice.stream.encrypted
    converse(alice, bob)
    assert alice.stream.encrypted and bob.stream.encrypted
    assert alice.transport._srtp.refused == bob.transport._srtp.refused == 0
    _, again = exchange(alice, bob)
    assert setup(again) == [answered]  # the handshake stays
    converse(bob, alice)


def test_audio_in_clear_is_not_heard(end):
    """RFC 5763 §5: neither before the keys, nor with them."""
    alice, bob = end(), end()
    exchange(alice, bob)
    packet = bytes.fromhex("80000001000000000000abcd") + bytes(160)
    assert not bob.transport._receive_srtp(packet, 0.0)
    assert not bob.transport._receive_rtcp(b"\x80\xc9\x00\x01four", 0.0)
    wait_for(lambda: alice.stream.is_ready and bob.stream.is_ready)
    assert not bob.transport._receive_srtp(packet, 0.0)
    alice.transport._port.send_rtp(packet)
    converse(alice, bob)
    assert bob.transport._srtp.refused == 2


def test_another_certificate_than_that_of_the_description_ends_it(end):
    """Covers RFC 5763 §5 [certificate-matches] [mismatch-ends-it]."""
    alice, bob = end(), end()
    exchange(alice, bob, in_offer=forged)
    wait_for(lambda: bob.lost)
    assert "certificate" in bob.lost[0] and not bob.stream.is_ready and not bob.stream.encrypted


def forged(sdp):
    """The description of another certificate."""
    return re.sub(rb"(fingerprint:sha-256) \S+", rb"\1 " + b":".join([b"AB"] * 32), sdp)


def test_a_peer_that_says_goodbye_has_its_call_ended_by_sip(end):
    alice, bob = end(), end()
    exchange(alice, bob)
    converse(alice, bob)
    handshake = alice.transport._dtls._end
    bob.stream.close()
    wait_for(lambda: handshake.closed)
    assert alice.lost == []


@pytest.mark.parametrize("missing", [b"setup", b"fingerprint", b"ice-pwd", b"rtcp-mux"])
def test_an_offer_that_lacks_a_part_is_refused(end, missing):
    alice, bob = end(), end()
    offer = re.sub(rb"(?m)^a=%b\b.*\r\n" % missing, b"", alice.stream.offer())
    with pytest.raises(RemoteError) as refused:
        bob.stream.answer(offer)
    assert refused.value.status == 488


def test_a_phone_with_dtls_takes_calls_without_it_and_offers_no_others(end):
    """As it does with SRTP by SDES: what is offered is answered alike."""
    alice, bob = end(has_dtls=False), end()
    _, answer = exchange(alice, bob)
    assert " RTP/AVP " in answer and "fingerprint" not in answer
    converse(alice, bob)
    assert not bob.stream.encrypted
    with pytest.raises(RemoteError):
        end(has_dtls=False).stream.answer(end().stream.offer())

"""The Flash profile of cryptography: keys that are agreed on, and packets that prove themselves.

Implements RFC 7425 §4, from the initiator's side.
"""

import os
from dataclasses import replace
from functools import partial

from rtclab.conform.case import Cases, NotApplicable, Unmet
from rtclab.conform.checks import at_most
from rtclab.conform.rtmfp.peer import GROUP, RtmfpPeer, ephemeral_profile, policy_profile
from rtclab.conform.rtmfp.session import RtmfpSession, open_session, session_of
from rtmplite.rtmfp.crypto.cipher import Protection, Sealer
from rtmplite.rtmfp.crypto.dh import GROUPS
from rtmplite.rtmfp.crypto.flash_profile import FlashProfile
from rtmplite.rtmfp.crypto.keying import Component, Negotiation, Policy
from rtmplite.rtmfp.wire.control_chunks import Ping, PingReply
from rtmplite.rtmfp.wire.option import Option, encode_option
from rtmplite.rtmfp.wire.packet import scramble

cases: Cases[RtmfpPeer] = Cases()
must = partial(cases.case, role="responder")
should = partial(cases.case, role="responder", level="SHOULD")

NEVER, ALWAYS = Negotiation(), Negotiation(True, True, True)
PLAIN = Policy(hmac=NEVER, sequence_numbers=NEVER)
NUMBERED = Policy(hmac=NEVER, sequence_numbers=ALWAYS)
_PATIENCE = 2.0  # s for an answer to a policy that a target need not accept
_ORDER = 31  # packets by which the last may be late: §4.7.3.3


@must("RFC 7425 §4.7.3.1", "checksum-mismatch-discarded")
def wrong_checksum_is_dropped(peer: RtmfpPeer) -> None:
    """A hello whose checksum does not match is not answered (§4.7.3.1)."""
    hello = peer.hello_chunk()
    # The last block is padding alone, so that the chunk before it is whole.
    encrypted = peer.cipher.seal(peer.startup(hello) + b"\xff" * 32)
    peer.send(scramble(0, _spoiled(encrypted)))
    peer.expect_no_answer("no answer to a packet with a wrong checksum", hello)


@must("RFC 7425 §4.7.2", "encrypted-layout")
def packet_of_half_a_block_is_dropped(peer: RtmfpPeer) -> None:
    """Bytes behind the last whole block make a packet that nobody reads (§4.7.2)."""
    hello = peer.hello_chunk()
    peer.send(scramble(0, peer.cipher.seal(peer.startup(hello)) + b"half"))
    peer.expect_no_answer("no answer to a packet of half a block", hello)


@must("RFC 7425 §4.7.2", "encrypted-layout")
def startup_packets_have_whole_blocks(peer: RtmfpPeer) -> None:
    """A packet under the Default Session Key consists of whole blocks (§4.7.2)."""
    peer.say(peer.hello_chunk())
    _, encrypted = peer.datagram()
    if len(encrypted) % 16:
        raise Unmet("whole blocks of 16 bytes", f"{len(encrypted)} bytes")


@must("RFC 7425 §4.2", "group-2")
def group_2_is_there(peer: RtmfpPeer) -> None:
    """Keys of 1024 bits can be agreed on (§4.2)."""
    _open_as(peer, FlashProfile.client(os.urandom, groups=(2,))).ping()


@should("RFC 7425 §4.2", "groups-5-14")
def group_5_is_there(peer: RtmfpPeer) -> None:
    """Keys of 1536 bits can be agreed on (§4.2)."""
    _open_as(peer, FlashProfile.client(os.urandom, groups=(5,))).ping()


@should("RFC 7425 §4.2", "groups-5-14")
def group_14_is_there(peer: RtmfpPeer) -> None:
    """Keys of 2048 bits can be agreed on (§4.2)."""
    _open_as(peer, FlashProfile.client(os.urandom, groups=(14,))).ping()


@must("RFC 7425 §4.6.1.1", "same-group")
def ephemeral_key_opens_a_session(peer: RtmfpPeer) -> None:
    """An initiator may have a new key for each session (§4.6.1.1)."""
    _open_as(peer, ephemeral_profile()).ping()


@must("RFC 7425 §4.6.2", "no-session-with-bad-key")
def public_key_of_1_has_no_session(peer: RtmfpPeer) -> None:
    """A public key that gives the secret away is refused (§4.6.2)."""
    _expect_key_refused(peer, 1)


@must("RFC 7425 §4.6.2", "at-most-p-less-2-24")
def public_key_next_to_the_prime_has_no_session(peer: RtmfpPeer) -> None:
    """A public key equal to the prime minus one is refused (§4.6.2)."""
    _expect_key_refused(peer, GROUPS[GROUP].prime - 1)


@must("RFC 7425 §4.6.2", "16-ones")
def public_key_of_few_bits_has_no_session(peer: RtmfpPeer) -> None:
    """And a number with hardly a bit set (§4.6.2)."""
    _expect_key_refused(peer, 1 << 1000)


@must("RFC 7425 §4.5.2.1", "key-if-ephemeral")
def component_without_a_key_has_no_session(peer: RtmfpPeer) -> None:
    """An initiator without a static key has to send one (§4.5.2.1)."""
    keying = peer.keying(peer.hello(), profile=ephemeral_profile())
    component = PLAIN.component(extra_randomness=os.urandom(16)).encode()
    changed = keying.changed(session_key_initiator_component=component)
    peer.expect_no_session("silence for a component without a key", changed)


@must("RFC 7425 §4.5.2", "unknown-ignored")
def unknown_option_of_a_component_is_passed_by(peer: RtmfpPeer) -> None:
    """A keying component may have options that nobody knows (§4.5.2)."""
    keying = peer.keying(peer.hello())
    agreement = keying.agreement
    agreement.component = encode_option(Option(0x3B, b"?")) + agreement.component
    session_of(peer, keying.changed(session_key_initiator_component=agreement.component)).ping()


@must("RFC 7425 §4.6.4", "else-checksum")
def session_without_hmacs_has_checksums(peer: RtmfpPeer) -> None:
    """Packets have a checksum where nobody asked for HMACs (§4.6.4)."""
    _open_by(peer, PLAIN).ping()


@must("RFC 7425 §4.6.4", "hmac-on-request")
def hmacs_come_if_asked_for(peer: RtmfpPeer) -> None:
    """An end that sends HMACs on request does so if asked, whatever it gets (§4.6.4)."""
    asking = Policy(hmac=Negotiation(request=True), sequence_numbers=NEVER)
    _open_by(peer, asking).ping()


@must("RFC 7425 §4.7.3.2", "each-end-its-length")
def hmacs_of_4_bytes_are_verified(peer: RtmfpPeer) -> None:
    """The shortest HMAC there is is enough (§4.5.2.4, §4.7.3.2)."""
    _open_by(peer, Policy(hmac_length=4)).ping()


@must("RFC 7425 §4.7.3.2", "each-end-its-length")
def hmacs_of_32_bytes_are_verified(peer: RtmfpPeer) -> None:
    """An HMAC may be sent whole (§4.5.2.4, §4.7.3.2)."""
    _open_by(peer, Policy(hmac_length=32)).ping()


@must("RFC 7425 §4.7.3.2", "hmac-mismatch-discarded")
def wrong_hmac_is_dropped(peer: RtmfpPeer) -> None:
    """A packet whose HMAC has one bit changed is as if nothing came (§4.7.3.2)."""
    session = _open_by(peer, Policy(sequence_numbers=NEVER))
    _expect_dropped(session, _spoiled(session.seal(session.packet(Ping(b"spoiled")))))


@must("RFC 7425 §4.7.3.1", "checksum-mismatch-discarded")
def wrong_checksum_in_a_session_is_dropped(peer: RtmfpPeer) -> None:
    """So is one whose checksum does not match (§4.7.3.1)."""
    session = _open_by(peer, PLAIN)
    plain = session.packet(Ping(b"spoiled")) + b"\xff" * 32
    _expect_dropped(session, _spoiled(session.seal(plain)))


@must("RFC 7016 §2.2.3", "unverified-discarded")
def packet_under_another_key_is_dropped(peer: RtmfpPeer) -> None:
    """A packet that the session's key has not sealed is dropped (RFC 7016 §2.2.3)."""
    session = _open_by(peer, PLAIN)
    foreign = Sealer(Protection(os.urandom(16))).seal(session.packet(Ping(b"spoiled")))
    _expect_dropped(session, scramble(session.far_id, foreign))


@must("RFC 7016 §2.2.3", "decrypted-by-session")
def packet_under_the_default_key_is_dropped(peer: RtmfpPeer) -> None:
    """In a session the key that everybody knows counts for nothing (RFC 7016 §2.2.3)."""
    session = _open_by(peer, PLAIN)
    packet = peer.cipher.seal(session.packet(Ping(b"spoiled")))
    _expect_dropped(session, scramble(session.far_id, packet))


@must("RFC 7016 §3.3", "found-by-id")
def packet_of_an_unknown_session_is_dropped(peer: RtmfpPeer) -> None:
    """The session ID alone finds a session and its key (RFC 7016 §3.3)."""
    session = _open_by(peer, PLAIN)
    unknown = session.far_id ^ 0x5A5A5A5A
    _expect_dropped(session, session.seal(session.packet(Ping(b"spoiled")), unknown))


@must("RFC 7425 §4.7.3.3", "duplicate-discarded")
def packet_that_comes_twice_is_dropped(peer: RtmfpPeer) -> None:
    """A packet with a session sequence number counts once (§4.7.3.3)."""
    session = _open_by(peer, NUMBERED)
    datagram = session.seal(session.packet(Ping(b"once")))
    peer.send(datagram)
    session.pong(b"once")
    peer.send(datagram)
    session.expect_no(PingReply, "one reply to a packet that came twice", PingReply(b"once"))


@must("RFC 7425 §4.7.3.3", "window-of-32")
def numbers_may_be_out_of_order(peer: RtmfpPeer) -> None:
    """A packet that 31 others have overtaken counts (§4.7.3.3)."""
    session = _open_by(peer, NUMBERED)
    late = session.seal(session.packet(Ping(b"late")))
    others = [session.seal(session.packet(Ping(b"other"))) for _ in range(_ORDER)]
    for datagram in others[-4:]:
        peer.send(datagram)
    session.pong(b"other")
    peer.send(late)
    session.pong(b"late")


def _open_as(peer: RtmfpPeer, profile: FlashProfile) -> RtmfpSession:
    return open_session(peer, peer.keying(peer.hello(), profile=profile))


def _open_by(peer: RtmfpPeer, policy: Policy) -> RtmfpSession:
    """Open a session with packets protected so; a target may require more: §4.6.4."""
    with at_most(_PATIENCE):
        return _open_as(peer, policy_profile(policy))
    raise NotApplicable("the target opens no session with such protection")


def _expect_key_refused(peer: RtmfpPeer, public: int) -> None:
    keying = peer.keying(peer.hello(), profile=ephemeral_profile())
    component = Component.parse(keying.agreement.component)
    bad = replace(component, ephemeral_key=(GROUP, public)).encode()
    changed = keying.changed(session_key_initiator_component=bad)
    peer.expect_no_session("silence for a public key that is not safe", changed)


def _spoiled(datagram: bytes) -> bytes:
    """Change the last bit of a datagram; its session ID stays."""
    return datagram[:-1] + bytes((datagram[-1] ^ 1,))


def _expect_dropped(session: RtmfpSession, datagram: bytes) -> None:
    """Unmet if a datagram with the Ping `spoiled` is answered."""
    session.peer.send(datagram)
    session.expect_no(PingReply, "no reply to a packet that is not genuine", PingReply(b"spoiled"))

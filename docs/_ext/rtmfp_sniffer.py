"""Decrypts the datagrams of an in-memory link with the initiators' static keys.

The four packets of a startup are sealed with a key that everybody knows.  From the keying
components in them, and one end's private key, come the keys of the session (RFC 7425 §4.6).
"""

from dataclasses import dataclass

from rtmplite.rtmfp.crypto.cipher import CbcDecryptor, Protection
from rtmplite.rtmfp.crypto.keying import Component, SessionKeys, derive, protections
from rtmplite.rtmfp.crypto.params import DEFAULT_SESSION_KEY, KEY_LENGTH
from rtmplite.rtmfp.wire.packet import Packet, unscramble
from rtmplite.rtmfp.wire.startup_chunks import InitiatorInitialKeying, ResponderInitialKeying
from rtmplite.rtmfp.wire.vlu import decode_vlu

STARTUP = Protection(DEFAULT_SESSION_KEY)


@dataclass(frozen=True)
class Seen:
    """One datagram: its destination, its bytes, and its decrypted contents.

    `plain` is what was encrypted; `packet_at` is where the packet begins in it, behind number and
    checksum.
    """

    at: float
    source: tuple
    destination: tuple
    datagram: bytes
    session_id: int
    protection: Protection
    plain: bytes
    packet_at: int

    @property
    def packet(self):
        return Packet.parse(self.plain[self.packet_at :])


@dataclass(frozen=True)
class Agreed:
    """One key agreement, as its initiator has it."""

    skic: bytes
    skrc: bytes
    secret: bytes
    keys: SessionKeys


class Sniffer:
    """Reads `Link.sent`; `private` are the static key pairs by the address that uses them."""

    def __init__(self, private):
        self._private = private
        self._asked = {}  # IIKeyings by the address they came from
        self._protections = {}  # by session ID, of packets to whom it belongs
        self.agreements = []

    def read(self, sent):
        """Open datagrams, in the order in which they were sent."""
        return [self._open(*each) for each in sent]

    def _open(self, at, source, destination, datagram):
        session_id, encrypted = unscramble(datagram)
        protection = self._protections.get((destination, session_id), STARTUP)
        blocks = encrypted[: len(encrypted) - protection.hmac_length]
        plain = CbcDecryptor(protection.key[:KEY_LENGTH]).decrypt(blocks)
        start = decode_vlu(plain)[1] if protection.numbered else 0
        start += 0 if protection.hmac_length else 2
        seen = Seen(at, source, destination, datagram, session_id, protection, plain, start)
        if protection is STARTUP:
            self._note(seen)
        return seen

    def _note(self, seen):
        for chunk in seen.packet.chunks:
            if isinstance(chunk, InitiatorInitialKeying):
                self._asked[seen.source] = chunk
            elif isinstance(chunk, ResponderInitialKeying):
                self._agree(seen, self._asked[seen.destination], chunk)

    def _agree(self, seen, asked, answered):
        skic = asked.session_key_initiator_component
        skrc = answered.session_key_responder_component
        initiator, responder = Component.parse(skic), Component.parse(skrc)
        pair = self._private[seen.destination][initiator.group_select]
        far_public = self._public(responder, seen.source, pair.group.group_id)
        secret = pair.secret(far_public)
        keys = derive(secret, skic, skrc)
        sent, received = protections(keys, initiator, responder)
        self._protections[seen.source, answered.responder_session_id] = sent
        self._protections[seen.destination, asked.initiator_session_id] = received
        self.agreements.append(Agreed(skic, skrc, secret, keys))

    def _public(self, responder, address, group_id):
        if responder.ephemeral_key is not None:
            return responder.ephemeral_key[1]
        return self._private[address][group_id].public

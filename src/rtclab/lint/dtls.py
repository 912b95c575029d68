"""DTLS on the way of media: whose certificate it is, and whether keys of SRTP are agreed on.

Implements RFC 5763 §5 and RFC 5764 §4.1 as a rule book, for what handshakes say in the clear.

Own design: the records are read as `rtclab explain` reads them.  A certificate that comes in
fragments is put together, up to `MOST` octets of a sender.  The hellos go to `srtp`, for its keys.
"""

import hashlib
from typing import Final

from rtclab.explain.dtls import certificates, datagram
from rtclab.explain.fields.context import Context
from rtclab.explain.fields.field import Field, Span
from rtclab.lint.findings.finding import Findings
from rtclab.lint.findings.packet import SeenPacket
from rtclab.lint.sip_offers import MediaPlace
from rtclab.unwrap.srtp import SrtpSessions

MOST: Final = 1 << 16
_HASHES: Final = {"sha-1": "sha1", "sha-256": "sha256", "sha-384": "sha384", "sha-512": "sha512"}
_HELLOS: Final = ("client hello", "server hello")


class DtlsHandshakes:
    """All handshakes of a capture: RFC 5763 §5."""

    def __init__(self, findings: Findings, srtp: SrtpSessions) -> None:
        self._findings, self._srtp = findings, srtp
        self._parts: dict[tuple[str, str], bytes] = {}  # of certificates that are not whole

    def heard(self, packet: SeenPacket, sender: MediaPlace | None) -> None:
        """Take a datagram; `sender` is what a description says of where it came from."""
        for record in self.noted(packet).children:
            if record.name == "alert":
                self._alert(packet, record)
            for message in record.children:
                if message.name in _HELLOS:
                    self._hello(packet, message)
                elif message.name == "certificate":
                    self._certificate(packet, message, sender)

    def noted(self, packet: SeenPacket) -> Field:
        """Take the hellos of a datagram alone, where no description told of it."""
        context = Context(srtp=self._srtp, way=f"{packet.source} > {packet.target}")
        return datagram(Span.all(packet.data), context)

    def _alert(self, packet: SeenPacket, record: Field) -> None:
        said = {each.name: each for each in record.children}
        if "description" in said and said["level"].meaning == "fatal":
            what = said["description"].meaning or f"alert {said['description'].value}"
            self._findings.add("dtls-alert", packet, what)

    def _hello(self, packet: SeenPacket, message: Field) -> None:
        names = [each.name for each in message.children]
        if "fragment" not in names and "profile" not in names and not list(message.faults()):
            self._findings.add("dtls-no-srtp", packet, f"{message.name} without use_srtp")

    def _certificate(self, packet: SeenPacket, message: Field, sender: MediaPlace | None) -> None:
        """Hold the first certificate of a chain against the description: RFC 5763 §5."""
        if sender is None or not sender.fingerprints:
            return
        said = {each.name: each for each in message.children}
        offset, length = (int(said[each].value) for each in ("fragment offset", "length"))
        way = packet.source, packet.target
        body = packet.data[said["fragment length"].end : message.end]
        whole = self._parts.pop(way, b"")[:offset] + body
        if len(whole) < length:
            self._parts[way] = whole[:MOST]
            return
        chain = list(certificates(whole))
        if chain and not any(_holds(each, chain[0]) for each in sender.fingerprints):
            found = hashlib.sha256(chain[0]).digest()[:4].hex(":").upper()
            what = f"a certificate of sha-256 {found}..., and another in the description"
            self._findings.add("dtls-fingerprint", packet, what)


def _holds(fingerprint: str, certificate: bytes) -> bool:
    """Whether this is the hash of a certificate, or one by a function that is not known here."""
    name, _, digest = fingerprint.partition(" ")
    if name.lower() not in _HASHES:
        return True
    found = hashlib.new(_HASHES[name.lower()], certificate, usedforsecurity=False).digest()
    return digest.strip().upper() == found.hex(":").upper()

"""The transport of a media line whose keys come by DTLS, between two phones or a phone and a page.

Implements RFC 5763 §5, for lines that have ICE as well.

    >>> ours = DtlsTransport(4000, fingerprint="AB:CD", setup="active")
    >>> [str(each) for each in ours.attributes()]
    ['fingerprint:sha-256 AB:CD', 'setup:active']
"""

from dataclasses import dataclass, replace
from typing import Final, Self

from p2psip.errors import RemoteError
from p2psip.sdp.attributes import rtcp_mux
from p2psip.sdp.ice_line import IceLine, of_either
from p2psip.sdp.jsep import HASH, PLAIN, PROTOCOLS, read_digest
from p2psip.sdp.line import Attribute
from p2psip.sdp.local_media import LocalTransport
from p2psip.sdp.session import MediaDescription, SessionDescription

SETUPS: Final = ("actpass", "active", "passive")  # Source: RFC 5763 §5
MID: Final = "0"  # Own design: the name of the one line of a phone, as browsers want one


@dataclass(frozen=True, slots=True)
class DtlsLine:
    """The hash of a certificate in a line, and which end begins: RFC 5763 §5."""

    fingerprint: str
    setup: str

    @classmethod
    def read(cls, line: MediaDescription, session: SessionDescription) -> Self | None:
        """Read a line: RFC 5763 §5; None without DTLS, or with another hash than SHA-256."""
        setup = of_either(line, session, "setup") or ""
        try:
            fingerprint = read_digest(of_either(line, session, "fingerprint"), "description")
        except RemoteError:
            return None
        is_known = setup in SETUPS and line.protocol in PROTOCOLS
        return cls(fingerprint, setup) if is_known else None

    def answer(self, before: str = "") -> str:
        """Which part we play: that of `before`, if there was a handshake, else the client's."""
        # RFC 5763 §5 [answers-active-or-passive] [answers-active]
        if self.setup == "actpass":
            return before or "active"
        return "active" if self.setup == "passive" else "passive"


@dataclass(frozen=True, slots=True)
class DtlsTransport(LocalTransport):
    """SRTP at one of our ports, by a handshake on the way that ICE finds: RFC 5763 §5."""

    fingerprint: str = ""
    setup: str = "actpass"

    def accepts(
        self, line: MediaDescription, session: SessionDescription, host: str | None = None
    ) -> bool:
        """Whether a line has DTLS and ICE, and one port for RTP and RTCP: RFC 5763 §5.

        Own design: a second port would need a handshake of its own, and no browser uses one.
        """
        ice, dtls = IceLine.read(line, session), DtlsLine.read(line, session)
        if ice is None or ice.is_mismatched or dtls is None or not rtcp_mux(line):
            return False
        return LocalTransport.accepts(self, replace(line, protocol=PLAIN), session, host)

    def attributes(self) -> tuple[Attribute, ...]:
        """The attributes of the transport in the line, with the hash: RFC 5763 §5."""
        return (
            *LocalTransport.attributes(self),
            # RFC 5763 §5 [fingerprint-is-said]
            Attribute("fingerprint", f"{HASH} {self.fingerprint}"),
            Attribute("setup", self.setup),
        )


def secured(plain: LocalTransport, fingerprint: str, setup: str, protocol: str) -> DtlsTransport:
    """The transport of the same port and ICE, with DTLS: RFC 5763 §5."""
    at = plain.port, plain.host, plain.rtcp_port
    return DtlsTransport(*at, protocol, plain.rtcp_mux, plain.ice, fingerprint, setup)

"""What our end brings to a media line: its formats, and the transport that carries them.

Implements RFC 3264 §5.1 and §6, as far as one line of one end is concerned.
"""

from dataclasses import dataclass
from typing import Final

from p2psip.sdp.attributes import connection
from p2psip.sdp.codec import Codec
from p2psip.sdp.line import Attribute, in_reach, is_multicast
from p2psip.sdp.session import MediaDescription, SessionDescription

# The profiles of plain RTP.  AVPF without a=rtcp-fb asks for nothing that plain RTCP does not do:
# RFC 4585 §4.2.
PROTOCOLS: Final = ("RTP/AVP", "RTP/AVPF")


@dataclass(frozen=True, slots=True)
class LocalTransport:
    """Plain RTP at one of our ports: §5.1.

    `host` and `rtcp_port` are only for a stream that does not follow the session's address or the
    next-higher-port rule.  Own design: a transport with keys or with candidates is a subclass that
    accepts other lines and has more attributes.
    """

    port: int
    host: str | None = None
    rtcp_port: int | None = None
    protocol: str = "RTP/AVP"

    def accepts(
        self, line: MediaDescription, session: SessionDescription, host: str | None = None
    ) -> bool:
        """Whether this transport can carry an offered or answered line, whatever its formats: §6.

        `host` is the address of our session, if a line of the other address family is to count as
        out of reach.
        """
        where = connection(line, session)
        at = self.host or host
        return (
            0 < line.port < 65536
            and line.port_count == 1
            and line.protocol in PROTOCOLS
            and where is not None
            and where.network_type == "IN"
            and where.address_type in ("IP4", "IP6")
            and not is_multicast(where.address)
            and (at is None or in_reach(at, where))
        )

    def attributes(self) -> tuple[Attribute, ...]:
        """What a line has to say of its transport: RFC 8866 §5.14."""
        rtcp_port = self.rtcp_port or self.port + 1
        if rtcp_port != self.port + 1 or self.port % 2:  # RFC 8866 §5.14 [told-when-apart]
            return (Attribute("rtcp", str(rtcp_port)),)
        return ()


@dataclass(frozen=True, slots=True)
class LocalMedia:
    """One stream that our end can have: §5.1.

    Formats come in order of preference.  `direction` is the one we ask for.  `mid` names the line
    in an offer; an answer then takes the offer's name.  `feedback` are RTCP messages that we
    understand, such as "nack pli" (RFC 4585 §4.2); they count with RTP/AVPF alone.  `ptime` and
    `maxptime` (ms) are what we want to receive.
    """

    kind: str
    formats: tuple[Codec, ...]
    transport: LocalTransport
    direction: str = "sendrecv"
    mid: str | None = None
    feedback: tuple[str, ...] = ()
    ptime: int | None = None
    maxptime: int | None = None


def feedback_of(line: MediaDescription) -> tuple[str, ...]:
    """The feedback messages that a line names, for any of its formats: RFC 4585 §4.2."""
    values = (each.value or "" for each in line.attributes if each.name == "rtcp-fb")
    return tuple(value.partition(" ")[2].strip() for value in values)

"""What our end brings to a media line: its formats, and the transport that carries them.

Implements RFC 3264 §5.1 and §6, as far as one line of one end is concerned.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from p2psip.sdp.attributes import connection
from p2psip.sdp.codec import Codec
from p2psip.sdp.line import Attribute, Attributes, find_all, in_reach, is_multicast
from p2psip.sdp.session import MediaDescription, SessionDescription

# The profiles of plain RTP.  AVPF without a=rtcp-fb asks for nothing that plain RTCP does not do:
# RFC 4585 §4.2.
PROTOCOLS: Final = ("RTP/AVP", "RTP/AVPF")
ANY_FORMAT: Final = "*"  # Source: RFC 4585 §4.2
# Source: RFC 4585 §4.2, the least ms between regular reports; longer than 100 s is nonsense
REPORT_INTERVAL: Final = re.compile(r"trr-int ([0-9]{1,5})")


@dataclass(frozen=True, slots=True)
class LocalTransport:
    """Plain RTP at one of our ports: §5.1.

    `host` and `rtcp_port` are only for a stream that does not follow the session's address or the
    next-higher-port rule.  `rtcp_mux` has RTCP share the port of RTP if the peer wants it too
    (RFC 5761 §5.1.1); what `rtcp_port` says then holds for other peers.  `ice` are the attributes
    of ICE, if it is used (RFC 8839 §4.2).  Own design: a transport with keys is a subclass that
    accepts other lines and has more attributes.
    """

    port: int
    host: str | None = None
    rtcp_port: int | None = None
    protocol: str = "RTP/AVP"
    rtcp_mux: bool = False
    ice: Attributes = ()

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
            and (at is None or in_reach(at, where))  # RFC 6157 §4.1 [family-of-the-offer]
        )

    def attributes(self) -> tuple[Attribute, ...]:
        """What a line has to say of its transport: RFC 8866 §5.14."""
        rtcp_port = self.rtcp_port or self.port + 1
        if rtcp_port != self.port + 1 or self.port % 2:  # RFC 8866 §5.14 [told-when-apart]
            # RFC 3605 §2.1 [of-one-line]
            return (Attribute("rtcp", str(rtcp_port)), *self.ice)
        return self.ice


class RepairSources(NamedTuple):
    """The SSRCs of a stream and of its repeats, and their name: RFC 4588 §5.3."""

    ssrc: int
    repeats: int
    cname: str

    def attributes(self) -> Iterator[Attribute]:
        """Say that both belong together: Field §"Sources of repeats"."""
        yield Attribute("ssrc-group", f"FID {self.ssrc} {self.repeats}")
        for ssrc in (self.ssrc, self.repeats):
            yield Attribute("ssrc", f"{ssrc} cname:{self.cname}")


@dataclass(frozen=True, slots=True)
class LocalMedia:
    """One stream that our end can have: §5.1.

    Formats come in order of preference.  `direction` is the one we ask for.  `mid` names the line
    in an offer; an answer then takes the offer's name.  `feedback` are RTCP messages that we
    understand, such as "nack pli" (RFC 4585 §4.2), and in an offer perhaps
    "trr-int 1000".  `ptime` and `maxptime` (ms) are what we want to receive.  `prefer` says whose
    order an answer keeps, if another one than that of the other lines: §6.1.
    With `repairs` an answer takes RTX for its codecs, where "nack" is agreed on (RFC 4588 §8.1),
    and names the sources of both streams.
    Departs from RFC 4585 §4.2 [feedback-with-avpf-alone]: phones offer feedback with RTP/AVP and
    send it when both name it, since many others refuse a line of RTP/AVPF (Field §"Feedback with
    RTP/AVP").
    Departs from RFC 4585 §3.7.2 [profile-is-avpf]: the same, in the line of either end.
    Departs from RFC 4585 §4.1 [no-early-without-avpf]: the same; requests leave early by it too.
    """

    kind: str
    formats: tuple[Codec, ...]
    transport: LocalTransport
    direction: str = "sendrecv"
    mid: str | None = None
    feedback: tuple[str, ...] = ()
    ptime: int | None = None
    maxptime: int | None = None
    prefer: Literal["local", "remote"] | None = None
    repairs: RepairSources | None = None


def feedback_of(line: MediaDescription, payload_type: int) -> frozenset[str]:
    """The feedback messages that a line names for a format: RFC 4585 §4.2."""
    return frozenset(
        message for number, message in _named(line) if number in (ANY_FORMAT, str(payload_type))
    )


def feedback_to_offer(ours: LocalMedia) -> Iterator[Attribute]:
    """Name the messages that we understand, for all formats: RFC 4585 §4.2."""
    # RFC 4585 §4.2 [line-for-each-type] [feedback-is-named] [star-for-all-formats]
    return (Attribute("rtcp-fb", f"{ANY_FORMAT} {message}") for message in ours.feedback)


def feedback_to_answer(
    ours: LocalMedia, offered: MediaDescription, numbers: Collection[int]
) -> Iterator[Attribute]:
    """Repeat what is offered for formats that we accept, as far as we understand it.

    RFC 4585 §4.2; whoever understands any feedback can wait between reports.
    """
    for number, message in _named(offered):
        is_interval = ours.feedback and REPORT_INTERVAL.fullmatch(message)
        is_known = message in ours.feedback or is_interval
        is_ours = number == ANY_FORMAT or any(number == str(each) for each in numbers)
        # RFC 4585 §4.2 [unknown-feedback-removed] [not-understood-not-heeded]
        if is_known and is_ours:
            # RFC 4585 §4.2 [no-feedback-added]
            # RFC 5104 §7.1 [ccm-with-its-command], §7.2 [no-ccm-added]
            yield Attribute("rtcp-fb", f"{number} {message}")


def _named(line: MediaDescription) -> Iterator[tuple[str, str]]:
    """Yield (format or "*", message) of each `a=rtcp-fb`: RFC 4585 §4.2."""
    for value in find_all(line.attributes, "rtcp-fb"):  # RFC 4585 §4.2 [media-level-only]
        number, _, message = value.partition(" ")
        yield number, message.strip()

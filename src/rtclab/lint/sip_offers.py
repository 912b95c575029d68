"""Offers and answers of a capture, and the addresses that they give to RTP.

Implements RFC 3264 §6 and §8 as a rule book, with RFC 3261 §13.2.1 for the messages that carry
offers and answers.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from p2psip.errors import SipError
from p2psip.nat.stun import BINDING, StunMessage, StunType
from p2psip.sdp import attributes
from p2psip.sdp.attributes import RtpMap
from p2psip.sdp.faults import SdpFault, faults_of_answer, faults_of_successor
from p2psip.sdp.line import find_all
from p2psip.sdp.session import MediaDescription, SessionDescription
from p2psip.sip.message import Request, Response
from p2psip.ua.requests.request_validation import session
from rtclab.explain.sdp import take_keys
from rtclab.lint.findings.finding import Findings
from rtclab.lint.findings.packet import SeenPacket
from rtclab.lint.sip_message import HeardMessage
from rtclab.lint.sip_transactions import SipTransaction
from rtclab.unwrap.address import written
from rtclab.unwrap.srtp import SrtpSessions


@dataclass(slots=True)
class MediaPlace:
    """An address that a description gives to RTP, and what may come there: RFC 3264 §5.1."""

    call_id: str
    owner: str  # the address that the description was sent from
    kind: str
    protocol: str
    formats: dict[int, RtpMap] = field(default_factory=dict)
    types: set[int] = field(default_factory=set)
    has_bandwidth: bool = False
    has_reduced_size: bool = False
    wants: bool = True  # sendrecv or recvonly
    fingerprints: set[str] = field(default_factory=set)  # of its certificates: RFC 8122 §5


class SipOffers:
    """The descriptions of all calls; `places` are the addresses of their media: RFC 3264 §5."""

    def __init__(self, findings: Findings, srtp: SrtpSessions) -> None:
        self._findings, self._srtp = findings, srtp
        self.places: dict[str, MediaPlace] = {}
        self.rtcp_places: dict[str, MediaPlace] = {}
        self._fragments: dict[str, MediaPlace] = {}  # by the user names of ICE
        self._offers: dict[int, SessionDescription | None] = {}  # by transaction
        self._answered: set[int] = set()
        self._offered_back: dict[int, SessionDescription] = {}
        self._said: dict[tuple[str, str], SessionDescription] = {}

    def request(self, heard: HeardMessage, transaction: SipTransaction) -> None:
        """Take an INVITE, UPDATE or PRACK: RFC 3261 §13.2.1."""
        description = self._read(heard)
        if transaction.request.method in ("INVITE", "UPDATE"):
            self._offers[id(transaction)] = description

    def response(self, heard: HeardMessage, transaction: SipTransaction) -> None:
        """Take a response to one of them: RFC 3261 §13.2.1."""
        response, method = heard.message, transaction.request.method
        assert isinstance(response, Response)
        if method not in ("INVITE", "UPDATE") or response.status >= 300:
            return
        description, place = self._read(heard), id(transaction)
        offer = self._offers.get(place)
        if description is not None:
            if offer is not None:
                self._add(heard, faults_of_answer(offer, description))
                if response.status >= 200 or _is_reliable(response):
                    self._answered.add(place)
            elif method == "INVITE":
                self._offered_back[place] = description
        elif response.status >= 200:
            self._without(heard, place, offer, has_body=bool(response.body))

    def ack(self, heard: HeardMessage, invite: SipTransaction) -> None:
        """Take the ACK of a 2xx: RFC 3261 §13.2.2.4."""
        if invite.status >= 300:
            return
        description, place = self._read(heard), id(invite)
        offered = self._offered_back.pop(place, None)
        if offered is not None:
            if description is not None:
                self._add(heard, faults_of_answer(offered, description))
            elif not heard.message.body:
                self._findings.add("sdp-no-answer", heard.packet, "2xx has an offer, ACK no answer")
        elif description is not None and self._offers.get(place) is not None:
            what = "ACK has a description, and INVITE the offer"
            self._findings.add("sdp-unasked-answer", heard.packet, what)

    def checked(self, packet: SeenPacket) -> None:
        """Take a check of ICE: its user names tell whose media both addresses have.

        Own design: browsers hide addresses in descriptions.  The receiver's name stands first.
        """
        try:
            message = StunMessage.parse(packet.data)
            receiver, _, sender = (message.text(StunType.USERNAME) or "").partition(":")
        except SipError:
            return
        if message.method != BINDING:
            return
        for name, address in ((receiver, packet.target), (sender, packet.source)):
            if name in self._fragments:
                self.places[address] = self._fragments[name]

    def _without(
        self, heard: HeardMessage, place: int, offer: SessionDescription | None, *, has_body: bool
    ) -> None:
        """A 2xx without a description."""
        if has_body:
            return  # one that cannot be read
        if offer is not None:
            if place not in self._answered:
                what = f"{heard.label} without the answer"
                self._findings.add("sdp-no-answer", heard.packet, what)
        elif heard.message.cseq.method == "INVITE" and place not in self._offered_back:
            what = f"{heard.label} without an offer, as the INVITE"
            self._findings.add("sdp-no-offer", heard.packet, what)

    # -- one description -----------------------------------------------------------------

    def _read(self, heard: HeardMessage) -> SessionDescription | None:
        """The description of a message, noted; None where there is none that can be read."""
        body = session(heard.message)
        if body is None:
            return None
        try:
            description = SessionDescription.parse(body)
        except SipError:
            return None  # told by `sip_message`
        self._versions(heard, description)
        for media in description.media:
            self._note(heard, media, description)
        return description

    def _versions(self, heard: HeardMessage, description: SessionDescription) -> None:
        """Compare with the last one of the same side: RFC 3264 §8."""
        message = heard.message
        sender = message.from_ if isinstance(message, Request) else message.to
        key = message.call_id, sender.tag or ""
        before = self._said.get(key)
        self._said[key] = description
        if before is not None:
            self._add(heard, faults_of_successor(before, description))

    def _note(
        self, heard: HeardMessage, media: MediaDescription, session: SessionDescription
    ) -> None:
        """Keep the address of a media line, with the formats that may arrive there."""
        if "RTP/" not in media.protocol.upper():
            return
        take_keys(media, session, self._srtp)
        at = attributes.media_address(media, session)
        fragment = media.attribute("ice-ufrag") or session.attribute("ice-ufrag") or ""
        if at is None and not fragment:
            return
        if at and at[1] % 2 and not attributes.rtcp_mux(media) and media.attribute("rtcp") is None:
            what = f"m={media.kind} at port {at[1]}"
            self._findings.add("sdp-odd-port", heard.packet, what)
        place = self.places.get(written(*at)) if at else self._fragments.get(fragment)
        if place is None or place.call_id != heard.message.call_id:
            owner, call_id = heard.packet.source, heard.message.call_id
            place = MediaPlace(call_id, owner, media.kind, media.protocol.upper())
        if at:
            self.places[written(*at)] = place
        if fragment:
            self._fragments.setdefault(fragment, place)
        place.types |= set(attributes.payload_types(media))
        place.formats |= {each.payload_type: each for each in attributes.rtpmaps(media)}
        prints = find_all(media.attributes, "fingerprint")
        place.fingerprints |= {*(prints or find_all(session.attributes, "fingerprint"))}
        place.has_bandwidth = attributes.bits(media, session) > 0
        place.has_reduced_size = media.attribute("rtcp-rsize") is not None
        place.wants = attributes.direction(media, session) in ("sendrecv", "recvonly")
        if (reports := attributes.rtcp_address(media, session)) is not None:
            self.rtcp_places[written(*reports)] = place

    def _add(self, heard: HeardMessage, faults: Iterable[SdpFault]) -> None:
        for fault in faults:
            self._findings.add(f"sdp-{fault.rule}", heard.packet, fault.text)


def _is_reliable(response: Response) -> bool:
    """Whether a provisional response arrives for certain, and its answer with it: RFC 3262 §5."""
    return "100rel" in "".join(response.headers.values("Require")).lower()

"""Wireshark reads what the strategies draw as our codecs mean it.

Own design: a second opinion on valid input.  Where Wireshark is wrong, a test says so with the
section, and `docs/3-howto/use-as-oracle.md` does for all of them.
"""

import re
from itertools import takewhile

import pytest
from support.oracle import drawn
from support.tshark import COMPLAINT, datagram, dissect

from p2psip.rtp.rtcp import OtherFeedback, UnknownPacket
from p2psip.sip.address import Address
from p2psip.sip.grammar import bracketed
from p2psip.sip.message import Request
from p2psip.sip.via import Via
from p2psip.strategies import rtp, sdp, sip

REMARKS = ("Unrecognised SIP header", "Unknown Application Layer Feedback Type")  # and no faults
PLUS = {f"{part} Code contains non-decimal digits" for part in ("Country", "Identification")}
SIP_PORT, RTP_PORT, RTCP_PORT = 5060, 5004, 5007
# A payload that is no frame of its static type ends the reading of the packet.
FRAMED = (4, 26, 31, 32, 33, 34, 99, 100, 101)
AS_RTP = ("-d", f"udp.port=={RTP_PORT},rtp", *(f"-drtp.pt=={number},data" for number in FRAMED))
AS_RTCP = ("-d", f"udp.port=={RTCP_PORT},rtcp")

BLANK = re.compile(r"([^:]+:|fmtp:\d+)[ \t\v\f]+")
AROUND = (
    b"OPTIONS sip:a@b SIP/2.0\r\nVia: SIP/2.0/UDP a;branch=z9hG4bK1\r\nMax-Forwards: 1\r\n"
    b"From: <sip:a@b>;tag=1\r\nTo: <sip:a@b>\r\nCall-ID: 1\r\nCSeq: 1 OPTIONS\r\n"
    b"Content-Type: application/sdp\r\nContent-Length: %d\r\n\r\n%b"
)

pytestmark = pytest.mark.timeout(2400)


def complaints(row):
    """What Wireshark finds wrong."""
    return [each for each in row.get(COMPLAINT, []) if not each.startswith(REMARKS)]


def agree(path, values, frames, wanted, *options):
    """Each of `values` has the fields of `wanted`; yield the values with complaints."""
    expected = [wanted(value) for value in values]
    names = sorted({name for fields in expected for name in fields})
    rows = dissect(path / "drawn.pcap", frames, names, *options)
    assert len(rows) == len(values)
    for value, fields, row in zip(values, expected, rows, strict=True):
        found = {name: row.get(name, []) for name in fields}
        assert found == {name: list(map(str, fields[name])) for name in fields}, value
        if complaints(row):
            yield value, complaints(row)


def present(*values):
    """The values that are there."""
    return [value for value in values if value is not None]


def of_sip(message):
    """The fields of a message."""
    vias = [Via.parse(str(each)) for each in message.headers.all("Via")]
    sender, receiver = (Address.parse(str(message.headers[name])) for name in ("From", "To"))
    # A method may begin with any character of a token (RFC 3261 §25.1); Wireshark takes the
    # method of CSeq from its first letter on.
    method = re.sub("^[^A-Za-z]+", "", message.cseq.method)
    rports = [via.params for via in vias if "rport" in dict(via.params)]
    fields = {
        "sip.Call-ID": [message.call_id],
        "sip.CSeq.seq": [message.cseq.number],
        "sip.CSeq.method": present(method or None),
        "sip.Via.transport": [via.transport for via in vias],
        "sip.Via.sent-by.address": [via.host for via in vias],
        "sip.Via.sent-by.port": present(*(via.port for via in vias)),
        "sip.Via.branch": [via.branch for via in vias],
        "sip.Via.rport": [dict(params)["rport"] or "rport" for params in rports],
        "sip.from.tag": present(sender.tag),
        "sip.to.tag": present(receiver.tag),
        "sip.from.host": [bracketed(sender.uri.host)],
        "sip.to.host": [bracketed(receiver.uri.host)],
        "sip.from.port": present(sender.uri.port),
        "sip.to.port": present(receiver.uri.port),
    }
    if method:  # else Wireshark does not read on
        fields["sip.Content-Length"] = [len(message.body)]
    if any(set(value or "") & set(", \t") for via in vias for _, value in via.params):
        # Wireshark ends a hop at a comma or white space in quotes: RFC 3261 §25.1.
        fields = {name: fields[name] for name in fields if not name.startswith("sip.Via.")}
    if isinstance(message, Request):
        return fields | {"sip.Method": [message.method], "sip.r-uri": [message.uri]}
    return fields | {"sip.Status-Code": [message.status]}


def test_messages(tmp_path):
    """Covers RFC 3261 §7, §20.42 and §25.1: methods, URIs, addresses, hops."""
    found = drawn(sip.messages())
    frames = [datagram(bytes(each), SIP_PORT) for each in found]
    for message, words in agree(tmp_path, found, frames, of_sip):
        # Nul may stand in a body and behind a backslash: RFC 3261 §25.1 (OCTET, quoted-pair).
        # A user may begin with "+" and be no number: §19.1.1 (without user=phone).
        data = bytes(message)
        assert not {"Trailing stray characters"} & set(words) or b"\0" in data
        assert not PLUS & set(words) or re.search(rb"sips?:\+", data)
        assert set(words) <= PLUS | {"Trailing stray characters"}


def of_sdp(session):
    """The fields of a description."""
    bandwidths = [*session.bandwidths, *(b for each in session.media for b in each.bandwidths)]
    return {
        "sdp.owner.username": [session.origin.username],
        "sdp.owner.sessionid": [session.origin.session_id],
        "sdp.owner.version": [session.origin.version],
        "sdp.owner.address": [session.origin.address],
        "sdp.time.start": [each.start for each in session.times],
        "sdp.time.stop": [each.stop for each in session.times],
        "sdp.bandwidth.modifier": [each.kind for each in bandwidths],
        "sdp.bandwidth.value": [each.value for each in bandwidths],
        "sdp.media.media": [each.kind for each in session.media],
        "sdp.media.port": [each.port for each in session.media],
        "sdp.media.portcount": [each.port_count for each in session.media if each.port_count > 1],
        "sdp.media.proto": [each.protocol for each in session.media],
        "sdp.uri": present(session.uri or None),
    }


def test_descriptions(tmp_path):
    """Covers RFC 8866 §5: origins, times, ceilings, streams.

    Wireshark reads a quotation mark as the begin of a text that may hold the ends of lines, and
    §9 as any other character: it is no judge of these descriptions.
    """
    found = drawn(sdp.sessions() | sdp.offers())
    found = [each for each in found if b'"' not in bytes(each)]
    frames = [datagram(AROUND % (len(bytes(each)), bytes(each)), SIP_PORT) for each in found]
    for session, words in agree(tmp_path, found, frames, of_sdp):
        # White space is a value of any attribute and format: RFC 8866 §9 (byte-string), §6.15.
        assert set(words) == {"Invalid SDP line (missing required fields)"}
        parts = (session, *session.media)
        assert any(BLANK.fullmatch(str(each)) for part in parts for each in part.attributes)


def of_rtp(packet):
    """The fields of an RTP packet."""
    return {
        "rtp.seq": [packet.sequence],
        "rtp.timestamp": [packet.timestamp],
        "rtp.ssrc": [f"0x{packet.ssrc:08x}"],
        "rtp.p_type": [packet.payload_type],
        "rtp.marker": [int(packet.marker)],
        "rtp.csrc.item": [f"0x{each:08x}" for each in packet.csrcs],
        "rtp.ext.profile": [f"0x{packet.extension.profile:04x}"] if packet.extension else [],
        "rtp.ext.len": [len(packet.extension.data) // 4] if packet.extension else [],
        "rtp.padding.count": present(packet.padding or None),
        "rtp.payload": present(packet.payload.hex() or None),
    }


def test_packets(tmp_path):
    """Covers RFC 3550 §5.1 and §5.3.1.

    Complaints are about payloads, which are no frames of their type.  With a marker, types 64 to
    95 look like RTCP: RFC 5761 §4.
    """
    found = [each for each in drawn(rtp.rtp_packets()) if each.payload_type not in range(64, 96)]
    frames = [datagram(bytes(each), RTP_PORT) for each in found]
    for _ in agree(tmp_path, found, frames, of_rtp, *AS_RTP):
        pass


def is_left_out(packet):
    """Whether Wireshark misreads what follows: it is no judge of these packets.

    It takes octets behind report blocks for an extension of one profile (RFC 3550 §6.4.3), and
    loses its place in feedback that only an application knows (RFC 4585 §6.4).
    """
    for_application = isinstance(packet, OtherFeedback) and packet.packet_type == 206
    return for_application or bool(getattr(packet, "extension", b""))


def is_known(packet):
    """Whether Wireshark reads on: it ends at a type it does not know, against RFC 3550 §6.1."""
    return not isinstance(packet, UnknownPacket)


def of_rtcp(packets):
    """The fields of a compound."""
    octets = [bytes(each) for each in takewhile(is_known, packets)]
    return {
        "rtcp.pt": [each[1] for each in octets],
        "rtcp.length": [len(each) // 4 - 1 for each in octets],
    }


def test_compounds(tmp_path):
    """Covers RFC 3550 §6.1 and §6.4 to §6.7: each packet is found where it is."""
    found = [each for each in drawn(rtp.compounds()) if not any(map(is_left_out, each))]
    frames = [datagram(b"".join(map(bytes, each)), RTCP_PORT) for each in found]
    for packets, words in agree(tmp_path, found, frames, of_rtcp, *AS_RTCP):
        # Nul is a character of UTF-8: RFC 3550 §6.5 (items have a length, and no end).
        nul = set(words) == {"Trailing stray characters"} and b"\0" in b"".join(map(bytes, packets))
        assert nul or not all(map(is_known, packets)), words

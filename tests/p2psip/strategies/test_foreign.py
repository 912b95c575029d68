"""Wireshark reads what the strategies draw as our codecs mean it.

Own design: a second opinion on valid input.  Where Wireshark is wrong, a test says so with the
section, and `docs/3-howto/use-as-oracle.md` does for all of them.
"""

import re
from itertools import takewhile

from support.oracle import drawn
from support.tshark import COMPLAINT, datagram, dissect

from p2psip.rtp.rtcp import OtherFeedback, UnknownPacket
from p2psip.sip.address import Address
from p2psip.sip.grammar import bracketed
from p2psip.sip.message import Request
from p2psip.sip.via import Via
from p2psip.strategies import rtp, sip

REMARKS = ("Unrecognised SIP header", "Unknown Application Layer Feedback Type")  # and no faults
SIP_PORT, RTP_PORT, RTCP_PORT = 5060, 5004, 5007
AS_RTP = ("-d", f"udp.port=={RTP_PORT},rtp", "--disable-protocol", "rtpevent")
AS_RTCP = ("-d", f"udp.port=={RTCP_PORT},rtcp")


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
    if isinstance(message, Request):
        return fields | {"sip.Method": [message.method], "sip.r-uri": [message.uri]}
    return fields | {"sip.Status-Code": [message.status]}


def test_messages(tmp_path):
    """Covers RFC 3261 §7, §20.42 and §25.1: methods, URIs, addresses, hops."""
    found = drawn(sip.messages())
    frames = [datagram(bytes(each), SIP_PORT) for each in found]
    for message, words in agree(tmp_path, found, frames, of_sip):
        # Nul may stand in a body and behind a backslash: RFC 3261 §25.1 (OCTET, quoted-pair).
        assert set(words) == {"Trailing stray characters"} and b"\0" in bytes(message)


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
        assert not all(map(is_known, packets)), words

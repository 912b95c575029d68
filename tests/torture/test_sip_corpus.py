"""Messages and captures of real devices: one clear result for each, and no crash.

Covers RFC 3261 §7 where they follow it.  Where an upstream label says otherwise, the RFC
decides, and `OTHERWISE` tells why.
"""

import json
from pathlib import Path

import dpkt
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations

from p2psip.errors import RemoteError
from p2psip.sip.address import Address
from p2psip.sip.auth import Challenge, Credentials
from p2psip.sip.framing import KeepAlive, Malformed, StreamFramer
from p2psip.sip.message import (
    Request,
    check_request,
    check_response,
    parse_message,
    salvage,
)
from p2psip.sip.uri import Uri
from p2psip.sip.via import Via

# Messages that look good in their manifest and are refused, by the check or by the parser.
OTHERWISE = {
    "kamailio/inv_srv.sip": "400 Missing To",
    "kamailio/invite1.sip": "400 Missing To",
    "kamailio/invite3-callid.sip": "400 Bad Address",  # a space makes Call-ID part of To
    "kamailio/invite4-cseq.sip": "400 Bad CSeq",  # a number without a method
    "kamailio/message.sip": "400 Body Shorter Than Content-Length",
    "kamailio/ms-invite-00-rpl.sip": "400 Missing Empty Line",
    "kamailio/register04.sip": "400 Bad URI",  # To:poo <bear@iptel.org>
    "kamailio/req-test1.sip": "400 Bad Request Line",  # two spaces before the version
    "kamailio/req-tm1.sip": "400 Bad Request Line",
    "kamailio/sg.sip": "400 Bare Line Break",  # CR CR LF
    "kamailio/short_nonce.sip": "400 Missing Empty Line",
    "from_stack_tests/sofia-sip_00.sip": "400 CSeq Of Another Method",
    "from_stack_tests/sofia-sip_10.sip": "400 Empty Header Value",  # Via with ",,"
    "from_stack_tests/sofia-sip_14.sip": "400 CSeq Of Another Method",
    "from_stack_tests/belle-sip_02.sip": "400 Body Shorter Than Content-Length",
    "from_stack_tests/pjproject_03.sip": "400 Bare Line Break",  # LF and CRLF mixed
    "from_stack_tests/pjproject_05.sip": "400 Bad Number",  # Max-Forwards: notanumber
    "from_stack_tests/resiprocate_06.sip": "400 Bad Via",  # no transport
}


def verdict(data):
    """Nothing for a message that passes every check, else what is said against it."""
    salvage(data)
    try:
        message = parse_message(data)
        assert parse_message(bytes(message)) == message
        (check_request if isinstance(message, Request) else check_response)(message)
    except RemoteError as error:
        return str(error)
    return None


@pytest.mark.parametrize("folder", ["kamailio", "from_stack_tests", "rfc4475", "rfc5118"])
def test_messages_of_a_manifest(corpus, folder):
    """Covers RFC 3261 §7: what has its headers, its empty line and its CRLFs is accepted."""
    manifest = json.loads((corpus / "sip" / folder / "manifest.json").read_text())
    for entry in manifest["messages"]:
        name = f"{folder}/{entry['file']}"
        data = (corpus / "sip" / name).read_bytes()
        if folder == "kamailio":  # kept for netcat, mostly with bare line feeds
            data = data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
        said = verdict(data)
        good = entry.get("class", "real") in ("real", "valid", "lenient")
        whole = entry.get("has_end_of_headers", True) and not entry.get("lacks_mandatory_headers")
        if name in OTHERWISE:
            assert said == OTHERWISE[name], name
        elif good and whole and "Content-Length in the RFC" not in entry.get("note", ""):
            assert said is None, name


def test_every_device_is_understood(corpus):
    """Covers RFC 3261 §7."""
    for path in sorted((corpus / "sip" / "devices").glob("*.sip")):
        assert verdict(path.read_bytes()) is None, path.name


@given(st.data())
def test_wounded_messages_of_devices_crash_nothing(corpus, data):
    """Covers RFC 4475 §3.1.2: accept, or RemoteError, nothing else."""
    paths = sorted(path for path in (corpus / "sip").glob("*/*") if path.suffix in (".sip", ".dat"))
    wounded = data.draw(mutations(st.sampled_from(paths).map(Path.read_bytes)))
    event("accepted" if verdict(wounded) is None else "refused")
    StreamFramer().feed(wounded)


@pytest.mark.parametrize(
    ("file", "parse", "accepted", "lines"),
    [
        ("contacts.txt", Address.parse_list, 82, 89),
        ("froms.txt", Address.parse, 83, 105),
        ("tos.txt", Address.parse, 75, 82),
        ("routes.txt", Address.parse_list, 7, 7),
        ("recordroutes.txt", Address.parse_list, 7, 7),
        ("urls.txt", Uri.parse, 42, 74),
        ("vias.txt", Via.parse_list, 16, 19),
        ("auths.txt", Credentials.parse, 3, 14),
        ("wwwas.txt", Challenge.parse, 12, 15),
    ],
)
def test_header_values_line_by_line(corpus, file, parse, accepted, lines):
    """Covers RFC 3261 §20: the lines that follow the grammar are accepted and written back.

    The others lack a host, a quote, a value or a mandatory parameter, have letters that
    are no hexadecimal digits in an address, or end in an empty parameter.
    """
    values = [
        line.strip()
        for line in (corpus / "sip" / "osip_headers" / file).read_bytes().splitlines()
        if line.strip() and not line.startswith(b"#")
    ]
    found = 0
    for value in values:
        try:
            parsed = parse(value)
        except RemoteError:
            continue
        found += 1
        again = ", ".join(map(str, parsed)) if isinstance(parsed, tuple) else str(parsed)
        assert parse(again) == parsed
    assert (found, len(values)) == (accepted, lines)


def packets(path: Path):
    """The transport payloads of a capture: (protocol, flow, octets)."""
    with path.open("rb") as file:
        reader = dpkt.pcap.UniversalReader(file)
        for _, frame in reader:
            kind = dpkt.sll.SLL if reader.datalink() == dpkt.pcap.DLT_LINUX_SLL else None
            raw = reader.datalink() in (dpkt.pcap.DLT_RAW, 12, 14)
            packet = dpkt.ip.IP(frame) if raw else (kind or dpkt.ethernet.Ethernet)(frame).data
            while isinstance(packet, dpkt.ip.IP | dpkt.ip6.IP6):
                inner, outer = packet.data, packet
                packet = inner
            if isinstance(packet, dpkt.udp.UDP | dpkt.tcp.TCP):
                flow = (outer.src, packet.sport, outer.dst, packet.dport)
                yield type(packet).__name__, flow, packet


def sip_datagrams(path):
    """The datagrams of a capture that have a text of SIP in them."""
    found = [bytes(packet.data) for kind, _, packet in packets(path) if kind == "UDP"]
    return [data for data in found if b"SIP/2.0" in data]


def sip_streams(path):
    """What the framers of all TCP flows of a capture give, retransmissions left out."""
    framers, items, seen = {}, [], set()
    for kind, flow, packet in packets(path):
        if kind == "TCP" and packet.data and (flow, packet.seq) not in seen:
            seen.add((flow, packet.seq))
            items += framers.setdefault(flow, StreamFramer()).feed(bytes(packet.data))
    return items


@pytest.mark.parametrize(
    ("file", "messages", "odd"),
    [
        ("sip_rtp_calls_2005.pcap", 81, 0),
        ("sip_compact_form.pcap", 1, 1),
        ("sip_header_multi_value.pcap", 1, 1),
        ("sip_sdp.pcap", 2, 2),
        ("sipp_call_g711a_dtmf.pcap", 6, 0),
        ("sip_call_av_speex16k_h264.pcap", 6, 0),
    ],
)
def test_datagrams_of_captures(corpus, file, messages, odd):
    """Covers RFC 3261 §18.3.

    The odd ones parse, but have backslashes around the quotes of their From, so a server
    refuses them: RFC 4475 §3.1.2.15.
    """
    found = sip_datagrams(corpus / "pcap" / "sip" / file)
    assert len(found) == messages
    assert [said for said in map(verdict, found) if said] == ["400 Unbalanced Quotes"] * odd
    for message in map(parse_message, found):
        assert message.vias and message.call_id and message.cseq


@pytest.mark.parametrize(
    ("file", "messages"),
    [("sip_tcp.pcap", 2), ("sip_ipip_tunnel.pcap", 4), ("sipp_3_calls_tcp_port5068.pcap", 18)],
)
def test_streams_of_captures(corpus, file, messages):
    """Covers RFC 3261 §18.3."""
    items = [
        item
        for item in sip_streams(corpus / "pcap" / "sip" / file)
        if not isinstance(item, KeepAlive)
    ]
    assert not [item for item in items if isinstance(item, Malformed)]
    assert len(items) == messages
    assert [said for said in (verdict(bytes(item)) for item in items) if said] == []


def test_rubbish_and_other_protocols_in_captures(corpus):
    """Covers RFC 4475 §3.1.2.3."""
    folder = corpus / "pcap" / "sip"
    (junk,) = sip_datagrams(folder / "sip_junk_before_request.pcap")
    assert verdict(junk) is not None
    lengths = sip_datagrams(folder / "sip_invalid_content_length.pcap")
    assert "400 Bad Number" in [verdict(data) for data in lengths]
    items = sip_streams(folder / "http_on_sip_port.pcap")
    assert items and all(isinstance(item, Malformed) for item in items)


def test_compact_headers_mean_the_same(corpus):
    """Covers RFC 3261 §7.3.3."""
    (data,) = sip_datagrams(corpus / "pcap" / "sip" / "sip_compact_form.pcap")
    message = parse_message(data)
    assert message.content_type == "application/sdp" and message.via and message.contacts

"""Captures: what packets tell of others, fragments, and streams."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.explained import hold
from support.lint.carried_cases import channel_data, peer, stun
from support.lint.frames import (
    ETHERNET,
    RAW,
    TCP,
    ethernet,
    extension,
    interface,
    ip,
    option,
    packet,
    parts,
    pcap,
    section,
    simple_packet,
    tcp,
    udp,
)
from support.lint.media_cases import rtp
from support.lint.rtmfp_cases import OPEN
from support.lint.scene import Scene, datagrams
from support.lint.sip_cases import PARTS, call, request, sdp
from support.mutations import mutations

from p2psip.nat.stun import StunClass
from p2psip.nat.turn import TurnMethod
from rtclab.explain.capture import capture
from rtclab.explain.command import explain
from rtclab.explain.fields.context import Context
from rtclab.lint.packets import read_capture

V6 = {"source": "2001:db8::1", "target": "2001:db8::2"}
INVITE = PARTS["invite"][1]()
HELLO = ip(udp(b"hello"))


def explained(file, wanted=None):
    field = capture(file, Context(), wanted)
    hold(field, file)
    return field


def named(field, name):
    return [each for each in field.walk() if each.name == name]


def names(field):
    return [each.name for each in field.walk()]


def faults(field):
    return [each.reason for each in field.faults()]


@pytest.mark.parametrize("words", [{}, V6], ids=["IPv4", "IPv6"])
def test_the_last_fragment_shows_the_datagram(words):
    one, two, *more = parts(udp(INVITE), **words)
    field = explained(pcap(two, one, *reversed(more)))
    *others, last = field.children
    assert [names(each).count("INVITE") for each in field.children] == [0] * len(others) + [1]
    assert "5060 > [2001:db8::2]:5060" in last.value or last.value.endswith("> 192.0.2.2:5060")
    [datagram] = named(last, "datagram")
    assert datagram.octets == udp(INVITE) and not faults(field)


def test_fragments_of_tcp_go_to_their_stream():
    field = explained(pcap(*parts(tcp(request("BYE", 1, 1), 5), protocol=TCP)))
    assert len(named(field.children[-1], "BYE")) == 1
    assert field.children[-1].name == "TCP stream 192.0.2.1:5060 > 192.0.2.2:5060"


def test_tags_and_extensions_have_their_own_fields():
    inner = ip(extension(17, udp(b"hello")), 0, **V6)
    field = explained(pcap(ethernet(inner, 0x86DD, 0x88A8, 0x8100), link=ETHERNET))
    assert [each.name for each in field.children[0].children] == [
        *("Ethernet", "VLAN", "VLAN", "IP6", "extension", "UDP", "octets"),
    ]


def test_each_interface_has_its_clock():
    """The second one's packets were at -1.7e9 s."""
    second = 1_700_000_000
    file = section() + interface(RAW, option(9, b"\x09")) + interface(ETHERNET)
    file += packet(HELLO, second * 10**9) + packet(ethernet(HELLO), (second + 1) * 10**6, 1)
    field = explained(file + simple_packet(HELLO) + packet(HELLO, 0, 9))
    assert [each.meaning for each in field.children] == [
        *("1700000000.000000 s", "1700000001.000000 s", "", ""),
    ]
    assert [each.value for each in field.children] == [
        *["192.0.2.1:5060 > 192.0.2.2:5060"] * 3,
        "",
    ]


def test_packets_that_are_alike_stand_where_they_are():
    """Also an empty one: each has its place in the file."""
    field = explained(pcap(HELLO, b"", HELLO))
    size = 16 + len(HELLO)
    assert [each.start for each in field.children] == [40, 40 + size, 56 + size]


def test_a_short_packet_says_what_is_missing():
    field = explained(pcap(HELLO[:-2]))
    for name in ("IP", "UDP"):
        assert named(field, name)[0].meaning == "2 octets behind it not captured"


def test_a_chosen_packet_is_explained_by_those_before_it():
    """The description of a call names the format of its RTP."""
    more = b"a=rtpmap:96 opus/48000/2\r\n"
    scene = call(only=("invite",), invite={"body": sdp(1, formats="96", more=more)})
    file = datagrams(scene.udp("192.0.2.2:20000", "192.0.2.1:20000", rtp(1, kind=96)))
    [chosen] = explained(file, range(2, 3)).children
    assert named(chosen, "payload type")[0].meaning == "opus/48000/2" and named(chosen, "Opus")
    assert named(chosen, "INVITE") == []


def test_a_chosen_packet_of_rtmfp_is_known_by_its_handshake():
    """Its first octets may look like those of RTP."""
    scene, ends = Scene(), ("192.0.2.1:4", "192.0.2.2:5")
    for is_clients, data in OPEN:
        scene.udp(*(ends if is_clients else reversed(ends)), data)
    scene.udp(*ends, rtp(1))
    [chosen] = explained(datagrams(scene), range(len(OPEN) + 1, len(OPEN) + 2)).children
    assert named(chosen, "RTMFP") and not named(chosen, "RTP")


def test_a_chosen_packet_of_a_stream_has_the_messages_that_it_is_of():
    pieces = [request(each, 1, number) for number, each in enumerate(("OPTIONS", "INFO", "BYE"), 1)]
    half = len(pieces[1]) // 2
    data = [tcp(b"", 4, 2)]
    at = 5
    for piece in (pieces[0], pieces[1][:half], pieces[1][half:], pieces[2]):
        data.append(tcp(piece, at))
        at += len(piece)
    file = pcap(*(ip(each, TCP) for each in data))
    found = [names(explained(file, range(each, each + 1))) for each in range(1, 6)]
    methods = [[each for each in ("OPTIONS", "INFO", "BYE") if each in one] for one in found]
    assert methods == [[], ["OPTIONS"], ["INFO"], ["INFO"], ["BYE"]]


def test_a_stream_that_begins_behind_a_gap_says_so():
    """The SYN tells where a stream begins."""
    syn, late = tcp(b"", 2**32 - 1, 2), tcp(request("BYE", 1, 1), 7)
    field = explained(pcap(ip(syn, TCP), ip(late, TCP)))
    assert faults(field.children[-1]) == ["7 octets are missing, and what follows them"]


def test_connections_of_the_same_ports_are_streams_each():
    bye = request("BYE", 1, 1)
    one, other = ([tcp(b"", at, 2), tcp(bye, at + 1)] for at in (100, 90_000))
    field = explained(pcap(*(ip(each, TCP) for each in (*one, *other))))
    assert [each.name.split()[0] for each in field.children[4:]] == ["TCP", "TCP"]
    assert len(named(field, "BYE")) == 2 and not faults(field)


def test_a_channel_of_the_older_standard_is_read_and_named():
    """What coturn's own client binds: 0x588F, for one."""
    old = b"\x58\x8f" + channel_data(0x4000, rtp(1))[2:]
    field = explain(old, Context())
    assert names(field)[:5] == ["ChannelData", "channel", "length", "data", "RTP"]
    assert faults(field) == ["a channel of the reserved numbers, 0x5000 to 0x7fff"]
    [packet_field] = explained(pcap(ip(udp(old)))).children
    assert named(packet_field, "RTP")
    assert "ChannelData" not in names(explained(pcap(ip(udp(old + b"more than padding")))))


def test_channels_between_the_messages_of_a_stream():
    """With the padding that a stream needs."""
    first = stun(StunClass.REQUEST, TurnMethod.CHANNEL_BIND, peer())
    data = channel_data(0x4000, rtp(1, size=3))
    stream = first + data + bytes(-len(data) % 4) + first
    field = explained(pcap(ip(tcp(stream, 5), TCP)))
    found = [each for each in names(field) if each in ("STUN", "ChannelData", "RTP")]
    assert found == ["STUN", "ChannelData", "RTP", "STUN"] and not faults(field)


LINKS = st.sampled_from([0, 1, 9, 12, 101, 108, 113, 228, 229, 276, 9999])
WHOLES = st.sampled_from(
    [
        ethernet(ip(udp(b"hello")), 0x0800, 0x8100),
        *parts(udp(INVITE)),
        *parts(udp(INVITE), **V6),
        ip(extension(44, extension(17, udp(b"hello"))), 0, **V6),
        ip(b"\x30\0\x08\0" + bytes(8) + HELLO, 47),
        ip(tcp(b"hello", 5), TCP),
    ]
)


@given(LINKS, st.lists(st.one_of(st.binary(max_size=80), mutations(WHOLES), WHOLES), max_size=6))
@settings(max_examples=300, deadline=None)
def test_any_frames_are_explained_and_judged(link, frames):
    file = pcap(*frames, link=link)
    explained(file)
    read = read_capture(file)
    assert (read.frames, read.fault) == (len(frames), "")
    assert len(read.packets) + read.skipped <= len(frames)


BLOCKS = st.sampled_from(
    [
        *(section(), section(">"), interface(), interface(options=option(9, b"\xff"))),
        *(packet(HELLO, 2**63), simple_packet(HELLO), interface(order=">")),
    ]
)


@given(st.lists(st.one_of(BLOCKS, mutations(BLOCKS)), max_size=6))
@settings(max_examples=300, deadline=None)
def test_any_blocks_are_explained_or_break_off(blocks):
    explained(section() + b"".join(blocks))

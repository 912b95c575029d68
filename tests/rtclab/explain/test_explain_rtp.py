"""RTP, RTCP and STUN, with the errors at their octets."""

import pytest
from support.explained import hold

from p2psip.nat.stun import BINDING, StunClass, StunMessage, StunType, write_address, write_error
from p2psip.rtp.packet import RtpPacket
from p2psip.rtp.rtcp import Bye, ReceiverReport, SourceDescription
from p2psip.sdp.attributes import RtpMap
from rtclab.explain import payload, rtcp, rtp, stun
from rtclab.explain.fields.context import Context
from rtclab.explain.fields.field import Span


def wrong(field, data):
    """What is wrong: the name of the field, its octets, the reason and the section."""
    hold(field, data)
    return [
        (each.name, data[each.start : each.end].hex(), each.fault.reason, each.fault.citation)
        for each in field.walk()
        if each.fault
    ]


@pytest.mark.parametrize(
    ("data", "name", "octets", "section"),
    [
        ("40000007000000a00000cafe", "version", "40", "RFC 3550"),
        ("a0000007000000a00000cafe09", "padding", "a0", "RFC 3550"),
        ("90000007000000a00000cafe0000", "extension", "0000", "RFC 3550 §5.3.1"),
        ("8000", "rest", "", "RFC 3550"),
    ],
)
def test_errors_of_rtp(data, name, octets, section):
    data = bytes.fromhex(data)
    found = wrong(rtp.packet(Span.all(data), Context()), data)
    assert found and all(each[3].startswith("RFC 3550") for each in found), found
    if octets:
        assert (name, octets) in [each[:2] for each in found]


def test_a_payload_is_described_by_its_format():
    context = Context()
    context.rtpmaps[101] = RtpMap.parse("101 telephone-event/8000")
    data = bytes(RtpPacket(101, 1, 2, 3, bytes.fromhex("0b8a0320")))
    field = rtp.packet(Span.all(data), context)
    assert wrong(field, data) == []
    event = field.children[-1].children[0]
    assert (event.start, event.end) == (12, 16)
    assert event.children[0].meaning == "key #"
    assert event.source.citation == "RFC 4733 §2.3"


def test_a_broken_event_is_found_within_its_packet():
    context = Context()
    context.rtpmaps[101] = RtpMap.parse("101 telephone-event/8000")
    data = bytes(RtpPacket(101, 1, 2, 3, bytes.fromhex("0b8a0320 0b8a")))
    field = rtp.packet(Span.all(data), context)
    assert wrong(field, data)
    assert [each.start for each in field.walk() if each.name == "event" and each.fault] == [16]


def test_packets_of_a_compound_and_their_parts():
    data = bytes(ReceiverReport(7)) + bytes(SourceDescription.of_cname(7, "a@b")) + bytes(Bye((7,)))
    field = rtcp.compound(Span.all(data), Context())
    assert wrong(field, data) == []
    names = [each.name for each in field.children]
    assert names == ["receiver report", "source description", "bye"]
    cname = next(each for each in field.walk() if each.name == "CNAME")
    assert cname.value == "a@b" and data[cname.start : cname.end] == b"\1\3a@b"


def test_an_error_of_rtcp_is_in_its_packet():
    data = bytes(ReceiverReport(7)) + bytes.fromhex("81c90001 00000007")  # a block is missing
    field = rtcp.compound(Span.all(data), Context())
    [(name, octets, reason, section)] = wrong(field, data)
    assert (name, octets) == ("receiver report", "81c9000100000007")
    assert reason == "report blocks beyond the end" and section == "RFC 3550 §6.4.3"


def test_attributes_of_stun():
    seen = write_address(("192.0.2.1", 5060), bytes(12))
    attributes = [
        (StunType.XOR_MAPPED_ADDRESS, seen),
        (StunType.ERROR_CODE, write_error(401, "Unauthorized")),
        (StunType.SOFTWARE, b"here"),
    ]
    data = StunMessage.write(StunClass.ERROR, BINDING, bytes(12), attributes, fingerprint=True).data
    field = stun.message(Span.all(data), Context())
    assert wrong(field, data) == []
    shown = [(each.name, each.value) for each in field.children[4:]]
    assert shown[:3] == [
        ("XOR-MAPPED-ADDRESS", "192.0.2.1:5060"),
        ("ERROR-CODE", "401 Unauthorized"),
        ("SOFTWARE", "here"),
    ]
    data = data[:-1] + bytes([data[-1] ^ 1])
    [(name, *_)] = wrong(stun.message(Span.all(data), Context()), data)
    assert name == "FINGERPRINT"


def test_a_broken_attribute_is_found():
    attributes = [(StunType.ERROR_CODE, bytes(4)), (StunType.MAPPED_ADDRESS, bytes(5))]
    data = StunMessage.write(StunClass.ERROR, BINDING, bytes(12), attributes).data
    found = wrong(stun.message(Span.all(data), Context()), data)
    assert [(name, section) for name, _, _, section in found] == [
        ("ERROR-CODE", "RFC 8489 §14.8 [class-3-to-6] [number-0-to-99]"),
        ("length", "RFC 8489 §14.1 [ipv4-32-bits] [ipv6-128-bits]"),
    ]


def test_a_stream_of_stun_messages():
    one = StunMessage.write(StunClass.REQUEST, BINDING, bytes(12)).data
    field = stun.stream(Span.all(one + one), Context())
    assert wrong(field, one + one) == []
    assert [each.value for each in field.children] == ["Binding request"] * 2


def test_redundancy_describes_each_block_by_its_type():
    context = Context()
    context.rtpmaps[101] = RtpMap.parse("101 telephone-event/8000")
    data = bytes.fromhex("e5000004 65 0b0a00a0 0b8a0320")
    field = payload.redundant(Span.all(data), context)
    assert wrong(field, data) == []
    assert [each.name for each in field.children][-2:] == ["telephone-event"] * 2


@pytest.mark.parametrize(
    ("describe", "data", "names"),
    [
        (payload.h264, "7801000b", ["F", "NRI", "type", "rest"]),
        (payload.opus, "ff", ["configuration", "stereo", "code"]),
        (payload.vp8, "80", ["extended"]),
        (payload.aac, "0010", ["AU headers length"]),
    ],
)
def test_headers_of_media_that_are_cut_short(describe, data, names):
    data = bytes.fromhex(data)
    field = describe(Span.all(data), Context())
    assert wrong(field, data)
    assert [each.name for each in field.children][: len(names)][0] == names[0]

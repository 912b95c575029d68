"""RTCP survives the round trip, whole datagrams and single packets, good and bad."""

from contextlib import suppress

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations, peak

from p2psip.errors import LocalError, RemoteError
from p2psip.rtp import rtcp
from p2psip.rtp.feedback import RateLimit, Tmmb
from p2psip.rtp.rtcp import (
    App,
    Bye,
    OtherFeedback,
    Pli,
    ReceiverReport,
    ReportBlock,
    SdesChunk,
    SenderReport,
    SourceDescription,
    UnknownPacket,
    compound,
    ntp_time,
    parse_compound,
    parse_readable,
)
from p2psip.strategies.rtp import compounds, rtcp_packets

spoiled = mutations(compounds().map(lambda packets: compound(*packets)))


@given(compounds(), st.sampled_from([bytes, memoryview]))
def test_reading_undoes_writing(packets, kind):
    """Covers RFC 3550 §6.1.

    Covers RFC 3550 §6.1 [whole-words].
    """
    data = compound(*packets)
    assert parse_compound(kind(data), strict=True) == packets
    assert len(data) % 4 == 0


@given(rtcp_packets())
def test_each_kind_reads_itself_and_nothing_else(packet):
    """Covers RFC 3550 §6.4.1, §6.4.2, §6.5, §6.6, §6.7, and RFC 4585 §6.1.

    Covers RFC 3550 §6.4.3 [extension-at-the-end].
    """
    data = bytes(packet)
    assert parse_compound(data) == [packet]
    if not isinstance(packet, UnknownPacket):
        assert type(packet).parse(data) == packet
        for wrong in (data * 2, data[:-4], b""):
            with pytest.raises(RemoteError):
                type(packet).parse(wrong)
    with pytest.raises(RemoteError):
        (Bye if isinstance(packet, App) else App).parse(data)


@pytest.mark.parametrize("length", range(8))
def test_a_chunk_ends_with_one_to_four_zeros(length):
    """Covers RFC 3550 §6.5 [zero-ends] [zeros-fill]."""
    data = bytes(SdesChunk(7, ((1, bytes([9]) * length),)))
    item, end = data[4 : 6 + length], data[6 + length :]
    assert item == bytes([1, length]) + bytes([9]) * length
    assert 1 <= len(end) <= 4 and not any(end) and len(data) % 4 == 0


@given(spoiled | spoiled | spoiled | st.binary(max_size=80))
def test_any_octets_are_read_or_refused(data):
    """Covers RFC 3550 §A.2: what is read is written back as long as it was."""
    if data and data[0] >> 6 == 2:
        event("passed the first field")
    try:
        packets = parse_compound(data)
    except RemoteError:
        event("refused")
        return
    event("read")
    assert len(b"".join(map(bytes, packets))) <= len(data) + 4 * len(packets)


@pytest.mark.parametrize(
    "packet",
    [
        "80cb0000",
        "80c90001 00000000",
        "81cd0003 00000000 00000000 ffffffff",
        "84ce0004 00000000 00000000 ffffffff ffffffff",
        "80cf0000",
        "9fc90" + "0bb 00000001" + "00" * 24 * 31,
        "81ca0010 00000001" + "0100" * 28 + "00000000",
    ],
)
def test_memory_is_bounded(packet):
    """Covers RFC 3550 §A.2: many of the smallest packets are as cheap as a few great ones."""
    one = bytes.fromhex(packet)
    data = one * (65000 // len(one))

    def read():
        with suppress(RemoteError):
            parse_compound(data)

    assert peak(read) <= 32 * len(data) + 65536


@pytest.mark.parametrize("wrong", ["81ca0003 00000002 01066162 63646566", "80c80001 00000001"])
def test_a_packet_that_cannot_be_read_is_left_out(wrong):
    """Covers Field §"Compounds with a packet amiss": unless it is all, or the lengths are wrong.

    Covers RFC 3550 §A.2 [compound-checks].
    """
    report, wrong = bytes(ReceiverReport(2, ())), bytes.fromhex(wrong)
    assert parse_readable(report + wrong + bytes(Pli(2, 1))) == [ReceiverReport(2, ()), Pli(2, 1)]
    for data in (wrong, report + wrong[:-4], report + b"\x80\xc9\0\1"):
        with pytest.raises(RemoteError):
            parse_readable(data)


def test_a_compound_begins_with_a_report():
    """Covers RFC 3550 §6.1, forgiven unless the caller is strict.

    Covers RFC 3550 §6.1 [report-in-each] [report-first].
    """
    alone = bytes(Pli(1, 2))
    assert parse_compound(alone) == [Pli(1, 2)]
    with pytest.raises(RemoteError):
        parse_compound(alone, strict=True)
    for packets in ([], [Pli(1, 2)]):
        with pytest.raises(LocalError):
            compound(*packets)


def test_feedback_that_is_not_what_it_claims():
    """Covers RFC 4585 §6.2.1 and RFC 5104 §4.3.1.1: no entry, half an entry, another message.

    Covers RFC 4585 §6.1 [at-least-one], §6.2.1 [nack-has-entries].
    Covers RFC 5104 §4.3.1 [fir-has-entries] and §4.3.1.1 [fir-length].
    """
    for kind, wrong in [
        (rtcp.Nack, "81cd0002 00000001 00000002"),
        (rtcp.Nack, "82cd0003 00000001 00000002 00000000"),
        (Pli, "82ce0002 00000001 00000002"),
        (rtcp.Fir, "84ce0002 00000001 00000000"),
        (rtcp.Fir, "84ce0003 00000001 00000000 00000001"),
        (SenderReport, "80c80001 00000001"),
        (App, "80cc0001 00000001"),
        (Bye, "81cb0002 00000001 04414243"),
    ]:
        with pytest.raises(RemoteError):
            kind.parse(bytes.fromhex(wrong))


def test_padding_is_for_the_last_packet():
    """Covers RFC 3550 §A.2.

    Covers RFC 3550 §6.4.1 [padding-at-the-end] [padding-bit-at-the-end].
    """
    report, padded = bytes(ReceiverReport(1)), bytes.fromhex("a0cb0001 00000004")
    assert parse_compound(report + padded) == [ReceiverReport(1), Bye(())]
    sizes = (bytes.fromhex(f"a0cb0001 000000{size}") for size in ("00", "03", "08"))
    for wrong in (padded + report, *sizes, b"\xa0\xcb\x00\x00"):
        with pytest.raises(RemoteError):
            parse_compound(wrong)


@pytest.mark.parametrize("lost", [0x7FFFFF, -0x800000, -1, 1 << 30, -(1 << 30)])
def test_loss_clamps(lost):
    """Covers RFC 3550 §A.3."""
    block = ReportBlock.parse(bytes(ReportBlock(1, 2, lost, 3, 4)))
    assert block.lost == max(min(lost, 0x7FFFFF), -0x800000) and block.fraction_lost == 2


def test_our_own_bugs_are_told_apart():
    """Covers RFC 3550 §6.5, §6.6 and §6.7: what does not fit its field is never sent.

    Covers RFC 3550 §6.7 [app-in-words].
    """
    block = ReportBlock(1, 0, 0, 0, 0)
    for wrong in (
        lambda: Bye((1,) * 32),
        lambda: Bye((1,), b"x" * 256),
        lambda: App(0, 1, b"names"),
        lambda: App(32, 1, b"name"),
        lambda: App(0, 1, b"name", b"odd"),
        lambda: App(0, 1, b"name", bytes(5)),
        lambda: SdesChunk(1, ((0, b""),)),
        lambda: SdesChunk(1, ((1, b"x" * 256),)),
        lambda: bytes(ReceiverReport(1, (block,) * 32)),
        lambda: rtcp.Nack.of(1, 2, []),
    ):
        with pytest.raises(LocalError):
            wrong()
    assert App.parse(bytes(App(31, 1, b"name", bytes(4)))) == App(31, 1, b"name", bytes(4))


@given(st.lists(st.integers(0, 0xFFFF), min_size=1, max_size=40, unique=True))
def test_a_nack_names_what_is_lost(lost):
    """Covers RFC 4585 §6.2.1, in the order given and across the wrap."""
    message = rtcp.Nack.of(1, 2, lost)
    assert sorted(message.lost()) == sorted(lost)
    nearby = [number & 0xFFFF for number in range(65530, 65547)]
    assert rtcp.Nack.of(1, 2, nearby).lost() == tuple(nearby)
    assert len(rtcp.Nack.of(1, 2, nearby).fci) == 4


@pytest.mark.parametrize(
    ("packet", "octets"),
    [
        (rtcp.Nack.of(1, 2, [5, 7, 300]), "81cd0004 00000001 00000002 00050002 012c0000"),
        (Pli(1, 2), "81ce0002 00000001 00000002"),
        (rtcp.Fir(1, ((2, 3),)), "84ce0004 00000001 00000000 00000002 03000000"),
        (Tmmb(1, (RateLimit(2, 1, 3, 4),)), "83cd0004 00000001 00000000 00000002 04000604"),
        (Tmmb(1, (), notice=True), "84cd0002 00000001 00000000"),
    ],
)
def test_the_octets_of_feedback(packet, octets):
    """Covers RFC 4585 §6.1 [common-format], §6.2.1 [nack-length], §6.3.1 [one-pli] and §6.3.1.2
    [pli-has-no-entries].

    Covers RFC 5104 §4.2.1.1 [length-counts-entries], §4.2.1.2 [media-source-is-zero],
    §4.2.2.1 [notice-length-counts-entries], §4.2.2.2 [zero-in-notices] and §4.3.1.1 [fir-length]
    [reserved-is-zero].
    """
    assert bytes(packet).hex(" ", -4) == octets
    assert type(packet).parse(bytes.fromhex(octets)) == packet


def test_a_nack_of_nothing_is_not_made():
    """Covers RFC 4585 §6.1 [at-least-one], §6.2.1 [nack-has-entries]."""
    with pytest.raises(LocalError):
        rtcp.Nack.of(1, 2, [])


def test_reserved_bits_of_a_command_are_ignored():
    """Covers RFC 5104 §4.3.1.1 [reserved-is-zero]."""
    octets = bytes.fromhex("84ce0004 00000001 00000000 00000002 03ffffff")
    assert rtcp.Fir.parse(octets) == rtcp.Fir(1, ((2, 3),))


def test_ntp_time():
    """Covers RFC 3550 §4: seconds since 1900, and the fraction in 32 bits."""
    assert ntp_time(0.5) == 2208988800 << 32 | 1 << 31


def test_items_may_be_other_than_a_name():
    """Covers RFC 3550 §6.5.1."""
    assert SdesChunk(1, ((7, b"note"),)).cname is None
    assert SdesChunk(1, ((1, b"\xff"),)).cname == "\ufffd"
    described = SourceDescription.of_cname(1, "é" * 300)
    assert SourceDescription.parse(bytes(described)) == described


AIORTC = {
    "rtcp_bye": [Bye((0xAE528B43,))],
    "rtcp_bye_invalid": None,
    "rtcp_bye_no_sources": [Bye(())],
    "rtcp_bye_padding": [Bye(())],
    "rtcp_psfb_invalid": None,
    "rtcp_psfb_pli": [Pli(0x54506265, 0x23013FB9)],
    "rtcp_rr": [ReceiverReport(0x30B68407, (ReportBlock(0x479437AF, 0, 0, 630, 1906),))],
    "rtcp_rr_invalid": None,
    "rtcp_rtpfb_invalid": None,
    "rtcp_sdes": [SourceDescription.of_cname(0x6D2453EA, "{63f459ea-41fe-4474-9d33-9707c9ee79d1}")],
    "rtcp_sdes_item_truncated": None,
    "rtcp_sdes_source_truncated": None,
    "rtcp_sr_invalid": None,
}


@pytest.mark.parametrize("name", AIORTC)
def test_single_packets_of_the_corpus(corpus, name):
    """Covers RFC 3550 §A.2."""
    data = (corpus / "rtcp" / "aiortc" / f"{name}.bin").read_bytes()
    if AIORTC[name] is None:
        with pytest.raises(RemoteError):
            parse_compound(data)
    else:
        assert parse_compound(data) == AIORTC[name]


def test_a_sender_report_of_the_corpus(corpus):
    """Covers RFC 3550 §6.4.1."""
    report = SenderReport.parse((corpus / "rtcp" / "aiortc" / "rtcp_sr.bin").read_bytes())
    assert (report.ssrc, report.packets, report.octets) == (0x6D2453EA, 269, 13557)
    assert report.timestamp == 1722342718 and report.ntp == 0xDE46475B151A005C
    assert report.reports == (ReportBlock(0x8EF891ED, 0, 0, 246, 127),)


def test_a_nack_of_the_corpus(corpus):
    """Covers RFC 4585 §6.2.1."""
    [nack] = parse_compound((corpus / "rtcp" / "aiortc" / "rtcp_rtpfb.bin").read_bytes())
    assert nack.media_ssrc == 0xF71DEEE4
    assert nack.lost() == (12, 32, 39, 54, 76, 110, 123, 142, 183, 187, 223, 236, 271, 292)


def test_fuzz_corpus_does_no_harm(corpus):
    """Covers RFC 3550 §A.2: nothing is read beyond the end."""
    files = sorted((corpus / "rtcp" / "janus_webrtc").glob("*.rtcp"))
    assert len(files) == 67
    for file in files:
        data = file.read_bytes()
        for end in {*range(0, min(len(data), 64), 4), len(data)}:
            try:
                packets = parse_compound(data[:end])
            except RemoteError:
                continue
            assert packets and all(bytes(packet) for packet in packets)


CAPTURES = [
    ("rtp/pcma_with_rtcp.pcap", 20012, 20013, 4),
    ("rtp/h264_fua_stapa_4slices.pcap", 20000, 20001, 2),
    ("rtp/opus.pcap", 20016, 20017, 2),
    ("sip/sip_call_av_speex16k_h264.pcap", 23200, 23201, 2),
    ("sip/sip_call_av_speex16k_h264.pcap", 23202, 23203, 3),
]


@pytest.mark.parametrize(("name", "rtp_port", "rtcp_port", "count"), CAPTURES)
def test_captured_reports(capture, name, rtp_port, rtcp_port, count):
    """Covers RFC 3550 §6.4.1: the counts in the reports are those of the packets before them."""
    sent = octets = seen = 0
    for datagram in capture(name):
        if datagram.port == rtp_port:
            sent, octets = sent + 1, octets + len(datagram.data) - 12
        elif datagram.port == rtcp_port:
            seen += 1
            for packet in parse_compound(datagram.data, strict=True):
                if isinstance(packet, SenderReport):
                    assert abs(packet.packets - sent) <= 1
                    assert abs(packet.octets - octets) <= 1400
                assert not isinstance(packet, UnknownPacket | OtherFeedback)
    assert seen == count


def test_the_reason_of_a_goodbye_is_padded_to_whole_words():
    """Covers RFC 3550 §6.6 [reason-is-padded]."""
    assert bytes(Bye((1,), b"bye")) == bytes.fromhex("81cb0002 00000001 03627965")
    assert bytes(Bye((1,), b"go")) == bytes.fromhex("81cb0002 00000001 02676f00")

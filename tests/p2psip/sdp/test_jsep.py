"""The envelope of a browser's offer, and that of our answer."""

from dataclasses import replace

import pytest

from p2psip.errors import RemoteError
from p2psip.nat.ice_candidate import IceCandidate
from p2psip.sdp.attributes import DIRECTIONS
from p2psip.sdp.jsep import (
    BrowserAnswer,
    BrowserEnd,
    BrowserOffer,
    IceFragment,
    is_of_browser,
)
from p2psip.sdp.line import Attribute
from p2psip.sdp.offer_answer import (
    Codec,
    LocalMedia,
    LocalTransport,
    Origin,
    make_answer,
    make_offer,
)
from p2psip.sdp.session import SessionDescription

HOST = "192.0.2.1"
PASSWORD = "a-secret-of-22-letters"
SECURE = "UDP/TLS/RTP/SAVPF"
END = BrowserEnd("ours", "password", "AB:CD", ((HOST, 8189), ("198.51.100.2", 8189)))


def line(kind, mid, *more, port=9, protocol=SECURE, flow="sendonly", mux=True):
    codec = "111 opus/48000/2" if kind == "audio" else "96 VP8/90000"
    words = [f"m={kind} {port} {protocol} {codec.split()[0]}", "c=IN IP4 0.0.0.0"]
    words += ["a=ice-ufrag:EsAw", f"a=ice-pwd:{PASSWORD}", "a=rtcp:9 IN IP4 0.0.0.0"]
    words += ["a=candidate:1 1 udp 1 10.0.0.1 61764 typ host", f"a={flow}", f"a=mid:{mid}"]
    words += ["a=rtcp-mux"] if mux else []
    return [*words, f"a=rtpmap:{codec}", *more]


def offer(*lines, group="BUNDLE 0 1", setup="actpass", digest="sha-256 ab:cd", more=()):
    lines = lines or (line("audio", 0), line("video", 1, "a=bundle-only", port=0))
    words = ["v=0", "o=- 1 2 IN IP4 127.0.0.1", "s=-", "t=0 0"]
    words += [f"a=group:{group}"] if group else []
    words += [f"a=fingerprint:{digest}"] if digest else []
    words += [f"a=setup:{setup}", *more, *(word for each in lines for word in each)]
    return "\r\n".join([*words, ""]).encode()


def answered(read, flow="sendrecv"):
    transport = LocalTransport(8189, rtcp_mux=True)
    media = [
        LocalMedia("audio", (Codec("opus", 48000, 2),), transport, flow),
        LocalMedia("video", (Codec("VP8", 90000),), transport, flow),
    ]
    plain, agreed = make_answer(read.plain, media, Origin.at(HOST, 7), HOST)
    return END.answer(read, plain), agreed


def test_an_offer_without_its_envelope_is_one_of_plain_rtp():
    """Covers RFC 9725 §4.4.1 [bundles]: a line that says bundle-only is there as well."""
    read = BrowserOffer.read(offer(), HOST, "sendonly")
    assert (read.ufrag, read.fingerprint, read.bundled) == ("EsAw", "AB:CD", ("0", "1"))
    assert [(each.port, each.protocol) for each in read.plain.media] == [(9, "RTP/AVPF")] * 2
    assert read.plain.connection.address == HOST
    assert all(each.attribute("rtcp") is None for each in read.plain.media)
    _, agreed = answered(read)
    assert [(each.remote, each.direction) for each in agreed] == [((HOST, 9), "recvonly")] * 2


def test_the_answer_has_all_that_a_browser_asks_for():
    """Covers RFC 8839 §5.1 [no-names] [component-1-for-rtp] [host-has-no-related].

    Covers RFC 8839 §5.4 [credentials-for-each], RFC 9725 §4.3.2 [answer-has-all-candidates].
    """
    answer, _ = answered(BrowserOffer.read(offer(), HOST, "sendonly"))
    answer = SessionDescription.parse(bytes(answer))
    assert answer.attribute("group") == "BUNDLE 0 1" and answer.attribute("ice-lite") == ""
    for each, mid in zip(answer.media, "01", strict=True):
        assert (each.port, each.protocol, each.attribute("mid")) == (8189, SECURE, mid)
        assert (each.attribute("ice-ufrag"), each.attribute("ice-pwd")) == ("ours", "password")
        assert [one.value for one in each.attributes if one.name == "candidate"] == [
            f"1 1 udp {(126 << 24) + (65535 << 8) + 255} {HOST} 8189 typ host",
            f"2 1 udp {(126 << 24) + (65534 << 8) + 255} 198.51.100.2 8189 typ host",
        ]
        assert each.attribute("rtcp-mux") == "" and each.attribute("rtcp") is None


def test_connections_are_taken_at_the_same_addresses():
    """Covers RFC 6544 §4.4 [lite-has-passive-hosts], §4.5 [transport-is-tcp].

    Those of UDP are all preferred to them, and each has a priority of its own.
    """
    read = BrowserOffer.read(offer(), HOST, "sendonly")
    answer = replace(END, has_tcp=True).answer(read, answered(read)[0])
    for line in answer.media:
        values = [one.value for one in line.attributes if one.name == "candidate"]
        found = [IceCandidate.parse(each) for each in values]
        udp, tcp = found[:2], found[2:]
        assert [each.transport for each in tcp] == ["tcp"] * 2
        assert [each.address for each in tcp] == [each.address for each in udp]
        assert {each.more for each in tcp} == {(("tcptype", "passive"),)}
        priorities = [each.priority for each in found]
        assert priorities == sorted(set(priorities), reverse=True)
        assert len({each.foundation for each in found}) == 4
        assert tcp[0].priority >> 8 & 0xFFFF == (4 << 13) + 8191


def test_layers_and_repairs_of_an_offer_are_left_out_of_the_answer():
    """Own design: one layer, and no error correction; RTX is for the codecs to answer with.

    A browser that offers simulcast, RED, ULPFEC and FlexFEC is answered with one format; it
    then sends its first layer alone.
    """
    more = [
        "a=rtpmap:97 rtx/90000", "a=fmtp:97 apt=96", "a=rtpmap:98 red/90000",
        "a=rtpmap:99 ulpfec/90000", "a=rtpmap:35 flexfec-03/90000",
        "a=fmtp:35 repair-window=10000000",
        "a=extmap:9 urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id",
        "a=rid:h send", "a=rid:l send", "a=simulcast:send h;l", "a=ssrc-group:FID 1 2",
        "a=rtcp-fb:96 nack", "a=rtcp-fb:96 transport-cc", "a=rtcp-fb:96 goog-remb",
    ]  # fmt: skip
    video = [
        each.replace(f"{SECURE} 96", f"{SECURE} 96 97 98 99 35") for each in line("video", 1, *more)
    ]
    answer, agreed = answered(BrowserOffer.read(offer(line("audio", 0), video), HOST, "sendonly"))
    ours = answer.media[1]
    assert ours.formats == ("96",) and [each.name for each in agreed[1].codecs] == ["VP8"]
    named = {each.name for each in ours.attributes}
    assert not named & {"rid", "simulcast", "extmap", "ssrc-group"}
    said = " ".join(each.value or "" for each in ours.attributes)
    assert not any(word in said for word in ("rtx", "red/", "fec", "transport-cc", "remb"))


def test_the_answer_says_its_certificate_and_waits_for_the_handshake():
    """Covers RFC 5763 §5 [fingerprint-is-said] [answers-active-or-passive].

    Covers RFC 9725 §4.4.1 [mux-only-is-said].
    """
    answer, _ = answered(BrowserOffer.read(offer(), HOST, "sendonly"))
    for each in answer.media:
        assert each.attribute("fingerprint") == "sha-256 AB:CD"
        assert each.attribute("setup") == "passive" and each.attribute("rtcp-mux-only") == ""


def test_a_publisher_is_answered_recvonly_even_if_it_would_take_media_too():
    """Covers RFC 9725 §4.2 [answers-recvonly]."""
    lines = line("audio", 0, flow="sendrecv"), line("video", 1)
    answer, _ = answered(BrowserOffer.read(offer(*lines), HOST, "sendonly"))
    assert [each.attribute("recvonly") for each in answer.media] == ["", ""]
    assert [each.attribute("msid") for each in answer.media] == [None, None]


def test_a_viewer_is_answered_sendonly_under_one_name():
    """RFC 9725 §4.4.2: the tracks of one stream are shown together."""
    lines = line("audio", 0, flow="recvonly"), line("video", 1, flow="recvonly")
    answer, _ = answered(BrowserOffer.read(offer(*lines), HOST, "recvonly"))
    assert [each.attribute("sendonly") for each in answer.media] == ["", ""]
    assert [each.attribute("msid") for each in answer.media] == ["siprtmp audio", "siprtmp video"]


@pytest.mark.parametrize("flow", ["recvonly", "inactive"])
def test_a_publisher_that_sends_nothing_is_refused(flow):
    """Covers RFC 9725 §4.2 [publishers-send]."""
    with pytest.raises(RemoteError, match="sendonly is meant") as refused:
        BrowserOffer.read(offer(line("audio", 0, flow=flow)), HOST, "sendonly")
    assert refused.value.status == 488


def test_lines_outside_of_the_bundle_or_without_rtcp_mux_are_off():
    """Covers RFC 9725 §4.4.1 [muxes] [bundles]: and keep their place in the answer."""
    lines = line("audio", 0), line("video", 1), line("video", 2, mux=False)
    lines += (["m=application 9 UDP/DTLS/SCTP webrtc-datachannel", "a=mid:3"],)
    read = BrowserOffer.read(offer(*lines, group="BUNDLE 0 2 3"), HOST, "sendonly")
    assert [each.port for each in read.plain.media] == [9, 0, 0, 0]
    answer, _ = answered(read)
    assert [each.port for each in answer.media] == [8189, 0, 0, 0]
    assert answer.attribute("group") == "BUNDLE 0"
    assert [each.attribute("mid") for each in answer.media] == ["0", "1", "2", "3"]
    assert answer.media[1].protocol == SECURE


def test_a_single_line_needs_no_group():
    read = BrowserOffer.read(offer(line("audio", "a"), group=""), HOST, "sendonly")
    assert read.bundled == ("a",)


@pytest.mark.parametrize(
    ("sdp", "reason"),
    [
        (offer(digest="md5 AB:CD"), "SHA-256"),
        (offer(digest=""), "SHA-256"),
        (offer(digest="sha-256 AB:CD:X!").replace(b"X!", b"\xff"), "SHA-256"),
        (offer(digest="sha-256 "), "SHA-256"),
        (offer(setup="passive"), "actpass"),
        (offer(more=("a=ice-lite",)), "lite"),
        (offer(group="LS 0 1"), "bundled"),
        (offer().replace(b"a=ice-ufrag:EsAw\r\n", b""), "ICE"),
        (offer().replace(b"a=ice-pwd:%s\r\n" % PASSWORD.encode(), b""), "ICE"),
    ],
)
def test_an_offer_that_nothing_can_answer_is_refused_by_name(sdp, reason):
    """Covers RFC 8122 §5 [fingerprint-is-there] [no-md5]."""
    with pytest.raises(RemoteError, match=reason) as refused:
        BrowserOffer.read(sdp, HOST, "sendonly")
    assert refused.value.status == 488


def test_what_a_line_says_itself_counts_before_the_session():
    lines = (line("audio", 0, "a=fingerprint:SHA-256 01:02", "a=setup:active"),)
    read = BrowserOffer.read(offer(*lines, group="BUNDLE 0", setup="passive"), HOST, "sendonly")
    assert read.fingerprint == "01:02"


def test_the_user_name_of_a_fragment_is_read():
    fragment = b"m=audio 9 X 0\r\na=mid:0\r\na=ice-ufrag:EsAw\r\na=ice-pwd:x\r\n"
    assert IceFragment.read(fragment) == IceFragment("EsAw", "x")
    with pytest.raises(RemoteError, match="ice-ufrag"):
        IceFragment.read(b"a=candidate:1 1 udp 1 10.0.0.1 1 typ host\r\na=\xff")
    with pytest.raises(RemoteError, match="no fragment"):
        IceFragment.read(b"a=ice-ufrag:EsAw\r\nice-pwd\r\n")


def test_a_restart_is_told_by_a_fragment_for_the_line_of_the_bundle():
    """Covers RFC 9725 §4.3.3 [same-options]."""
    read = BrowserOffer.read(offer(line("audio", 0), line("video", 1)), HOST, "sendonly")
    end = BrowserEnd("new", "secret", "AB:CD", (("192.0.2.1", 8189),))
    answer = end.answer(read, read.plain)
    lines = end.fragment(read).decode().split("\r\n")
    assert lines[-2:] == ["a=end-of-candidates", ""] and [
        each for each in lines if each.startswith("m=")
    ] == ["m=audio 9 UDP/TLS/RTP/SAVPF 111"]
    for name in ("ice-lite", "ice-options", "group"):
        said = answer.attribute(name)
        assert (f"a={name}:{said}" if said else f"a={name}") in lines
    assert "a=mid:0" in lines and "a=ice-ufrag:new" in lines and "a=ice-pwd:secret" in lines
    assert IceFragment.read(end.fragment(read)) == IceFragment("new", "secret")
    assert [each for each in lines if "candidate:" in each] == [
        f"a=candidate:{answer.media[0].attribute('candidate')}"
    ]


def test_an_end_has_the_name_of_its_stream():
    read = BrowserOffer.read(offer(line("audio", 0, flow="recvonly")), HOST, "recvonly")
    plain, _ = make_answer(
        read.plain,
        [LocalMedia("audio", (Codec("opus", 48000, 2),), LocalTransport(8189))],
        Origin.at(HOST, 7),
        HOST,
    )
    named = replace(END, stream="demo").answer(read, plain)
    assert Attribute("msid", "demo audio") in named.media[0].attributes


def our_offer(*names):
    media = [
        LocalMedia("audio", (Codec("opus", 48000, 2),), LocalTransport(8189), "sendonly"),
        LocalMedia("video", (Codec("VP8", 90000),), LocalTransport(8189, rtcp_mux=True)),
    ]
    plain = make_offer(media, Origin.at(HOST, 7), HOST)
    lines = [replace(plain.media[0], attributes=(Attribute("mid", each),)) for each in names]
    return SessionDescription.parse(bytes(END.offer(plain, lines)))


def test_an_offer_of_ours_leaves_the_browser_to_begin():
    """Covers RFC 5763 §5 [fingerprint-is-said]: it may take either side, and takes the active."""
    ours = our_offer()
    assert ours.attribute("group") == "BUNDLE 0 1" and ours.attribute("ice-lite") == ""
    for each, name in zip(ours.media, "01", strict=True):
        assert (each.port, each.protocol, each.attribute("mid")) == (8189, SECURE, name)
        assert (each.attribute("setup"), each.attribute("fingerprint")) == (
            "actpass",
            "sha-256 AB:CD",
        )
        assert each.attribute("ice-ufrag") == "ours" and each.attribute("rtcp") is None
        assert [one.name for one in each.attributes].count("rtcp-mux") == 1
    assert is_of_browser(bytes(ours)) and not is_of_browser(b"v=0\r\nm=audio 9 RTP/AVP 0\r\n")


def test_lines_keep_the_names_that_the_browser_gave_them():
    """Own design: a name that has none yet is that of its place."""
    ours = our_offer("sound")
    assert ours.attribute("group") == "BUNDLE sound 1"
    assert [each.attribute("mid") for each in ours.media] == ["sound", "1"]


@pytest.mark.parametrize("flow", ["sendrecv", "sendonly", "recvonly", "inactive"])
def test_a_browser_that_is_a_phone_has_any_direction(flow):
    """Own design: a hold is one."""
    read = BrowserOffer.read(offer(line("audio", 0, flow=flow), group="BUNDLE 0"), HOST)
    said = [each.name for each in read.plain.media[0].attributes if each.name in DIRECTIONS]
    assert said == [flow]


# -- in place of a browser ------------------------------------------------------------------


def end_in_place_of_a_browser(plain):
    """What an end that is no lite agent offers, with the names of its lines but no rates."""
    full = BrowserEnd("theirs", PASSWORD, "CD:EF", ((HOST, 4000),), is_lite=False)
    names = [Attribute("mid", str(number)) for number in range(len(plain.media))]
    lines = zip(plain.media, names, strict=True)
    return full.offer(plain, [replace(line, attributes=(name,)) for line, name in lines])


def test_an_end_may_play_the_part_of_a_browser():
    """Its offer is read, and the answer to it as well."""
    plain = SessionDescription.parse(
        b"v=0\no=- 1 1 IN IP4 127.0.0.1\ns=-\nt=0 0\nm=audio 9 RTP/AVPF 111\n"
        b"a=rtpmap:111 opus/48000/2\na=recvonly\n"
        b"m=video 9 RTP/AVPF 96\na=rtpmap:96 VP8/90000\na=recvonly\n"
    )
    offered = end_in_place_of_a_browser(plain)
    assert [each.attribute("mid") for each in offered.media] == ["0", "1"]
    assert b"ice-lite" not in bytes(offered) and b"transport-cc" not in bytes(offered)
    read = BrowserOffer.read(bytes(offered), HOST, "recvonly")
    assert (read.ufrag, read.password, read.fingerprint) == ("theirs", PASSWORD, "CD:EF")
    answer, _ = answered(read, "sendonly")
    told = BrowserAnswer.read(bytes(answer))
    assert (told.ufrag, told.password, told.fingerprint) == ("ours", "password", "AB:CD")
    assert [each.kind for each in told.lines] == ["audio", "video"] and not told.is_active
    addresses = {IceCandidate.parse(each).address for each in told.candidates}
    assert addresses == {*END.addresses}


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        (b"a=ice-pwd", b"a=x", "No ICE"),
        (b"a=setup:passive", b"a=setup:actpass", "which end begins DTLS"),
        (b"sha-256", b"md5", "No fingerprint"),
        (b"m=audio 8189", b"m=audio 0", "no line"),
    ],
)
def test_an_answer_that_leads_nowhere_is_refused_by_name(before, after, reason):
    """Covers RFC 8122 §5 [fingerprint-is-there] [no-md5]."""
    read = BrowserOffer.read(offer(line("audio", 0), group="BUNDLE 0"), HOST)
    transport = LocalTransport(8189, rtcp_mux=True)
    media = [LocalMedia("audio", (Codec("opus", 48000, 2),), transport, "sendrecv")]
    plain, _ = make_answer(read.plain, media, Origin.at(HOST, 7), HOST)
    answer = bytes(END.answer(read, plain))
    assert BrowserAnswer.read(answer).lines
    with pytest.raises(RemoteError, match=reason):
        BrowserAnswer.read(answer.replace(before, after))

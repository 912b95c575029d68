"""What others have reported of their SIP programs, tried here.

Each test names the report; docs/6-conformance/field-reports-sip.md tells of it.
"""

import re
from pathlib import Path

import pytest
from support.rtmfp.link import Link
from support.sip.elements import Phone, Script, random_source
from support.sip.flows import (
    SDP,
    A,
    B,
    accept,
    called,
    calling,
    early,
    within,
)
from support.sip.session_ends import PCMA, PCMU, answer_to, audio, offered
from support.sip.turn_servers import TurnServer

from p2psip.nat.long_term import LongTermCredentials
from p2psip.nat.stun import StunClass, StunMessage, StunType, write_address
from p2psip.nat.turn import TurnMethod, TurnType, read_channel_data, write_lifetime
from p2psip.nat.turn_client import Allocation, AllocationState
from p2psip.rtp.packet import RtpPacket
from p2psip.rtp.payload.event_receiver import EventBegan, EventReceiver
from p2psip.rtp.payload.h264_unpacker import H264Damage, H264Unpacker, NalUnit
from p2psip.rtp.reception import Reception
from p2psip.rtp.rtcp import Pli
from p2psip.rtp.session import RtpSession
from p2psip.sdp.codec import Codec
from p2psip.sip.auth import Credentials, challenges, digest_response, ha1, verify
from p2psip.sip.build import response_to
from p2psip.sip.framing import KeepAlive, StreamFramer
from p2psip.sip.message import Request, check_request, parse_message
from p2psip.sip.uri import Uri
from p2psip.srtp.srtp import SrtpReceiver, SrtpSender
from p2psip.stack.locate import Locator, Srv
from p2psip.ua.requests.digest_client import Login
from p2psip.ua.requests.request_validation import offer_of, session
from p2psip.ua.ua import CallState

LOG = Path(__file__).parents[2] / "docs/6-conformance/field-reports-sip.md"
HEAD = {
    "Via": "SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK1",
    "Max-Forwards": "70",
    "From": "<sip:alice@a.example>;tag=1",
    "To": "<sip:bob@b.example>",
    "Call-ID": "call",
    "CSeq": "1 INVITE",
    "Contact": "<sip:alice@192.0.2.1>",
}
INSTANCE = "<urn:uuid:a369bd8d-f310-4a95-8328-98c7ed3d5439>"


def test_the_log_names_the_tests():
    """A row of the log is held by a test of this file, or says which other one holds it."""
    rows = [line for line in LOG.read_text().splitlines() if line.startswith("| [")]
    assert len(rows) >= 40
    for row in rows:
        name = re.search(r"`(?:(\S+\.py)::)?(test_\w+)`", row)
        source = LOG.parents[2] / name[1] if name[1] else Path(__file__)
        assert f"def {name[2]}(" in source.read_text(), row


def read(body=b"", /, **changes):
    """An INVITE with these headers, as it is read from the wire."""
    fields = HEAD | {name.replace("_", "-"): value for name, value in changes.items()}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    message = parse_message(f"INVITE sip:bob@b.example SIP/2.0\r\n{lines}\r\n".encode() + body)
    check_request(message)
    return message


# Messages


@pytest.mark.parametrize(
    ("value", "name", "meant"),
    [
        ('<sip:1063@a.example>;+g.oma.sip-im;language="en,fr"', "language", "en,fr"),
        (
            f'<sip:2000@x.invalid>;reg-id=1;+sip.instance="{INSTANCE}";q=1',
            "+sip.instance",
            INSTANCE,
        ),
        (f'<sip:1@x.invalid>;+sip.instance="{INSTANCE}";transport=ws', "transport", "ws"),
    ],
)
def test_a_quoted_parameter_is_one_value(value, name, meant):
    """JsSIP 11 and 66, sipgo 56.  Covers RFC 3261 §7.3.1 and §20.10."""
    [contact] = read(Contact=value).contacts
    assert contact.param(name) == meant


@pytest.mark.parametrize(
    ("value", "display", "user"),
    [
        ('"" <sip:222@b.example>;epid=a22edc020e', "", "222"),
        ('"Bond, James" <sip:007@b.example>', "Bond, James", "007"),
        (
            "<sip:+358-555-1234567;postd=pp22@b.example;user=phone>",
            "",
            "+358-555-1234567;postd=pp22",
        ),
        ("<sip:#1277945860785916705@b.example>", "", "#1277945860785916705"),
        ("<sip:18885287464*1302@b.example>", "", "18885287464*1302"),
    ],
)
def test_names_and_users_of_all_kinds(value, display, user):
    """sip-js 3, ersip 17, FreeSWITCH 2824, ringcentral 147 and 135.  Covers RFC 3261 §25.1."""
    to = read(To=value).to
    assert (to.display, to.uri.user) == (display, user)


COMPACT = (
    b"SIP/2.0 200 OK\r\nv:SIP/2.0/TCP 192.0.2.1:59835;branch=z9hG4bK.5d;rport=59835\r\n"
    b"f:sip:s@192.0.2.1:59835;tag=1\r\nt:sip:192.0.2.2:5080;tag=9\r\ni:27@192.0.2.1\r\n"
    b"CSeq:1 OPTIONS\r\nm:<sip:192.0.2.2:5080>\r\nk:timer,path\r\nl:4\r\n\r\nbody"
)


def test_compact_names_without_a_space():
    """sipsak 101, pjproject 188, siphon-sip 80.  Covers RFC 3261 §7.3.1 and §7.3.3."""
    [response] = StreamFramer().feed(COMPACT)
    assert (response.call_id, response.to.tag, response.body) == ("27@192.0.2.1", "9", b"body")


def test_a_stream_may_be_cut_in_the_empty_line():
    """jain-sip 48.  Covers RFC 3261 §18.3: wherever it is cut."""
    whole = StreamFramer().feed(COMPACT)
    for at in range(len(COMPACT)):
        framer = StreamFramer()
        assert framer.feed(COMPACT[:at]) + framer.feed(COMPACT[at:]) == whole


def test_two_messages_of_one_segment():
    """sipp 675, sngrep 466.  Covers RFC 3261 §18.3."""
    both = StreamFramer().feed(COMPACT + b"\r\n\r\n" + COMPACT)
    assert [both[0], both[-1]] == StreamFramer().feed(COMPACT) * 2
    assert both[1:-1] == [KeepAlive.PONG, KeepAlive.PING]  # pjproject 482


def test_a_folded_challenge_is_one():
    """doubango 27.  Covers RFC 3261 §7.3.1."""
    folded = (
        b'WWW-Authenticate: Digest realm="ims.com",\r\n nonce="2dKT",algorithm=MD5,qop="auth"\r\n'
    )
    response = parse_message(b"SIP/2.0 401 Unauthorized\r\n" + folded + b"\r\n")
    [challenge] = challenges(response.headers, "WWW-Authenticate")
    assert (challenge.realm, challenge.nonce, challenge.qop) == ("ims.com", "2dKT", ("auth",))


@pytest.mark.parametrize(("qop", "nc", "cnonce"), [("auth", "00000001", "6b8b"), (None, "", "")])
def test_proofs_with_and_without_qop(qop, nc, cnonce):
    """sipp 62 and 87, OpenSIPS 2995.  Covers RFC 8760 §2.6 and RFC 3261 §22.4 [qop-tells]."""
    secret = ha1("*1337", "r", "p")
    proof = digest_response(
        secret, nonce="c7", method="INVITE", uri="sip:*9@c", qop=qop, nc=nc, cnonce=cnonce
    )
    more = f',qop="{qop}",nc={nc},cnonce="{cnonce}"' if qop else ""
    told = f'Digest username="*1337",realm="r",nonce="c7",uri="sip:*9@c",response="{proof}"{more}'
    assert verify(Credentials.parse(told), "INVITE", secret)
    assert not verify(Credentials.parse(told), "BYE", secret)


SONUS = (
    b"--sonus-content-delim\r\nContent-Disposition: session; handling=required\r\n"
    b"Content-Type:application/sdp;charset=ISO-10646\r\n\r\nv=0\r\n\r\n--sonus-content-delim\r\n"
    b"Content-Disposition: signal; handling=optional\r\n"
    b"Content-Type:application/isup;version=itu-t92+;base=itu-t92+\r\n\r\n\t\0-\r\n"
    b"--sonus-content-delim--\r\n"
)


def test_a_description_beside_a_telephone_message():
    """FreeSWITCH 1816, drachtio-siprec 6 and 16.  Covers RFC 3261 §7.4.1 and §20.11."""
    kind = "multipart/mixed;boundary=sonus-content-delim"
    assert offer_of(read(SONUS, Content_Type=kind)) == b"v=0\r\n"


def test_a_body_of_no_parts_is_no_description():
    """OpenSIPS 2288.  Covers RFC 2046 §5.1.1."""
    kind = "multipart/mixed;boundary=OSS-unique-boundary-42"
    assert session(read(b"--OSS-unique-boundary-42--\r\n", Content_Type=kind)) is None


# Descriptions

OPUS = Codec("opus", 48000, 2, 111, "")
KEYS = Codec("telephone-event", 8000, 1, 101, "0-15")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["m=audio 4000 RTP/AVP 102", "a=rtpmap:102 opus/48000"], "102 opus/48000/2"),
        (
            [
                "m=audio 4000 RTP/AVP 102",
                "a=rtpmap:102 OPUS/48000/2",
                "a=fmtp:102 sprop-maxcapturerate=16000; maxaveragebitrate=20000; useylrtx=1",
            ],
            "102 opus/48000/2",
        ),
        (["m=audio 4000 RTP/AVP 8", "a=rtpmap:8 PCMA/8000/1"], "8 PCMA/8000"),
        (
            [
                *("m=audio 4000 RTP/AVP 102 127", "a=rtpmap:102 opus/48000/2"),
                "a=rtpmap:127 telephone-event/8000",
            ],
            "127 telephone-event/8000",
        ),
    ],
)
def test_codecs_said_otherwise_are_the_same(lines, expected):
    """SEMS 50, FreeSWITCH 2226, kinesis 2165, pjproject 4615, rtpengine 1136.

    Covers RFC 7587 §7, RFC 8866 §6.6 and RFC 3264 §6.1.
    """
    answer, [agreed] = answer_to(offered(*lines), audio(OPUS, PCMU, PCMA, KEYS))
    assert f"a=rtpmap:{expected}\r\n".encode() in bytes(answer) and agreed is not None


def test_an_offer_of_nothing_is_answered_with_nothing():
    """boghe 157.  Covers RFC 3264 §5 and §6: an answer has the lines of the offer, here none."""
    answer, agreed = answer_to(offered(), audio(PCMU))
    assert (answer.media, agreed) == ((), ())


# Calls


def requests(script, method):
    """What a script has heard of a method."""
    return [m for m in script.heard if isinstance(m, Request) and m.method == method]


@pytest.mark.parametrize(
    ("routes", "uri", "expected"),
    [
        (
            ["<sip:10.255.0.1;r2=on;lr;ftag=N>", f"<sip:{B};r2=on;lr=on;ftag=N>"],
            "sip:9@10.231.144.35:5070;transport=udp",
            [f"<sip:{B};r2=on;lr=on;ftag=N>", "<sip:10.255.0.1;r2=on;lr;ftag=N>"],
        ),
        (
            ["<sip:10.0.0.9>", f"<sip:0011@{B};pgw-call=call-28d2e>"],
            f"sip:0011@{B};pgw-call=call-28d2e",
            ["<sip:10.0.0.9>", "<sip:9@10.231.144.35:5070;transport=udp>"],
        ),
    ],
)
def test_an_ack_goes_by_the_recorded_routes(routes, uri, expected):
    """rustpbx 122, janus 1389, sipsak 42.  Covers RFC 3261 §12.1.2 and §12.2.1.1."""
    _, _, script, _, invite = calling()
    contact = "<sip:9@10.231.144.35:5070;transport=udp>"
    headers = [("Contact", contact), *(("Record-Route", each) for each in routes)]
    ok = response_to(invite, 200, to_tag="t", headers=headers, body=b"answer", content_type=SDP)
    script.say(ok, A)
    [ack] = requests(script, "ACK")
    assert str(ack.uri) == uri and list(ack.headers.values("Route")) == expected


def test_a_200_that_comes_again_is_acknowledged_again_whatever_came_between():
    """pjproject 1725.  Covers RFC 3261 §13.2.2.4 [ack-for-each]."""
    link, _, script, call, invite = calling()
    script.say(accept(invite), A)
    call.reinvite(b"hold", link.now)
    link.run(until=link.now + 0.1)
    script.say(accept(invite), A)
    assert len(requests(script, "INVITE")) >= 2
    assert [ack.cseq.number for ack in requests(script, "ACK")] == [invite.cseq.number] * 2


def test_an_answer_without_a_contact_to_read_is_acknowledged():
    """SIP.js 419 and 593.  Covers RFC 3261 §13.2.2.4: else the callee repeats it for half a minute.

    A quote has no place in a URI (§25.1), so that a request with it is refused.
    """
    _, alice, script, call, invite = calling()
    contact = [("Contact", '<sip:127.0.0.1:443;thinfo="VG8+PoIUYHSD">')]
    ok = response_to(invite, 200, to_tag="t", headers=contact, body=b"answer", content_type=SDP)
    script.say(ok, A)
    assert len(requests(script, "ACK")) == 1 and call.state is CallState.UP
    assert alice.events() == ["accepted"]


def test_a_refusal_is_acknowledged_by_the_route_of_the_invite():
    """OpenSIPS 999, siphon-sip 214.  Covers RFC 3261 §17.1.1.3."""
    link = Link()
    alice, script = Phone(link, A), Script(link, B)
    alice.dial("b.com", 0.0, route=[Uri.parse(f"sip:{B};lr")])
    link.run(until=0.1)
    [invite] = script.heard
    script.say(response_to(invite, 486, to_tag="t"), A)
    script.say(response_to(invite, 486, to_tag="t"), A)
    acks = requests(script, "ACK")
    assert len(acks) == 2 and invite.headers.values("Route")
    for ack in acks:
        assert ack.headers.values("Route") == invite.headers.values("Route")
        assert ack.via.branch == invite.via.branch


def test_a_challenge_that_comes_again_is_acknowledged_by_its_own_number():
    """linphone-sdk 377.  Covers RFC 3261 §17.1.1.3: not by that of the INVITE that followed."""
    link = Link()
    alice, script = Phone(link, A), Script(link, B)
    login = Login("alice", "secret", Uri.parse(f"sip:{B}"))
    alice.dial(B, 0.0, credentials=login)
    link.run(until=0.1)
    [first] = script.heard
    asked = [("WWW-Authenticate", 'Digest realm="b", nonce="n", algorithm=MD5')]
    challenge = response_to(first, 401, to_tag="t", headers=asked)
    script.say(challenge, A)
    script.say(challenge, A)
    second = requests(script, "INVITE")[-1]
    assert second.cseq.number == first.cseq.number + 1
    assert [ack.cseq.number for ack in requests(script, "ACK")] == [first.cseq.number] * 2


def test_a_prack_behind_a_cancel_is_for_nobody():
    """pjproject 845.  Covers RFC 3262 §3: the transaction is over, and nothing is left of it."""
    link, script, bob, invite, heard = called(early, extra=[("Supported", "100rel")])
    kept = invite.headers.without("CSeq", "Contact", "Content-Type", "Supported")
    script.say(Request("CANCEL", invite.uri, kept.append("CSeq", "1 CANCEL")), B)
    rack = f"{heard.headers['RSeq']} 1 INVITE"
    refused = script.say(within(invite, heard, "PRACK", 2, RAck=rack), B)
    assert refused.status == 481
    link.run()
    assert bob.idle and bob.events() == ["cancelled"]


def test_a_call_ends_though_nobody_answers_its_invite_after_the_cancel():
    """pjproject 796.  Covers RFC 3261 §9.1: a callee before RFC 3261 answers the CANCEL alone."""
    link, alice, script, call, invite = calling()
    script.say(response_to(invite, 180, to_tag="t"), A)
    call.bye(link.now)
    link.run(until=link.now + 0.1)
    [cancel] = requests(script, "CANCEL")
    assert cancel.via.branch == invite.via.branch and cancel.cseq.number == invite.cseq.number
    script.say(response_to(cancel, 200, to_tag="t"), A)
    link.run()
    assert call.state is CallState.ENDED and alice.idle


def test_a_cancel_of_another_branch_is_for_nobody():
    """sipdroid 517.  Covers RFC 3261 §9.2: the branch tells which INVITE is meant."""
    link, script, bob, invite, _ = called(lambda call, now: call.ring(now))
    kept = invite.headers.without("Via", "CSeq", "Contact", "Content-Type")
    kept = kept.append("Via", f"SIP/2.0/UDP {A};branch=z9hG4bKother")
    refused = script.say(Request("CANCEL", invite.uri, kept.append("CSeq", "1 CANCEL")), B)
    assert refused.status == 481 and bob.calls[0].state is CallState.RINGING
    bob.calls[0].bye(link.now)
    link.run(until=link.now + 60)


# Media


@pytest.mark.parametrize(
    ("packet", "payload"),
    [
        ("9000000700000000cafebabe bede0000 6162", b"ab"),
        ("a000000700000000cafebabe 6162 0002", b"ab"),
        ("b100000700000000cafebabe 00000001 bede0001 10aa0000 6162 000003", b"ab"),
    ],
)
def test_a_payload_stands_between_extension_and_padding(packet, payload):
    """pjproject 952 and 1135, FreeSWITCH 535, sipsorcery 608.  Covers RFC 3550 §5.1 and §5.3.1."""
    assert RtpPacket.parse(bytes.fromhex(packet)).payload == payload


def test_a_new_source_with_lower_numbers_is_heard():
    """livekit-sip 828, baresip 817.  Covers RFC 3550 §A.1, Field §"Sources that change"."""
    reception = Reception(8000)
    heard = [
        reception.heard((0, False, sequence, 0, ssrc, 12, 12), 0.0)
        for ssrc, sequence in [(1, 21294), (1, 21295), (2, 12676), (2, 12677), (2, 12678)]
    ]
    assert heard[:2] == [21294, 21295] and None not in heard[3:]
    assert heard == sorted(heard, key=lambda each: each or 21296)


def test_a_source_begins_with_a_rollover_of_zero():
    """rtpengine 209.  Covers RFC 3711 §3.2.3 and §3.3.1: each SSRC has a count of its own."""
    key, salt = bytes(16), bytes(14)
    sender, receiver = SrtpSender(key, salt), SrtpReceiver(key, salt)
    for ssrc, sequence in [(1, 65535), (1, 0), (1, 1), (2, 7), (2, 8), (1, 2)]:
        packet = bytes(RtpPacket(0, sequence, 0, ssrc, b"sound"))
        assert receiver.open_rtp(sender.protect_rtp(packet)) == packet
    alone = SrtpSender(key, salt)
    again = bytes(RtpPacket(0, 9, 0, 2, b"sound"))
    assert sender.protect_rtp(again) == alone.protect_rtp(again)


@pytest.mark.parametrize(
    "beside",
    [
        "80d10001 00000002",  # of an unknown kind
        "81ca0002 00000002 00000000",  # a description of nothing
        "81ca0003 00000002 01066162 63646566",  # a description without an end
    ],
)
def test_a_wish_for_a_picture_counts_whatever_stands_beside_it(beside):
    """janus 1322, membrane 55, rvoip 23.  Covers RFC 3550 §6.1 [unknown-packets-ignored].

    And Field §"Compounds with a packet amiss".
    """
    session = RtpSession(1, 90000, "a", random_source("a"), now=0.0)
    session.send(96, b"x", timestamp=0, marker=True, now=0.0)
    report = "81c90007 00000002 00000001 10000005 00000010 00000000 00000000 00000000"
    wish = bytes(Pli(2, 1)).hex()
    assert session.received_rtcp(bytes.fromhex(report + beside + wish), 1.0) == [Pli(2, 1)]
    assert session.statistics.remote_lost == 5 and session.invalid == 0


def test_a_key_is_heard_once_though_its_end_comes_late():
    """unimrcp 44, livekit-sip 585.  Covers RFC 4733 §2.5.2.2 [ended-is-not-restarted].

    No marker is needed, and the gap is longer than our patience.
    """
    receiver, told = EventReceiver(), []
    for now, report in [
        (0.0, "050a00a0"),
        (0.02, "050a0140"),
        (0.3, "058a06a0"),
        (0.32, "058a06a0"),
    ]:
        told += receiver.tick(now) + receiver.heard(1000, bytes.fromhex(report), now)
    assert [each.digit for each in told if isinstance(each, EventBegan)] == ["5"]


@pytest.mark.parametrize(
    ("payloads", "made"),
    [
        (["7c8caa", "7c4cbb"], [b"\x6c\xaa\xbb"]),  # type 12 keeps its five bits
        (["7c87aa", "7c47bb"], [b"\x67\xaa\xbb"]),  # parameter sets in pieces
        (["7cc5aabb"], [b"\x65\xaa\xbb"]),  # the first piece is the last
        (["7c05aa", "7c45bb"], []),  # without a beginning
        (["78000267aa00"], []),  # an aggregate that is cut
    ],
)
def test_pieces_of_pictures(payloads, made):
    """linphone-sdk 596, OvenMediaEngine 2032, gortsplib 649, pion-rtp 370.

    Covers RFC 6184 §5.7.1 and §5.8: whole, or not at all, and then it is told.
    """
    unpacker, out = H264Unpacker(), []
    for at, payload in enumerate(payloads):
        out += unpacker.push(at, 0, at + 1 == len(payloads), bytes.fromhex(payload))
    assert [each.data for each in out if isinstance(each, NalUnit)] == made
    assert bool(made) != any(isinstance(each, H264Damage) for each in out)


# Ways through


def test_a_realm_of_thirteen_octets_comes_back_as_it_was(monkeypatch):
    """webrtc-rs 775, pjproject 1396.  Covers RFC 8489 §14: padding is no part of a value."""
    monkeypatch.setattr("support.sip.turn_servers.REALM", "metered.ca.pr")
    server, client = (
        TurnServer(),
        Allocation(LongTermCredentials("ann", "secret"), random_source("t"), 0.0),
    )
    while sent := client.take():
        for datagram in sent:
            client.receive(server.answer(datagram), 0.0)
    assert client.state is AllocationState.READY
    assert server.requests[-1].get(StunType.REALM) == b"metered.ca.pr"


def test_a_relay_that_wants_no_password_gives_an_address():
    """webrtc-rs 660, stunner 12.  Covers RFC 8656 §7.1 and §18.6: the first request may do."""
    client = Allocation(LongTermCredentials("ann", "secret"), random_source("t"), 0.0)
    [datagram] = client.take()
    request = StunMessage.parse(datagram)
    assert request.get(TurnType.REQUESTED_ADDRESS_FAMILY) in (None, b"\1\0\0\0")
    place = write_address(("198.51.100.1", 50000), request.transaction_id)
    attributes = [
        (TurnType.XOR_RELAYED_ADDRESS, place),
        (StunType.XOR_MAPPED_ADDRESS, place),
        (TurnType.LIFETIME, write_lifetime(600)),
    ]
    response = StunMessage.write(
        StunClass.SUCCESS, TurnMethod.ALLOCATE, request.transaction_id, attributes
    )
    client.receive(response.data, 0.0)
    assert client.state is AllocationState.READY


def test_channel_data_may_be_padded():
    """pjproject 999, coturn 1984.  Covers RFC 8656 §12.5: whatever the padding is."""
    assert read_channel_data(bytes.fromhex("4001 0003 525450 ff")) == (0x4001, b"RTP")


def test_one_host_behind_two_records_is_two_ways():
    """pjproject 656.  Covers RFC 3263 §4.2: each port has the addresses of its target."""
    zone = {
        "_sip._udp.b.example SRV": [
            Srv(0, 0, 3478, "s.b.example"),
            Srv(1, 0, 34780, "s.b.example"),
        ],
        "s.b.example A": ["192.0.2.2"],
    }
    uri = Uri.parse("sip:b.example;transport=udp")
    locator = Locator.of_uri(uri, random=bytes, transports=("UDP",), families=("A",))
    while locator.questions:
        locator.answer([zone.get(str(question), []) for question in locator.questions])
    assert [(hop.host, hop.port) for hop in locator.hops] == [
        ("192.0.2.2", 3478), ("192.0.2.2", 34780)
    ]  # fmt: skip

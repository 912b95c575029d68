"""What phones were seen to send: descriptions and packets as captured, or as their users report."""

import struct

import pytest

from p2psip.errors import RemoteError
from p2psip.rtp.payload.dtmf import TelephoneEvent
from p2psip.rtp.payload.event_receiver import EventBegan, EventReceiver
from p2psip.rtp.session import RtpSession
from p2psip.sdp.codec import codecs_of
from p2psip.sdp.offer_answer import LocalTransport
from p2psip.sdp.session import SessionDescription
from siprtmp.media import sdp_map
from siprtmp.media.sdp_map import STOCK_ANSWERS, STOCK_TOOLS, Endpoint
from siprtmp.media.translate.timebase import MediaClock

OURS = Endpoint("192.0.2.1", 4000, 1, video=LocalTransport(4010))
TOP = "v=0\r\no=- 2785931347 215812628 IN IP4 192.0.2.2\r\ns=-\r\nc=IN IP4 192.0.2.2\r\nt=0 0\r\n"
BARESIP = """\
a=tool:baresip 1.0.0
m=audio 18998 RTP/AVP 96 101
a=rtpmap:96 opus/48000/2
a=fmtp:96 stereo=1;sprop-stereo=1
a=rtpmap:101 telephone-event/8000
a=fmtp:101 0-15
a=sendrecv
a=label:1
a=rtcp-rsize
a=ssrc:3186926601 cname:sip:bob@127.0.0.1
a=minptime:20
a=ptime:20
m=video 12206 RTP/AVP 96
a=rtpmap:96 H264/90000
a=fmtp:96 packetization-mode=0;profile-level-id=42e01f
a=sendrecv
a=label:2
a=rtcp-rsize
a=ssrc:2274634249 cname:sip:bob@127.0.0.1
a=framerate:15.00
a=rtcp-fb:* nack pli
a=content:main
"""
LINPHONE = """\
a=rtcp-xr:rcvr-rtt=all:10000 stat-summary=loss,dup,jitt,TTL voip-metrics
m=audio 10964 RTP/AVP 96 97
a=rtpmap:96 opus/48000/2
a=fmtp:96 useinbandfec=1
a=rtpmap:97 telephone-event/48000
a=rtcp-fb:* trr-int 5000
a=rtcp-fb:* ccm tmmbr
"""


def described(lines, top=TOP):
    return SessionDescription.parse((top + lines).encode())


def answered(lines, top=TOP):
    """What the gateway makes of an offer."""
    return sdp_map.answer(described(lines, top), STOCK_ANSWERS, OURS)


def concluded(lines, top=TOP):
    """What the gateway makes of an answer to its own offer."""
    return sdp_map.conclude(sdp_map.offer(STOCK_TOOLS, OURS), described(lines, top))


def test_an_offer_of_baresip():
    """Covers Field §"Events by one clock or the other" and Field §"Packing that is not named"."""
    _, plan = answered(BARESIP)
    sound = plan.audio.media
    assert plan.audio.codec.name == "opus" and sound.remote == ("192.0.2.2", 18998)
    assert (sound.telephone_event, sound.event_clock) == (101, 8000)
    [(parameters, number)] = plan.video.sending
    assert number == 96 and parameters.packetization_mode == 0
    assert plan.video.media.feedback == {"nack pli"}  # Field §"Feedback with RTP/AVP"


def test_an_offer_of_linphone():
    """Covers Field §"Events by one clock or the other"."""
    _, plan = answered(LINPHONE)
    assert (plan.audio.media.telephone_event, plan.audio.media.event_clock) == (97, 48000)


def test_media_of_a_family_that_we_do_not_have():
    """Covers Field §"Media by the other family"."""
    with pytest.raises(RemoteError) as refused:
        answered(LINPHONE, TOP.replace("IP4 192.0.2.2", "IP6 2001:db8::2"))
    assert refused.value.status == 488


KEY = "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz|2^31\r\n"


@pytest.mark.parametrize(
    ("lines", "port"),
    [
        (f"m=audio 5004 RTP/AVP 0\r\n{KEY}a=encryption:optional\r\n", 5004),
        (f"m=audio 5004 RTP/SAVP 0\r\n{KEY}m=audio 5006 RTP/AVP 0\r\n", 5006),
    ],
)
def test_a_plain_line_with_keys_or_beside_keys_is_plain(lines, port):
    """Covers Field §"Keys beside RTP/AVP"."""
    answer, plan = answered(lines)
    assert plan.audio.media.remote == ("192.0.2.2", port)
    assert all(line.attribute("crypto") is None for line in answer.media)
    with pytest.raises(RemoteError):
        answered(f"m=audio 5004 RTP/SAVP 0\r\n{KEY}")


@pytest.mark.parametrize(
    ("address", "word", "direction"),
    [("0.0.0.0", "", "sendrecv"), ("0.0.0.0", "a=inactive\r\n", "inactive")],
)
def test_a_hold_by_address(address, word, direction):
    """Covers Field §"Hold by address", and its end by a line without a direction."""
    held = f"m=audio 9 RTP/AVP 0\r\n{word}"
    answer, plan = answered(held, TOP.replace("c=IN IP4 192.0.2.2", f"c=IN IP4 {address}"))
    assert plan.audio.media.held and not plan.audio.media.sends
    assert plan.audio.media.direction == direction
    assert answer.connection.address == OURS.host  # Field §"Holds that are answered wrongly"
    _, plan = answered("m=audio 5004 RTP/AVP 0\r\n")
    assert plan.audio.media.sends and not plan.audio.media.held


def test_a_hold_is_answered_by_its_own_direction():
    """Covers Field §"Holds that are answered wrongly", and an answer that is wrong itself."""
    answer, _ = answered("m=audio 5004 RTP/AVP 0\r\na=sendonly\r\n")
    assert answer.media[0].attribute("recvonly") == ""
    before = sdp_map.offer(["pcmu"], OURS)
    theirs = described("m=audio 5004 RTP/AVP 0\r\na=sendrecv\r\n")
    hold = sdp_map.offer_again(["pcmu"], OURS, before, theirs, holds=True)
    assert hold.media[0].attribute("sendonly") == ""
    media = sdp_map.conclude(hold, theirs).audio.media
    assert media.direction == "sendonly" and not media.receives


def test_a_new_offer_does_not_keep_the_hold_of_the_peer():
    """Covers Field §"Offers that keep a hold"."""
    theirs = described("m=audio 5004 RTP/AVP 0\r\na=sendonly\r\n")
    ours, _ = sdp_map.answer(theirs, ["pcmu"], OURS)
    again = sdp_map.offer_again(["pcmu"], OURS, ours, theirs)
    assert not {"recvonly", "sendonly", "inactive"} & {
        each.name for each in again.media[0].attributes
    }


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        ("m=audio 5004 RTP/AVP 9 8 18\r\na=rtpmap:9 g722/8000\r\na=rtpmap:8 pcma/8000\r\n", "g722"),
        ("m=audio 5004 RTP/AVP 96\r\n", "wideband"),  # as our offer has it
        ("m=audio 5004 RTP/AVP 0 101\r\n", "pcmu"),
    ],
)
def test_answers_that_say_little(lines, name):
    """Covers Field §"Names in lower case", Field §"Numbers without rtpmap".

    And Field §"Answers with fewer lines".
    """
    plan = concluded(lines)
    assert plan.audio.codec.name == name and plan.video is None
    assert plan.audio.media.telephone_event == (101 if "101" in lines else None)


def test_an_answer_by_numbers_of_its_own():
    """Covers Field §"Numbers of an answer's own": they are sent by, and heard beside ours."""
    ours = codecs_of(sdp_map.offer(STOCK_TOOLS, OURS).media[0])
    wide, keys = (each.payload_type for each in ours if each.clock_rate == 48000)
    plan = concluded(
        "m=audio 5004 RTP/AVP 121 122\r\na=rtpmap:121 opus/48000/2\r\n"
        "a=rtpmap:122 telephone-event/48000\r\n"
    )
    sound = plan.audio
    assert [number for _, number in sound.sending] == [121]
    assert sound.receiving[wide] is sound.receiving[121] is sound.codec
    assert sound.media.telephone_event == 122
    assert set(sound.media.receive_telephone_events) == {keys, 122}
    assert sound.media.received_codec(121) is sound.media.received_codec(wide)


def test_numbers_that_an_answer_exchanges_mean_what_the_offer_said():
    """Covers Field §"Numbers of an answer's own": ours go first."""
    wide = codecs_of(sdp_map.offer(STOCK_TOOLS, OURS).media[0])[0].payload_type
    plan = concluded(
        f"m=audio 5004 RTP/AVP 121 {wide}\r\na=rtpmap:121 opus/48000/2\r\n"
        f"a=rtpmap:{wide} telephone-event/48000\r\n"
    )
    assert plan.audio.receiving[wide] is plan.audio.codec
    assert wide not in plan.audio.media.receive_telephone_events


def test_an_answer_that_takes_the_number_of_another_clock():
    """Covers Field §"Numbers of an answer's own": events of two clocks confuse some phones."""
    ours = codecs_of(sdp_map.offer(STOCK_TOOLS, OURS).media[0])
    events = {each.clock_rate: each.payload_type for each in ours if each.is_telephone_event}
    number = events[48000]
    plan = concluded(
        f"m=audio 58085 RTP/AVP 8 0 {number}\r\na=rtpmap:{number} telephone-event/8000\r\n"
    )
    media = plan.audio.media
    assert (media.telephone_event, media.event_clock) == (number, 8000)
    assert set(media.receive_telephone_events) == {number, events[8000]}


def test_a_hold_that_explains_nothing():
    """Covers Field §"Numbers without rtpmap": numbers mean what they meant before."""
    ours, _ = sdp_map.answer(described(LINPHONE), STOCK_ANSWERS, OURS)
    theirs = described(
        "m=audio 10964 RTP/AVP 96 97\r\n", TOP.replace("c=IN IP4 192.0.2.2", "c=IN IP4 0.0.0.0")
    )
    _, plan = sdp_map.answer(theirs, STOCK_ANSWERS, OURS, previous=ours)
    assert plan.audio.codec.name == "opus" and plan.audio.media.held
    with pytest.raises(RemoteError):
        sdp_map.answer(theirs, STOCK_ANSWERS, OURS)


@pytest.mark.parametrize(
    "lines",
    [
        "m=audio 0 RTP/AVP 0\r\nm=video 0 RTP/AVP 0\r\n",
        "m=video 5006 RTP/AVP 99\r\na=rtpmap:99 H264/90000\r\nm=audio 5004 RTP/AVP 0\r\n",
        "m=audio x RTP/AVP 0\r\nm=video 0 RTP/AVP 99\r\n",
    ],
)
def test_answers_that_say_nothing_or_something_else(lines):
    """Covers Field §"Refusals by port 0" and Field §"Answers with fewer lines"."""
    with pytest.raises(RemoteError) as refused:
        concluded(lines)
    assert refused.value.status == (400 if " x " in lines else 488)


@pytest.mark.parametrize("extra", ["m=video 0 RTP/AVP", "m=video 0 RTP/AVP 99\r\nm=image 0 udptl"])
def test_an_answer_of_a_door_station(extra):
    """Covers Field §"Answers with fewer lines": lines that nobody has offered are nothing."""
    assert concluded(f"m=audio 5004 RTP/AVP 0\r\n{extra}\r\n").audio.codec.name == "pcmu"


@pytest.mark.parametrize(("said", "name"), [("G722/16000", "g722"), ("opus/48000", "opus")])
def test_the_only_codec_by_another_rate(said, name):
    """Covers Field §"Encodings by another rate"."""
    _, plan = answered(f"m=audio 5004 RTP/AVP 96\r\na=rtpmap:96 {said}\r\n")
    assert plan.audio.codec.name == name


def test_sound_is_the_first_line():
    """Covers Field §"Sound first"; of an offer, any line may be."""
    assert sdp_map.offer(("h264", *STOCK_TOOLS), OURS).media[0].kind == "audio"
    _, plan = answered("m=image 9000 udptl t38\r\nm=audio 5004 RTP/AVP 0\r\n")
    assert plan.audio.media.remote == ("192.0.2.2", 5004)


def test_a_version_that_jumps_says_nothing():
    """Covers Field §"Versions that jump"."""
    one, two = (described(LINPHONE, TOP.replace("215812628", each)) for each in ("1055", "1057"))
    assert sdp_map.answer(one, STOCK_ANSWERS, OURS) == sdp_map.answer(two, STOCK_ANSWERS, OURS)


# -- packets ----------------------------------------------------------------------------


def session():
    return RtpSession(0xBEEF, 8000, "us", lambda n: bytes(range(n)), 0.0)


def test_what_opens_a_router_is_neither_sound_nor_a_report():
    """Covers Field §"First packets that are no media"."""
    ours = session()
    assert ours.received_rtp(bytes.fromhex("000100002112a4421ecac026409a3d1664ef53b7"), 1.0) is None
    assert ours.received_rtcp(bytes.fromhex("80cc00035f00321b50494e47504f4e47"), 1.0) == []
    assert ours.last_received is None and ours.last_heard == 1.0  # the phone is there
    first = struct.pack("!BBHII", 0x80, 0, 0, 3000496881, 0x72612509) + bytes(160)
    assert ours.received_rtp(first, 1.1)[1:3] == (False, 0)  # Field §"Markers of sound"


def keys_heard(rows):
    """The keys in packets of (payload type, marker, sequence, timestamp, event or None)."""
    ours, receiver, told = session(), EventReceiver(), []
    for kind, marker, sequence, at, report in rows:
        data = struct.pack("!BBHII", 0x80, marker << 7 | kind, sequence, at, 0xBDF4A409)
        header = ours.received_rtp(data + (bytes(160) if report is None else bytes(report)), 0.0)
        if header is not None and report is not None:
            told += receiver.heard(header[3], bytes(report), 0.0)
    return [each.digit for each in told if isinstance(each, EventBegan)]


def test_final_reports_that_share_a_number():
    """Covers Field §"Final reports of one number": of Linphone, with its Opus."""
    at, rows = 214434010, []
    rows += [(97, n == 0, 68 + n, at, TelephoneEvent(5, 960 * (n + 1))) for n in range(4)]
    rows += [(97, False, 72, at, TelephoneEvent(5, 4800, end=True))] * 3
    rows += [(96, False, 73, 214438330, None)]
    assert keys_heard(rows) == keys_heard(rows[:4] + rows[6:]) == ["5"]


def test_sound_that_goes_on_under_a_key():
    """Covers Field §"Sound under a key": of baresip, which counts by the clock of its Opus."""
    rows = []
    for n in range(12):
        end = n >= 9
        report = TelephoneEvent(5, 960 * min(n + 1, 9), end=end)
        rows += [(101, n == 0, 6450 + 2 * n, 119699, report)]
        rows += [(96, False, 6451 + 2 * n, 119699 + 960 * n, None)]
    assert keys_heard(rows) == ["5"]


def test_a_packet_of_time_0_in_between():
    """Covers Field §"Clocks that jump": the time of the stream goes on, and never back."""
    clock = MediaClock(8000)
    times = [clock.milliseconds(160 * n + 700_000, 20 * n) for n in range(3)]
    times += [clock.milliseconds(0, 60), clock.milliseconds(700_640, 80)]
    times += [clock.milliseconds(160 * n + 500_000, 20 * n) for n in range(5, 8)]
    assert times == [20 * n for n in range(8)]

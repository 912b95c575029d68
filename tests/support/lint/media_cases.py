"""RTP and RTCP, with and without a call around them, and what can be wrong with them.

Each case is (rule, scene, number of the packet).
"""

from support.lint.scene import Scene
from support.lint.sip_cases import call, sdp

from p2psip.rtp.packet import RtpPacket
from p2psip.rtp.rtcp import Bye, ReceiverReport, SenderReport, compound
from p2psip.rtp.source_description import SourceDescription

FROM_A, TO_B = "192.0.2.1:20000", "192.0.2.2:20000"
REPORTS_A, REPORTS_B = "192.0.2.1:20001", "192.0.2.2:20001"
SSRC = 0xCAFE
CALL = 4  # messages before the media


def up(**changes):
    """A call that has been answered."""
    return call(only=("invite", "ringing", "ok", "ack"), **changes)


def rtp(number, *, ticks=None, kind=0, ssrc=SSRC, marker=False, size=160):
    """A packet of sound; `ticks` is its timestamp."""
    stamp = 160 * number if ticks is None else ticks
    return bytes(RtpPacket(kind, number, stamp, ssrc, bytes(size), marker))


def stream(*packets, scene=None):
    """Sound from A to B, every 20 ms."""
    return (scene or Scene()).udp(FROM_A, TO_B, *packets, step=0.02)


def sound(count, first=1, **more):
    return [rtp(number, **more) for number in range(first, first + count)]


def report(*packets, scene=None, step=0.0):
    """Reports of A, one a datagram."""
    scene = scene or Scene()
    return scene.udp(REPORTS_A, REPORTS_B, *packets, step=step)


SR = SenderReport(SSRC, 1 << 40, 160, 1, 160)
SDES = SourceDescription.of_cname(SSRC, "a@192.0.2.1")
GOOD_REPORT = compound(SR, SDES)
H264 = b"m=video 30000 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n"
PICTURES = {"invite": {"body": sdp(1, more=H264)}, "ok": {"body": sdp(2, formats="0", more=H264)}}


def picture(number, ticks, *, marker):
    return rtp(number, ticks=ticks, kind=96, marker=marker)


def pictures(*packets):
    return up(**PICTURES).udp("192.0.2.1:30000", "192.0.2.2:30000", *packets, step=0.02)


def goodbye(scene):
    """A BYE says that no more comes."""
    return report(compound(SR, SDES, Bye((SSRC,))), scene=scene)


def hung_up():
    """RTP that goes on for seconds after the end of the call."""
    scene = stream(*sound(10), scene=up())
    call(scene, only=("bye", "bye_ok"))
    return stream(*sound(100, 11), scene=scene)


def jittery():
    """Packets that come in bursts."""
    scene = up()
    for number in range(1, 60, 5):
        scene.udp(FROM_A, TO_B, *sound(5, number), step=0.001).wait(1)
    return scene


CASES = [
    ("rtp-syntax", up().udp(FROM_A, TO_B, b"no RTP here"), CALL + 1),
    ("rtp-payload-type", stream(*sound(6, kind=96), scene=up()), CALL + 1),
    ("rtp-reserved-type", stream(*sound(6, kind=2)), 1),
    ("rtp-lost", stream(*sound(6), *sound(6, 9)), 12),
    ("rtp-duplicate", stream(*sound(6), rtp(6)), 7),
    ("rtp-reordered", stream(*sound(6), rtp(8), rtp(7), rtp(9)), 8),
    ("rtp-jitter", jittery(), CALL + 60),
    ("rtp-ssrc", stream(*sound(6), *sound(6, 100, ssrc=7)), 7),
    ("rtp-timestamp", stream(*sound(6), *(rtp(n, ticks=100 * n) for n in range(7, 12))), 7),
    ("rtp-marker-missing", stream(*sound(6)).wait(2).udp(FROM_A, TO_B, rtp(7, ticks=17000)), 7),
    ("rtp-marker-missing", pictures(*(picture(n, 3000 * n, marker=False) for n in (1, 2))), 6),
    ("rtp-marker-extra", stream(*sound(10, marker=True)), 2),
    ("rtp-one-way", stream(*sound(60), scene=up()), CALL + 1),
    ("rtp-after-bye", hung_up(), CALL + 112),
    ("rtcp-syntax", report(b"\x80\xc8\x00\x01\0\0\0\0", scene=up()), CALL + 1),
    ("rtcp-no-report", report(bytes(SDES)), 1),
    ("rtcp-no-cname", report(compound(SR)), 1),
    ("rtcp-unnamed", report(*[compound(SR, SourceDescription.of_cname(9, "b"))] * 3, step=5), 1),
    ("rtcp-often", report(*[GOOD_REPORT] * 6, scene=up(), step=0.5), CALL + 3),
    ("rtcp-after-bye", report(GOOD_REPORT, scene=goodbye(Scene())), 2),
    ("rtcp-after-bye", stream(rtp(1), scene=goodbye(Scene()).wait(2)), 2),
]
BOTH = stream(*sound(60), scene=up()).udp(TO_B, FROM_A, *sound(60, ssrc=9), step=0.02)
GOOD = {
    "sound both ways": BOTH,
    "silence": stream(*sound(6)).wait(2).udp(FROM_A, TO_B, rtp(7, ticks=17000, marker=True)),
    "pictures": pictures(*(picture(n, 3000 * (n // 2), marker=n % 2 == 1) for n in range(2, 8))),
    "reports": report(*[GOOD_REPORT] * 4, scene=up(), step=5),
    "a receiver": report(*[compound(ReceiverReport(SSRC), SDES)] * 4, step=5),
    "numbers that wrap": stream(
        *sound(3, 65533), *(rtp(n, ticks=160 * (65536 + n)) for n in range(3))
    ),
    "no RTP at all": stream(*[b"\x80" + bytes(11)] * 6),
}

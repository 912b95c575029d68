"""A stream of video with everything that touches it, on a clock that the test turns."""

from support.sip.elements import random_source

from p2psip.rtp import fast
from p2psip.rtp.payload.h264 import pack_h264
from p2psip.sdp.agreed_media import AgreedMedia
from p2psip.sdp.codec import Codec
from p2psip.sdp.h264_parameters import H264Parameters
from rtmplite.flv.avc import AvcConfig, join_units
from rtmplite.flv.video import AvcPacketType, CodecId, FrameType, VideoTag
from siprtmp.media.sink import VIDEO, MediaSink
from siprtmp.media.stream import SharedContext, Signalled, StreamContext, StreamSettings
from siprtmp.media.timeline import Timeline
from siprtmp.media.video_lines import VideoPlan
from siprtmp.media.video_stream import VideoStream

SPS = bytes.fromhex("6742c01fd90141fb011000000300100000030140f1832480")  # 320 by 240
PPS = bytes.fromhex("68cb83cb20")
PHONE = ("192.0.2.9", 6000)


def idr(number=0, octets=40):
    """A slice of a key frame: its first macroblock is 0, as a decoder has to see."""
    return bytes((0x65, 0x88, 0x84, number % 256)) + bytes(number % 251 + 1 for _ in range(octets))


def inter(number=0, octets=40):
    """A slice of a picture that depends on others."""
    return bytes((0x41, 0x9A, 0x38, number % 256)) + bytes(number % 251 + 1 for _ in range(octets))


HEADER = bytes(
    VideoTag(
        FrameType.KEY,
        CodecId.AVC,
        AvcPacketType.SEQUENCE_HEADER,
        0,
        bytes(AvcConfig.of([SPS], [PPS])),
    )
)


def tag(*units, key=False):
    """The body of a video message with one picture."""
    kind = FrameType.KEY if key else FrameType.INTER
    return bytes(VideoTag(kind, CodecId.AVC, AvcPacketType.NALU, 0, join_units(units)))


def video_plan(*fmtps, direction="sendrecv", feedback=(), port=PHONE[1], bits=0, avpf=False):
    """The plan of an answer with these formats of H.264."""
    formats = fmtps or ("profile-level-id=42e01f;packetization-mode=1",)
    codecs = tuple(
        Codec("H264", 90000, payload_type=99 + at, fmtp=fmtp) for at, fmtp in enumerate(formats)
    )
    numbers = tuple(codec.payload_type for codec in codecs)
    media = AgreedMedia(
        "video", True, 4002, (PHONE[0], port), None, codecs, numbers, numbers,
        direction=direction, feedback=frozenset(feedback), bits=bits, avpf=avpf,
    )  # fmt: skip
    read = [H264Parameters.parse(each.fmtp) for each in codecs]
    pairs = tuple(zip(read, numbers, strict=True))
    return VideoPlan(media, pairs, dict(zip(numbers, read, strict=True)))


class VideoRig(MediaSink):
    """A stream with everything that touches it; it is its own wire and listener."""

    remote = remote_rtcp = None
    is_ready = True
    hosts = ()

    def __init__(self, plan=None, *, hosts=(PHONE[0],), timeline=None, transcoding=None, **options):
        super().__init__()
        self.now, self.sent, self.reports, self.tags = 0.0, [], [], []
        self.holding, self.asked, self.unsuitable, self.alive, self.closed = [], [], [], 0, 0
        settings = StreamSettings(
            random_source(1), "c", 60.0, video_transcoding=transcoding, **options
        )
        shared = SharedContext(self.on_picture, self.hears, timeline or Timeline(0.0))
        context = StreamContext(self, settings, 0.0, lambda: None, shared)
        self.stream = VideoStream(self, context)
        self.stream.give_to(self)
        self.sequence, self.heard, self.wanted, self.sizes = 0, set(), [], []
        self.made, self.taken = [], ()
        if plan is not None:
            self.stream.start(plan, 0.0, Signalled(hosts=hosts))

    # MediaTransport
    def send_rtp(self, data):
        self.sent.append((self.now, *fast.unpack(data)[:5], data[12:]))

    def send_run(self, run):
        for data in run:
            self.send_rtp(data)

    def send_rtcp(self, data):
        self.reports.append(data)

    def close(self):
        self.closed += 1

    # StreamListener
    def on_hold_back(self, asker, hold):
        self.holding.append(hold)

    def on_video_unsuitable(self, reason):
        self.unsuitable.append(reason)

    def on_transcoding(self, making, reason):
        self.made.append((making, reason))

    def on_key_frame_needed(self, now):
        self.asked.append(now)

    # MediaSink
    def on_tag(self, *tag):
        self.tags.append(tag[:3])

    def on_key_frame_wanted(self):
        self.wanted.append(self.now)

    def takes(self, codec):
        return codec in self.taken

    def on_format(self, now):
        self.sizes.append((now, self.stream.figures.size))

    def hears(self, host):
        return host in self.heard

    def on_picture(self, now):
        self.alive += 1

    # the two ends
    def publish(self, *bodies, at):
        """Publish messages of RTMP time `at` (ms), when the clock has come there."""
        self.wait(at / 1000)
        for body in bodies:
            self.stream.publish(VIDEO, at, body, self.now)

    def picture(self, timestamp, *units, lost=(), octets=100, payload_type=99):
        """Have the phone send a picture; packets whose place is in `lost` do not arrive."""
        datagrams = self.datagrams(timestamp, *units, octets=octets, payload_type=payload_type)
        for place, datagram in enumerate(datagrams):
            if place not in lost:
                self.stream.on_rtp(datagram, self.now)

    def datagrams(self, timestamp, *units, octets=100, payload_type=99):
        """The packets of a picture, as a phone sends them."""
        for payload, marker in pack_h264(units, octets):
            self.sequence += 1
            second = payload_type | (0x80 if marker else 0)
            header = fast.pack_fixed(0x80, second, self.sequence & 0xFFFF, timestamp, 0xBEEF)
            yield header + payload

    def wait(self, until):
        """Turn the clock, with all timers that are due on the way."""
        while (due := self.stream.deadline) is not None and due <= until:
            self.now = max(self.now, due)
            self.stream.tick(self.now)
        self.now = max(self.now, until)

"""A stream of audio with everything that touches it, on a clock that the test turns."""

import struct

from support.sip.elements import random_source

from p2psip.rtp import fast
from p2psip.sdp.offer_answer import AgreedMedia, Codec
from siprtmp.media.audio_stream import AudioStream
from siprtmp.media.sdp_map import AudioPlan
from siprtmp.media.sink import MediaSink
from siprtmp.media.stream import Signalled, StreamContext, StreamSettings

AUDIO = 8
ULAW, ALAW = b"\x82" + b"u" * 160, b"\x72" + b"a" * 160
SPEEX = b"\xb2\x0f\xff\xff\xff\xff\xef"  # a narrowband frame, and padding


def plan(*codecs, ptime=20, direction="sendrecv", held=False, port=5004, fmtp=""):
    """The plan that an answer with these codecs leads to."""
    lines = tuple(Codec(c.encoding, c.clock_rate, c.channels, c.payload_type, fmtp) for c in codecs)
    numbers = tuple(codec.payload_type for codec in codecs)
    remote = ("192.0.2.9", port)
    media = AgreedMedia(
        "audio", True, 4000, remote, None, lines, numbers, numbers,
        direction=direction, held=held, ptime=ptime,
    )  # fmt: skip
    pairs = tuple(zip(codecs, numbers, strict=True))
    return AudioPlan(media, pairs, dict(zip(numbers, codecs, strict=True)))


class Rig(MediaSink):
    """A stream of audio with everything that touches it."""

    remote = remote_rtcp = None
    is_ready = True
    hosts = ()

    def __init__(self, *codecs, media_timeout=60.0, transcode=None, **options):
        super().__init__()
        self.asked, self.unsuitable, self.made, self.digits = [], [], [], []
        self.now, self.sent, self.reports, self.tags = 0.0, [], [], []
        self.holding, self.ended, self.drained, self.closed = False, None, 0, 0
        random = random_source(1)
        settings = StreamSettings(random, "c", media_timeout, transcoding=transcode)
        self.stream = AudioStream(self, StreamContext(self, settings, 0.0, lambda: None))
        self.stream.give_to(self)
        if codecs:
            hosts = options.pop("hosts", ("192.0.2.9",))
            self.start(plan(*codecs, **options), 0.0, hosts=hosts)

    def start(self, plan, now, **options):
        """A later answer, of the host that signals."""
        self.stream.start(plan, now, Signalled(**{"hosts": ("192.0.2.9",)} | options))

    # MediaTransport
    def send_rtp(self, data):
        self.sent.append((self.now, *fast.unpack(data)[:5], data[12:]))

    def send_rtcp(self, data):
        self.reports.append(data)

    def close(self):
        self.closed += 1

    def on_tag(self, type_id, timestamp, payload, now):
        self.tags.append((timestamp, payload))

    # StreamListener
    def on_hold_back(self, asker, hold):
        assert hold != self.holding
        self.holding = hold

    def on_unsuitable(self, sound_format):
        self.unsuitable.append(sound_format)

    def on_transcoding(self, transcodes):
        self.made.append(transcodes)

    def on_quiet(self, now):
        self.asked.append(now)

    def on_silence(self, now):
        self.ended = now
        self.stream.close(now)

    # MediaSink
    def on_drained(self, now):
        self.drained += 1

    def on_digit(self, digit, now):
        self.digits.append(digit)

    # the test's own
    def wait(self, until):
        """Tick at every deadline up to `until`."""
        while (at := self.stream.deadline) is not None and at <= until:
            self.now = max(self.now, at)
            self.stream.tick(self.now)
        self.now = until

    def publish(self, tag, at, count=1, step=20):
        for i in range(count):
            self.stream.publish(AUDIO, at + i * step, tag, self.now)

    def hear(self, number, payload=b"p" * 160, ssrc=7, payload_type=0, ticks=160):
        header = struct.pack("!BBHII", 0x80, payload_type, number, number * ticks, ssrc)
        self.stream.on_rtp(header + payload, self.now)

    @property
    def stamps(self):
        return [stamp for _, _, _, _, stamp, _, _ in self.sent]

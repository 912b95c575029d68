"""Two ends of a video call on a link of virtual time: an encoder, and a screen that judges."""

import zlib
from random import Random

from p2psip.errors import RemoteError
from p2psip.rtp import fast
from p2psip.rtp.payload.h264 import pack_h264
from p2psip.rtp.payload.h264_unpacker import H264Damage, H264Unpacker
from p2psip.rtp.reporter import Reporter
from p2psip.rtp.video_receiver import DEPTH, VideoReceiver
from p2psip.rtp.video_sender import VideoSender
from p2psip.srtp.srtp import SrtpReceiver, SrtpSender

FRAME = 0.04  # s
H264 = 96
KEY, SALT = bytes(range(16)), bytes(range(14))
SPS, PPS, IDR, SLICE = 0x67, 0x68, 0x65, 0x41
ALL = frozenset({"nack", "nack pli", "ccm fir"})


def nal(header, number, octets):
    """A NAL unit of a picture, which tells whether it is whole."""
    body = (
        bytes((header,))
        + number.to_bytes(4, "big")
        + Random(number * 256 + header).randbytes(octets)
    )
    return body + zlib.crc32(body).to_bytes(4, "big")


def number_of(unit):
    """The picture that a NAL unit is of; AssertionError unless the unit is whole."""
    assert zlib.crc32(unit[:-4]) == int.from_bytes(unit[-4:], "big")
    return int.from_bytes(unit[1:5], "big")


class Encoder:
    """Pictures that each build on the one before, but for key frames."""

    def __init__(self):
        self.number, self.wants_key, self.keys = 0, True, []

    def picture(self):
        self.number += 1
        at = self.number
        if not self.wants_key:
            return [nal(SLICE, at, 300 + 97 * (at % 25))]
        self.wants_key = False
        self.keys.append(at)
        return [nal(SPS, at, 10), nal(PPS, at, 4), nal(IDR, at, 9000)]


class Screen:
    """What a viewer sees: pictures whose units are all there, from a key frame on."""

    def __init__(self):
        self._unpacker = H264Unpacker()
        self._units, self._bad = [], None
        self.needs_key = self._is_first = True
        self.shown = []  # (number, time)

    def push(self, packet, now):
        """Take a packet; answer whether a key frame is needed, and whether one has come whole."""
        damaged = refreshed = False
        for item in self._unpacker.push(
            packet.sequence, packet.timestamp, packet.marker, packet.payload
        ):
            if isinstance(item, H264Damage):
                damaged = self.needs_key = True
                self._units, self._bad = [], item.until
            elif item.timestamp != self._bad:
                self._units.append(item)
                if item.last:
                    refreshed |= self._show(now)
                    damaged |= self.needs_key
        return damaged, refreshed

    def _show(self, now):
        units, self._units = self._units, []
        numbers = {number_of(unit.data) for unit in units}
        assert len(numbers) == 1 and len({unit.timestamp for unit in units}) == 1
        is_key = [unit.kind for unit in units] == [7, 8, 5]
        if units[-1].kind == 5 and not is_key:  # nobody knows what came before the first packet
            assert self._is_first and not self.shown
            return False
        self._is_first = False
        assert is_key or [unit.kind for unit in units] == [1]
        if is_key or not self.needs_key:
            if not is_key:  # it builds on the one before
                assert self.shown[-1][0] == min(numbers) - 1
            self.shown.append((min(numbers), now))
            self.needs_key = False
        return is_key


class VideoPhone:
    """One end: RTP and RTCP by one port, to `peer`."""

    def __init__(self, ssrc, peer, feedback=ALL, *, srtp=False, films=True, early=True, **options):
        randbytes = Random(ssrc).randbytes
        self.peer, self.feedback = peer, feedback
        self.encoder, self.screen = Encoder(), Screen()
        self.sender = VideoSender(ssrc, 90000, randbytes, self._key_frame)
        self.reporter = Reporter(
            f"user{ssrc}@host", randbytes, 0.0, [self.sender], [],
            wallclock=1e9, bandwidth=6000.0, early=early, **options,
        )  # fmt: skip
        self.receiver = VideoReceiver(90000, self.reporter, feedback)
        self._protect = SrtpSender(KEY, SALT) if srtp else None
        self._open = SrtpReceiver(KEY, SALT, window=DEPTH) if srtp else None
        self._next = 0.0 if films else None
        self._out, self.asked = [], []

    def _key_frame(self):
        self.encoder.wants_key = True

    def stop(self):
        self._next = None

    @property
    def deadline(self):
        times = (self._next, self.reporter.deadline, self.receiver.deadline, self.sender.deadline)
        return min(at for at in times if at is not None)

    def tick(self, now):
        if self._next is not None and self._next <= now:
            self._next += FRAME
            timestamp = int(now * 90000)
            for payload, marker in pack_h264(self.encoder.picture(), 1000):
                self._send(self.sender.send(H264, payload, timestamp, marker, now))
        self.sender.tick(now)
        self._see(self.receiver.tick(now), now)
        for report in self.reporter.tick(now):
            report = self._protect.protect_rtcp(report) if self._protect else report
            self._out.append((report, self.peer))

    def receive(self, data, source, now):
        is_rtcp = fast.looks_like_rtcp(data)
        if self._open:
            try:
                data = self._open.open_rtcp(data) if is_rtcp else self._open.open_rtp(data)
            except RemoteError:  # a copy
                return
        if is_rtcp:
            self._reported(data, now)
        else:
            self._see(self.receiver.received(data, now), now)

    def take(self):
        out, self._out = self._out, []
        return out

    def _send(self, packet):
        packet = self._protect.protect_rtp(packet) if self._protect else packet
        self._out.append((packet, self.peer))

    def _reported(self, data, now):
        for event in self.reporter.received(data, now):
            self.asked.append(event)
            for packet in self.sender.on_feedback(event, now):
                self._send(packet)

    def _see(self, packets, now):
        for packet in packets:
            damaged, refreshed = self.screen.push(packet, now)
            if refreshed:
                self.receiver.refreshed()
            elif damaged:
                self.receiver.damaged(now)

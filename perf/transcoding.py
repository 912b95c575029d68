"""What calls cost that transcode: `python perf/transcoding.py --calls 10 --seconds 60`.

Each call has a publisher of AAC, 44.1 kHz in stereo, and a phone of Opus or another codec; both
directions are decoded and encoded, in the loop as the gateway does it. There is no network: the
figures are those of the legs and the codecs. A timer of 10 ms shows how late the loop is; with
`--arrivals bunched` all calls get their sound in the same turn of it. The CPU time is that of this
thread, so other programs change the loop's lag and not that.
"""

import argparse
import os
import resource
import struct
import time
from array import array
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import av
import gevent

from p2psip.sdp.offer_answer import AgreedMedia, Codec
from siprtmp.media.audio_stream import AudioStream
from siprtmp.media.sdp_map import AudioPlan
from siprtmp.media.sink import MediaSink
from siprtmp.media.stream import Signalled, StreamContext, StreamSettings
from siprtmp.media.transcode.to_rtp import encoder
from siprtmp.media.translate.audio_formats import AUDIO_CODECS, AudioCodec

AUDIO, TAG_SECONDS, PACKET_SECONDS, PROBE = 8, 1024 / 44100, 0.02, 0.01


def tone(rate: int, seconds: int = 2) -> "array[int]":
    """A sawtooth, which has all harmonics."""
    return array("h", (100 * (n * 440 // rate * 0 + n * 440 % rate * 160 // rate) - 8000
                       for n in range(rate * seconds)))  # fmt: skip


def aac_tags() -> list[bytes]:
    """The header, and two seconds of frames."""
    context: Any = av.CodecContext.create("aac", "w")
    context.sample_rate, context.layout, context.format = 44100, "stereo", "fltp"
    context.time_base = Fraction(1, 44100)
    context.open()
    resampler = av.AudioResampler("fltp", "stereo", 44100, frame_size=1024)
    samples = tone(44100)
    frame = av.AudioFrame("s16", "mono", len(samples))
    frame.planes[0].update(samples.tobytes())
    frame.sample_rate, frame.pts = 44100, 0
    packets = [packet for piece in resampler.resample(frame) for packet in context.encode(piece)]
    return [b"\xaf\x00" + context.extradata, *(b"\xaf\x01" + bytes(each) for each in packets)]


def payloads(codec: AudioCodec) -> list[bytes]:
    """Two seconds of the phone's packets."""
    made, samples = encoder(codec, 20, ""), tone(codec.sample_rate)
    starts = range(0, len(samples) - made.samples, made.samples)
    return [each for start in starts for each in made.encode(samples[start : start + made.samples])]


class Call(MediaSink):
    """A stream between a publisher and a phone that are both made up."""

    remote: Any = None
    remote_rtcp: Any = None
    rtcp_mux = False
    is_ready = True
    hosts: Any = ()

    def __init__(self, codec: AudioCodec, now: float) -> None:
        super().__init__()
        self.codec, self.sent, self.made = codec, 0, 0
        settings = StreamSettings(os.urandom, "c", 1e9, transcoding=True)
        context = StreamContext(self, settings, now, lambda: None)  # type: ignore[arg-type]
        self.stream = AudioStream(self, context)  # type: ignore[arg-type]
        self.stream.give_to(self)
        line = Codec(codec.encoding, codec.clock_rate, codec.channels, codec.payload_type)
        numbers, remote = (codec.payload_type,), ("127.0.0.1", 9)
        agreed = AgreedMedia("audio", True, 9, remote, None, (line,), numbers, numbers,
                             direction="sendrecv")  # fmt: skip
        pairs = ((codec, codec.payload_type),)
        plan = AudioPlan(agreed, pairs, {codec.payload_type: codec})
        self.stream.start(plan, now, Signalled(hosts=("127.0.0.1",)))
        self.cost = [0.0, 0.0]
        self.worst = 0.0

    def send_rtp(self, data: bytes) -> None:
        self.sent += 1

    def on_tag(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        self.made += 1

    def __getattr__(self, name: str) -> Callable[..., None]:
        """Whatever else the stream tells."""
        return lambda *args, **named: None

    def run(self, way: int, work: Callable[[], None]) -> None:
        """Do one piece of work, and note what it took."""
        before = time.thread_time()
        work()
        took = time.thread_time() - before
        self.cost[way] += took
        self.worst = max(self.worst, took)

    def publisher(self, tags: list[bytes], start: float) -> None:
        """Publish in real time, for ever."""
        self.stream.publish(AUDIO, 0, tags[0], start)
        for number, tag in each_for_ever(tags[1:]):
            due = start + number * TAG_SECONDS
            gevent.sleep(max(0.0, due - time.monotonic()))
            at, now = round(number * TAG_SECONDS * 1000), time.monotonic()
            self.run(0, lambda at=at, tag=tag, now=now: self.stream.publish(AUDIO, at, tag, now))  # type: ignore[misc]
            self.stream.tick(time.monotonic())

    def phone(self, packets: list[bytes], start: float) -> None:
        """Speak in real time, for ever."""
        ticks = self.codec.clock_rate // 50
        for number, payload in each_for_ever(packets):
            gevent.sleep(max(0.0, start + number * PACKET_SECONDS - time.monotonic()))
            head = struct.pack("!BBHII", 0x80, self.codec.payload_type, number & 0xFFFF,
                               number * ticks & 0xFFFFFFFF, 7)  # fmt: skip
            data, now = head + payload, time.monotonic()
            self.run(1, lambda data=data, now=now: self.stream.on_rtp(data, now))  # type: ignore[misc]


def each_for_ever(items: list[bytes]) -> Iterator[tuple[int, bytes]]:
    """The items again and again, numbered."""
    number = 0
    while True:
        yield number, items[number % len(items)]
        number += 1


def probe(late: list[float]) -> None:
    """Note how late a timer is."""
    while True:
        due = time.monotonic() + PROBE
        gevent.sleep(PROBE)
        late.append(time.monotonic() - due)


def megabytes() -> float:
    """The memory in use."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6


def main() -> None:
    """Run, and print a line for each part of the time."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--calls", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--codec", choices=sorted(AUDIO_CODECS), default="opus")
    parser.add_argument("--arrivals", choices=["bunched", "spread"], default="spread")
    given = parser.parse_args()
    codec = AUDIO_CODECS[given.codec]
    tags, packets, late = aac_tags(), payloads(codec), list[float]()
    start = time.monotonic() + 1.0
    calls = [Call(codec, start) for _ in range(given.calls)]
    for number, call in enumerate(calls):
        shift = PACKET_SECONDS * number / given.calls if given.arrivals == "spread" else 0.0
        gevent.spawn(call.publisher, tags, start + shift)
        gevent.spawn(call.phone, packets, start + shift)
    gevent.spawn(probe, late)
    gevent.sleep(3.0)
    print("seconds  cpu %  ms a tag  ms a packet  worst ms  lag p50  p99  max ms    MB")
    begun, parts = time.monotonic(), 4
    for _ in range(parts):
        late.clear()
        for call in calls:
            call.cost, call.worst, call.sent, call.made = [0.0, 0.0], 0.0, 0, 0
        used, since = time.thread_time(), time.monotonic()
        gevent.sleep(given.seconds / parts)
        used, since = time.thread_time() - used, time.monotonic() - since
        counts = [calls[0].sent * PACKET_SECONDS / TAG_SECONDS, since / PACKET_SECONDS]
        costs = [1000 * sum(call.cost[way] for call in calls) / len(calls) for way in (0, 1)]
        ordered = sorted(late)
        marks = [1000 * ordered[int(len(ordered) * share)] for share in (0.5, 0.99, 0.99999)]
        worst = 1000 * max(call.worst for call in calls)
        print(f"{time.monotonic() - begun:7.0f}  {100 * used / since:5.1f}  "
              f"{costs[0] / counts[0]:8.3f}  {costs[1] / counts[1]:11.3f}  {worst:8.2f}  "
              f"{marks[0]:7.2f}  {marks[1]:.2f}  {marks[2]:.2f}  {megabytes():7.1f}")  # fmt: skip


if __name__ == "__main__":
    main()

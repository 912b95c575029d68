"""Publishers by WHIP: made and marked pictures of H.264, and silence in Opus, by SRTP.

Implements RFC 9725 §4.2 on the publisher's side, with the reports of RFC 3550 §6.4.1.

Own design: the pictures have a key frame every two seconds, so a server's requests for one are
ignored.  Loss and jitter are those that the server reports.  The audio is one packet of Opus, 20 ms
of silence, padded to the size of usual ones (RFC 6716 §3.2.5).
"""

import os
import ssl
import time
from typing import Final

from p2psip.errors import RemoteError
from p2psip.nat.demultiplexing import DatagramKind, is_rtcp, kind_of
from p2psip.rtp.payload.h264 import pack_h264
from p2psip.rtp.rtcp import (
    ReceiverReport,
    ReportBlock,
    SenderReport,
    SourceDescription,
    compound,
    ntp_time,
    parse_readable,
)
from p2psip.rtp.sender import Sender
from p2psip.sdp.attributes import rtpmaps
from p2psip.sdp.jsep import BrowserAnswer
from rtclab.load.clients.browser_flow import BrowserFlow
from rtclab.load.clients.browsers import BrowserCrowd
from rtclab.load.clients.datagrams import Batch
from rtclab.load.figures import film
from rtclab.load.figures.film import Item, MadeFilm
from rtclab.load.figures.tally import Tally
from rtmplite.flv.avc import split_units
from rtmplite.flv.tag import TagType
from rtmplite.flv.video import VideoTag
from rtmplite.net.clock import now

FRAME: Final = film.SOUND_MS / 1000  # s
MOST: Final = 1150  # octets of a payload
REPORTS: Final = 2.0  # s between two reports; the first one lets the server align the lines
RATES: Final = {"H264": 90_000, "OPUS": 48_000}
PADDING: Final = 75  # octets
# A frame of 20 ms for the whole band, in a packet of one frame with padding.
SILENCE: Final = bytes([0xFB, 0x41, PADDING, 0xFF, 0xFE]) + bytes(PADDING)
SOUND: Final = """m=audio 9 RTP/AVPF 111
a=rtpmap:111 opus/48000/2
a=sendonly
a=rtcp-mux
"""
PICTURES: Final = """m=video 9 RTP/AVPF 102
a=rtpmap:102 H264/90000
a=fmtp:102 profile-level-id=42e00d;packetization-mode=1;level-asymmetry-allowed=1
a=sendonly
a=rtcp-mux
"""
OFFER: Final = "v=0\no=- 1 1 IN IP4 127.0.0.1\ns=-\nt=0 0\n"


def publishers(url: str, tls: ssl.SSLContext | None, bps: float, *, video: bool) -> BrowserCrowd:
    """Make the publishers of one process, each with a film of its own."""
    offer = OFFER + SOUND + (PICTURES if video else "")
    return BrowserCrowd(
        url,
        tls,
        offer.encode(),
        lambda flow, answer, tally: WhipPublisher(flow, answer, tally, MadeFilm(bps, video=video)),
    )


class SentLine:
    """A line of an answer: its source, and the payload type that the server takes."""

    def __init__(self, codec: str, answer: BrowserAnswer) -> None:
        kinds = (each for line in answer.lines for each in rtpmaps(line))
        taken = [each.payload_type for each in kinds if each.encoding.upper() == codec]
        if not taken:
            raise RemoteError(f"The answer takes no {codec}", 488)
        self._number = taken[0]
        self._base = int.from_bytes(os.urandom(4), "big")
        self.sender = Sender(None, RATES[codec], os.urandom)

    def packet(self, payload: bytes, time_ms: int, *, marker: bool) -> bytes:
        """Make the next packet."""
        ticks = self._base + time_ms * self.sender.send_rate // 1000
        return self.sender.send(self._number, payload, ticks & 0xFFFFFFFF, marker, now())


class WhipPublisher:
    """One publisher that is connected."""

    def __init__(
        self, flow: BrowserFlow, answer: BrowserAnswer, tally: Tally, made: MadeFilm
    ) -> None:
        self._flow, self._tally, self._made = flow, tally, made
        self._sets: list[bytes] = []
        self._lines = {TagType.AUDIO: SentLine("OPUS", answer)}
        if [*made.start()]:
            self._lines[TagType.VIDEO] = SentLine("H264", answer)
            self._sets = [film.SPS, film.PPS]
        self._name = os.urandom(9).hex()

    def act(self) -> None:
        """Send what is due, turn by turn; after a delay, all that has become due meanwhile."""
        flow, began, turn, report_at = self._flow, now(), 0, 0.0
        while not flow.over.is_set():
            for item in self._made.at(turn, time.time_ns()):
                self._send(item)
            at = now()
            if at >= report_at:
                report_at = at + REPORTS
                self._report(at)
            if at >= flow.deadline:
                flow.tick()
            turn += 1
            flow.over.wait(max(0.0, began + turn * FRAME - now()))

    def take(self, batch: Batch) -> None:
        """Read the server's reports; all other datagrams are for ICE and DTLS."""
        for data, _ in batch.datagrams:
            if kind_of(data) is not DatagramKind.RTP:
                self._flow.control(data)
            elif is_rtcp(data) and (report := self._flow.srtp.open_rtcp(data)) is not None:
                for each in parse_readable(report):
                    if isinstance(each, ReceiverReport | SenderReport):
                        self._judge(each.reports)

    def _judge(self, blocks: tuple[ReportBlock, ...]) -> None:
        """Note how many of our packets the server has lost, and its jitter."""
        for block in blocks:
            for line in self._lines.values():
                line.sender.judge(block, ntp_time(time.time()))
        said = [line.sender for line in self._lines.values() if line.sender.remote_block]
        found = [(each.remote_block, each.send_rate) for each in said]
        self._tally.lost = sum(max(0, block.lost) for block, _ in found if block is not None)
        self._tally.jitter = max(
            (1000 * block.jitter / rate for block, rate in found if block is not None), default=0.0
        )

    def _send(self, item: Item) -> None:
        """Send a picture or a sound."""
        line = self._lines[TagType(item.kind)]
        if item.kind == TagType.AUDIO:
            sent = [(SILENCE, False)]
        else:
            units = split_units(VideoTag.parse(item.body).data)
            sent = pack_h264([*(self._sets if item.is_key else ()), *units], MOST)
        for payload, marker in sent:
            packet = line.packet(payload, item.time_ms, marker=marker)
            self._flow.send_rtp(packet)
            is_frame = marker and item.kind == TagType.VIDEO
            self._tally.sent(now(), len(packet), frame=is_frame, key=is_frame and item.is_key)

    def _report(self, at: float) -> None:
        for line in self._lines.values():
            report = line.sender.report((), ntp_time(time.time()), at, as_sender=True)
            name = SourceDescription.of_cname(line.sender.ssrc, self._name)
            self._flow.send_rtcp(compound(report, name))

"""Viewers by WHEP: what comes is counted by its clear headers, and not decrypted.

Implements WHEP §4.2.5 on the player's side, with the counts of RFC 3550 §6.4.1.

Own design: only until the first key frame are packets of video decrypted, since nothing else tells
when a viewer sees a picture; with a request for one, should it not come by itself.  Nothing lost is
asked for again, so that loss is that of the network.
"""

import os
import ssl
import time
from typing import Final

from p2psip.nat.demultiplexing import DatagramKind, is_rtcp, kind_of
from p2psip.rtp.rtcp import (
    Pli,
    ReceiverReport,
    RtcpPacket,
    SenderReport,
    SourceDescription,
    compound,
    parse_readable,
)
from p2psip.sdp.jsep import BrowserAnswer
from rtclab.load.clients.browser_flow import BrowserFlow
from rtclab.load.clients.browsers import BrowserCrowd
from rtclab.load.clients.datagrams import Batch, Head
from rtclab.load.clients.line_count import HEAD, RTP
from rtclab.load.clients.rtp_lines import HeardLine, heard_lines
from rtclab.load.figures.tally import AUDIO, FIRST_AUDIO, FIRST_PACKET, FIRST_VIDEO, VIDEO, Tally
from rtmplite.net.clock import now

MOST_SOURCES: Final = 16  # whose reports are kept
REPORTS: Final = 5.0  # s between two reports, of which the half is drawn
ASKS: Final = 1.0  # s until a key frame is asked for, and asked for again
H264: Final = {102: "42e01f", 104: "4d001f", 106: "64001f"}  # payload types and their profiles
_PROFILES: Final = "".join(
    f"a=rtpmap:{number} H264/90000\n"
    f"a=fmtp:{number} profile-level-id={profile};packetization-mode=1;level-asymmetry-allowed=1\n"
    for number, profile in H264.items()
)
OFFER: Final = f"""v=0
o=- 1 1 IN IP4 127.0.0.1
s=-
t=0 0
m=audio 9 RTP/AVPF 111 0 8
a=rtpmap:111 opus/48000/2
a=fmtp:111 useinbandfec=1
a=recvonly
a=rtcp-mux
m=video 9 RTP/AVPF {" ".join(map(str, H264))} 96
{_PROFILES}a=rtpmap:96 VP8/90000
a=rtcp-fb:* nack pli
a=recvonly
a=rtcp-mux
""".encode()


def viewers(url: str, tls: ssl.SSLContext | None) -> BrowserCrowd:
    """Make the viewers of one process."""
    return BrowserCrowd(url, tls, OFFER, Viewer)


class Viewer:
    """One viewer that is connected: what it counts and reports."""

    def __init__(self, flow: BrowserFlow, answer: BrowserAnswer, tally: Tally) -> None:
        self._flow, self._tally = flow, tally
        self._lines = lines = heard_lines(answer.lines)
        self._by_second = {
            marker | number: line for line in lines for number in line.types for marker in (0, 128)
        }
        self._counts = [
            line.count if (line := self._by_second.get(second)) is not None else None
            for second in range(256)
        ]
        self._ssrc = int.from_bytes(os.urandom(4), "big")
        self._name = os.urandom(9).hex()
        self._reports: dict[bytes, tuple[bytes, float]] = {}
        self._report_at = now() + REPORTS / 2
        self._ask_at = now() + ASKS

    def act(self) -> None:
        """Report until the server ends it."""
        flow = self._flow
        while not flow.over.is_set():
            at = now()
            flow.tick()
            if at >= self._report_at:
                self._report_at = at + REPORTS * (0.5 + os.urandom(1)[0] / 255)
                self._report(at)
            elif at >= self._ask_at:
                self._ask_at = at + ASKS if self._ask() else float("inf")
            due = min(flow.deadline, self._report_at, self._ask_at)
            flow.over.wait(max(0.001, due - now()))

    def take(self, batch: Batch) -> None:
        """Count what has come, in a run."""
        offset, packets, size, last = now() - time.time(), 0, 0, 0.0
        place = 0
        while True:
            begin = place
            place, octets, at = batch.pass_usual(begin, self._counts, offset)
            if place > begin:
                packets, size, last = packets + place - begin, size + octets, at
            if place >= batch.count:
                break
            head, octets, at = batch.packet(place)
            if self._heard_other(batch, place, head, octets, at + offset):
                packets, size, last = packets + 1, size + octets, at + offset
            place += 1
        if packets:
            self._settle(last, packets, size)

    def _heard_other(self, batch: Batch, place: int, head: Head, octets: int, at: float) -> bool:
        """Count a packet that is not usual, or take another datagram; whether it was a packet."""
        first, second, sequence, timestamp, ssrc = head
        line = self._by_second.get(second)
        if line is None or first < RTP or octets < HEAD:
            self._control(batch.datagram(place, octets), now())
            return False
        line.heard(second, sequence, timestamp, ssrc, at)
        if line.count.is_new:
            self._look(line, batch.datagram(place, octets), at)
        return True

    def _look(self, line: HeardLine, data: bytes, at: float) -> None:
        """Note the first packet of a line, and of video the first picture that shows."""
        if line.first is None:
            if all(each.first is None for each in self._lines):
                self._tally.came(FIRST_PACKET, at)
            if not line.is_video:
                self._tally.came(FIRST_AUDIO, at)
            line.first = at
        if line.is_video and line.shows(data, self._flow.srtp):
            self._tally.came(FIRST_VIDEO, at)
            line.count.is_new = False
        elif not line.is_video:
            line.count.is_new = False

    def _settle(self, last: float, packets: int, size: int) -> None:
        """Bring the tally up to date, once for a run."""
        tally, frames, lost, jitter = self._tally, 0, 0, 0.0
        for line in self._lines:
            frames += line.settle()
            lost += line.lost
            jitter = max(jitter, line.jitter_ms)
        tally.flowed(last, packets, size, frames)
        tally.lost, tally.jitter = lost, jitter
        for line in self._lines:
            if line.first is not None:
                tally.lag(VIDEO if line.is_video else AUDIO, line.last, line.media_ms)

    def _control(self, data: bytes, at: float) -> None:
        """Keep a report, of which the last of each source is read; give the flow what is its."""
        if kind_of(data) is not DatagramKind.RTP:
            self._flow.control(data)
        elif is_rtcp(data) and len(self._reports) < MOST_SOURCES:
            self._reports[data[4:8]] = data, at

    def _read_reports(self) -> None:
        """Note the sender's clocks, for the round trip that it measures by our reports."""
        for data, at in self._reports.values():
            report = self._flow.srtp.open_rtcp(data)
            for each in parse_readable(report) if report is not None else ():
                if isinstance(each, SenderReport):
                    for line in self._lines:
                        if line.reception.ssrc == each.ssrc:
                            line.reception.note(each, at)
        self._reports.clear()

    def _report(self, at: float) -> None:
        self._read_reports()
        blocks = tuple(block for line in self._lines for block in line.reception.block(at))
        self._send(ReceiverReport(self._ssrc, blocks))

    def _ask(self) -> bool:
        """Ask for a key frame; whether one may have to be asked for again."""
        waiting = [line for line in self._lines if line.count.is_new and line.is_video]
        for line in waiting:
            if line.reception.ssrc is not None:
                self._send(ReceiverReport(self._ssrc), Pli(self._ssrc, line.reception.ssrc))
        return bool(waiting)

    def _send(self, report: ReceiverReport, *more: RtcpPacket) -> None:
        name = SourceDescription.of_cname(self._ssrc, self._name)
        self._flow.send_rtcp(compound(report, name, *more))

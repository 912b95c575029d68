"""A phone that shows a recorded film: SIP by hand, and RTP packets as somebody once sent them.

It shares no code with the programs that it tests.
"""

import re
import socket
import struct
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import dpkt
from support.peers.process import PATIENCE, Process, require

HOST = "127.0.0.1"
FIRST, STAMP = 65_500, 0xFFFF8000  # sequence number and RTP time: both wrap soon


class Sent(NamedTuple):
    """A packet of H.264, without its numbers."""

    timestamp: int
    marker: bool
    payload: bytes


def recorded(path: Path, port: int) -> list[Sent]:
    """The RTP packets to a port in a capture."""
    found = []
    with path.open("rb") as file:
        for _, frame in dpkt.pcap.Reader(file):
            udp = dpkt.ethernet.Ethernet(frame).data.data
            if isinstance(udp, dpkt.udp.UDP) and udp.dport == port:
                found.append(_packet(udp.data))
    return found


def filmed(folder: Path, *options: str, seconds: int = 3) -> list[Sent]:
    """What ffmpeg sends of a moving test picture, 25 a second."""
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    receiver.bind((HOST, 0))
    receiver.settimeout(0.1)
    target = f"rtp://{HOST}:{receiver.getsockname()[1]}?pkt_size=600"
    program = require("ffmpeg", "ffmpeg")
    words = ["-nostdin", "-loglevel", "error", "-f", "lavfi", "-i", "testsrc=size=320x240:rate=25"]
    words += ["-t", str(seconds), "-c:v", "libx264", "-crf", "38", "-pix_fmt", "yuv420p", *options]
    found = []
    folder.mkdir()
    with receiver, subprocess.Popen([program, *words, "-f", "rtp", target], cwd=folder,
                                    stdout=subprocess.DEVNULL) as child:  # fmt: skip
        try:
            while True:
                over = child.poll() is not None  # asked first: nothing comes after that
                try:
                    data = receiver.recv(65536)
                except TimeoutError:
                    if over:
                        return found
                else:
                    if not 192 <= data[1] <= 223:  # RTCP
                        found.append(_packet(data))
        finally:
            child.kill()


def _packet(data: bytes) -> Sent:
    (timestamp,) = struct.unpack_from("!I", data, 4)
    return Sent(timestamp, data[1] > 127, bytes(data[12:]))


def units(packets: Sequence[Sent]) -> Iterator[bytes]:
    """The NAL units of packets of which none is lost: RFC 6184 §5.6 to §5.8."""
    parts = b""
    for *_, payload in packets:
        kind = payload[0] & 31
        if kind == 24:
            at = 1
            while at < len(payload):
                (size,) = struct.unpack_from("!H", payload, at)
                yield payload[at + 2 : at + 2 + size]
                at += 2 + size
        elif kind == 28:
            start = bytes([payload[0] & 0xE0 | payload[1] & 31])
            parts = (start if payload[1] & 0x80 else parts) + payload[2:]
            if payload[1] & 0x40:
                yield parts
        else:
            yield payload


class ReplayPhone:
    """Calls a user of a SIP server with a line of sound and one of H.264, and shows packets."""

    def __init__(self, server: str) -> None:
        host, _, port = server.rpartition(":")
        self._server = host, int(port)
        self._sip, self._rtp, self._sound = (self._socket() for _ in range(3))
        self._me = f"{HOST}:{self._sip.getsockname()[1]}"
        self._to, self._target, self._number, self._requests = "", "", 0, 0
        self._start: int | None = None
        self._video = self._server

    @staticmethod
    def _socket() -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.bind((HOST, 0))
        return made

    def __enter__(self) -> "ReplayPhone":
        return self

    def __exit__(self, *_: object) -> None:
        for each in (self._sip, self._rtp, self._sound):
            each.close()

    def call(self, user: str, profile: str = "64001f") -> None:
        """Call until it is answered, as a phone of this profile and level of H.264."""
        self._to = self._target = f"sip:{user}@{self._server[0]}:{self._server[1]}"
        ports = [each.getsockname()[1] for each in (self._sound, self._rtp)]
        offer = (
            f"v=0\r\no=- 1 1 IN IP4 {HOST}\r\ns=-\r\nc=IN IP4 {HOST}\r\nt=0 0\r\n"
            f"m=audio {ports[0]} RTP/AVP 0\r\na=rtpmap:0 PCMU/8000\r\n"
            f"m=video {ports[1]} RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n"
            f"a=fmtp:96 profile-level-id={profile};packetization-mode=1\r\n"
        )
        answer = self._ask("INVITE", offer)
        port = re.search(r"^m=video (\d+)", answer, re.M)
        contact = re.search(r"^Contact: *<?([^>\r\n]+)", answer, re.M | re.I)
        tag = re.search(r"^To:.*;tag=([^;\r\n]+)", answer, re.M | re.I)
        assert port and contact and tag, answer
        self._video = HOST, int(port[1])
        self._target, self._to = contact[1], f"<{self._to}>;tag={tag[1]}"
        self._send("ACK")

    def hang_up(self) -> None:
        """End the call."""
        self._ask("BYE")

    def show(self, packets: Sequence[Sent]) -> None:
        """Send packets with numbers that go on; both numbers wrap during a film."""
        for timestamp, marker, payload in packets:
            self._start = timestamp if self._start is None else self._start
            at = timestamp - self._start + STAMP & 0xFFFFFFFF
            number, second = FIRST + self._number & 0xFFFF, 0x80 * marker | 96
            head = struct.pack("!BBHII", 0x80, second, number, at, 0xCAFE)
            self._rtp.sendto(head + payload, self._video)
            self._number += 1

    def watch(self, publisher: Process) -> list[Sent]:
        """The packets of pictures that come until the publisher has ended."""
        self._rtp.settimeout(0.5)
        found = []
        while True:
            over = publisher.child.poll() is not None  # asked first: then nothing more is published
            try:
                data = self._rtp.recv(65536)
            except TimeoutError:
                if over:
                    return found
            else:
                if not 192 <= data[1] <= 223:  # RTCP
                    found.append(_packet(data))

    def _ask(self, method: str, body: str = "") -> str:
        """Send a request until the final response, which is a 200."""
        self._requests += 1
        end, self._answer = time.monotonic() + PATIENCE, ""
        while not self._answer:
            assert time.monotonic() < end, f"{method} has no answer"
            self._send(method, body)
            self._listen(0.5)
        assert self._answer.startswith("SIP/2.0 200 "), self._answer
        return self._answer

    def _listen(self, seconds: float) -> None:
        """Hear what the server says, for so long or until the final response."""
        self._sip.settimeout(seconds)
        try:
            while not self._answer:
                text = self._sip.recv(65536).decode()
                head = text.partition("\r\n\r\n")[0]
                if not text.startswith("SIP/2.0 "):
                    self._agree(head)
                elif f"{self._requests} " in head.partition("CSeq:")[2][:6] and text[8] > "1":
                    self._answer = text
        except TimeoutError:
            return

    def _agree(self, head: str) -> None:
        """Answer a request of the server with 200."""
        copied = ("via:", "from:", "to:", "call-id:", "cseq:")
        kept = [line for line in head.split("\r\n")[1:] if line.lower().startswith(copied)]
        lines = ["SIP/2.0 200 OK", *kept, "Content-Length: 0", "", ""]
        self._sip.sendto("\r\n".join(lines).encode(), self._server)

    def _send(self, method: str, body: str = "") -> None:
        to = self._to if self._to.startswith("<") else f"<{self._to}>"
        lines = [
            f"{method} {self._target} SIP/2.0",
            f"Via: SIP/2.0/UDP {self._me};branch=z9hG4bK{method}{self._requests};rport",
            "Max-Forwards: 70",
            f"From: <sip:camera@{self._me}>;tag=film",
            f"To: {to}",
            f"Call-ID: film-{self._me}",
            f"CSeq: {self._requests} {method}",
            f"Contact: <sip:camera@{self._me}>",
            *(["Content-Type: application/sdp"] if body else []),
            f"Content-Length: {len(body)}",
            "",
            body,
        ]
        self._sip.sendto("\r\n".join(lines).encode(), self._server)

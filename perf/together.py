"""Whether sound and picture of a phone stay together: `python perf/together.py --seconds 300`.

A phone whose microphone and camera have clocks of their own, one fast and one slow, sends both in
real time to a gateway, with reports by the wall clock; its camera is late by the time of encoding.
A player stores what it gets. For each picture the time in the file is compared with that of the
sound that was made at the same moment. Late packets of a busy machine are in the figures.
"""

import argparse
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from bisect import bisect
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from gateway import Gateway
from rtmp_load import Session

from p2psip.rtp.payload.h264 import pack_h264
from p2psip.rtp.rtcp import SenderReport, ntp_time
from p2psip.rtp.source_description import SourceDescription
from rtmplite.flv import file

AUDIO, VIDEO = 8, 9
LIMIT, SETTLES = 40.0, 10.0  # ms, after so many seconds: by then both have been reported
PACKET, PICTURE, REPORTS, LATE = 0.02, 0.04, 2.0, 0.1  # s
SETS = [bytes.fromhex("6742c01fd90141fb011000000300100000030140f1832480"),
        bytes.fromhex("68cb83cb20")]  # fmt: skip
NUMBER = re.compile(rb"#(\d{8})#")


class Line:
    """One medium of the phone: a socket pair, a clock that is fast or slow, and a source."""

    def __init__(self, kind: int, rate: int, ppm: float) -> None:
        self.kind, self.rate, self.speed = kind, rate, 1 + ppm / 1e6
        self.rtp, self.rtcp = (_socket() for _ in range(2))
        self.sequence, self.packets, self.source = 0, 0, 0xAB00 + kind
        self.to = self.reports_to = ("127.0.0.1", 9)
        self.payload_type = 0

    def description(self, media: str, codec: str) -> str:
        """Its lines of the answer."""
        at, reports = (each.getsockname()[1] for each in (self.rtp, self.rtcp))
        number = self.payload_type
        return (
            f"m={media} {at} RTP/AVP {number}\r\na=rtcp:{reports}\r\na=rtpmap:{number} {codec}\r\n"
        )

    def ticks(self, at: float) -> int:
        """Its RTP time at a moment."""
        return int(at * self.speed * self.rate) & 0xFFFFFFFF

    def send(self, payload: bytes, ticks: int, marker: bool) -> None:
        """One packet."""
        second = marker << 7 | self.payload_type
        head = struct.pack("!BBHII", 0x80, second, self.sequence, ticks, self.source)
        self.rtp.sendto(head + payload, self.to)
        self.sequence, self.packets = self.sequence + 1 & 0xFFFF, self.packets + 1

    def report(self, at: float, wall: float) -> None:
        """Say which time of the wall its time is: RFC 3550 §6.4.1."""
        counts = self.packets, 160 * self.packets
        report = SenderReport(self.source, ntp_time(wall), self.ticks(at), *counts)
        name = SourceDescription.of_cname(self.source, "phone@here")
        self.rtcp.sendto(bytes(report) + bytes(name), self.reports_to)


class Phone:
    """Answers one call, and then sends."""

    def __init__(self, ppm: float) -> None:
        self.sip = _socket()
        self.sound, self.camera = Line(AUDIO, 8000, ppm), Line(VIDEO, 90_000, -ppm)
        self.is_called = threading.Event()

    def answer(self) -> None:
        """Take the next INVITE, and where it wants media."""
        while not (request := self.sip.recvfrom(65536))[0].startswith(b"INVITE"):
            pass
        text, source = request[0].decode(), request[1]
        head, _, offer = text.partition("\r\n\r\n")
        sound, picture = re.split("(?=^m=)", offer, flags=re.M)[1:3]
        for line, part in ((self.sound, sound), (self.camera, picture)):
            [port] = re.findall(r"^m=\w+ (\d+)", part, re.M)
            reports = re.findall(r"^a=rtcp:(\d+)", part, re.M) or [str(int(port) + 1)]
            line.to = "127.0.0.1", int(port)
            line.reports_to = "127.0.0.1", int(reports[0])
        [number] = re.findall(r"^a=fmtp:(\d+) .*packetization-mode=1", picture, re.M)[:1]
        self.camera.payload_type = int(number)
        body = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n"
        body += self.sound.description("audio", "PCMU/8000")
        body += self.camera.description("video", "H264/90000")
        body += f"a=fmtp:{number} profile-level-id=42e01f;packetization-mode=1\r\n"
        names = ("via:", "from:", "to:", "call-id:", "cseq:", "record-route:")
        same = [row for row in head.split("\r\n")[1:] if row.lower().startswith(names)]
        same = [f"{row};tag=phone" if row.lower().startswith("to:") else row for row in same]
        own = [f"Contact: <sip:phone@127.0.0.1:{self.sip.getsockname()[1]}>",
               "Content-Type: application/sdp", f"Content-Length: {len(body)}"]  # fmt: skip
        self.sip.sendto("\r\n".join(["SIP/2.0 200 OK", *same, *own, "", body]).encode(), source)
        self.is_called.set()

    def talk(self, seconds: float, also: Callable[[], object]) -> None:
        """Send sound, pictures and reports, each when its clock says so, and then do `also`."""
        begun, wall = time.monotonic(), time.time()
        sounds = pictures = reports = 0
        while True:
            due = [sounds * PACKET / self.sound.speed,
                   pictures * PICTURE / self.camera.speed + LATE, reports * REPORTS]  # fmt: skip
            at = min(due)
            if at > seconds:
                return
            time.sleep(max(0.0, begun + at - time.monotonic()))
            if at == due[2]:
                for line in (self.sound, self.camera):
                    line.report(at, wall + at)
                reports += 1
                also()
            elif at == due[0]:
                self.sound.send((b"#%08d#" % sounds) * 16, sounds * 160, not sounds)
                sounds += 1
            else:
                self._show(pictures)
                pictures += 1

    def _show(self, number: int) -> None:
        kind = bytes((0x41, 0x9A, 0x38)) if number else bytes((0x65, 0x88, 0x84))
        units = [*([] if number else SETS), kind + b"#%08d#" % number]
        for payload, marker in pack_h264(units, 1200):
            self.camera.send(payload, number * int(90_000 * PICTURE), marker)


def _hear(publisher: Session) -> None:
    """Answer what the gateway asks a silent client."""
    with suppress(BlockingIOError):
        publisher.receive()


def _socket() -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.bind(("127.0.0.1", 0))
    return made


def apart(data: bytes, ppm: float) -> list[tuple[float, float]]:
    """The second at which each picture was made, and the ms by which it is behind its sound."""
    times: dict[int, dict[int, int]] = {AUDIO: {}, VIDEO: {}}
    for tag in file.read_flv(data)[1]:
        if tag.tag_type in times and (found := NUMBER.search(tag.data)):
            times[tag.tag_type].setdefault(int(found[1]), tag.timestamp)
    sounds = sorted((n * PACKET / (1 + ppm / 1e6), at) for n, at in times[AUDIO].items())
    moments, out = [at for at, _ in sounds], []
    for number, at in sorted(times[VIDEO].items()):
        moment = number * PICTURE / (1 - ppm / 1e6)
        place = bisect(moments, moment) - 1
        if 0 <= place < len(sounds) - 1:
            heard = sounds[place][1] + 1000 * (moment - moments[place])
            out.append((moment, at - heard))
    return out


def main() -> int:
    """Run, and print a line for each part of the time; 1 if any was too far from its sound."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--ppm", type=float, default=100.0, help="of each clock, in opposite ways")
    given = parser.parse_args()
    phone = Phone(given.ppm)
    threading.Thread(target=phone.answer, daemon=True).start()
    name = f"phone@127.0.0.1:{phone.sip.getsockname()[1]}"
    with Gateway(0) as gateway, tempfile.TemporaryDirectory() as folder:
        stored = Path(folder) / "played.flv"
        words = ["-m", "rtmplite", "dump", f"rtmp://{gateway.rtmp}/call/{name}", "-o", stored]
        player = subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL)
        publisher = Session(f"rtmp://{gateway.rtmp}/call")
        publisher.publish(name)
        publisher.run()
        phone.talk(given.seconds, lambda: _hear(publisher))
        publisher.close()
        player.wait(30)
        rows = apart(stored.read_bytes(), given.ppm)
    parts = max(1, min(10, int(given.seconds // 30)))
    worst = 0.0
    print("seconds  pictures  behind ms: least  median    most")
    for part in range(parts):
        low, high = (given.seconds * each / parts for each in (part, part + 1))
        found = sorted(ms for at, ms in rows if max(low, SETTLES) <= at < high)
        if found:
            worst = max(worst, -found[0], found[-1])
            print(f"{high:7.0f}  {len(found):8}  {found[0]:16.0f}  {found[len(found) // 2]:6.0f}"
                  f"  {found[-1]:6.0f}")  # fmt: skip
    print(f"clocks apart by {2 * given.ppm * given.seconds / 1000:.0f} ms, "
          f"sound and picture by {worst:.0f} ms at most")  # fmt: skip
    return int(not rows or worst > LIMIT)


if __name__ == "__main__":
    sys.exit(main())

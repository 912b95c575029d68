"""One piece of work, again and again: `python perf/guard_work.py NAME`, with PYTHONPATH to choose.

It prints "ready", then for each line on standard input the CPU time of one round, in ns.  All works
use what has been there for long, so that an older tree can do them too.
"""

import sys
import time
from collections.abc import Callable

ROUND_NS = 20_000_000  # about as long as a round takes
INVITE = (
    b"INVITE sip:desk-7@proxy.test SIP/2.0\r\nCall-ID: 0b1c2d3e4f\r\nCSeq: 12 INVITE\r\n"
    b"Via: SIP/2.0/UDP 127.0.0.9:5070;rport;branch=z9hG4bKguard\r\nMax-Forwards: 16\r\n"
    b"Contact: <sip:ann@127.0.0.9:5070>\r\nTo: <sip:desk-7@proxy.test>\r\n"
    b'From: "Ann" <sip:ann@proxy.test>;tag=guard\r\nContent-Length: 0\r\n\r\n'
)
Work = Callable[[], object]


def sip() -> Work:
    """Read a request and write it."""
    from p2psip.sip.message import parse_message

    return lambda: bytes(parse_message(INVITE))


def rtp() -> Work:
    """Read a packet and write it."""
    from p2psip.rtp.packet import RtpPacket

    data = bytes(RtpPacket(payload_type=0, sequence=1, timestamp=160, ssrc=7, payload=bytes(160)))
    return lambda: bytes(RtpPacket.parse(data))


def amf() -> Work:
    """Write the values of a command, and read them."""
    from rtmplite.amf import amf0

    values = ["onStatus", 0.0, None, {"code": "NetStream.Play.Start", "level": "status", "n": 1.0}]
    data = amf0.encode(*values)
    return lambda: amf0.decode(data)


def flv() -> Work:
    """Read the tags of a file in pieces."""
    from rtmplite.flv.file import FlvReader, write_flv
    from rtmplite.flv.tag import Tag

    data = write_flv([Tag(8 + n % 2, n * 20, bytes(300)) for n in range(20)])

    def work() -> None:
        reader = FlvReader()
        for at in range(0, len(data), 1400):
            reader.feed(data[at : at + 1400])

    return work


WORKS = {"sip": sip, "rtp": rtp, "amf": amf, "flv": flv}


def main(name: str) -> None:
    """Calibrate, and serve rounds of so many; the first line tells us of how many."""
    work = WORKS[name]()
    print("ready", flush=True)
    for line in sys.stdin:
        count = int(line)
        began = time.thread_time_ns()
        for _ in range(count):
            work()
        print(time.thread_time_ns() - began, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])

"""What a call with pictures costs: `python perf/video_call.py --before CHECKOUT`.

A phone and a publisher send each other G.711 and H.264 of 2 Mb/s with 25 pictures a second, a key
frame in two seconds. The gateways are measured in turns: pure Python and compiled, of this
checkout and of another one beside it. Sound alone is a row of its own.
"""

import argparse
import os
import select
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cpu import two_cores
from gateway import Gateway
from rtmp_load import AUDIO, VIDEO, Session, message
from together import SETS, Phone

from p2psip.rtp.payload.h264 import pack_h264
from rtmplite.flv.avc import AvcConfig, join_units

HERE = Path(__file__).resolve().parents[1]
PICTURE, RATE, GROUP = 0.04, 25, 50  # s between pictures, a second, to the next key frame
KEY, INTER = 26_000, 9_600  # octets: together 2 Mb/s
SOUND = bytes(range(160))
WARM_UP = 1.0
MARGIN = 0.02  # of all that was sent, which may be missing


class Call:
    """A call of a phone and a publisher, with a player, in one gateway."""

    def __init__(self, gateway: Gateway) -> None:
        self.phone = phone = Phone(0.0)
        answering = threading.Thread(target=phone.answer, daemon=True)
        answering.start()
        name = f"phone@127.0.0.1:{phone.sip.getsockname()[1]}"
        url = f"rtmp://{gateway.rtmp}/call"
        self.player, self.publisher = Session(url), Session(url)
        self.player.play(name)
        self.stream = self.publisher.publish(name)
        answering.join(10)
        if not phone.is_called.is_set():
            raise RuntimeError("the phone was not called")
        for each in (self.player, self.publisher):
            each.run()
        self.media = (phone.sound.rtp, phone.camera.rtp)
        for rtp in self.media:
            rtp.setblocking(False)
        self.poller = select.epoll()
        self.readers = {each.fileno(): each for each in (*self.media, self.player, self.publisher)}
        for fd in self.readers:
            self.poller.register(fd, select.EPOLLIN)
        self.seen = {"packets": 0, "tags": 0}

    def read(self, until: float) -> None:
        """Read all that comes until then."""
        while True:
            left = until - time.monotonic()
            for fd, _ in self.poller.poll(max(0.0, left)):
                reader = self.readers[fd]
                with suppress(BlockingIOError):
                    if isinstance(reader, Session):
                        self.seen["tags"] += len(reader.receive())
                    else:
                        while reader.recv(65536):
                            self.seen["packets"] += 1
            if left <= 0:
                return

    def send(self, turn: int, *, video: bool, spread: bool) -> tuple[int, int]:
        """Send what 20 ms have, each way; how many packets and tags that should make."""
        phone, begun = self.phone, time.monotonic()
        phone.sound.send(SOUND, turn * 160, not turn)
        self._publish(AUDIO, 20 * turn, b"\x82" + SOUND)
        if turn % 2 or not video:
            return 1, 1
        number = turn // 2
        is_key = number % GROUP == 0
        head = bytes((0x65, 0x88, 0x84)) if is_key else bytes((0x41, 0x9A, 0x38))
        unit = head + bytes([number % 250 + 1]) * ((KEY if is_key else INTER) - len(head))
        if not number:
            config = bytes(AvcConfig.of(SETS[:1], SETS[1:]))
            self._publish(VIDEO, 0, bytes.fromhex("1700000000") + config)
        first = bytes.fromhex("1701000000" if is_key else "2701000000")
        self._publish(VIDEO, 20 * turn, first + join_units([unit]))
        packets = pack_h264([*(SETS if is_key else []), unit], 1200)
        for place, (payload, marker) in enumerate(packets):
            if spread:
                self.read(begun + place * PICTURE / 2 / len(packets))
            phone.camera.send(payload, number * int(90_000 * PICTURE), marker)
        return 1 + len(packets), 2

    def _publish(self, kind: int, at: int, body: bytes) -> None:
        with suppress(BlockingIOError):
            self.publisher.socket.setblocking(True)
            self.publisher.socket.sendall(message(kind, at, self.stream, body))
            self.publisher.socket.setblocking(False)

    def close(self) -> None:
        """Close all sockets."""
        for each in (self.player, self.publisher, *self.media, self.phone.sip):
            each.close()


@contextmanager
def form(checkout: Path, pure: bool) -> Iterator[None]:
    """Programs that are started run this checkout, as Python or as it is compiled."""
    before = dict(os.environ)
    os.environ["PYTHONPATH"] = str(checkout / "src")
    os.environ.pop("SIPRTMP_PURE", None)
    if pure:
        os.environ["SIPRTMP_PURE"] = "1"
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def measure(gateway: Gateway, seconds: float, *, video: bool, spread: bool) -> float:
    """The CPU time of one call, in ms a second."""
    call = Call(gateway)
    meter, begun = gateway.meter(), time.monotonic()
    sent = made = 0
    for turn in range(int((WARM_UP + seconds) * 50)):
        call.read(begun + turn * 0.02)
        if turn == int(WARM_UP * 50):
            meter.restart()
        packets, tags = call.send(turn, video=video, spread=spread)
        sent, made = sent + packets, made + tags
    call.read(time.monotonic() + 0.02)
    usage = meter.read()
    call.read(time.monotonic() + 0.3)
    call.close()
    for name, wanted in (("packets", sent), ("tags", made)):
        if call.seen[name] < wanted * (1 - MARGIN):
            print(f"VOID: {call.seen[name]} {name} of {wanted}", file=sys.stderr)
    return 1000 * usage.share


def main() -> None:
    """Measure in turns, and print the medians and their ratios to the first column."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--before", type=Path, action="append", default=[], metavar="CHECKOUT")
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--profile", default="", metavar="FILE", help="cProfile of the last run")
    parser.add_argument("--record", default="", metavar="FILE", help="`perf record` of the last")
    given = parser.parse_args()
    core, load = two_cores()
    os.sched_setaffinity(0, {load})
    forms = [(checkout, pure) for checkout in (*given.before, HERE) for pure in (True, False)]
    rows = {"sound": (False, False), "pictures": (True, False), "pictures, spread": (True, True)}
    print(f"{'ms of CPU a second':20}", *(
        f"{checkout.name + (' Python' if pure else ' compiled'):>18}" for checkout, pure in forms
    ))  # fmt: skip
    for title, (video, spread) in rows.items():
        found: list[list[float]] = [[] for _ in forms]
        for _ in range(given.runs):
            for column, (checkout, pure) in zip(found, forms, strict=True):
                with form(checkout, pure), Gateway(core, profile=given.profile) as gateway:
                    column.append(measure(gateway, given.seconds, video=video, spread=spread))
        medians = [statistics.median(column) for column in found]
        cells = (f"{each:10.1f} ({each / medians[0]:4.2f})" for each in medians)
        print(f"{title:20}", *(f"{cell:>18}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()

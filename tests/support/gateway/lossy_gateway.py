"""A gateway whose network loses one in twenty of the RTP packets that it sends."""

import random
import sys

from p2psip.net.media.rtp_ports import MediaPort
from siprtmp.__main__ import main

LOSS = 0.05


def lose() -> None:
    """Let every port of this process lose packets, by the same draws each time."""
    send, draw = MediaPort.send_rtp, random.Random(12)

    def send_most(port: MediaPort, data: bytes) -> None:
        if draw.random() >= LOSS:
            send(port, data)

    MediaPort.send_rtp = send_most  # type: ignore[method-assign]


if __name__ == "__main__":  # never in a process that runs tests, which import all modules
    lose()
    sys.exit(main())

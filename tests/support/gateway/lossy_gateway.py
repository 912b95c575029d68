"""A gateway whose network loses one in twenty of the RTP packets that it sends."""

import random
import sys

from p2psip.net.rtp_ports import MediaPort
from siprtmp.__main__ import main

LOSS = 0.05

_send, _draw = MediaPort.send_rtp, random.Random(12)


def _send_most(port: MediaPort, data: bytes) -> None:
    if _draw.random() >= LOSS:
        _send(port, data)


MediaPort.send_rtp = _send_most  # type: ignore[method-assign]

if __name__ == "__main__":
    sys.exit(main())

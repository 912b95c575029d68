"""When a datagram arrived does not depend on when this process finds the time to read it."""

import time
from types import SimpleNamespace

import gevent
from gevent import socket
from support.limits import patience

from rtclab.conform.rtp import peer


def test_a_process_that_stands_still_makes_nothing_late():
    listener, sender = peer._pair(socket.AF_INET)
    heard = SimpleNamespace(heard=[])
    reading = gevent.spawn(peer._receive, listener, heard, False)

    def late():
        """By how much a datagram is that nobody reads for 0.5 s."""
        sender.sendto(b"\x80\x00" + bytes(20), ("127.0.0.1", listener.getsockname()[1]))
        sent = time.monotonic()
        while time.monotonic() < sent + 0.5:
            pass
        while not heard.heard:
            gevent.sleep(0.005)
        return heard.heard.pop().time - sent

    with patience(20):
        while late() > 0.4:
            pass  # Linux begins to note times a moment after the first socket asks for them
    assert late() < 0.4
    reading.kill()
    listener.close()
    sender.close()

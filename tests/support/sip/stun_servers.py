"""A STUN server that plays a router too: it says what address a port has outside."""

import socket
import threading

from p2psip.nat.stun import BINDING, StunClass, StunMessage, StunType, write_address

OUTSIDE = "203.0.113.7"  # of TEST-NET-3, which leads nowhere
SHIFT = 1000  # what the router adds to a port, or takes from it


def outside(port):
    """The port that the router gives to a port of ours."""
    return port + SHIFT if port < 60_000 else port - SHIFT


class StunServer:
    """Answers Binding requests at `address`, while `host` is set, with that host and `outside`.

    It has a thread of its own, so that it answers while a test waits for another process.
    """

    def __init__(self, host=OUTSIDE):
        self.host, self.asked = host, []
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.address = self._socket.getsockname()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        while True:
            data, source = self._socket.recvfrom(2048)
            if not data:
                return
            self.asked.append(source)
            if self.host is not None:
                self._socket.sendto(self._answer(StunMessage.parse(data), source), source)

    def _answer(self, request, source):
        assert (request.kind, request.method) == (StunClass.REQUEST, BINDING)
        seen = write_address((self.host, outside(source[1])), request.transaction_id)
        listed = [(StunType.XOR_MAPPED_ADDRESS, seen)]
        return StunMessage.write(StunClass.SUCCESS, BINDING, request.transaction_id, listed).data

    def close(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
            end.sendto(b"", self.address)
        self._thread.join()
        self._socket.close()

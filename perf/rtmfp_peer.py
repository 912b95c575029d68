"""One end of an RTMFP session that does nothing but send, or receive, as fast as it can.

    python perf/rtmfp_peer.py receive COUNTS PROTECTION
    python perf/rtmfp_peer.py send COUNTS PROTECTION HOST:PORT BYTES

The receiver says `ready HOST:PORT`, the sender `ready` when the session is open. Then the receiver
keeps in the file COUNTS how many messages and bytes it has had, and how many were not the next one:
on a reliable flow there are none. PROTECTION is `checksum`, or `hmac` for that with numbers.
"""

import mmap
import os
import signal
import sys
from struct import Struct

import gevent
from gevent.event import Event

from rtmplite.net.clock import now
from rtmplite.net.rtmfp_port import RtmfpPort
from rtmplite.rtmfp.crypto.epd import Epd
from rtmplite.rtmfp.crypto.flash_profile import FlashProfile
from rtmplite.rtmfp.crypto.keying import EAGER, Negotiation, Policy
from rtmplite.rtmfp.endpoint.endpoint_listener import EndpointListener
from rtmplite.rtmfp.endpoint.initiator import Opening
from rtmplite.rtmfp.session.recv_flow import FlowReceiver, RecvFlow
from rtmplite.rtmfp.session.send_flow import FlowSender, SendFlow
from rtmplite.rtmfp.session.session import Session, SessionListener

COUNTS = Struct("=QQQ")  # messages, bytes, and those that were not the next one
NEVER = Negotiation(False, False, False)
POLICIES = {
    "checksum": Policy(hmac=NEVER, sequence_numbers=NEVER),
    "hmac": Policy(hmac=EAGER, sequence_numbers=EAGER),
}
EPD = Epd(ancillary_data=b"rtmfp://127.0.0.1/").encode()
BACKLOG = 1 << 20  # bytes that the sender keeps queued


class Receiving(FlowReceiver):
    """Counts messages."""

    def __init__(self, counts: mmap.mmap) -> None:
        self._counts = counts
        self._messages = self._bytes = self._wrong = 0

    def on_message(self, flow: RecvFlow, message: bytes, now: float) -> None:
        """Count, and see that it is the next one."""
        self._wrong += int.from_bytes(message[:8]) != self._messages
        self._messages += 1
        self._bytes += len(message)
        COUNTS.pack_into(self._counts, 0, self._messages, self._bytes, self._wrong)


class Sending(FlowSender):
    """Sends messages that are numbered, as many as the flow takes."""

    def __init__(self, size: int) -> None:
        self._next, self._rest = 0, bytes(size - 8)

    def on_writable(self, flow: SendFlow, now: float) -> None:
        """Fill up what has gone."""
        while flow.queued < BACKLOG:
            flow.send(self._next.to_bytes(8) + self._rest, now)
            self._next += 1


class Receiver(EndpointListener, SessionListener):
    """Accepts all there is."""

    def __init__(self, counts: mmap.mmap) -> None:
        self._counts = counts

    def on_session(self, session: Session, opening: Opening | None, now: float) -> SessionListener:
        """Accept any session."""
        return self

    def on_flow(self, session: Session, flow: RecvFlow, now: float) -> FlowReceiver:
        """Accept any flow."""
        return Receiving(self._counts)


class Sender(EndpointListener, SessionListener):
    """Opens a flow in the session that it asked for."""

    def __init__(self, size: int) -> None:
        self._size = size

    def on_session(self, session: Session, opening: Opening | None, now: float) -> SessionListener:
        """Begin to send."""
        sending = Sending(self._size)
        sending.on_writable(session.open_flow(b"load", now, sender=sending), now)
        print("ready", flush=True)
        return self

    def on_open_failed(self, opening: Opening, reason: str, now: float) -> None:
        """End here."""
        sys.exit(reason)


def main(arguments: list[str]) -> None:
    """Run until SIGTERM."""
    role, path, protection, *rest = arguments
    ended = Event()
    gevent.signal_handler(signal.SIGTERM, ended.set)
    policy = POLICIES[protection]
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), COUNTS.size) as counts:
        if role == "receive":
            profile = FlashProfile.server(os.urandom, policy=policy)
            port = RtmfpPort("127.0.0.1", 0, profile, Receiver(counts))
            port.start()
            print(f"ready {port.address[0]}:{port.address[1]}", flush=True)
        else:
            profile = FlashProfile.client(os.urandom, groups=(2,), policy=policy)
            port = RtmfpPort("127.0.0.1", 0, profile, Sender(int(rest[1])))
            port.start()
            host, _, number = rest[0].rpartition(":")
            port.endpoint.connect(EPD, [(host, int(number))], now())
        ended.wait()
        port.close()


if __name__ == "__main__":
    main(sys.argv[1:])

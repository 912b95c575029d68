"""RTMFP players for load: whole machines, since every packet has to be opened and acknowledged."""

import os
import socket
import time
from collections import deque
from collections.abc import Callable
from struct import Struct

from rtmp_load import AUDIO, AUDIO_STAMP, TIMEOUT

from rtmplite.amf.values import Value
from rtmplite.rtmfp.crypto.epd import Epd
from rtmplite.rtmfp.crypto.flash_profile import FlashProfile
from rtmplite.rtmfp.endpoint.endpoint import Endpoint
from rtmplite.rtmfp.endpoint.endpoint_listener import EndpointListener
from rtmplite.rtmfp.endpoint.initiator import Opening
from rtmplite.rtmfp.netconnection.client import RtmfpClientConnection
from rtmplite.rtmfp.session.session import Session, SessionListener
from rtmplite.rtmp.client import Called, Event, Reply, Target
from rtmplite.rtmp.wire.message import Message

_QUAD = Struct("!Q")
_DATAGRAM = 2048


class RtmfpPlayer(EndpointListener):
    """Plays, on a port of its own, and says nothing but what the protocol wants."""

    def __init__(self, url: str, name: str) -> None:
        """`url` names server and application; `name` is what is played there."""
        target = Target.parse(url, stream=False)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(0.05)
        now = time.monotonic()
        profile = FlashProfile(os.urandom, groups=(2,), accepts_ancillary_data=False)
        self._machine = RtmfpClientConnection(target, now)
        self._endpoint = Endpoint(profile, os.urandom, now, listener=self)
        self._events: deque[Event] = deque()
        epd = Epd(ancillary_data=target.tc_url.encode()).encode()
        self._endpoint.connect(epd, [(target.host, target.port)], now)
        self._wait(lambda event: isinstance(event, Reply) and event.transaction_id == 1.0)
        self._play(name)
        self.socket.setblocking(False)

    def on_session(self, session: Session, opening: Opening | None, now: float) -> SessionListener:
        """The session with the server is open."""
        self._machine.transport.attach(session)
        return self._machine.transport.incoming

    def fileno(self) -> int:
        """The socket to watch."""
        return self.socket.fileno()

    def receive(self) -> list[int]:
        """The stamps of one datagram's frames."""
        self._take(*self.socket.recvfrom(_DATAGRAM))
        return [
            stamp
            for event in self._machine.events()
            if isinstance(event, Message) and event.type_id == AUDIO
            for stamp in _QUAD.unpack_from(event.payload, AUDIO_STAMP)
        ]

    def close(self) -> None:
        """End the session with a word, and close the socket."""
        self._endpoint.abort(time.monotonic())
        self._send(time.monotonic())
        self.socket.close()

    def _play(self, name: str) -> None:
        number = self._machine.call("createStream")
        reply = self._wait(
            lambda event: isinstance(event, Reply) and event.transaction_id == number
        )
        assert isinstance(reply, Reply) and isinstance(reply.values[-1], float), reply
        stream_id = int(reply.values[-1])
        self._machine.send("play", name, stream_id=stream_id)
        self._wait(
            lambda event: (
                isinstance(event, Called)
                and event.stream_id == stream_id
                and _code(event.command.args[0]) == "NetStream.Play.Start"
            )
        )

    def _wait(self, wanted: Callable[[Event], bool]) -> Event:
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end:
            self._send(time.monotonic())
            try:
                self._take(*self.socket.recvfrom(_DATAGRAM))
            except TimeoutError:
                self._endpoint.tick(time.monotonic())
            self._events += self._machine.events()
            while self._events:
                event = self._events.popleft()
                if wanted(event):
                    return event
        raise TimeoutError("the server does not answer")

    def _take(self, datagram: bytes, source: tuple[str, int]) -> None:
        now = time.monotonic()
        self._endpoint.receive(datagram, source, now)
        self._send(now)

    def _send(self, now: float) -> None:
        for job in self._endpoint.take_jobs():
            job.run()
            self._endpoint.finish(job, now)
        self._machine.transport.flush(now)
        for datagram, destination in self._endpoint.take(now):
            self.socket.sendto(datagram, destination)


def _code(information: Value) -> Value:
    return information.get("code") if isinstance(information, dict) else None

"""The flow of one browser: ICE, DTLS and SRTP on a UDP socket of its own.

Own design: a server tells browsers apart by where they send from, so each has a socket.  While it
connects it reads at once; later its datagrams come in the rounds of `datagrams`.
"""

import os
from contextlib import suppress
from typing import Final

import gevent
from gevent import socket
from gevent.event import Event

from p2psip.errors import RemoteError
from p2psip.nat.demultiplexing import DatagramKind, kind_of
from p2psip.nat.ice import IceAgent, IceState
from p2psip.nat.ice_candidate import HostPort, IceCandidate
from p2psip.nat.ice_connections import IceDatagram
from p2psip.nat.ice_credentials import IceCredentials
from p2psip.nat.stun import StunMessage
from p2psip.net.dtls import DtlsEnd, DtlsIdentity
from p2psip.sdp.jsep import BrowserAnswer, BrowserEnd
from p2psip.srtp.stream import SrtpStream
from p2psip.srtp.suites import AES_CM_128_HMAC_SHA1_80
from rtclab.load.clients.client import TIMEOUT
from rtclab.load.clients.datagrams import REST, Rounds, Take, opened
from rtclab.load.clients.line_count import HEAD
from rtmplite.net.clock import now

WINDOW: Final = 512  # packets that may come late


class BrowserFlow:
    """One flow, from the offer to the end; `own` is our address on the way to the server.

    `over` is set, and `reason` says why, when the other end has left; it did so itself if `told`.
    """

    def __init__(self, identity: DtlsIdentity, rounds: Rounds, own: str) -> None:
        self._identity, self._rounds = identity, rounds
        self.socket = opened(own)
        self._base = own, int(self.socket.getsockname()[1])
        self._ice = IceAgent(os.urandom, now(), controlling=True)
        self._ice.add_local(self._base)
        self._ice.gathered()
        self._dtls: DtlsEnd | None = None
        self._answer: BrowserAnswer | None = None
        self._to: HostPort | None = None
        self.srtp = SrtpStream(window=WINDOW)
        self.over, self.reason, self.told = Event(), "", False

    def end(self) -> BrowserEnd:
        """What our end says in descriptions."""
        ours = self._ice.ours
        fingerprint, at = self._identity.fingerprint, (self._base,)
        return BrowserEnd(
            ours.ufrag, ours.password, fingerprint, at, stream="rtclab", is_lite=False
        )

    def connect(self, answer: BrowserAnswer, take: Take) -> None:
        """Find the way and shake hands; RemoteError if that takes too long.

        `take` is given what comes from then on, and gives back what is no media by `control`.
        """
        self._answer = answer
        self._ice.begin(IceCredentials(answer.ufrag, answer.password), now())
        for value in answer.candidates:
            try:
                self._ice.add_remote(IceCandidate.parse(value))
            except RemoteError:
                continue  # of another kind
        until = now() + TIMEOUT
        while not self.srtp.is_on:
            self.tick()
            if self.over.is_set():
                raise RemoteError(self.reason, 480)
            if now() > until:
                what = "no way by ICE" if self._to is None else "no answer by DTLS"
                raise RemoteError(f"{what} within {TIMEOUT:.0f} s", 408)
            self._wait(min(until, self.deadline) - now())
        self._rounds.add(self.socket.fileno(), take)

    def _wait(self, seconds: float) -> None:
        """Read what comes within this time."""
        with suppress(TimeoutError):
            socket.wait_read(self.socket.fileno(), max(0.001, seconds))
        try:
            while not self.srtp.is_on:
                data, source = self.socket.recvfrom(HEAD + REST)
                self._control(data, source[:2])
        except BlockingIOError:
            pass
        except OSError:  # of an earlier datagram of ours, which nobody took
            gevent.sleep(0.01)

    def send_rtp(self, packet: bytes) -> None:
        """Protect and send a packet."""
        self._send(self.srtp.protect_rtp(packet))

    def send_rtcp(self, compound: bytes) -> None:
        """Protect and send a compound."""
        self._send(self.srtp.protect_rtcp(compound))

    @property
    def deadline(self) -> float:
        """When to call `tick`."""
        times = [now() + TIMEOUT, self._ice.deadline]
        times += [self._dtls.deadline] if self._dtls is not None else []
        return min(each for each in times if each is not None)

    def tick(self) -> None:
        """Send what is due, and notice who is gone."""
        at = now()
        self._post(self._ice.tick(at))
        if self._dtls is not None:
            for data in self._dtls.tick(at):
                self._send(data)
        self._follow()

    def close(self) -> None:
        """Say goodbye."""
        self._rounds.remove(self.socket.fileno())
        if self._dtls is not None and not self.over.is_set():
            for data in self._dtls.close():
                self._send(data)
        self.socket.close()

    # -- what comes ---------------------------------------------------------------------

    def control(self, data: bytes) -> None:
        """Take what has come from the server and is no media."""
        if self._to is not None:
            self._control(data, self._to)

    def _control(self, data: bytes, source: HostPort) -> None:
        """Take what is about the way: STUN and DTLS."""
        kind = kind_of(data)
        if kind is DatagramKind.STUN:
            try:
                message = StunMessage.parse(data)
            except RemoteError:
                return
            self._post(self._ice.received(message, self._base, source, now()))
        elif kind is DatagramKind.DTLS and self._dtls is not None:
            for each in self._dtls.received(data, now()):
                self._send(each)
        self._follow()

    def _follow(self) -> None:
        """Do what follows from the state of ICE, then of DTLS."""
        if self._ice.state is IceState.FAILED and not self.over.is_set():
            used = self._to is not None
            self._end("no answer by ICE for 30 s" if used else "no way by ICE", told=False)
        if self._ice.selected is not None and self._to is None:
            self._begin_dtls(self._ice.selected.remote.address)
        dtls = self._dtls
        if dtls is None or self.over.is_set():
            return
        if dtls.failed:
            self._end(f"DTLS: {dtls.failed}", told=True)
        elif dtls.closed:
            self._end("ended by the server", told=True)
        elif dtls.keys is not None and not self.srtp.is_on:
            self.srtp.use(AES_CM_128_HMAC_SHA1_80, dtls.keys.ours, dtls.keys.theirs)

    def _begin_dtls(self, remote: HostPort) -> None:
        assert self._answer is not None
        self._to = remote
        self.socket.connect(remote)  # from here on, nothing comes from elsewhere
        is_client = not self._answer.is_active
        self._dtls = DtlsEnd(self._identity, self._answer.fingerprint, is_client=is_client)
        for data in self._dtls.begin(now()) if is_client else ():
            self._send(data)

    def _end(self, reason: str, *, told: bool) -> None:
        self.reason, self.told = reason, told
        self.over.set()

    # -- what leaves --------------------------------------------------------------------

    def _post(self, datagrams: list[IceDatagram]) -> None:
        for data, _, to in datagrams:
            try:
                if self._to is None:
                    self.socket.sendto(data, to)
                elif to == self._to:
                    self.socket.send(data)
            except OSError:
                continue  # nobody is there, or there is no way; ICE asks again

    def _send(self, data: bytes) -> None:
        try:
            self.socket.send(data)
        except OSError:
            return  # it is lost, as others are

"""Strangers who speak RTMFP as far as it costs: many hosts that begin sessions, by UDP."""

import os
import socket
import time
from contextlib import suppress

from rtmplite.errors import RemoteError
from rtmplite.rtmfp.crypto.epd import Epd
from rtmplite.rtmfp.crypto.flash_profile import FlashProfile
from rtmplite.rtmfp.wire.packet import Mode, Packet, scramble, unscramble
from rtmplite.rtmfp.wire.startup_chunks import (
    InitiatorHello,
    InitiatorInitialKeying,
    ResponderHello,
    ResponderInitialKeying,
)

GROUP = 2  # 1024 bits, as Flash Player has them


class KeyingFlood:
    """Asks for cookies from many hosts, and sends an IIKeying with each: RFC 7016 §3.5.1.1.1.

    All have one key, so that an attacker computes nothing; each opens a session here, which nobody
    uses.  `keyed` counts the sessions.
    """

    def __init__(self, server, hosts=100):
        host, _, port = server.rtmfp.rpartition(":")
        self.server, self.keyed, self.asked = (host, int(port)), 0, 0
        self.epd = Epd(ancillary_data=f"rtmfp://{server.rtmfp}/live".encode()).encode()
        self.profile = FlashProfile.client(os.urandom, groups=(GROUP,))
        self.cipher, self.component = self.profile.default_cipher(), b""
        self.hosts = [f"127.2.0.{number + 1}" for number in range(hosts)]
        self.sockets = []

    def go_on(self, seconds):
        """Flood for so long, each keying from a port of its own."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for host in self.hosts:
                asker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                asker.bind((host, 0))
                asker.setblocking(False)
                self.sockets.append(asker)
                self._send(asker, InitiatorHello(self.epd, os.urandom(16)))
            time.sleep(0.02)
            for asker in self.sockets[-4 * len(self.hosts) :]:
                self._answer(asker)
            while len(self.sockets) > 4 * len(self.hosts):
                self.sockets.pop(0).close()

    def close(self):
        """Close all sockets."""
        for asker in self.sockets:
            asker.close()

    def _send(self, asker, chunk):
        packet = Packet(Mode.STARTUP, (chunk,)).encode()
        with suppress(OSError):
            asker.sendto(scramble(0, self.cipher.seal(packet)), self.server)

    def _answer(self, asker):
        while True:
            try:
                data = asker.recv(2048)
            except OSError:
                return
            with suppress(RemoteError):
                _, sealed = unscramble(data)
                for chunk in Packet.parse(self.cipher.open(sealed)).chunks:
                    self._heed(asker, chunk)

    def _heed(self, asker, chunk):
        if isinstance(chunk, ResponderHello):
            if not self.component:
                self.component = self.profile.initiate(chunk.responder_certificate).component
            self.asked += 1
            keying = InitiatorInitialKeying(
                self.asked, chunk.cookie, self.profile.certificate, self.component, b"X"
            )
            self._send(asker, keying)
        elif isinstance(chunk, ResponderInitialKeying):
            self.keyed += 1

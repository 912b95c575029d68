"""Callers of any loopback address, whose descriptions name whatever address they like."""

import re
import struct

import gevent
from gevent import socket
from support.attacks.hostile_sip import SipAttacker, sdp
from support.peers.process import PATIENCE

from rtmplite.net.client.rtmp_client import RtmpClient

AUDIO = 8
SOUND = b"\x82" + b"s" * 160  # 20 ms of G.711
OUTER_OCTETS = 28  # IPv4 and UDP around each datagram


class Ear:
    """A UDP socket on an address of its own that counts what comes."""

    def __init__(self, ip, port=0):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((ip, port))
        self.ip, self.port = self.socket.getsockname()
        self.heard = []

    def count(self):
        """Datagrams so far."""
        self.socket.setblocking(False)
        while True:
            try:
                self.heard.append(self.socket.recv(4096))
            except BlockingIOError:
                return len(self.heard)

    def say(self, sequence, where, payload=b"p" * 160, ssrc=7):
        """One packet of G.711."""
        head = struct.pack(">BBHII", 0x80, 0, sequence & 0xFFFF, sequence * 160, ssrc)
        self.socket.sendto(head + payload, where)

    def close(self):
        """No more."""
        self.socket.close()


class Stranger(SipAttacker):
    """Calls a name from `ip`, and says that it listens at `media`, an `Ear`."""

    def __init__(self, server, name, ip, media):
        super().__init__(server)
        self.socket.close()
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((ip, 0))
        self.ip, self.port = self.socket.getsockname()
        self.user, self.tag, self.cseq = f"sip:{name}@127.0.0.1", "", 0
        self.media, self.where = media, None
        self.packets = self.octets = 0
        self.answers = []

    def send(self, data):
        """Send and count."""
        self.packets, self.octets = self.packets + 1, self.octets + len(data) + OUTER_OCTETS
        super().send(data)

    def heard(self, seconds=PATIENCE):
        """The next message, or None; all are kept in `answers`."""
        message = super().heard(seconds)
        self.answers += [message] if message else []
        return message

    def everything(self):
        """All that has come, up to the answer to a last question, which does not count."""
        super().send(self.within("OPTIONS"))
        while not ((answer := self.heard()).startswith(b"SIP/2.0") and b" OPTIONS\r\n" in answer):
            continue
        return self.answers[:-1]

    def asked(self, seconds=PATIENCE):
        """The next request, or None; a 200 may come again before its ACK has arrived."""
        while (message := self.heard(seconds)) and message.startswith(b"SIP/2.0 200"):
            continue
        return message

    def within(self, method, *, media=None, **fields):
        """A request of the dialog; one that begins a session offers `media`."""
        if method != "ACK":
            self.cseq += 1
        to = f"<{self.user}>" + (f";tag={self.tag}" if self.tag else "")
        branch = f"z9hG4bK{self.port}{method}{self.cseq}"
        fixed = {
            "Via": f"SIP/2.0/UDP {self.ip}:{self.port};branch={branch}",
            "From": f"<sip:mallory@evil.invalid>;tag={self.port}",
            "To": to,
            "Call_ID": f"media-{self.port}",
            "CSeq": f"{self.cseq} {method}",
            "Contact": f"<sip:mallory@{self.ip}:{self.port}>",
        }
        if media is not None:
            fixed["body"] = sdp(f"m=audio {media.port} RTP/AVP 0\r\n", media.ip)
        return self.request(method, self.user, **fixed | fields)

    def invite(self, media=None):
        """Offer, and take the 200; the ACK is another matter."""
        self.send(self.within("INVITE", media=media or self.media))
        mine = f"\r\nCSeq: {self.cseq} INVITE\r\n".encode()
        while not (answer := self.heard()).startswith(b"SIP/2.0 200") or mine not in answer:
            assert answer[8:9] == b"1" or mine not in answer, answer
        self.tag = re.search(rb"\r\nTo: [^\r]*tag=([^\r;]*)", answer)[1].decode()
        self.where = ("127.0.0.1", int(re.search(rb"m=audio (\d+)", answer)[1]))

    def ack(self):
        """Acknowledge the last 200."""
        self.send(self.within("ACK"))

    def answer(self, request, status="200 OK"):
        """Answer a request within the dialog."""
        lines = request.decode().partition("\r\n\r\n")[0].split("\r\n")[1:]
        kept = [line for line in lines if line.startswith(("Via", "From", "To", "Call-ID", "CSeq"))]
        head = "\r\n".join([f"SIP/2.0 {status}", *kept, "Content-Length: 0"])
        self.send(f"{head}\r\n\r\n".encode())


class Tool:
    """A stock tool that publishes sound to a name without end, and plays what comes back."""

    def __init__(self, server, name, *, wait=True):
        """`wait` until it may publish: a name that is dialled has to be answered first."""
        self.publisher = RtmpClient.connect(server.url("call"))
        self.player = RtmpClient.connect(server.url("call"))
        self.heard, self.said, self._name = [], 0, name
        self._greenlets = [gevent.spawn(self._hear, self.player.create_stream())]
        stream = self.publisher.create_stream()
        if wait:
            stream.publish(name)
        self._greenlets.append(gevent.spawn(self._talk, stream, wait))

    def _talk(self, stream, is_published):
        if not is_published:
            stream.publish(self._name)
        while True:
            stream.write(AUDIO, 20 * self.said, SOUND)
            self.said += 1
            gevent.sleep(0.02)

    def _hear(self, stream):
        stream.play(self._name)
        while (message := stream.read(timeout=60)) is not None:
            if message.type_id == AUDIO:
                self.heard.append(message.payload[1:])

    def close(self):
        """Unpublish."""
        gevent.killall(self._greenlets)
        self.publisher.close()
        self.player.close()

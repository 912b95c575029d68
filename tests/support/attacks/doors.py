"""Attackers who come by a connection: TCP, TLS or WebSocket."""

import re
from collections import deque
from contextlib import suppress
from functools import cache

from gevent import socket
from support.attacks.hostile_sip import SipAttacker
from support.peers.process import PATIENCE
from wsproto import ConnectionType, WSConnection
from wsproto.connection import ConnectionState
from wsproto.events import BytesMessage, Message, Request

from p2psip.net.tls import Tls, client_context


class StreamAttacker(SipAttacker):
    """An attacker with one connection, made by the first that its server has for `transport`."""

    def __init__(self, server, host="127.0.0.1"):
        self.place, self.messages = server.place(self.transport), deque()
        super().__init__(server, host)

    def connected(self, host):
        """A connection to the server, ready for messages."""
        opened = socket.create_connection(self.place, PATIENCE, source_address=(host, 0))
        opened.sendall(self.greeting())
        return opened

    def send(self, data):
        """Send a message, or as much of it as the server lets in."""
        with suppress(ConnectionError):
            self.socket.sendall(self.wrapped(data))

    def heard(self, seconds=PATIENCE):
        """The next message; None if there is none in time, or the server hangs up."""
        self.socket.settimeout(seconds)
        while not self.messages:
            try:
                data = self.socket.recv(65536)
            except (TimeoutError, ConnectionError):
                return None
            if not data:
                return None
            self.messages += self.unwrapped(data)
            if answer := self.wrapped(b""):
                self.socket.sendall(answer)
        return self.messages.popleft()


@cache
def context():
    """The settings of all attackers by TLS: to make some takes longer than a handshake."""
    return client_context(insecure=True)


class TcpAttacker(StreamAttacker):
    """The same by TCP."""

    transport = "TCP"
    received = b""

    def greeting(self):
        """Nothing: the first message is all that is to be said."""
        return b""

    def wrapped(self, data):
        """A message as it is."""
        return data

    def unwrapped(self, data):
        """The messages that are whole now."""
        self.received += data
        while b"\r\n\r\n" in self.received:
            head, end, rest = self.received.partition(b"\r\n\r\n")
            size = int(re.search(rb"\r\nContent-Length: *(\d+)", head)[1])
            if len(rest) < size:
                return
            self.received = rest[size:]
            yield head + end + rest[:size]


class TlsAttacker(TcpAttacker):
    """The same by TLS, of whoever has the certificate."""

    transport = "TLS"

    def greeting(self):
        """The first octets of a handshake."""
        self.tls = Tls(context(), "localhost")
        return self.tls.take_output()

    def connected(self, host):
        """A connection whose handshake is over."""
        opened = super().connected(host)
        while not self.tls.is_ready:
            self.messages += self.unwrapped(opened.recv(65536))
            opened.sendall(self.tls.take_output())
        return opened

    def wrapped(self, data):
        """A message in records, or what the handshake wants to say."""
        if data:
            self.tls.send(data)
        return self.tls.take_output()

    def unwrapped(self, data):
        """The messages that are whole now."""
        yield from super().unwrapped(self.tls.receive(data))


class WsAttacker(StreamAttacker):
    """The same by WebSocket, as a web page is."""

    transport = "WS"

    def greeting(self):
        """The HTTP request."""
        self.web = WSConnection(ConnectionType.CLIENT)
        return self.web.send(Request(host="localhost", target="/", subprotocols=["sip"]))

    def connected(self, host):
        """A connection on which the server has agreed to speak SIP."""
        opened = super().connected(host)
        while self.web.state is ConnectionState.CONNECTING:
            self.messages += self.unwrapped(opened.recv(65536))
        return opened

    def wrapped(self, data):
        """A message in a frame."""
        return self.web.send(BytesMessage(data=data)) if data else b""

    def unwrapped(self, data):
        """The messages that are whole now."""
        self.web.receive_data(data)
        for event in self.web.events():
            if isinstance(event, Message):
                piece = event.data
                yield piece.encode() if isinstance(piece, str) else bytes(piece)


DOORS = {each.transport: each for each in (SipAttacker, TcpAttacker, TlsAttacker, WsAttacker)}


def by(door, kind):
    """`kind`, a class of attackers by UDP, as one of those who come by that door."""
    base = DOORS[door]
    return base if kind is SipAttacker else type(kind.__name__, (kind, base), {})

"""Attackers who come by TLS or by WebSocket, to a phone that listens for both."""

import re
from collections import deque

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
        """Send a message."""
        self.socket.sendall(self.wrapped(data))

    def heard(self, seconds=PATIENCE):
        """The next message, or None."""
        self.socket.settimeout(seconds)
        while not self.messages:
            try:
                data = self.socket.recv(65536)
            except TimeoutError:
                return None
            if not data:
                return None
            self.messages += self.unwrapped(data)
            if answer := self.wrapped(b""):
                self.socket.sendall(answer)
        return self.messages.popleft()


class TlsAttacker(StreamAttacker):
    """The same by TLS, of whoever has the certificate."""

    transport = "TLS"

    def greeting(self):
        """The first octets of a handshake."""
        self.tls, self.received = Tls(client_context(insecure=True), "localhost"), b""
        return self.tls.take_output()

    def wrapped(self, data):
        """A message in records, or what the handshake wants to say."""
        if data:
            self.tls.send(data)
        return self.tls.take_output()

    def unwrapped(self, data):
        """The messages that are whole now."""
        self.received += self.tls.receive(data)
        while b"\r\n\r\n" in self.received:
            head, end, rest = self.received.partition(b"\r\n\r\n")
            size = int(re.search(rb"\r\nContent-Length: *(\d+)", head)[1])
            if len(rest) < size:
                return
            self.received = rest[size:]
            yield head + end + rest[:size]


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


DOORS = {each.transport: each for each in (SipAttacker, TlsAttacker, WsAttacker)}

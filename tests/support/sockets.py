"""A SIP element on real loopback sockets, and plain clients to ill-treat it."""

import os
import select

import gevent
from gevent import socket
from support.limits import Clock
from support.sip.cores import TakesAll

from p2psip.net.driver import SipDriver, SipPorts
from p2psip.stack.stack import Stack

LOOPBACK = "127.0.0.1"
PATIENCE = 20.0  # s for what takes a millisecond where somebody has a core to itself


class Echo(TakesAll):
    """An element that answers every request with 200 and remembers its method.

    With `tls` it has a port for that as well, `secure`, and with `ws` one for WebSocket, `web`.
    """

    def __init__(self, host=LOOPBACK, t1=0.5, also=(), *, ws=False, **options):
        self.heard, self.acks, self.flows = [], [], []
        sips = [(host, 0)] if "tls" in options else []
        ports = SipPorts(host, 0, also=also, sips=sips, ws=[(host, 0)] if ws else [])
        self.stack = Stack(random=os.urandom, t1=t1, listeners=ports.listeners)
        self.stack.core = self
        self.driver = SipDriver(self.stack, ports, **options)
        places = {each.transport: (each.host, each.port) for each in ports.listeners}
        self.address, self.secure = self.driver.address, places.get("TLS")
        self.web = places.get("WS")

    def on_request(self, server, request, now):
        self.heard.append(request.method)
        self.flows.append(server.flow)
        server.reply(200, now)

    def on_ack(self, request, flow, now):
        self.acks.append(request)


def options_request(branch="1", transport="UDP", host=LOOPBACK, body=b"", via=True):
    """An OPTIONS request as bytes."""
    top = f"Via: SIP/2.0/{transport} {host};rport;branch=z9hG4bK{branch}\r\n" if via else ""
    return (
        f"OPTIONS sip:x@{host} SIP/2.0\r\n{top}From: <sip:a@b>;tag=1\r\nTo: <sip:x@b>\r\n"
        f"Call-ID: {branch}\r\nCSeq: 1 OPTIONS\r\nMax-Forwards: 70\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body


class UdpClient:
    """A plain UDP socket: `ask` sends and returns the reply, or b"" for silence."""

    def __init__(self, address):
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_DGRAM)
        self.socket.connect(address)

    def ask(self, data, timeout=PATIENCE):
        self.socket.send(data)
        return self.read(timeout)

    def read(self, timeout=PATIENCE):
        self.socket.settimeout(timeout)
        try:
            return self.socket.recv(65536)
        except TimeoutError:
            return b""


class TcpClient(UdpClient):
    """The same by TCP, where b"" also means that the other side has closed.

    `room` is for how many bytes it has a buffer. A window that was once offered cannot be taken
    back: a system that gets a reset from beyond it takes no notice, so this is set at the start.
    """

    def __init__(self, address, source="", room=0):
        self.socket = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
        if room:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        if source:
            self.socket.bind((source, 0))
        self.socket.settimeout(PATIENCE)
        self.socket.connect(address)


def until(condition, timeout=PATIENCE):
    """Let the loop run until `condition()`; whether it came true while somebody had a core."""
    clock = Clock()
    while not condition():
        if clock.over(timeout):
            return False
        gevent.sleep(0.005)
    return True


def readable(*sockets):
    """Let the loop run until there is something to read on each of these; whether there is."""
    return all(until(lambda each=each: select.select([each], [], [], 0)[0]) for each in sockets)


def is_closed(connected):
    """Whether the other end of a socket that does not block has closed it."""
    try:
        return connected.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True

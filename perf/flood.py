"""`python perf/flood.py KIND HOST:PORT RATE SECONDS`: strangers who ask too much, from many hosts.

Each kind is a list of messages, a storm of connections, or one connection that says too much. They
leave in small batches on a clock, from addresses 127.1.0.1 and up, as if from hosts of their own;
answers are read, counted and otherwise ignored. It prints `ready`, and at the end how many were
sent and answered.
"""

import itertools
import os
import select
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress

HOSTS = 20
BATCH = 0.005  # seconds
HELD = 1500  # connections that a storm keeps open at a time
STREAMS = ("crlf", "stream", "pings", "rtmp", "get")
HANDSHAKE = (  # of a WebSocket: RFC 6455 §1.3
    b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Protocol: sip\r\n\r\n"
)
PING = bytes.fromhex("02 000000 000006 04 00000000 0006 00000001")  # of RTMP, in a whole chunk
DIGEST = 'Authorization: Digest username="alice", realm="{realm}", nonce="{nonce}", uri="{uri}", '
SDP = (
    "v=0\r\no=- 1 1 IN IP4 {host}\r\ns=-\r\nc=IN IP4 {host}\r\nt=0 0\r\n"
    "m=audio 40000 RTP/AVP 0 8\r\na=sendrecv\r\n"
)
Address = tuple[str, int]


def request(
    method: str,
    host: str,
    port: int,
    number: int,
    target: str,
    *,
    frm: str = "<sip:mallory@evil.invalid>",
    to: str = "",
    extra: str = "",
    body: str = "",
) -> bytes:
    """One request as a stranger would write it; `extra` are whole header lines."""
    return (
        f"{method} {target} SIP/2.0\r\n"
        f"Via: SIP/2.0/UDP {host}:{port};branch=z9hG4bK{number:x}.{port}.{host};rport\r\n"
        f"Max-Forwards: 70\r\nFrom: {frm};tag={number:x}\r\nTo: {to or f'<{target}>'}\r\n"
        f"Call-ID: {number:x}-{port}@{host}\r\nCSeq: 1 {method}\r\n"
        f"Contact: <sip:mallory@{host}:{port}>\r\n{extra}"
        f"{'Content-Type: application/sdp' + chr(13) + chr(10) if body else ''}"
        f"Content-Length: {len(body)}\r\n\r\n{body}"
    ).encode()


def options(host: str, port: int, number: int, home: str) -> bytes:
    """Who are you, again and again."""
    return request("OPTIONS", host, port, number, f"sip:{home}")


def invite(host: str, port: int, number: int, home: str) -> bytes:
    """Calls for a user who is not there; the refusals are never acknowledged."""
    target = f"sip:alice@{home}"
    return request("INVITE", host, port, number, target, body=SDP.format(host=host))


def register(host: str, port: int, number: int, home: str) -> bytes:
    """Registrations without a password."""
    who = f"<sip:alice@{home.partition(':')[0]}>"
    return request("REGISTER", host, port, number, f"sip:{home}", frm=who, to=who)


def bye(host: str, port: int, number: int, home: str) -> bytes:
    """Ends of dialogs that never were."""
    target = f"sip:alice@{home}"
    return request("BYE", host, port, number, target, to=f"<{target}>;tag=guess{number}")


def garbage(host: str, port: int, number: int, home: str) -> bytes:
    """Datagrams that say nothing, a third of them behind a good start."""
    noise = os.urandom(400)
    return options(host, port, number, home)[:120] + noise if number % 3 == 0 else noise


def slow(host: str, port: int, number: int, home: str) -> bytes:
    """Messages that take long to read: full to the brim, or full of what is laborious."""
    target = f"sip:alice@{home}"
    match number % 6:
        case 0:
            target = f"sip:{'%61' * 18000}@{home}"
            return request("INVITE", host, port, number, target, to="<sip:a>")
        case 1:
            return request("INVITE", host, port, number, target, frm='"' + "\\a" * 27000)
        case 2:
            ways = "Via: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK1\r\n" * 1200
            return request("INVITE", host, port, number, target, extra=ways)
        case 3:
            ways = "Record-Route: <sip:192.0.2.1;lr>\r\nRoute: <sip:192.0.2.1;lr>\r\n" * 70
            return request("INVITE", host, port, number, target, extra=ways)
        case 4:
            return request(
                "OPTIONS", host, port, number, target, frm='"' + "\\a" * 700 + '" <sip:a>'
            )
    body = SDP.format(host=host)
    return request("INVITE", host, port, number, target, body=body + "a=rtpmap:97 x/1\r\n" * 3000)


class Guesser:
    """Wrong passwords for a user that exists, with a nonce that was given for asking."""

    def __init__(self, home: str) -> None:
        self.line = ""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
            asker.bind(("127.1.0.200", 0))
            asker.settimeout(2.0)
            asker.sendto(register(*asker.getsockname(), 0, home), address(home))
            answer = asker.recv(65536).decode()
        found = {}
        for line in answer.split("\r\n"):
            if line.startswith("WWW-Authenticate: Digest") and "MD5" in line:
                found = dict(part.strip().split("=", 1) for part in line[25:].split(","))
        values = {name: text.strip('"') for name, text in found.items()}
        self.line = DIGEST.format(uri=f"sip:{home}", **{k: values[k] for k in ("realm", "nonce")})

    def __call__(self, host: str, port: int, number: int, home: str) -> bytes:
        """One guess."""
        who = f"<sip:alice@{home.partition(':')[0]}>"
        proof = f'response="{number:032x}", algorithm=MD5, qop=auth, nc={number:08x}, cnonce="a"'
        return request(
            "REGISTER",
            host,
            port,
            number,
            f"sip:{home}",
            frm=who,
            to=who,
            extra=f"{self.line}{proof}\r\n",
        )


def address(text: str) -> Address:
    """HOST:PORT in two."""
    host, _, port = text.rpartition(":")
    return host, int(port)


def ticks(rate: float, seconds: float) -> Iterator[int]:
    """How many to send now, every few milliseconds; what was missed is not made up for long."""
    start, sent = time.monotonic(), 0
    for turn in itertools.count(1):
        if turn * BATCH > seconds:
            return
        if (left := start + turn * BATCH - time.monotonic()) > 0:
            time.sleep(left)
        due = int(turn * BATCH * rate)
        yield min(due - sent, 10 * max(1, int(BATCH * rate)))
        sent = due


def datagrams(make: Callable[[str, int, int, str], bytes], home: str, rate: float, seconds: float):
    """Send requests from all hosts in turn; returns how many were sent and answered."""
    target = address(home)
    sockets = []
    for number in range(HOSTS):
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        one.bind((f"127.1.0.{number + 1}", 0))
        one.setblocking(False)
        sockets.append(one)
    names = [one.getsockname() for one in sockets]
    poller = select.epoll()
    for one in sockets:
        poller.register(one, select.EPOLLIN)
    by_fd = {one.fileno(): one for one in sockets}
    print("ready", flush=True)
    sent = answered = 0
    for count in ticks(rate, seconds):
        for _ in range(count):
            number = sent % HOSTS
            with suppress(BlockingIOError):
                sockets[number].sendto(make(*names[number], sent, home), target)
            sent += 1
        for fd, _ in poller.poll(0):
            for _ in range(64):
                try:
                    by_fd[fd].recv(2048)
                except BlockingIOError:
                    break
                answered += 1
    return sent, answered


def connections(first: bytes, home: str, rate: float, seconds: float) -> tuple[int, int]:
    """Connect, say half of something, and wait; the oldest ones are given up for new ones."""
    target, held = address(home), deque[socket.socket]()
    print("ready", flush=True)
    sent = refused = 0
    for count in ticks(rate, seconds):
        for _ in range(count):
            one = socket.socket()
            one.setblocking(False)
            try:
                one.bind((f"127.1.{sent // 200 % 50}.{sent % HOSTS + 1}", 0))
                one.connect(target)
            except BlockingIOError:
                pass
            except OSError:
                refused += 1
            held.append(one)
            sent += 1
        for one in itertools.islice(held, max(0, len(held) - 2 * count), None):
            with suppress(OSError):
                one.send(first)
        while len(held) > HELD:
            held.popleft().close()
    return sent, sent - refused


class Stream:
    """One connection that sends the same piece again and again; a new one when it is closed.

    `answer` is what each answer has in it; without one nothing is ever read.
    """

    def __init__(self, home: str, piece: bytes, answer: bytes = b"", hello: bytes = b"") -> None:
        self.target, self.piece, self.answer, self.hello = address(home), piece, answer, hello
        self.sent = self.answered = 0
        self.left = b""
        self.socket = self.opened()

    def opened(self) -> socket.socket:
        """A connection, with its handshake if it needs one."""
        one = socket.create_connection(self.target, 5.0, source_address=("127.1.0.1", 0))
        if self.hello:
            one.sendall(self.hello)
            one.recv(65536)
        one.setblocking(False)
        return one

    def turn(self, count: int) -> None:
        """Send `count` pieces, or what the connection takes of them; read the answers."""
        if not self.left:
            self.left = self.piece * count
            self.sent += count
        try:
            self.left = self.left[self.socket.send(self.left) :]
            if self.answer:
                self.answered += self.socket.recv(1 << 20).count(self.answer)
        except BlockingIOError:
            return
        except OSError:  # closed
            with suppress(OSError):
                self.socket.close()
                self.left, self.socket = b"", self.opened()


def stream(kind: str, home: str, rate: float, seconds: float) -> tuple[int, int]:
    """Fill one connection."""
    match kind:
        case "crlf":
            one = Stream(home, b"\r\n", b"\r\n")
        case "pings":
            one = Stream(home, b"\x89\x80\0\0\0\0", hello=HANDSHAKE)
        case "rtmp":  # RTMP 1.0 §7.1.7: pings, and each is answered
            one = Stream(home, PING, b"\0\7", hello=b"\3" + bytes(2 * 1536))
        case "get":
            one = Stream(home, b"GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n", b"HTTP/1.1 ")
        case _:
            asked = options("127.1.0.1", 9, 1, home).replace(b"/UDP", b"/TCP")
            one = Stream(home, asked, b"SIP/2.0 ")
    print("ready", flush=True)
    for count in ticks(rate, seconds):
        one.turn(count)
    return one.sent, one.answered


UDP = {
    "options": options,
    "invite": invite,
    "register": register,
    "bye": bye,
    "garbage": garbage,
    "slow": slow,
}
TCP = {
    "tcp": b"OPTIONS sip:home SIP/2.0\r\nVia: SIP/2.0/TCP 192.0.2.1\r\n",
    "http": b"GET /status HTTP/1.1\r\nHost: localhost\r\nX: ",
}


def main() -> None:
    """Flood, and say what came of it."""
    kind, home, rate, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4])
    if kind in STREAMS:
        sent, answered = stream(kind, home, rate, seconds)
    elif kind in TCP:
        sent, answered = connections(TCP[kind], home, rate, seconds)
    else:
        make = Guesser(home) if kind == "passwords" else UDP[kind]
        sent, answered = datagrams(make, home, rate, seconds)
    print(sent, answered, flush=True)


if __name__ == "__main__":
    main()

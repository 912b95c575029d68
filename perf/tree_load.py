"""`python perf/tree_load.py HOST:PORT CONNECTIONS SUBSCRIBERS FIRST`: clients that hold on.

One process opens so many WebSockets of `/tree`, a thousand from each of 127.2.0.FIRST and up, since
the gateway takes 2,000 from one address. The first of them subscribe to PLACE. It answers pings
also while it opens more, for a client that is silent for a minute is given up. It prints `ready`,
and for each line on standard input what has come since the last one, as JSON: how many are open,
and how late each notification was, in nanoseconds by the time in its data.
"""

import json
import os
import select
import socket
import sys
import time
from typing import NoReturn

from cpu import raise_file_limit

PLACE = "/bench"
OF_ONE = 1000  # connections from one address
TIMEOUT = 60.0  # s for an answer
TEXT, CLOSE, PING = 1, 8, 9  # opcodes: RFC 6455 §5.2
_PONG = b"\x8a\x80" + bytes(4)  # masked by zeros, without what the ping said
_STAMP = b'"at": '
_UPGRADE = (
    "GET /tree HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Protocol: resource.v1\r\n\r\n"
)


def frame(text: str) -> bytes:
    """A message of a client, masked by zeros."""
    body = text.encode()
    size = len(body)
    head = bytes([0x80 | size]) if size < 126 else b"\xfe" + size.to_bytes(2)
    return bytes([0x80 | TEXT]) + head + bytes(4) + body


def frames(data: bytearray) -> list[tuple[int, bytes]]:
    """Take the whole frames of a server off the front: the opcode of each, and what it holds."""
    found, at = [], 0
    while at + 2 <= len(data):
        size, start = data[at + 1], at + 2
        if size >= 126:
            wide = 2 if size == 126 else 8
            size, start = int.from_bytes(data[start : start + wide]), start + wide
        if start + size > len(data):
            break
        found.append((data[at] & 15, bytes(data[start : start + size])))
        at = start + size
    del data[:at]
    return found


class TreeClient:
    """A WebSocket of `/tree`, open when it is made; `source` is the address it comes from."""

    def __init__(self, address: tuple[str, int], source: str) -> None:
        self.socket = socket.create_connection(address, TIMEOUT, (source, 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.sendall(_UPGRADE.format(host=f"{address[0]}:{address[1]}").encode())
        self._data, self.is_open = bytearray(), True
        while b"\r\n\r\n" not in self._data:
            self._data += self.socket.recv(4096) or self._fail("the connection ended")
        head, _, rest = bytes(self._data).partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 101"):
            self._fail(head.partition(b"\r\n")[0].decode())
        self._data[:] = rest

    def fileno(self) -> int:
        """The socket to watch."""
        return self.socket.fileno()

    def ask(self, **request: object) -> dict[str, object]:
        """Ask, and wait for the answer, which is 2xx."""
        self.socket.sendall(frame(json.dumps(request)))
        while True:
            for text in self.receive():
                said: dict[str, object] = json.loads(text)
                if "notify" not in said:
                    if int(str(said["status"])) >= 300:
                        self._fail(str(said))
                    return said
            if not self.is_open:
                self._fail("the connection ended")

    def receive(self) -> list[bytes]:
        """The messages that have come; pings are answered."""
        data = self.socket.recv(65_536)
        self._data += data
        self.is_open = self.is_open and bool(data)
        texts = []
        for opcode, body in frames(self._data):
            if opcode == TEXT:
                texts.append(body)
            elif opcode == PING:
                self.socket.sendall(_PONG)
            elif opcode == CLOSE:
                self.is_open = False
        return texts

    def close(self) -> None:
        """Close the socket."""
        self.socket.close()

    def _fail(self, why: str) -> NoReturn:
        raise RuntimeError(f"a client of the tree: {why}")


class Clients:
    """Many of them; `first` is the last number of their first address."""

    def __init__(self, address: tuple[str, int], count: int, subscribers: int, first: int) -> None:
        self._poller, self._held = select.epoll(), dict[int, TreeClient]()
        self._late_ns = list[int]()
        for number in range(count):
            client = TreeClient(address, f"127.2.0.{first + number // OF_ONE}")
            if number < subscribers:
                client.ask(method="SUBSCRIBE", resource=PLACE)
            self._held[client.fileno()] = client
            self._poller.register(client, select.EPOLLIN)
            self.serve(0)

    def serve(self, seconds: float) -> bool:
        """Read what has come; whether standard input has, too."""
        is_asked = False
        for fd, _ in self._poller.poll(seconds):
            client = self._held.get(fd)
            if client is None:
                is_asked = True
                continue
            for text in client.receive():
                self._late_ns.append(time.monotonic_ns() - stamp_of(text))
            if not client.is_open:
                del self._held[fd]
                client.close()
        return is_asked

    def report(self) -> dict[str, object]:
        """What has come since the last report."""
        late_ns, self._late_ns = self._late_ns, []
        return {"open": len(self._held), "late_ns": late_ns}

    def run(self) -> None:
        """Serve, and report for each line on standard input, to its end."""
        self._poller.register(sys.stdin, select.EPOLLIN)
        while True:
            if self.serve(-1):
                if not os.read(sys.stdin.fileno(), 1):
                    return
                print(json.dumps(self.report()), flush=True)


def stamp_of(text: bytes) -> int:
    """The time in a notification."""
    at = text.index(_STAMP) + len(_STAMP)
    return int(text[at : text.index(b"}", at)])


def main() -> None:
    """Open, say so, and serve."""
    host, _, port = sys.argv[1].rpartition(":")
    raise_file_limit()
    clients = Clients((host, int(port)), *map(int, sys.argv[2:5]))
    print("ready", flush=True)
    clients.run()


if __name__ == "__main__":
    main()

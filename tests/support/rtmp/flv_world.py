"""A stream that is published, and an HTTP server that shows it to viewers."""

import json
from contextlib import contextmanager

from gevent import socket
from wsproto import ConnectionType, WSConnection
from wsproto import events as ws

from rtmplite.amf import amf0
from rtmplite.live.slow_consumer import SlowConsumerPolicy
from rtmplite.live.streams import Registry
from rtmplite.net.clock import now
from rtmplite.net.http.flv_http import FlvHttp

AVC, KEY, INTER = b"\x17\x00\0\0\0avcC", b"\x17\x01\0\0\0key", b"\x27\x01\0\0\0inter"
SOUND = b"\xb2sound"


class Studio:
    """A stream that is published, and an HTTP server that shows it."""

    def __init__(self, policy=None, **options):
        self.registry = Registry(policy or SlowConsumerPolicy(), keeps_groups=False)
        self.http = FlvHttp(self.registry, **options)
        self.server = self.http.serve(("127.0.0.1", 0), self.other)
        self.live = self.registry.open("live", "demo")
        self.clients = []

    @staticmethod
    def other(environ, begin):
        begin("200 OK", [("Content-Type", "application/json")])
        return [json.dumps({"path": environ["PATH_INFO"]}).encode()]

    def begin(self):
        for kind, data in ((18, amf0.encode("onMetaData", {"width": 2.0})), (9, AVC), (9, KEY)):
            self.live.write(kind, 0, data, now())

    def connect(self, request):
        client = socket.create_connection(self.server.socket.getsockname(), timeout=20)
        client.sendall(request.encode())
        self.clients.append(client)
        return client

    def get(self, path="/live/demo.flv", method="GET", *headers):
        lines = [f"{method} {path} HTTP/1.1", "Host: x", *headers, "", ""]
        return self.connect("\r\n".join(lines))

    def watch(self, *args):
        """A viewer, the head of its response taken off."""
        client = self.get(*args)
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += client.recv(1)
        return client, head.decode()

    def close(self):
        self.live.end(now())
        for client in self.clients:
            client.close()
        self.http.stop()
        self.server.stop(timeout=0.1)


@contextmanager
def studios():
    """A factory of studios; closes them all at the end."""
    made = []

    def make(*args, **options):
        made.append(Studio(*args, **options))
        return made[0]

    yield make
    for each in made:
        each.close()


def all_of(client):
    """The messages until the end."""
    data = b""
    while more := client.recv(65536):
        data += more
    return data


def admits_all_but(query):
    """Who has no such query may watch."""
    return lambda app, name, said, host: None if said == query else lambda: None


def status(client):
    """The number in a response that is read to its end."""
    client.settimeout(1.0)
    return int(client.recv(4096).split()[1])


def web_socket(room, path="/live/demo.flv"):
    """A viewer by WebSocket."""
    client = WSConnection(ConnectionType.CLIENT)
    connected = room.connect(client.send(ws.Request(host="x", target=path)).decode())
    return client, connected


def web_messages(client, connected, until=ws.CloseConnection):
    """All that comes until an event of that kind."""
    out = []
    while True:
        data = connected.recv(65536)
        client.receive_data(data or None)
        for event in client.events():
            out.append(event)
            if isinstance(event, until):
                return out

"""Honest users who must not be disturbed, and attackers who try: by TCP, and by RTMP."""

import os
import re
import socket as plain
from contextlib import contextmanager, suppress

import gevent
import pytest
from gevent import socket
from support.gateway.richclient import RichClient, wait_for
from support.peers.process import PATIENCE

from rtmplite.flv import file
from rtmplite.net.client.rtmp_client import RtmpClient
from rtmplite.rtmp.wire.chunk_writer import ChunkWriter
from rtmplite.rtmp.wire.command import Command
from rtmplite.rtmp.wire.message import MessageType
from siprtmp.edge.media_side import PUMP_FIGURES

AUDIO = MessageType.AUDIO
GROWTH = 64 * 1024  # KiB of memory that an attack may cost for good
ENOUGH = 40  # frames in a flow that a test has disturbed
LEAD = 15  # frames sent at once: who is ahead loses nothing when a busy machine stalls
# the only figures that an attack may leave changed
COUNTERS = {"sip_repeated", "sip_malformed", *PUMP_FIGURES}


def speex_frames(corpus):
    """Tags of real wideband Speex, one 20 ms frame each, no two alike."""
    data = (corpus / "flv" / "audio_speex16k.flv").read_bytes()
    tags = [tag.data for tag in file.tags(data) if tag.tag_type == AUDIO]
    whole = [tag for tag in tags if len(tag) == len(tags[10])]
    return [b"\xb2" + tag[1:] for tag in dict.fromkeys(whole)][:200]


class Flow:
    """Numbered frames from one stream to another, 50 a second, until `finish`."""

    def __init__(self, source, sink, frames):
        self.source, self.sink, self.frames = source, sink, frames
        self.sent, self.heard, self._stopping = [], [], False
        self._greenlets = [gevent.spawn(self._hear), gevent.spawn(self._talk)]

    def _talk(self):
        while not self._stopping:
            frame = self.frames(len(self.sent))
            self.sent.append(frame)
            self.source.write(AUDIO, 20 * len(self.sent), frame)
            if len(self.sent) > LEAD:
                gevent.sleep(0.02)

    def _hear(self):
        while (message := self.sink.read(timeout=30)) is not None:
            if message.type_id == AUDIO:
                self.heard.append(message.payload)

    def finish(self):
        """Stop talking; everything said must have been heard, byte by byte."""
        wait_for(lambda: len(self.sent) > ENOUGH, "frames to be sent")
        self._stopping = True
        self._greenlets[1].get(timeout=PATIENCE)
        try:
            wait_for(lambda: len(self.heard) >= len(self.sent), "every frame to arrive")
        except pytest.fail.Exception:
            lost = next((i for i, sent in enumerate(self.sent) if sent not in self.heard), -1)
            pytest.fail(f"{len(self.heard)} of {len(self.sent)} frames, from {lost} on")
        finally:
            self._greenlets[0].kill()
        assert self.heard == self.sent


class World:
    """A gateway with honest users."""

    def __init__(self, server, speex, password):
        self.server, self.idle, self.slow = server, server.status(), set()
        self.alice = RichClient(server.rtmp, "alice@127.0.0.1", "", password)
        self.bob = RichClient(server.rtmp, "bob@127.0.0.1", "", password)
        self.alice.call("invite", "bob@127.0.0.1", "wideband", "dtmf")  # by SDP and RTP
        self.bob.expect("invited")
        self.bob.call("accept", "wideband", "dtmf")
        self.alice.expect("ringing")
        self.alice.expect("accepted")
        self.bob.expect("accepted")
        self.alice.open_streams()
        self.bob.open_streams()
        proof = f"?user=alice&password={password}" if password else ""
        self.publisher = RtmpClient.connect(server.url("live") + proof)
        self.player = RtmpClient.connect(server.url("live"))
        watched = self.player.create_stream()
        watched.play("honest")
        published = self.publisher.create_stream()
        published.publish("honest")

        def spoken(number):
            return speex[number % len(speex)]

        self.flows = [
            Flow(self.alice.local, self.bob.remote, spoken),
            Flow(self.bob.local, self.alice.remote, spoken),
            Flow(published, watched, lambda number: b"\x2f" + number.to_bytes(300, "big")),
        ]
        self.busy = server.status()
        self.memory = self._memory()

    def _memory(self):
        with open(f"/proc/{self.server.child.pid}/status") as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1])

    def finish(self):
        """The honest users were not disturbed, and nothing is left of anybody."""
        for flow in self.flows:
            flow.finish()
        for client in (self.alice, self.bob, self.publisher, self.player):
            client.close()
        self.server.wait_status(
            {k: v for k, v in self.idle.items() if k not in COUNTERS | self.slow}
        )
        assert "Traceback" not in self.server.output
        assert self._memory() - self.memory < GROWTH


@contextmanager
def honest_users(server, corpus, password=""):
    """A `World`, judged at the end unless the test has failed already."""
    world = World(server, speex_frames(corpus), password)
    yield world
    world.finish()


def ports_of(server):
    """The UDP ports that a process has open."""
    folder = f"/proc/{server.child.pid}/fd"
    links = {os.readlink(f"{folder}/{name}") for name in os.listdir(folder)}
    with open("/proc/net/udp") as table:
        rows = [line.split() for line in table.readlines()[1:]]
    return [int(row[1][-4:], 16) for row in rows if f"socket:[{row[9]}]" in links]


def dial(address):
    """A TCP connection to host:port."""
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), PATIENCE)


def rest_of(connection, seconds=PATIENCE):
    """What the gateway still says, and whether it hung up."""
    connection.settimeout(seconds)
    said = b""
    try:
        while data := connection.recv(65536):
            said += data
    except ConnectionResetError:
        pass
    except TimeoutError:
        return said, False
    return said, True


class RtmpAttacker:
    """A client that has shaken hands and may then say anything."""

    def __init__(self, server, app="live"):
        self.socket, self._writer = dial(server.rtmp), ChunkWriter()
        self.socket.sendall(b"\x03" + bytes(1536))
        while len(self.socket.recv(4096, plain.MSG_PEEK)) < 3073:
            gevent.sleep(0.001)
        self.socket.sendall(self.socket.recv(3073)[1:1537])
        if app:
            self.say("connect", {"app": app, "tcUrl": server.url(app)}, number=1.0)

    def say(self, name, *values, number=0.0, stream=0):
        """Send a command; the first value is the command object."""
        first, rest = (values[0], values[1:]) if values else (None, ())
        self.send(Command(name, number, first, rest).message(stream))

    def send(self, message):
        """Send any message."""
        self.socket.sendall(self._writer.write(message, 3))

    def send_at_once(self, message):
        """Send a message as one chunk, or as much of it as the gateway lets in."""
        self.socket.sendall(self._writer.set_chunk_size(0xFFFFFF))
        with suppress(ConnectionError):
            self.send(message)


def chunk(length=5, payload=b"", stream=3, kind=20):
    """A chunk with a type 0 header that promises `length` octets."""
    return (
        bytes((stream, 0, 0, 0)) + length.to_bytes(3, "big") + bytes((kind, 0, 0, 0, 0)) + payload
    )

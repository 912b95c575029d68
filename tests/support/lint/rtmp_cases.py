"""RTMP connections that publish and play, and what can be wrong with them.

Each case is (rule, scene, number of the packet).
"""

from support.lint.scene import Scene

from rtmplite.rtmp.wire.chunk_writer import encode_absolute
from rtmplite.rtmp.wire.command import Command, on_status, result
from rtmplite.rtmp.wire.control import (
    Acknowledgement,
    PingRequest,
    SetChunkSize,
    WindowAcknowledgementSize,
)
from rtmplite.rtmp.wire.message import Message, MessageType

CLIENT, SERVER = "192.0.2.1:40000", "192.0.2.2:1935"
C1, S1 = bytes(8) + b"c" * 1528, bytes(8) + b"s" * 1528
SHAKEN = 5  # packets of the handshake
LARGE = 1 << 24  # octets of a chunk: all messages are whole


def written(*messages, size=128):
    """Messages as chunks of type 0."""
    return b"".join(
        encode_absolute(each.type_id, each.timestamp, each.stream_id, each.payload, 3, size)
        for each in messages
    )


def media(kind, time, payload=b"\xaf\x00\x12\x10", stream=1):
    return Message(kind, time, stream, payload)


def audio(time, payload=b"\xaf\x01x", **more):
    return media(MessageType.AUDIO, time, payload, **more)


HEADER = audio(0, b"\xaf\x00\x12\x10")
CONNECT = Command("connect", 1.0, {"app": "live"}).message()
CONNECTED = result(1.0, None, {"code": "NetConnection.Connect.Success"}).message()
CREATE = Command("createStream", 2.0).message()
CREATED = result(2.0, None, 1.0).message()
PUBLISH = Command("publish", 0.0, None, ("x", "live")).message(1)
STARTED = on_status("status", "NetStream.Publish.Start", "").message(1)
PLAY = Command("play", 0.0, None, ("x",)).message(1)


class Connection(Scene):
    """Packets of a connection from its handshake on; `up` and `down` send messages."""

    def __init__(self, *, c0=b"\x03", s0=b"\x03", s2=C1, c2=S1, up_to=4):
        super().__init__()
        self.tcp(CLIENT, SERVER, c0 + C1)
        if up_to > 1:
            self.tcp(SERVER, CLIENT, s0 + S1 + s2)
        if up_to > 2:
            self.tcp(CLIENT, SERVER, c2)

    def up(self, *messages):
        return self.tcp(CLIENT, SERVER, *(written(each) for each in messages))

    def down(self, *messages):
        return self.tcp(SERVER, CLIENT, *(written(each) for each in messages))


def connected():
    """7 packets."""
    return Connection().up(CONNECT).down(CONNECTED)


def created():
    """9 packets."""
    return connected().up(CREATE).down(CREATED)


def publishing():
    """11 packets."""
    return created().up(PUBLISH).down(STARTED)


def window():
    """A server that has a window of 1000 octets, and gets much more without a word."""
    scene = publishing().up(WindowAcknowledgementSize(1000).message(), HEADER)
    for number in range(100):
        scene.up(audio(number, b"\xaf\x01" + bytes(90)))
    return scene


CASES = [
    ("rtmp-version", Connection(s0=b"\x04"), 4),
    ("rtmp-echo", Connection(s2=S1), 4),
    ("rtmp-echo", Connection(c2=C1), 5),
    ("rtmp-handshake", Connection(up_to=2).end(), 3),
    ("rtmp-syntax", connected().tcp(CLIENT, SERVER, b"\xc9"), 8),
    ("rtmp-syntax", connected().up(Message(MessageType.COMMAND, 0, 0, b"\x02\x00\x09x")), 8),
    ("rtmp-chunk-size", connected().up(SetChunkSize(64).message()), 8),
    ("rtmp-chunk-size", connected().up(Message(1, 0, 0, bytes(4))), 8),
    ("rtmp-control-stream", connected().up(Acknowledgement(1).message()._replace(stream_id=1)), 8),
    ("rtmp-message-type", connected().up(Message(99, 0, 0, b"?")), 8),
    ("rtmp-timestamp", publishing().up(HEADER, audio(100), audio(50)), 14),
    ("rtmp-before-connect", Connection().up(CREATE), 6),
    ("rtmp-before-connect", Connection().up(Message(MessageType.DATA, 0, 0, b"\x05")), 6),
    ("rtmp-connect-twice", connected().up(CONNECT), 8),
    ("rtmp-no-result", connected().up(CREATE).end(), 8),
    ("rtmp-result-alone", connected().down(CREATED), 8),
    ("rtmp-unknown-stream", publishing().up(audio(0, stream=5)), 12),
    ("rtmp-no-create", connected().up(PUBLISH), 8),
    ("rtmp-no-publish", created().up(HEADER), 10),
    ("rtmp-no-publish", publishing().down(HEADER), 12),
    ("rtmp-no-header", publishing().up(audio(0)), 12),
    ("rtmp-no-header", publishing().up(media(MessageType.VIDEO, 0, b"\x17\x01\0\0\0x")), 12),
    ("rtmp-window", window(), 62),
    ("rtmp-acknowledged", connected().down(Acknowledgement(1_000_000).message()), 8),
    ("rtmp-ping", connected().down(PingRequest(7).message()).end(), 8),
]
PIECES = written(HEADER, audio(10))
GOOD = {
    "a publisher": publishing().up(HEADER, audio(0), audio(20)).end(),
    "a player": created().up(PLAY).down(STARTED, HEADER, audio(5)).end(),
    "a guessed stream": connected().up(CREATE, PUBLISH, HEADER).down(CREATED),
    "octets by twos": publishing().tcp(
        CLIENT, SERVER, *(PIECES[at : at + 2] for at in range(0, len(PIECES), 2))
    ),
    "a gap": publishing().tcp(CLIENT, SERVER, written(HEADER), skip=500),
}

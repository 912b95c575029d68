"""Broken, hostile and lost clients: whatever one of them does, others are served.

Own design: no text says what becomes of a client that breaks the rules but that what is broken is
noticed and not read on (RTMP Errata §2).  So a case asks only that another connection, which was
there before, is served after that, and that new ones are.
"""

from contextlib import suppress
from functools import partial
from typing import Final

from gevent import socket

from rtclab.conform.case import Cases, Unmet
from rtclab.conform.rtmp.chunks_seen import chunk
from rtclab.conform.rtmp.line import QUIET, VERSION, at_most, information, packet_1
from rtclab.conform.rtmp.peer import AUDIO, VIDEO, NetStream, RtmpPeer, token
from rtmplite.amf import amf0
from rtmplite.amf.values import Value
from rtmplite.rtmp.wire import control
from rtmplite.rtmp.wire.command import Command
from rtmplite.rtmp.wire.message import Message, MessageType

cases: Cases[RtmpPeer] = Cases()
must = partial(cases.case, role="server")
should = partial(cases.case, role="server", level="SHOULD")
ERRORS: Final = "RTMP Errata §2"
NAME: Final = amf0.encode("createStream", 7.0)
SOUND: Final = b"\x82" + bytes(99)


@must(ERRORS, "errors-noticed")
def string_longer_than_its_message(peer: RtmpPeer) -> None:
    """A command whose name goes beyond its end hurts nobody else (RTMP Errata §2)."""
    _expect_harmless(peer, b"\x02\xff\xffcreateStream")


@must(ERRORS, "errors-noticed")
def array_longer_than_its_message(peer: RtmpPeer) -> None:
    """A strict array that claims 4294967295 values hurts nobody else (RTMP Errata §2)."""
    _expect_harmless(peer, NAME + b"\x0a\xff\xff\xff\xff")


@must(ERRORS, "errors-noticed")
def object_without_an_end(peer: RtmpPeer) -> None:
    """An object that does not end hurts nobody else (RTMP Errata §2)."""
    _expect_harmless(peer, NAME + b"\x03\x00\x01a")


@must(ERRORS, "errors-noticed")
def unknown_marker_of_amf(peer: RtmpPeer) -> None:
    """A value of a type that AMF0 does not have hurts nobody else (RTMP Errata §2)."""
    _expect_harmless(peer, NAME + b"\xee\xee\xee")


@must("RTMP Errata §2", "errors-noticed")
def reference_to_nothing(peer: RtmpPeer) -> None:
    """A reference to an object that is not there hurts nobody else (RTMP Errata §2)."""
    _expect_harmless(peer, NAME + b"\x07\xff\xff")


@must(ERRORS, "errors-noticed")
def objects_within_objects(peer: RtmpPeer) -> None:
    """Ten thousand objects, each within another, hurt nobody else (RTMP Errata §2)."""
    _expect_harmless(peer, NAME + b"\x03\x00\x01a" * 10_000)


@must("RTMP 1.0 §7.1.1", "parts")
def command_of_no_values(peer: RtmpPeer) -> None:
    """A command without a name hurts nobody else (RTMP 1.0 §7.1.1)."""
    _expect_harmless(peer, b"")


@must("RTMP 1.0 §5.3.1.2.1", "type-0-first")
def chunk_stream_that_begins_with_type_3(peer: RtmpPeer) -> None:
    """A new chunk stream without a whole header hurts nobody else (RTMP 1.0 §5.3.1.2.1)."""
    with peer.others_served() as line:
        line.send(chunk(3, 9, bytes(128)) + chunk(2, 10, bytes(128), time=7))


@must("RTMP 1.0 §5.4.1", "size-at-least-1")
def chunk_size_of_nothing(peer: RtmpPeer) -> None:
    """Set Chunk Size with 0 hurts nobody else (RTMP 1.0 §5.4.1)."""
    with peer.others_served() as line:
        line.write(Message(MessageType.SET_CHUNK_SIZE, 0, 0, bytes(4)), 2)
        line.write(Command("createStream", 7.0).message())


@must("RTMP 1.0 §5.4.1", "size-top-bit-zero")
def chunk_size_of_32_bits(peer: RtmpPeer) -> None:
    """Set Chunk Size with the top bit hurts nobody else (RTMP 1.0 §5.4.1)."""
    with peer.others_served() as line:
        line.write(Message(MessageType.SET_CHUNK_SIZE, 0, 0, b"\xff" * 4), 2)
        line.write(Command("createStream", 7.0).message())


@must(ERRORS, "errors-noticed")
def control_messages_that_are_too_short(peer: RtmpPeer) -> None:
    """Control messages of one byte hurt nobody else (RTMP Errata §2)."""
    for type_id in range(1, 7):
        with peer.others_served() as line:
            line.write(Message(type_id, 0, 0, b"\x00"), 2)


@should("RTMP Errata §7", "within-limits")
def message_of_16_megabytes(peer: RtmpPeer) -> None:
    """A megabyte of a message of the largest length hurts nobody else (RTMP Errata §7)."""
    with peer.others_served() as line:
        line.set_chunk_size(0x100000)
        head = dict(length=0xFFFFFF, type_id=VIDEO, stream_id=1)
        line.send(chunk(0, 6, bytes(0x100000), **head))


@must("RTMP 1.0 §5.3", "by-chunk-stream")
def many_messages_that_do_not_end(peer: RtmpPeer) -> None:
    """Beginnings of ten thousand long messages hurt nobody else (RTMP 1.0 §5.3)."""
    with peer.others_served() as line:
        for number in range(64, 10_064):
            line.send(chunk(0, number, bytes(128), length=0xFFFFFF, type_id=VIDEO, stream_id=1))


@must("RTMP Errata §2", "errors-noticed")
def unknown_message_type_is_passed_over(peer: RtmpPeer) -> None:
    """Messages of types that nobody has end nothing (RTMP Errata §2)."""
    line = peer.connected()
    for type_id in (0, 7, 10, 13, 23, 99, 255):
        line.write(Message(type_id, 0, 0, b"what is it"), 7)
    line.create_stream()


@must("RTMP 1.0 §7.1.6", "back-pointer")
def broken_aggregate(peer: RtmpPeer) -> None:
    """An aggregate message that ends within a part hurts nobody else (RTMP 1.0 §7.1.6)."""
    with peer.others_served() as line:
        stream = NetStream(line, line.create_stream(), token())
        stream.publish()
        stream.send(MessageType.AGGREGATE, 0, b"\x08\x00\xff\xff" + bytes(20))
        stream.send(MessageType.AGGREGATE, 0, b"\x08\x00\x00")


@must(ERRORS, "errors-noticed")
def media_of_a_few_bytes(peer: RtmpPeer) -> None:
    """Sounds and pictures that are cut within their headers hurt nobody else (RTMP Errata §2)."""
    with peer.others_served() as line:
        stream = NetStream(line, line.create_stream(), token())
        stream.publish()
        for payload in (b"\xaf", b"\xaf\x00", b"\x17", b"\x17\x00", b"\x17\x00\x00\x00\x00\x01"):
            stream.send(AUDIO, 0, payload)
            stream.send(VIDEO, 0, payload)


@must("RTMP Errata §2", "errors-noticed")
def media_without_a_publisher(peer: RtmpPeer) -> None:
    """Media on streams that are not published hurt nobody else (RTMP Errata §2)."""
    with peer.others_served() as line:
        for number in (0, 1, 77, 0xFFFFFF):
            NetStream(line, number, "").send(VIDEO, 0, SOUND)


@must("RTMP Errata §2", "errors-noticed")
def command_before_connect(peer: RtmpPeer) -> None:
    """publish before connect publishes nothing, and hurts nobody else (RTMP Errata §2)."""
    line = peer.shaken()
    stream = NetStream(line, 1, token())
    line.write(Command("createStream", 2.0).message())
    stream.command("publish", stream.name, "live", number=3.0)
    codes: list[Value] = []
    with at_most(QUIET), suppress(Unmet):  # it may well end the connection
        codes += (information(each).get("code") for each in stream.statuses())
    if "NetStream.Publish.Start" in codes:
        raise Unmet("no NetStream.Publish.Start", "one")
    peer.connected().create_stream()


@must("RTMP Errata §2", "errors-noticed")
def commands_with_wrong_arguments(peer: RtmpPeer) -> None:
    """publish, play and others without what they need hurt nobody else (RTMP Errata §2)."""
    with peer.others_served() as line:
        stream = NetStream(line, line.create_stream(), "")
        for name in ("publish", "play", "pause", "seek", "receiveAudio", "deleteStream"):
            stream.command(name)
            stream.command(name, {"a": 1.0}, None, "x")


@must("RTMP Errata §2", "errors-noticed")
def second_connect(peer: RtmpPeer) -> None:
    """A second connect, to another application, hurts nobody else (RTMP Errata §2)."""
    with peer.others_served() as line:
        line.write(line.connect_command(app=token()).message())


@must("RTMP Errata §2", "errors-noticed")
def nonsense_after_the_handshake(peer: RtmpPeer) -> None:
    """Octets that are no chunks hurt nobody else (RTMP Errata §2)."""
    with peer.others_served():
        line = peer.shaken()
        line.send(bytes(range(256)) * 40)
        line.is_over()


@must("RTMP Errata §2", "errors-noticed")
def half_a_handshake(peer: RtmpPeer) -> None:
    """Clients that stop within the handshake hurt nobody else (RTMP Errata §2)."""
    with peer.others_served():
        for count in (0, 1, 700, 1537, 1538):
            line = peer.line()
            line.send((VERSION + packet_1() + packet_1())[:count])
            if count % 2:
                line.socket.shutdown(1)


@must("RTMP 1.0 §7.2.2.6", "any-client-plays")
def player_that_does_not_read(peer: RtmpPeer) -> None:
    """A player that reads nothing holds up neither its publisher nor others (RTMP 1.0 §7.2.2.6)."""
    publisher, player = peer.pair()
    idle = peer.player(publisher.name).line.socket
    idle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    picture = b"\x12" + bytes(50_000)
    publisher.line.set_chunk_size(65536)
    for at in range(200):
        publisher.send(VIDEO, 40 * at, picture)
        if next(player.media(VIDEO)).payload != picture:
            raise Unmet("the picture", "another")


@must("RTMP 1.0 §7.2", "same-id")
def answers_that_nobody_asked_for(peer: RtmpPeer) -> None:
    """Answers and statuses without a reason hurt nobody else (RTMP 1.0 §7.2)."""
    with peer.others_served() as line:
        for name in ("_result", "_error", "onStatus", "onBWDone"):
            line.write(Command(name, 99.0, None, (None,)).message())
        line.tell(control.Acknowledgement(0xFFFFFFFF))
        line.tell(control.Abort(0xFFFFFFFF))


def _expect_harmless(peer: RtmpPeer, payload: bytes) -> None:
    """Send this as a command, which others than its sender are not to notice."""
    with peer.others_served() as line:
        line.write(Message(MessageType.COMMAND, 0, 0, payload))

"""Control messages: windows, acknowledgements, pings, and the target's own chunks.

Implements RTMP 1.0 §5.4 and RTMP 1.0 §6.2, from the client's side.
"""

import os
from collections.abc import Iterator
from functools import partial
from typing import Final

from rtclab.conform.case import Cases, NotApplicable, Unmet
from rtclab.conform.checks import expect_equal
from rtclab.conform.rtmp.chunks_seen import SeenChunk, chunks_seen
from rtclab.conform.rtmp.line import NO_PONG, PONG, QUIET, RtmpLine, at_most
from rtclab.conform.rtmp.peer import AUDIO, VIDEO, NetStream, RtmpPeer
from rtmplite.rtmp.wire import control
from rtmplite.rtmp.wire.chunk_header import DEFAULT_CHUNK_SIZE
from rtmplite.rtmp.wire.message import MessageType

cases: Cases[RtmpPeer] = Cases()
must = partial(cases.case, role="server")
should = partial(cases.case, role="server", level="SHOULD")
may = partial(cases.case, role="server", level="MAY")
WINDOW: Final = 5000  # bytes
PROTOCOL: Final = (1, 2, 3, 5, 6)  # types of protocol control messages: §5.4
SOUND: Final = b"\x82" + bytes(999)


@must("RTMP 1.0 §5.4.3", "ack-every-window")
def acknowledgement_comes_after_each_window(peer: RtmpPeer) -> None:
    """After Window Acknowledgement Size the target acknowledges each window of bytes (§5.4.3)."""
    first, second = _acknowledged(peer)
    if not 0 < second - first <= 4 * WINDOW:
        raise Unmet(f"a second Acknowledgement {WINDOW} bytes later", f"{second - first}")


@must("RTMP 1.0 §5.4.3", "sequence-number")
def acknowledgement_counts_all_bytes(peer: RtmpPeer) -> None:
    """The number is how many bytes have come since the connection began (§5.4.3)."""
    first, _ = _acknowledged(peer)
    if not WINDOW <= first < 2 * WINDOW + 3073:
        raise Unmet(f"about {WINDOW}, with or without the handshake", str(first))


@must("RTMP 1.0 §7.1.7", "ping-request")
def ping_has_a_response(peer: RtmpPeer) -> None:
    """A Ping Request has a Ping Response (§7.1.7)."""
    if peer.connected().ping(77) is None:
        raise Unmet("a Ping Response", f"none within {PONG:g} s")


@must("RTMP 1.0 §7.1.7", "ping-response")
def ping_response_has_the_time(peer: RtmpPeer) -> None:
    """A Ping Response has the timestamp of its request (§7.1.7)."""
    if (found := peer.connected().ping(0xDEADBEEF)) is None:
        raise NotApplicable(NO_PONG)
    expect_equal("timestamp", 0xDEADBEEF, found)


@should("RTMP 1.0 §5.4.5", "answer-with-window")
def bandwidth_is_answered_by_a_window(peer: RtmpPeer) -> None:
    """Set Peer Bandwidth with a new window is answered by that window (§5.4.5)."""
    line = peer.connected()
    line.tell(control.SetPeerBandwidth(345_678, control.LimitType.HARD))
    for order in line.controls():
        if order == control.WindowAcknowledgementSize(345_678):
            return


@should("RTMP 1.0 §5.4.5", "hard-limit")
def hard_limit_holds_back(peer: RtmpPeer) -> None:
    """Of media no more than the window comes before an Acknowledgement (§5.4.5)."""
    publisher, player = peer.pair()
    line, limit = player.line, 20_000
    line.acknowledges = False
    line.acknowledge()
    line.tell(control.SetPeerBandwidth(limit, control.LimitType.HARD))
    line.between()
    publisher.send_all((AUDIO, 20 * at, SOUND) for at in range(100))
    publisher.line.between()
    size = 0
    with at_most(QUIET):
        for message in player.media(AUDIO):
            size += len(message.payload)
    if size > limit + len(SOUND):
        raise Unmet(f"{limit} bytes at most", f"{size} bytes of sound")
    line.acknowledge()
    next(player.media(AUDIO))


@must("RTMP 1.0 §7.1.7", "set-buffer-length")
def buffer_length_is_taken(peer: RtmpPeer) -> None:
    """A player says how long its buffer is, and goes on to get what is published (§7.1.7)."""
    publisher, player = peer.pair()
    player.line.tell(control.SetBufferLength(player.id, 3000))
    player.line.between()
    publisher.send(AUDIO, 0, SOUND)
    player.expect([(AUDIO, 0, SOUND)])


@must("RTMP 1.0 §6.2", "event-type")
def unknown_event_is_passed_over(peer: RtmpPeer) -> None:
    """A user control message with an event of nobody's ends nothing (§6.2)."""
    line = peer.connected()
    for event, data in ((26, bytes(4)), (31, bytes(4)), (0x7777, b"")):
        line.tell(control.OtherUserControl(event, data))
    line.create_stream()


@must("RTMP 1.0 §7.1.7", "stream-begin")
def events_of_a_server_are_passed_over(peer: RtmpPeer) -> None:
    """Events that only servers send end nothing when a client sends them (§7.1.7)."""
    line = peer.connected()
    for order in (control.StreamBegin(1), control.StreamEof(1), control.PingResponse(1)):
        line.tell(order)
    line.create_stream()


@must("RTMP 1.0 §5.4", "control-on-2")
def control_has_chunk_stream_2(peer: RtmpPeer) -> None:
    """Protocol control messages of the target have chunk stream 2 (§5.4)."""
    for each in _chunks_of(peer.connected()):
        if each.type_id in PROTOCOL:
            expect_equal(f"chunk stream of type {each.type_id}", 2, each.chunk_stream)


@must("RTMP 1.0 §5.4", "control-on-2")
def control_has_message_stream_0(peer: RtmpPeer) -> None:
    """Protocol control messages of the target have message stream 0 (§5.4)."""
    for each in _chunks_of(peer.connected()):
        if each.type_id in PROTOCOL:
            expect_equal(f"message stream of type {each.type_id}", 0, each.stream_id)


@should("RTMP 1.0 §6.2", "on-stream-0")
def user_control_has_chunk_stream_2(peer: RtmpPeer) -> None:
    """User control messages of the target have message stream 0 and chunk stream 2 (§6.2)."""
    line = peer.pair()[1].line
    line.between()
    for each in _chunks_of(line):
        if each.type_id == MessageType.USER_CONTROL:
            streams = each.chunk_stream, each.stream_id
            expect_equal("chunk stream and message stream", (2, 0), streams)


@should("RTMP 1.0 §5.4.1", "size-at-least-128")
def chunks_have_128_bytes_at_least(peer: RtmpPeer) -> None:
    """The target's Set Chunk Size says 128 or more (§5.4.1)."""
    _, player = peer.pair()
    smallest = min(each.limit for each in _chunks_of(player.line))
    if smallest < DEFAULT_CHUNK_SIZE:
        raise Unmet(f"{DEFAULT_CHUNK_SIZE} bytes at least", str(smallest))


@must("RTMP 1.0 §5.3.1.2.1", "type-0-first")
def chunk_streams_begin_with_type_0(peer: RtmpPeer) -> None:
    """The first header that the target sends on a chunk stream is of type 0 (§5.3.1.2.1)."""
    for each in _played(peer, 0):
        if each.is_new:
            expect_equal(f"first header on chunk stream {each.chunk_stream} of type", 0, each.fmt)


@should("RTMP 1.0 §5.3.1.2.4", "type-3-continues")
def messages_go_on_with_type_3(peer: RtmpPeer) -> None:
    """All chunks of a message but the first have headers of type 3 (§5.3.1.2.4)."""
    for each in _played(peer, 0):
        if not each.starts:
            expect_equal("header of type", 3, each.fmt)


@must("RTMP Errata §5.1", "extended-on-every-3")
def extended_time_is_repeated(peer: RtmpPeer) -> None:
    """Chunks that go on with a message repeat its extended time (RTMP Errata §5.1)."""
    time = 0x1234567
    extended = [each.extended for each in _played(peer, time) if each.type_id == VIDEO]
    if not any(extended):
        raise NotApplicable("times of players start anew here")
    if len(set(extended)) != 1:
        raise Unmet(f"{extended[0].hex()} on all {len(extended)} chunks", str(set(extended)))


def _acknowledged(peer: RtmpPeer) -> tuple[int, int]:
    """Publish some windows of sound; gives the first two numbers that are acknowledged."""
    publisher = peer.publisher()
    publisher.line.tell(control.WindowAcknowledgementSize(WINDOW))
    numbers: list[int] = []
    for at in range(40):
        publisher.send(AUDIO, 20 * at, SOUND)
        if at % 8 == 7:  # the target may well read many windows at once
            numbers += _numbers(publisher)
    if len(numbers) < 2:
        raise Unmet("two Acknowledgements", str(len(numbers)))
    return numbers[0], numbers[1]


def _numbers(publisher: NetStream) -> Iterator[int]:
    for message in publisher.line.between():
        order = control.parse_control(message)
        if isinstance(order, control.Acknowledgement):
            yield order.sequence_number


def _chunks_of(line: RtmpLine) -> list[SeenChunk]:
    return list(chunks_seen(bytes(line.raw)))


def _played(peer: RtmpPeer, time: int) -> list[SeenChunk]:
    """Let a player get a picture that is longer than a chunk, and see its chunks."""
    publisher, player = peer.pair()
    picture = b"\x12" + os.urandom(20_000)
    publisher.send(VIDEO, time, picture)
    player.expect([(VIDEO, time, picture)])
    seen = _chunks_of(player.line)
    if sum(each.type_id == VIDEO for each in seen) < 2:
        raise NotApplicable("the target's chunks are longer than 20,000 bytes")
    return seen

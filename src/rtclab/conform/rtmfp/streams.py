"""Streams through the target: one connection publishes, another plays.

Implements RFC 7425 §5.1 and §5.3.5, from the clients' side; commands are those of RTMP 1.0 §7.2.2.
"""

import os
from functools import partial
from itertools import pairwise
from typing import Final

from rtclab.conform.case import Cases, Unmet
from rtclab.conform.checks import expect_equal
from rtclab.conform.rtmfp.client import CONTROL, RtmfpClient, connected, published, stream_of
from rtclab.conform.rtmfp.flows import FlowReader
from rtclab.conform.rtmfp.peer import RtmfpPeer
from rtmplite.rtmfp.netconnection.messages import encode_message
from rtmplite.rtmp.wire.message import Message, MessageType

cases: Cases[RtmfpPeer] = Cases()
must = partial(cases.case, role="server")
should = partial(cases.case, role="server", level="SHOULD")

# Headers of FLV: Speex, which needs no other before it, and H.263, a picture for itself.
_SPEEX: Final = b"\xb2"
_KEY_FRAME: Final = b"\x12"
_LARGE: Final = 20_000  # bytes of a picture
_TIME: Final = 1000  # ms, the first of a stream


@must("RFC 7425 §5.3.5", "associated")
def publish_is_answered_in_its_stream(peer: RtmfpPeer) -> None:
    """The status of publish comes in a flow of the stream that it is about (§5.3.5.2)."""
    client = connected(peer)
    stream_id = client.create_stream()
    client.on_stream("publish", stream_id, f"conform-{os.urandom(6).hex()}", "live")
    reader, _ = client.status("NetStream.Publish.Start")
    expect_equal("stream of the flow", stream_id, stream_of(reader))


@must("RFC 7425 §5.3.5", "associated")
def flows_of_a_stream_return_to_our_control_flow(peer: RtmfpPeer) -> None:
    """Further flows of the server are associated to the client's control flow (§5.3.5.2)."""
    client = connected(peer)
    published(client)
    found = {reader.associated for reader in client.session.readers.values()}
    expect_equal("flows that they are associated to", {CONTROL}, found)


@must("RFC 7425 §5.3.5.1", "as-many")
def media_may_share_the_flow_of_the_commands(peer: RtmfpPeer) -> None:
    """Commands and media of a stream may share a flow (§5.1.1)."""
    player, client = connected(peer.another()), connected(peer)
    name, _, flow = published(client)
    _play(player, name)
    sound = _SPEEX + os.urandom(20)
    client.write(flow, encode_message(MessageType.AUDIO, _TIME, sound))
    expect_equal("sound", sound.hex(), _media(player, MessageType.AUDIO)[1].payload.hex())


@must("RFC 7425 §5.1.2", "stream-from-flow")
def sound_comes_in_a_flow_of_the_players_stream(peer: RtmfpPeer) -> None:
    """The flow of the sound names the stream that plays it (§5.1.2)."""
    player, stream_id, reader, _ = _play_one(peer, MessageType.AUDIO, _SPEEX + b"sound")
    expect_equal("stream of the flow", stream_id, stream_of(reader))
    expect_equal("flow it is associated to", player.control.flow_id, reader.associated)


@must("RFC 7425 §5.1.2", "header")
def sound_is_passed_on_unchanged(peer: RtmfpPeer) -> None:
    """A player has each byte of the sound (§5.1.2)."""
    sound = _SPEEX + bytes(range(256))
    _, _, _, message = _play_one(peer, MessageType.AUDIO, sound)
    expect_equal("sound", sound.hex(), message.payload.hex())


@must("RFC 7016 §3.6.3.3", "whole-only")
def large_picture_is_passed_on_unchanged(peer: RtmfpPeer) -> None:
    """A picture of many fragments is put together, and cut again (RFC 7016 §3.6.3.3)."""
    picture = _KEY_FRAME + os.urandom(_LARGE)
    _, _, _, message = _play_one(peer, MessageType.VIDEO, picture)
    if message.payload != picture:
        raise Unmet(f"the {len(picture)} bytes of the picture", f"{len(message.payload)} others")


@must("RFC 7425 §5.1.2", "header")
def times_of_sound_keep_their_distance(peer: RtmfpPeer) -> None:
    """Sound messages sent 20 ms apart keep timestamps 20 ms apart (§5.1.2)."""
    player, client = connected(peer.another()), connected(peer)
    name, stream_id, _ = published(client)
    _play(player, name)
    flow = client.flow(stream_id)
    for count in range(4):
        client.write(flow, encode_message(MessageType.AUDIO, _TIME + 20 * count, _SPEEX + b"."))
    times = [_media(player, MessageType.AUDIO)[1].timestamp for _ in range(4)]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    expect_equal("gaps in ms", [20, 20, 20], gaps)


@must("RFC 7425 §5.3.5.3", "closing-says-nothing")
def stream_goes_on_in_another_flow(peer: RtmfpPeer) -> None:
    """A publisher may close a flow of media, and go on in a new one (§5.3.5.3)."""
    player, client = connected(peer.another()), connected(peer)
    name, stream_id, _ = published(client)
    _play(player, name)
    for count in range(2):
        flow, sound = client.flow(stream_id), _SPEEX + bytes((count,))
        client.write(flow, encode_message(MessageType.AUDIO, _TIME + 20 * count, sound))
        expect_equal("sound", sound.hex(), _media(player, MessageType.AUDIO)[1].payload.hex())
        client.close_flow(flow)


@must("RFC 7425 §5.1.1", "one-stream")
def two_streams_are_kept_apart(peer: RtmfpPeer) -> None:
    """Two streams of one player come in flows of their own (§5.1.1)."""
    player, client = connected(peer.another()), connected(peer)
    sent, flows = {}, {}
    for count in range(2):
        name, stream_id, _ = published(client)
        played = _play(player, name)
        sent[played], flows[played] = _SPEEX + bytes((count,)), client.flow(stream_id)
    for played, sound in sent.items():
        client.write(flows[played], encode_message(MessageType.AUDIO, _TIME, sound))
    for _ in sent:
        reader, message = _media(player, MessageType.AUDIO)
        expect_equal("sound", sent.get(stream_of(reader) or 0), message.payload)


def _play(client: RtmfpClient, name: str) -> int:
    """Play a stream that is there; gives the number of the stream that plays it."""
    stream_id = client.create_stream()
    client.on_stream("play", stream_id, name, -1000.0)
    client.status("NetStream.Play.Start")
    return stream_id


def _media(client: RtmfpClient, kind: MessageType) -> tuple[FlowReader, Message]:
    """Wait for sound or a picture that is not empty."""
    return next(
        (reader, message)
        for reader, message in client.messages()
        if message.type_id == kind and message.payload
    )


def _play_one(
    peer: RtmfpPeer, kind: MessageType, payload: bytes
) -> tuple[RtmfpClient, int, FlowReader, Message]:
    """Publish one message; gives the player, its stream, and the message with its flow."""
    player, client = connected(peer.another()), connected(peer)
    name, stream_id, _ = published(client)
    played = _play(player, name)
    client.write(client.flow(stream_id), encode_message(kind, _TIME, payload))
    return player, played, *_media(player, kind)

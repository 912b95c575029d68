"""What is published comes to players: media, metadata, times, and headers for those who come late.

Implements RTMP 1.0 §7.1.2 to RTMP 1.0 §7.1.6 and RTMP 1.0 §7.2.2.6, from both clients' side.
"""

import os
from functools import partial
from itertools import pairwise
from typing import Final

from rtclab.conform.case import Cases, NotApplicable, Unmet
from rtclab.conform.checks import expect_equal
from rtclab.conform.rtmp.line import information
from rtclab.conform.rtmp.peer import AUDIO, DATA, VIDEO, NetStream, RtmpPeer, values
from rtmplite.amf import amf0
from rtmplite.amf.values import EcmaArray, Value
from rtmplite.rtmp.wire.message import MessageType

cases: Cases[RtmpPeer] = Cases()
must = partial(cases.case, role="server")
should = partial(cases.case, role="server", level="SHOULD")
may = partial(cases.case, role="server", level="MAY")

AVC_CONFIG: Final = bytes.fromhex(
    "0142c01effe1001567 42c01e8c8d40a03dbff016c0120f08845a 010004 68ce3c80"
)
AVC_HEADER: Final = b"\x17\x00\x00\x00\x00" + AVC_CONFIG
AAC_HEADER: Final = b"\xaf\x00\x12\x10"  # 44.1 kHz, stereo
KEY: Final = b"\x17\x01\x00\x00\x00" + bytes.fromhex("00000005 6588840021")
INTER: Final = b"\x27\x01\x00\x00\x00" + bytes.fromhex("00000005 419a240021")
SOUND: Final = b"\xaf\x01" + bytes.fromhex("2110049020")
PLAIN: Final = b"\x82" + bytes(99)  # mu-law
METADATA: Final[dict[str, Value]] = {
    "width": 320.0,
    "height": 240.0,
    "framerate": 25.0,
    "videocodecid": 7.0,
    "audiocodecid": 10.0,
    "encoder": "conform",
}


@must("RTMP 1.0 §7.1.4", "type")
def sound_comes_unchanged(peer: RtmpPeer) -> None:
    """A player gets the octets of each sound (§7.1.4)."""
    publisher, player = peer.pair()
    sent = [(AUDIO, 20 * at, b"\x82" + os.urandom(160)) for at in range(10)]
    publisher.send_all(sent)
    player.expect(sent)


@must("RTMP 1.0 §7.1.5", "type")
def pictures_come_unchanged(peer: RtmpPeer) -> None:
    """A player gets the octets of each picture, from the headers on (§7.1.5)."""
    publisher, player = peer.pair()
    pictures = [AVC_HEADER, KEY, INTER, INTER, KEY + os.urandom(5000), INTER]
    sent = [(VIDEO, 40 * at, picture) for at, picture in enumerate(pictures)]
    publisher.send_all(sent)
    player.expect(sent)


@should("RTMP Errata §5.2", "not-backwards")
def sound_and_pictures_keep_their_order(peer: RtmpPeer) -> None:
    """Sounds come in the order in which they were published, and so do pictures (RTMP Errata §5.2).

    RTMP Errata §5.2 lets a server send sound before pictures.
    """
    publisher, player = peer.pair()
    kinds = [VIDEO, AUDIO, VIDEO, AUDIO, AUDIO, VIDEO, VIDEO, AUDIO]
    bodies = {AUDIO: PLAIN, VIDEO: b"\x12" + bytes(20)}
    publisher.send_all((kind, 10 * at, bodies[kind]) for at, kind in enumerate(kinds))
    got = [each for _, each in zip(kinds, player.media(AUDIO, VIDEO), strict=False)]
    for kind in (AUDIO, VIDEO):
        wanted = [10 * at for at, each in enumerate(kinds) if each == kind]
        expect_equal(
            f"ms between messages of type {int(kind)}",
            [after - before for before, after in pairwise(wanted)],
            [
                after.timestamp - before.timestamp
                for before, after in pairwise(each for each in got if each.type_id == kind)
            ],
        )


@must("RTMP 1.0 §7.2.2.6", "any-client-plays")
def each_old_codec_comes_through(peer: RtmpPeer) -> None:
    """Sound and pictures of any codec pass, known to the target or not (§7.2.2.6)."""
    publisher, player = peer.pair()
    sent = [(AUDIO, 20 * at, bytes((at << 4 | 2,)) + bytes(50)) for at in (2, 5, 6, 7, 8, 11, 14)]
    sent += [(VIDEO, 400 + 20 * at, bytes((0x10 | at,)) + bytes(50)) for at in (2, 3, 4, 5, 6)]
    publisher.send_all(sent)
    player.expect(sent)


@must("RTMP 1.0 §7.2.2.6", "any-client-plays")
def two_players_get_the_same(peer: RtmpPeer) -> None:
    """Each of two players gets all that is published (§7.2.2.6)."""
    publisher, player = peer.pair()
    other = peer.player(publisher.name)
    sent = [(AUDIO, 20 * at, PLAIN) for at in range(5)]
    publisher.send_all(sent)
    player.expect(sent)
    other.expect(sent)


@must("RTMP 1.0 §7.1.2", "types")
def data_come_unchanged(peer: RtmpPeer) -> None:
    """A data message that nobody knows comes to the player with its values (§7.1.2)."""
    publisher, player = peer.pair()
    said: list[Value] = ["onTextData", {"text": "conform", "at": 1.5, "list": [1.0, None]}]
    publisher.send(AUDIO, 0, PLAIN)
    publisher.send(DATA, 0, amf0.encode(*said))
    expect_equal("values", said, values(player.data("onTextData")))


@should('Field §"@setDataFrame"', "unwrapped")
def metadata_come_without_their_order(peer: RtmpPeer) -> None:
    """Of @setDataFrame players get onMetaData and an object (Field §"@setDataFrame")."""
    publisher, player = peer.pair()
    publisher.send(DATA, 0, _metadata())
    publisher.send(AUDIO, 0, PLAIN)  # some servers wait for media
    found = values(player.data("onMetaData"))
    if len(found) != 2 or not isinstance(found[1], dict):
        raise Unmet("onMetaData and an object", str(found))


@should('Field §"@setDataFrame"', "unwrapped")
def metadata_have_their_values(peer: RtmpPeer) -> None:
    """The members of the metadata have the values that were published (Field §"@setDataFrame")."""
    publisher, player = peer.pair()
    publisher.send(DATA, 0, _metadata())
    publisher.send(AUDIO, 0, PLAIN)
    found = _described(player)
    expect_equal("values", METADATA, {name: found.get(name) for name in METADATA})


@must("RTMP 1.0 §7.1.2", "types")
def data_of_type_15_come_through(peer: RtmpPeer) -> None:
    """A data message of type 15 comes to the player, as type 18 where it has AMF0 (§7.1.2)."""
    line = peer.shaken()
    if information(line.connect(objectEncoding=3.0)).get("objectEncoding") != 3.0:
        raise NotApplicable("the target has no AMF3")
    publisher = peer.stream()
    publisher.line, publisher.id = line, line.create_stream()
    publisher.publish()
    player = peer.player(publisher.name)
    publisher.send(AUDIO, 0, PLAIN)
    publisher.send(MessageType.DATA_AMF3, 0, b"\x00" + amf0.encode("onTextData", "conform"))
    expect_equal("values", ["onTextData", "conform"], values(player.data("onTextData")))


@should('Field §"Beginnings of streams"', "headers-first")
def late_player_gets_the_headers(peer: RtmpPeer) -> None:
    """Who plays later gets the headers of codecs first (Field §"Beginnings of streams")."""
    publisher = peer.publisher()
    _begin(publisher)
    player = peer.player(publisher.name)
    _go_on(publisher)
    first: dict[int, bytes] = {}
    for message in player.media(AUDIO, VIDEO):
        if message.payload:
            first.setdefault(message.type_id, message.payload)
        if len(first) == 2:
            break
    expect_equal("header of AVC", AVC_HEADER.hex(), first[VIDEO].hex())
    expect_equal("header of AAC", AAC_HEADER.hex(), first[AUDIO].hex())


@should('Field §"Beginnings of streams"', "metadata-first")
def late_player_gets_the_metadata(peer: RtmpPeer) -> None:
    """Who plays later gets the metadata (Field §"Beginnings of streams")."""
    publisher = peer.publisher()
    _begin(publisher)
    player = peer.player(publisher.name)
    _go_on(publisher)
    found = _described(player)
    size = found.get("width"), found.get("height")
    expect_equal("width and height", (320.0, 240.0), size)


@may('Field §"Beginnings of streams"', "key-frame-first")
def late_player_begins_at_a_key_frame(peer: RtmpPeer) -> None:
    """A late player's first picture needs none before (Field §"Beginnings of streams")."""
    publisher = peer.publisher()
    _begin(publisher)
    player = peer.player(publisher.name)
    publisher.send_all([(VIDEO, 120, INTER), (VIDEO, 160, KEY), (VIDEO, 200, INTER)])
    for message in player.media(VIDEO):
        if message.payload[1:2] == b"\x01":
            expect_equal("frame type", 1, message.payload[0] >> 4)
            return


@must("RTMP 1.0 §7.1.6", "type")
def parts_of_an_aggregate_come_through(peer: RtmpPeer) -> None:
    """What is in an aggregate message comes to the player (§7.1.6)."""
    _expect_aggregate(peer, 1000, 1000)


@must("RTMP 1.0 §7.1.6", "offset")
def times_within_an_aggregate_are_moved(peer: RtmpPeer) -> None:
    """Times in an aggregate count from the first, which has the time of the whole (§7.1.6)."""
    _expect_aggregate(peer, 1000, 500)


@must("RTMP 1.0 §7.1.6", "stream-overrides")
def aggregate_has_one_stream(peer: RtmpPeer) -> None:
    """The parts of an aggregate are on its stream, whatever they say themselves (§7.1.6)."""
    _expect_aggregate(peer, 1000, 1000, stream_id=77)


def _expect_aggregate(peer: RtmpPeer, time: int, inner: int, stream_id: int = 0) -> None:
    publisher, player = peer.pair()
    parts = [(AUDIO, 0, PLAIN), (VIDEO, 10, b"\x12" + bytes(20)), (AUDIO, 20, PLAIN)]
    publisher.send(AUDIO, time - 20, PLAIN)
    whole = b"".join(_part(type_id, inner + at, body, stream_id) for type_id, at, body in parts)
    publisher.send(MessageType.AGGREGATE, time, whole)
    publisher.send(AUDIO, time + 40, PLAIN)
    moved = [(type_id, time + at, body) for type_id, at, body in parts]
    player.expect([(AUDIO, time - 20, PLAIN), *moved, (AUDIO, time + 40, PLAIN)])


def _part(type_id: int, time: int, body: bytes, stream_id: int) -> bytes:
    """A message within an aggregate: header, body, and the size of both (§7.1.6)."""
    stamp = (time & 0xFFFFFF).to_bytes(3, "big") + bytes((time >> 24,))
    header = bytes((type_id,)) + len(body).to_bytes(3, "big") + stamp + stream_id.to_bytes(3, "big")
    return header + body + (len(header) + len(body)).to_bytes(4, "big")


def _metadata() -> bytes:
    return amf0.encode("@setDataFrame", "onMetaData", EcmaArray(METADATA))


def _described(player: NetStream) -> dict[str, Value]:
    """The members of the metadata that a player gets."""
    found = values(player.data("onMetaData"))[1:]
    return found[0] if found and isinstance(found[0], dict) else {}


def _begin(publisher: NetStream) -> None:
    publisher.send(DATA, 0, _metadata())
    publisher.send_all([(VIDEO, 0, AVC_HEADER), (AUDIO, 0, AAC_HEADER), (VIDEO, 0, KEY)])
    publisher.send_all([(AUDIO, 20, SOUND), (VIDEO, 40, INTER), (VIDEO, 80, INTER)])
    publisher.line.between()


def _go_on(publisher: NetStream) -> None:
    publisher.send_all([(VIDEO, 120, KEY), (AUDIO, 120, SOUND), (VIDEO, 160, INTER)])

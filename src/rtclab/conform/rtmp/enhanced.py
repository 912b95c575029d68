"""Enhanced RTMP: what both ends tell at connect, and codecs that are named by a FourCC.

Implements E-RTMP v2 §"Enhancing NetConnection connect Command" and E-RTMP v2 §"Enhanced Video",
from the client's side.  A target that says nothing of enhanced RTMP may pass its media all the
same, as RTMP 1.0 §7.2.2.6 has no codec that players do not get.
"""

import os
from functools import partial
from typing import Final

from rtclab.conform.case import Cases, NotApplicable, Unmet
from rtclab.conform.checks import expect_equal
from rtclab.conform.rtmp.line import information
from rtclab.conform.rtmp.peer import AUDIO, VIDEO, RtmpPeer
from rtmplite.amf.values import Value
from rtmplite.rtmp.wire.capabilities import ANY, Ability, Capabilities, Extra
from rtmplite.rtmp.wire.command import Command

cases: Cases[RtmpPeer] = Cases()
should = partial(cases.case, role="server", level="SHOULD")
must = partial(cases.case, role="server")
CONNECT: Final = 'E-RTMP v2 §"Enhancing NetConnection connect Command"'
ENHANCED_VIDEO: Final = 'E-RTMP v2 §"Enhanced Video"'
ENHANCED_AUDIO: Final = 'E-RTMP v2 §"Enhanced Audio"'
START, FRAMES, END, FRAMES_X, MULTITRACK, MOD_EX = 0, 1, 2, 3, 6, 7  # packet types of video
KEY, INTER = 0x90, 0xA0  # IsExHeader and the frame type
SOUND: Final = 0x90  # sound format 9
MEMBERS: Final = ("fourCcList", "videoFourCcInfoMap", "audioFourCcInfoMap", "capsEx")
ALL: Final = Capabilities(
    (ANY,),
    {ANY: Ability.CAN_DECODE | Ability.CAN_ENCODE},
    {ANY: Ability.CAN_DECODE | Ability.CAN_ENCODE},
    Extra.RECONNECT | Extra.MULTITRACK | Extra.MOD_EX | Extra.TIMESTAMP_NANO_OFFSET,
)


@must('E-RTMP v1 §"Extending NetConnection connect Command"', "four-cc-list")
def list_of_codecs_is_accepted(peer: RtmpPeer) -> None:
    """A client with fourCcList alone, as version 1 has it, is accepted.

    E-RTMP v1 §"Extending NetConnection connect Command".
    """
    peer.connected(fourCcList=["av01", "vp09", "hvc1"])


@must(CONNECT, "info-maps")
def maps_of_codecs_are_accepted(peer: RtmpPeer) -> None:
    """A client with the maps and capsEx of version 2 is accepted.

    E-RTMP v2 §"Enhancing NetConnection connect Command".
    """
    peer.connected(**ALL.properties())


@should(CONNECT, "server-states-support")
def answer_states_support(peer: RtmpPeer) -> None:
    """The answer to a client with enhanced RTMP says what the server has of it.

    E-RTMP v2 §"Enhancing NetConnection connect Command".
    """
    if not _told(peer, **ALL.properties()):
        raise Unmet(f"one of {', '.join(MEMBERS)}", "none of them")


@should(CONNECT, "caps-ex")
def answer_has_caps_ex(peer: RtmpPeer) -> None:
    """capsEx of the answer is a number of which only four bits are known.

    E-RTMP v2 §"Enhancing NetConnection connect Command".
    """
    told = _told(peer, **ALL.properties())
    if not told:
        raise NotApplicable("the target says nothing of enhanced RTMP")
    found = told.get("capsEx")
    if not isinstance(found, float) or not 0 <= found <= sum(Extra):
        raise Unmet("a number up to 15", str(found))


@should(CONNECT, "four-cc-list")
def codecs_of_the_answer_are_four_ccs(peer: RtmpPeer) -> None:
    """fourCcList and the keys of the maps are FourCCs, or `*`.

    E-RTMP v2 §"Enhancing NetConnection connect Command".
    """
    told = _told(peer, **ALL.properties())
    if not told:
        raise NotApplicable("the target says nothing of enhanced RTMP")
    for name in MEMBERS[:3]:
        for codec in told.get(name) or ():  # type: ignore[union-attr]
            if not isinstance(codec, str) or len(codec) not in (1, 4):
                raise Unmet(f"FourCCs in {name}", str(codec))


@should('E-RTMP v1 §"Defining Additional Video Codecs"', "fourccs")
def hevc_comes_through(peer: RtmpPeer) -> None:
    """HEVC, with and without composition times, comes to the player.

    E-RTMP v1 §"Defining Additional Video Codecs".
    """
    _expect_video(peer, b"hvc1", composition=b"\x00\x00\x28")


@should(ENHANCED_VIDEO, "video-fourccs")
def av1_comes_through(peer: RtmpPeer) -> None:
    """AV1 comes to the player.

    E-RTMP v2 §"Enhanced Video".
    """
    _expect_video(peer, b"av01")


@should(ENHANCED_VIDEO, "video-fourccs")
def vp9_comes_through(peer: RtmpPeer) -> None:
    """VP9 comes to the player.

    E-RTMP v2 §"Enhanced Video".
    """
    _expect_video(peer, b"vp09")


@should(ENHANCED_VIDEO, "video-fourccs")
def avc_by_its_four_cc_comes_through(peer: RtmpPeer) -> None:
    """AVC that is named by its FourCC comes to the player.

    E-RTMP v2 §"Enhanced Video".
    """
    _expect_video(peer, b"avc1", composition=b"\x00\x00\x28")


@should(ENHANCED_AUDIO, "audio-fourccs")
def opus_comes_through(peer: RtmpPeer) -> None:
    """Opus comes to the player.

    E-RTMP v2 §"Enhanced Audio".
    """
    header = b"OpusHead\x01\x02\x38\x01\x80\xbb\x00\x00\x00\x00\x00"
    _expect_audio(peer, b"Opus", header)


@should(ENHANCED_AUDIO, "audio-fourccs")
def ac3_comes_through(peer: RtmpPeer) -> None:
    """AC-3, which has no header, comes to the player.

    E-RTMP v2 §"Enhanced Audio".
    """
    _expect_audio(peer, b"ac-3", b"")


@should(ENHANCED_VIDEO, "track-id")
def second_video_track_comes_through(peer: RtmpPeer) -> None:
    """Pictures of a second track come to the player.

    E-RTMP v2 §"Enhanced Video".
    """
    frame = _video(KEY, MULTITRACK, bytes((START,)) + b"av01\x01" + bytes(20))
    _expect(peer, VIDEO, [frame, _video(KEY, MULTITRACK, b"\x01av01\x01" + os.urandom(99))])


@should(ENHANCED_VIDEO, "mod-ex-chain")
def modified_packet_comes_through(peer: RtmpPeer) -> None:
    """A picture with an offset in nanoseconds comes to the player.

    E-RTMP v2 §"Enhanced Video".
    """
    offset = b"\x02\x00\x01\x00" + bytes((FRAMES,))  # three bytes; type 0, then frames
    frame = _video(KEY, MOD_EX, offset + b"av01" + os.urandom(99))
    _expect(peer, VIDEO, [_video(KEY, START, b"av01" + bytes(20)), frame])


@must(ENHANCED_VIDEO, "fails-controlled")
def unknown_four_cc_ends_nothing(peer: RtmpPeer) -> None:
    """After media of an unknown codec, and of an unknown packet type, all goes on.

    E-RTMP v2 §"Enhanced Video".
    """
    publisher, player = peer.pair()
    odd = [_video(KEY, FRAMES, b"x???" + bytes(9)), _video(KEY, 15, b"av01"), b"\x90"]
    publisher.send_all((VIDEO, 20 * at, payload) for at, payload in enumerate(odd))
    publisher.send_all((AUDIO, 20 * at, b"\x9fx???") for at in range(3))
    plain = b"\x82" + bytes(50)
    publisher.send(AUDIO, 100, plain)
    while next(player.media(AUDIO)).payload != plain:
        pass


@should(ENHANCED_VIDEO, "one-sequence-start")
def late_player_gets_the_enhanced_header(peer: RtmpPeer) -> None:
    """Who plays later gets the sequence start before other pictures.

    E-RTMP v2 §"Enhanced Video".
    """
    publisher = peer.publisher()
    header = _video(KEY, START, b"av01" + bytes.fromhex("81080c00"))
    frame = b"av01" + bytes.fromhex("12000a0b00000004")
    publisher.send_all([(VIDEO, 0, header), (VIDEO, 0, _video(KEY, FRAMES, frame))])
    publisher.line.between()
    player = peer.player(publisher.name)
    publisher.send(VIDEO, 40, _video(KEY, FRAMES, frame))
    expect_equal("picture", header.hex(), next(player.media(VIDEO)).payload.hex())


def _told(peer: RtmpPeer, **more: Value) -> dict[str, Value]:
    """What the answer to connect says of enhanced RTMP, in either of its objects."""
    answer: Command = peer.shaken().connect(**more)
    properties = answer.object if isinstance(answer.object, dict) else {}
    both = properties | information(answer)
    return {name: both[name] for name in MEMBERS if name in both}


def _video(frame: int, packet: int, rest: bytes) -> bytes:
    return bytes((frame | packet,)) + rest


def _expect_video(peer: RtmpPeer, codec: bytes, composition: bytes | None = None) -> None:
    """A sequence of pictures; `composition` is the time before those that have one."""
    frames = [_video(KEY, START, codec + bytes.fromhex("0142c01e") + bytes(20))]
    if composition is not None:
        frames.append(_video(KEY, FRAMES, codec + composition + os.urandom(200)))
        frames.append(_video(INTER, FRAMES_X, codec + os.urandom(99)))
    else:
        frames.append(_video(KEY, FRAMES, codec + os.urandom(200)))
        frames.append(_video(INTER, FRAMES, codec + os.urandom(99)))
    _expect(peer, VIDEO, [*frames, _video(KEY, END, codec)])


def _expect_audio(peer: RtmpPeer, codec: bytes, header: bytes) -> None:
    sounds = [bytes((SOUND | FRAMES,)) + codec + os.urandom(99) for _ in range(3)]
    if header:
        sounds.insert(0, bytes((SOUND | START,)) + codec + header)
    _expect(peer, AUDIO, sounds)


def _expect(peer: RtmpPeer, type_id: int, payloads: list[bytes]) -> None:
    """Publish, with all that enhanced RTMP has told at connect, and want all of it at a player."""
    publisher, player = peer.pair(**ALL.properties())
    sent = [(type_id, 20 * at, payload) for at, payload in enumerate(payloads)]
    publisher.send_all(sent)
    player.expect(sent)

"""Enhanced audio and video that every reader must refuse.

Own design, over the tables of E-RTMP v2 §"Enhanced Audio" and E-RTMP v2 §"Enhanced Video".  What
is unknown but has a known layout, such as a FourCC, is no fault.
"""

from typing import Final

from hypothesis import strategies as st

from rtmplite.strategies.faults import Fault, Octets, cut

_AUDIO: Final = 'E-RTMP v2 §"Enhanced Audio"'
_VIDEO: Final = 'E-RTMP v2 §"Enhanced Video"'
_CODEC: Final = st.sampled_from([b"Opus", b"mp4a", b"av01", b"hvc1", b"????"])
_DATA: Final = st.binary(max_size=12)
_PICTURES: Final = st.sampled_from([1, 2, 3, 4])  # frame types


def _audio(packet_type: int) -> Octets:
    return st.just(bytes((0x90 | packet_type,)))


def _video(packet_type: int) -> Octets:
    return _PICTURES.map(lambda frame: bytes((0x80 | frame << 4 | packet_type,)))


def _joined(*parts: Octets) -> Octets:
    return st.tuples(*parts).map(b"".join)


def _modifier(kind: int, data: bytes, following: int) -> bytes:
    return bytes((len(data) - 1,)) + data + bytes((kind << 4 | following,))


def _track(track_id: int, data: bytes) -> bytes:
    return bytes((track_id,)) + len(data).to_bytes(3, "big") + data


_TRACK: Final = st.builds(_track, st.integers(0, 255), st.binary(min_size=1, max_size=12))


def _cut_modifiers(head: Octets) -> Octets:
    sizes = st.integers(255, 0xFFFF).map(lambda size: b"\xff" + size.to_bytes(2, "big"))
    short = cut(st.binary(min_size=1, max_size=9).map(lambda data: _modifier(1, data, 1)))
    return _joined(head, short | _joined(sizes, _DATA))


def _layout(head: Octets, layouts: range, packet_type: int) -> Octets:
    """A message of tracks, whose second byte has the layout and the packet type of the tracks."""
    second = st.sampled_from(layouts).map(lambda layout: bytes((layout << 4 | packet_type,)))
    return _joined(head, second, _CODEC, _TRACK)


def _both(
    clause: str, head: Octets, modified: Octets, many: Octets, multitrack: int
) -> list[Fault[bytes]]:
    """The faults that both media can have, after the first byte of each."""
    offsets = st.binary(min_size=1, max_size=2).map(lambda data: _modifier(0, data, 1))
    tracks = {
        "layout missing": many,
        "unknown layout": _layout(many, range(3, 16), 1),
        "tracks within a track": _layout(many, range(3), multitrack),
        "modifier within a track": _layout(many, range(3), 7),
        "track id missing": _joined(many, st.just(b"\x03"), _CODEC),
        "track cut": _joined(many, st.just(b"\x13"), _CODEC, cut(_TRACK)),
        "codec of a track cut": _joined(many, st.just(b"\x23"), _CODEC, _TRACK, cut(_CODEC, 1)),
    }
    return [
        Fault("codec cut", clause, _joined(head, cut(_CODEC))),
        Fault("modifier cut", clause, _cut_modifiers(modified)),
        Fault("offset of less than three bytes", clause, _joined(modified, offsets, _CODEC, _DATA)),
        *(Fault(name, clause, octets) for name, octets in tracks.items()),
    ]


AUDIO_FAULTS: Final = (
    *_both(_AUDIO, _audio(1), _audio(7), _audio(5), 5),
    Fault("not enhanced", _AUDIO, _joined(st.integers(0, 0x8F).map(lambda b: bytes((b,))), _DATA)),
)
"""Every fault of enhanced audio: E-RTMP v2 §"Enhanced Audio"."""

_REORDERED: Final = st.sampled_from([b"avc1", b"hvc1", b"vvc1"])
_COMMAND: Final = st.integers(0, 3).map(lambda kind: bytes((0xD0 | kind,)))

VIDEO_FAULTS: Final = (
    *_both(_VIDEO, _video(1), _video(7), _video(6), 6),
    Fault("no header", _VIDEO, st.just(b"")),
    Fault("not enhanced", _VIDEO, _joined(st.integers(0, 0x7F).map(lambda b: bytes((b,))), _DATA)),
    Fault("composition time cut", _VIDEO, _joined(_video(1), _REORDERED, st.binary(max_size=2))),
    Fault("no command", _VIDEO, _COMMAND),
    Fault("command with a body", _VIDEO, _joined(_COMMAND, st.binary(min_size=2, max_size=9))),
)
"""Every fault of enhanced video: E-RTMP v2 §"Enhanced Video"."""

MULTICHANNEL_FAULTS: Final = (
    Fault("header cut", _AUDIO, st.sampled_from([b"", b"\x00", b"\x01", b"\x02"])),
    Fault("unknown order", _AUDIO, st.integers(3, 255).map(lambda order: bytes((order, 2, 0, 1)))),
    Fault(
        "channels of no order", _AUDIO, st.binary(min_size=1, max_size=9).map(b"\x00\x02".__add__)
    ),
    Fault("flags cut", _AUDIO, st.binary(max_size=3).map(b"\x01\x02".__add__)),
    Fault(
        "mapping cut", _AUDIO, st.integers(1, 24).map(lambda n: bytes((2, n)) + bytes(range(n - 1)))
    ),
)
"""Every fault of a multichannel configuration: E-RTMP v2 §"Enhanced Audio"."""

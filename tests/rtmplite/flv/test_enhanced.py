"""FourCCs, ModEx and tracks: what enhanced audio and video have in common."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtmplite.errors import LocalError, RemoteError
from rtmplite.flv import enhanced
from rtmplite.flv.enhanced import (
    ModEx,
    MultitrackType,
    nanosecond_offset,
    read_mod_ex,
    read_multitrack,
    read_tracks,
    write_mod_ex,
    write_tracks,
)
from rtmplite.strategies.enhanced import mod_ex

OPUS = enhanced.four_cc("Opus")


def test_a_fourcc_is_four_characters_in_order():
    """Covers E-RTMP v2 §"Simple Data Types" [big-endian]."""
    assert OPUS == 0x4F707573 == 1332770163 and enhanced.four_cc_text(OPUS) == "Opus"
    assert enhanced.four_cc("\xff\x00ab") == 0xFF006162
    for wrong in ("", "abc", "abcde"):
        with pytest.raises(LocalError):
            enhanced.four_cc(wrong)


def test_modifiers_come_one_after_another():
    """Covers E-RTMP v2 §"Enhanced Video" [mod-ex-chain] [mod-ex-size] [nano-offset].

    The nibble after each says what comes next; a kind that is unknown is stepped over.
    """
    raw = bytes.fromhex("97 01 aabb 37 02 0f423f 01 68766331")
    found, packet_type, at = read_mod_ex(raw, raw[0] & 15)
    assert found == [ModEx(3, b"\xaa\xbb"), ModEx(0, b"\x0f\x42\x3f")]
    assert (packet_type, raw[at:]) == (1, b"hvc1")
    assert [each.nanoseconds for each in found] == [None, 999_999]


@pytest.mark.parametrize(
    ("size", "head"), [(1, "00"), (255, "fe"), (256, "ff00ff"), (257, "ff0100"), (65536, "ffffff")]
)
def test_the_size_of_a_modifier_has_one_byte_or_three(size, head):
    """Covers E-RTMP v2 §"Enhanced Video" [mod-ex-size]: 255 announces sixteen bits."""
    raw = write_mod_ex(0x90, [ModEx(5, bytes(size))], 1)
    assert raw == b"\x97" + bytes.fromhex(head) + bytes(size) + b"\x51"
    assert read_mod_ex(raw, 7) == ([ModEx(5, bytes(size))], 1, len(raw))


@given(st.lists(mod_ex(), max_size=5), st.integers(0, 15).filter(lambda kind: kind != 7))
def test_modifiers_survive(modifiers, packet_type):
    """Covers E-RTMP v2 §"Enhanced Video" [mod-ex-chain]."""
    raw = write_mod_ex(0x90, modifiers, packet_type)
    assert read_mod_ex(raw, raw[0] & 15) == (modifiers, packet_type, len(raw))


def test_the_last_offset_counts():
    """Covers E-RTMP v2 §"Enhanced Video" [nano-offset]: less than a millisecond, in three bytes."""
    assert bytes(ModEx.offset(999_999).data).hex() == "0f423f"
    assert nanosecond_offset([]) == nanosecond_offset([ModEx(1, b"abc")]) == 0
    assert nanosecond_offset([ModEx(0, b"\0\0\1\xff"), ModEx(2, b"x")]) == 1
    assert ModEx.offset(0).nanoseconds == 0
    assert nanosecond_offset([ModEx.offset(7), ModEx(2, b"x"), ModEx.offset(500_000)]) == 500_000
    for wrong in (-1, 1_000_000):
        with pytest.raises(LocalError):
            ModEx.offset(wrong)


@pytest.mark.parametrize(
    "raw",
    [
        "97",
        "97 02",
        "97 02 0102",
        "97 02 010203",
        "97 ff",
        "97 ff 00",
        "97 01 0102 01",
        "97 00 07",
        "97" + "000057" * 17,
    ],
)
def test_broken_modifiers(raw):
    """Covers E-RTMP v2 §"Enhanced Video" [nano-offset] [mod-ex-size] [mod-ex-chain].

    What is too small for an offset, cut short, or endless.
    """
    with pytest.raises(RemoteError):
        read_mod_ex(bytes.fromhex(raw), 7)


@pytest.mark.parametrize("size", [0, 65537])
def test_a_modifier_has_a_size(size):
    """None of its sizes means 0, and none more than 65536."""
    with pytest.raises(LocalError):
        write_mod_ex(0x90, [ModEx(1, bytes(size))], 1)


@pytest.mark.parametrize(
    ("layout", "pieces", "raw"),
    [
        (None, [(0, OPUS, b"abc")], "4f707573 616263"),
        (0, [(7, OPUS, b"abc")], "01 4f707573 07 616263"),
        (1, [(0, OPUS, b"abc"), (2, OPUS, b"")], "11 4f707573 00 000003 616263 02 000000"),
        (2, [(0, OPUS, b"a"), (1, 1, b"b")], "21 4f707573 00 000001 61 00000001 01 000001 62"),
    ],
)
def test_the_layouts_of_tracks(layout, pieces, raw):
    """Covers E-RTMP v2 §"Enhanced Video" [multitrack-types] [track-id] [track-size].

    Covers E-RTMP v2 §"Multitrack Media Message Guidelines" [video-track-id] [audio-track-id]
    [all-tracks] [distinct-ids].
    """
    raw, at = bytes.fromhex(raw), 0
    assert write_tracks(1, pieces, layout) == raw
    if layout is not None:
        assert read_multitrack(raw, 0, 6) == (layout, 1)
        at = 1
    assert read_tracks(raw, at, layout) == pieces
    assert layout is None or layout in tuple(MultitrackType)


@pytest.mark.parametrize("layout", [0, 1, 2, None])
def test_every_cut_is_noticed(layout):
    """Covers E-RTMP v2 §"Enhanced Video" [track-size].

    A track that ends too early spoils the message; how much is there tells nothing else.
    """
    pieces = [(number, OPUS, b"four") for number in range(2 if layout in (1, 2) else 1)]
    raw = write_tracks(1, pieces, layout)
    start = 0 if layout is None else 1
    fails = []
    for end in range(start, len(raw)):
        try:
            read_tracks(raw[:end], start, layout)
        except RemoteError:
            fails.append(end)
    whole = {None: range(4, 8), 0: range(6, 10), 1: (5 + 8,), 2: (1 + 12,)}[layout]
    assert fails == [end for end in range(start, len(raw)) if end not in whole]


@pytest.mark.parametrize("raw", ["31", "f1", "16", "17"])
def test_layouts_and_packets_that_cannot_be(raw):
    """Covers E-RTMP v2 §"Enhanced Video" [multitrack-not-nested] [multitrack-types]."""
    with pytest.raises(RemoteError):
        read_multitrack(bytes.fromhex(raw), 0, 6)


def test_other_layouts_and_packets_can():
    """Covers E-RTMP v2 §"Enhanced Video" [multitrack-not-nested] [multitrack-types]."""
    for layout in MultitrackType:
        for kind in (0, 1, 2, 3, 4, 5, 8, 15):
            assert read_multitrack(bytes((layout << 4 | kind,)), 0, 6) == (layout, kind)


def test_no_more_tracks_than_ids():
    """Covers E-RTMP v2 §"Enhanced Video" [process-completely]: unless there are too many.

    Bounded: a message of more tracks than there are numbers is refused, both ways.
    """
    many = [(number & 255, OPUS, b"") for number in range(257)]
    raw = b"\x11Opus" + b"".join(bytes((number, 0, 0, 0)) for number, _, _ in many)
    assert len(read_tracks(raw[:-4], 1, 1)) == 256
    with pytest.raises(RemoteError):
        read_tracks(raw, 1, 1)
    with pytest.raises(LocalError):
        write_tracks(1, many, 1)


@pytest.mark.parametrize(
    ("pieces", "layout"),
    [
        ([], 1),
        ([(0, 1, b""), (1, 1, b"")], 0),
        ([(0, 1, b""), (1, 1, b"")], None),
        ([(0, 1, b""), (1, 2, b"")], 1),
        ([(0, 1, bytes(1 << 24))], 1),
        ([(3, 1, b"a"), (3, 1, b"b")], 1),
        ([(3, 1, b"a"), (3, 2, b"b")], 2),
    ],
)
def test_tracks_that_no_layout_holds(pieces, layout):
    """Covers E-RTMP v2 §"Enhanced Video" [multitrack-types] [track-size].

    Covers E-RTMP v2 §"Multitrack Media Message Guidelines" [distinct-ids].
    One track where one fits, one codec where one is named, sizes of three bytes, an id of its own
    for each.
    """
    with pytest.raises(LocalError):
        write_tracks(1, pieces, layout)


def test_the_longest_track():
    """Covers E-RTMP v2 §"Enhanced Video" [track-size]."""
    raw = write_tracks(1, [(0, OPUS, bytes((1 << 24) - 1))], 1)
    assert raw[:9] == b"\x11Opus\0\xff\xff\xff" and len(raw) == 9 + (1 << 24) - 1

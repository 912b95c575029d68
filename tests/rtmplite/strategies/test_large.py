"""What the strategies draw at the limits is read, and written again as it was."""

from itertools import islice

import pytest
from support.faults import batches

from rtmplite.amf import amf0, amf3
from rtmplite.amf.cursor import MAX_DEPTH
from rtmplite.flv.enhanced import MAX_MOD_EX, MAX_TRACKS
from rtmplite.rtmp.wire.chunk_reader import BLOCK, ChunkReader
from rtmplite.rtmp.wire.chunk_writer import ChunkWriter
from rtmplite.strategies import amf, large

BATCHES = 10  # 500 draws: each limit is one of some twenty kinds of value


def depth(value):
    """How many containers are in each other, one in each."""
    found = 0
    while isinstance(value, list | dict) and len(value) == 1:
        value = value[0] if isinstance(value, list) else value["a"]
        found += 1
    return found


@pytest.mark.parametrize("version", [amf0, amf3])
def test_values_at_the_limits_come_back(version):
    """Covers AMF0 §2.4, §2.14, AMF3 §1.3.1 and §1.3.2: and each limit is reached."""
    reached = set()
    for batch in islice(batches(large.values()), BATCHES):
        for value in batch:
            (back,) = version.decode(version.encode(value))
            assert amf.alike(back, value)
            match value:
                case str():
                    reached.add(len(value.encode()))
                case list() | dict() if len(value) > 1:
                    reached.add(("items", type(value), type(next(iter(value)))))
                case _:
                    reached.add(("depth", type(value), depth(value)))
    assert {63, 64, 8191, 8192, large.LONG - 1, large.LONG} <= reached
    assert sum(each[0] == "items" for each in reached if isinstance(each, tuple)) >= 5
    assert {each[1] for each in reached if isinstance(each, tuple) and each[2] == MAX_DEPTH} == {
        list, dict, amf.EcmaArray
    }  # fmt: skip


def test_messages_of_many_chunks_come_back():
    """Covers RTMP 1.0 §5.3: on either side of a block of memory."""
    reached = set()
    for batch in islice(batches(large.messages()), 2):
        for message in batch:
            assert ChunkReader().feed(ChunkWriter().write(message, 4)) == [message]
            reached.add(len(message.payload))
    assert {BLOCK - 1, BLOCK, BLOCK + 1, large.LONG} == reached


def test_as_many_tracks_as_there_are_ids_come_back():
    """Covers E-RTMP v2 §"Enhanced Audio" and E-RTMP v2 §"Enhanced Video"."""
    reached = set()
    for batch in islice(batches(large.tracks()), BATCHES):
        for tag in batch:
            assert type(tag).parse(bytes(tag)) == tag
            reached.add((type(tag), len(tag.tracks), len(tag.mod_ex)))
    kinds = {
        kind
        for kind, tracks, modifiers in reached
        if (tracks, modifiers) == (MAX_TRACKS, MAX_MOD_EX)
    }
    assert len(kinds) == 2

"""RTMP messages as payloads of x-flv, and back, whatever is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2psip.errors import LocalError, RemoteError
from siprtmp.media.translate.x_flv import (
    MAX_MESSAGE,
    PIECE,
    VIDEO,
    TunnelAssembler,
    TunnelMessage,
    pack,
)

TYPES = st.sampled_from([8, 9, 18]) | st.integers(0, 2**32 - 1)
MESSAGES = st.builds(
    TunnelMessage, TYPES, st.integers(0, 2**32 - 1), st.binary(max_size=3 * PIECE + 50)
)


def everything(assembler, payloads):
    """What an assembler makes of payloads, passing over malformed ones."""
    found = []
    for payload in payloads:
        try:
            message = assembler.put(payload)
        except RemoteError:
            continue
        if message is not None:
            found.append(message)
    return found


@given(st.lists(MESSAGES, max_size=6), st.integers(0, 2**32 - 7))
def test_what_is_packed_comes_out(messages, first):
    """Own design: at most 1000 octets of a message in each payload."""
    payloads = [pack(each, first + at) for at, each in enumerate(messages)]
    pieces = [piece for each in payloads for piece in each]
    assert all(len(piece) <= PIECE + 12 for piece in pieces)
    assert everything(assembler := TunnelAssembler(), pieces) == messages
    assert assembler.lost == 0 and not assembler.has_lost_frame


def test_the_layout_that_the_original_has():
    """Own design: the fields of a message that is in two pieces, octet by octet."""
    body = bytes(range(256)) * 4
    first, second = pack(TunnelMessage(9, 0x01020304, body), 0x0A0B0C0D)
    whole = bytes.fromhex("00000009 00000400 01020304") + body
    assert first == bytes.fromhex("52544d50 0a0b0c0d 0000 040c") + whole[:1000]
    assert second == bytes.fromhex("52544d50 0a0b0c0d 0001") + whole[1000:]


def test_a_message_that_its_length_cannot_tell():
    """Own design: 16 bits."""
    largest = TunnelMessage(9, 0, bytes(MAX_MESSAGE - 12))
    assert everything(TunnelAssembler(), pack(largest, 1)) == [largest]
    with pytest.raises(LocalError):
        pack(TunnelMessage(9, 0, bytes(MAX_MESSAGE - 11)), 1)


@given(st.lists(MESSAGES, min_size=2, max_size=8), st.data())
def test_a_missing_piece_costs_its_message_alone(messages, data):
    """Own design: and a picture that was lost is noticed with the next message that comes."""
    assembler, missing, whole, has_lost = TunnelAssembler(), 0, [], False
    for number, message in enumerate(messages):
        pieces = pack(message, number)
        is_kept = [data.draw(st.booleans()) for _ in pieces]
        if number in (0, len(messages) - 1):
            is_kept = [True] * len(pieces)
        has_lost |= message.type_id == VIDEO and bool(message.body) and not all(is_kept)
        whole += [message] if all(is_kept) else []
        for piece, kept in zip(pieces, is_kept, strict=True):
            if not kept:
                missing += 1
            else:
                found = assembler.put(piece, missing)
                missing = 0
                assert found is None or found == whole[-1]
    assert assembler.lost == len(messages) - len(whole)
    assert assembler.has_lost_frame or not has_lost
    if all(len(each.body) < PIECE - 12 for each in messages):
        assert assembler.has_lost_frame == has_lost


def test_a_small_picture_is_in_two_pieces():
    """Own design: that tells its loss from that of a sound."""
    sound, small = TunnelMessage(8, 0, b"sound"), TunnelMessage(VIDEO, 0, b"x")
    assert [len(pack(each, 1)) for each in (sound, small)] == [1, 2]
    for lost, count in ((sound, 1), (small, 2)):
        assembler = TunnelAssembler()
        for number, message, missing in ((1, sound, 0), (3, sound, count)):
            assert assembler.put(pack(message, number)[0], missing) == message
        assert assembler.lost == 1 and assembler.has_lost_frame == (lost is small)


@given(st.lists(st.binary(max_size=40) | st.builds(lambda m, n: pack(m, n)[0], MESSAGES,
                                                   st.integers(0, 9)), max_size=9))  # fmt: skip
def test_no_payload_breaks_it(payloads):
    """Own design: RemoteError or nothing, and no more is kept than one message."""
    assembler = TunnelAssembler()
    everything(assembler, payloads)
    assert sum(map(len, assembler._pieces)) <= MAX_MESSAGE + PIECE + 100
    after = TunnelMessage(8, 1, b"sound")
    assert everything(assembler, pack(after, 77)) == [after]


def test_empty_pieces_end_their_message():
    """Own design: nobody makes them, and a message of any number of them would cost memory."""
    assembler, payloads = TunnelAssembler(), pack(TunnelMessage(9, 1, bytes(3 * PIECE)), 7)
    assert everything(assembler, payloads[:1]) == [] and assembler.lost == 0
    with pytest.raises(RemoteError):
        assembler.put(payloads[1][:10])
    assert assembler.lost == 1 and assembler.has_lost_frame and assembler._pieces == []
    assert everything(assembler, payloads[1:]) == []
    assert everything(assembler, pack(TunnelMessage(8, 2, b"sound"), 8)) == [(8, 2, b"sound")]


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"RTMP",
        b"FLV\1" + bytes(30),
        pack(TunnelMessage(8, 0, b"x"), 1)[0][:20],  # no whole header
        pack(TunnelMessage(8, 0, b"x"), 1)[0] + b"more",
        b"RTMP" + bytes(6) + b"\0\x0d" + bytes(13),  # another length of the body
    ],
)
def test_malformed(payload):
    """Own design: RemoteError."""
    with pytest.raises(RemoteError):
        TunnelAssembler().put(payload)

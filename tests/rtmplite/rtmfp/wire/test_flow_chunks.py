"""User data, probes and exceptions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtmplite.errors import LocalError, RemoteError
from rtmplite.rtmfp.wire.chunks import PARSERS, encode_chunk, parse_chunks
from rtmplite.rtmfp.wire.flow_chunks import (
    BufferProbe,
    FlowException,
    FragmentControl,
    NextUserData,
    UserData,
    flow_options,
    has_unknown_option,
    read_flow_options,
)
from rtmplite.rtmfp.wire.option import Option
from rtmplite.strategies.rtmfp import next_user_data, numbers, openings, user_data

WHOLE, BEGIN, END, MIDDLE = FragmentControl
OPENING = flow_options(b"TC", 0x80)

VECTORS = [
    (UserData(2, 5, 3, b"\0\1\2"), "00 02 05 03 000102"),
    (UserData(0x80, 0x81, 1, b"", BEGIN), "10 8100 8101 01"),
    (UserData(2, 5, 3, b"!", END, final=True), "21 02 05 03 21"),
    (UserData(2, 5, 3, b"!", MIDDLE, abandon=True), "32 02 05 03 21"),
    (UserData(2, 5, 0, b"", abandon=True), "02 02 05 00"),
    (UserData(2, 0, 0, b"", abandon=True, final=True), "03 02 00 00"),
    (UserData(2, 5, 3, b"!", options=()), "80 02 05 03 00 21"),
    (UserData(2, 1, 1, b"!", options=OPENING), "80 02 01 01 03 00 5443 03 0a 8100 00 21"),
    (NextUserData(b"\3\4\5"), "00 030405"),
    (NextUserData(b"", END, True, True, ()), "a3 00"),
    (NextUserData(b"!", BEGIN, options=(Option(0),)), "90 01 00 00 21"),
    (BufferProbe(0x80), "8100"),
    (FlowException(0x80, 3), "8100 03"),
]


@pytest.mark.parametrize(("chunk", "payload"), VECTORS)
def test_each_field_has_its_place(chunk, payload):
    """Covers RFC 7016 §2.3.11 [user-data-layout] [fragment-control].

    And §2.3.12 [next-user-data-layout], §2.3.15 [buffer-probe-layout],
    §2.3.16 [flow-exception-layout].
    """
    wire = bytes.fromhex(payload)
    assert chunk.encode() == wire
    assert type(chunk).parse(wire) == chunk


@given(user_data() | next_user_data())
def test_reading_undoes_writing(chunk):
    """Covers RFC 7016 §2.3 [chunk-layout]."""
    assert parse_chunks(encode_chunk(chunk)) == [chunk]


def test_the_forward_sequence_number_is_so_far_behind():
    """Covers RFC 7016 §2.3.11 [user-data-layout], as in RFC 7016 Figure 3."""
    assert UserData.parse(bytes.fromhex("00020503000102")).forward_sequence_number == 2


@pytest.mark.parametrize("reserved", [0x40, 0x08, 0x04, 0x4C])
def test_reserved_bits_are_ignored_and_left_clear(reserved):
    """Covers RFC 7016 §2 [reserved-ignored] [reserved-clear]."""
    chunk = UserData(2, 5, 3, b"!", END)
    wire = bytes([0x20 | reserved]) + b"\2\5\3!"
    assert UserData.parse(wire) == chunk
    assert UserData.parse(wire).encode()[0] == 0x20
    assert NextUserData.parse(bytes([reserved])).encode() == b"\0"


@pytest.mark.parametrize("chunk", [UserData(2, 5, 6, b"!"), UserData(2, 5, 6, abandon=True)])
def test_no_forward_sequence_number_is_below_0(chunk):
    """Covers RFC 7016 §2.3.11 [fsn-offset-not-greater]."""
    with pytest.raises(LocalError):
        chunk.encode()
    with pytest.raises(RemoteError):
        UserData.parse(bytes([chunk.abandon << 1]) + b"\2\5\6!")
    lowest = UserData(2, 5, 5, b"!")
    assert UserData.parse(lowest.encode()) == lowest and lowest.forward_sequence_number == 0


def test_only_what_is_abandoned_can_be_its_own_forward_sequence_number():
    """Covers RFC 7016 §2.3.11 [fsn-offset-not-zero]."""
    with pytest.raises(LocalError):
        UserData(2, 5, 0, b"!").encode()
    with pytest.raises(RemoteError):
        UserData.parse(b"\0\2\5\0!")
    assert UserData.parse(b"\2\2\5\0!").forward_sequence_number == 5
    for chunk in (
        UserData(2, 5, 0, abandon=True),
        UserData(2, 5, 1),
        UserData(2, 5, 1, b"", 0, True),
    ):
        assert UserData.parse(chunk.encode()) == chunk


@given(user_data(), next_user_data())
def test_the_next_chunk_has_the_next_number(first, following):
    """Covers RFC 7016 §2.3.12 [next-number]."""
    spelled = following.after(first)
    assert spelled.flow_id == first.flow_id
    assert spelled.sequence_number == first.sequence_number + 1
    assert spelled.forward_sequence_number == first.forward_sequence_number
    shared = ("data", "fragment_control", "abandon", "final", "options")
    assert [getattr(spelled, name) for name in shared] == [
        getattr(following, name) for name in shared
    ]


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (0x10, ""),
        (0x10, "00 02 05"),
        (0x10, "00 02 05 83"),
        (0x10, "80 02 05 03"),
        (0x10, "80 02 05 03 03 00 54"),
        (0x10, "80 02 05 03 01 00"),
        (0x11, ""),
        (0x11, "80"),
        (0x11, "80 02 00 54"),
        (0x18, ""),
        (0x18, "80"),
        (0x5E, "02"),
        (0x5E, "02 80"),
    ],
)
def test_what_is_cut_off_is_refused(kind, payload):
    """Covers RFC 7016 §2 [truncation-noticed]."""
    with pytest.raises(RemoteError):
        PARSERS[kind](bytes.fromhex(payload))


@given(st.binary(max_size=512), st.none() | numbers())
def test_options_open_a_flow(metadata, answered):
    """Covers RFC 7016 §2.3.11.1 [options-supported], §2.3.11.1.1 [metadata-layout] [has-metadata].

    And §2.3.11.1.2 [association-layout] [one-at-most].
    """
    options = flow_options(metadata, answered)
    assert options[0] == Option(0x00, metadata)
    assert [option.type_id for option in options[1:]] == ([] if answered is None else [0x0A])
    assert read_flow_options(options) == (metadata, answered)


@given(openings())
def test_the_options_of_a_flow_come_in_any_order(options):
    """Covers RFC 7016 §2.3.11.1 [unknown-passed-by], §2.3.11.1.1 [has-metadata]."""
    metadata, answered = read_flow_options(options)
    assert Option(0, metadata) in options
    assert (answered is None) == all(option.type_id != 0x0A for option in options)


def test_512_bytes_of_metadata_are_enough():
    """Covers RFC 7016 §2.3.11.1.1 [512-bytes]."""
    assert flow_options(bytes(512))
    with pytest.raises(LocalError):
        flow_options(bytes(513))
    assert read_flow_options([Option(0, bytes(600))]) == (bytes(600), None)


@pytest.mark.parametrize(
    "options",
    [
        [],
        [Option(0x0A, b"\2")],
        [Option(0, b"TC"), Option(0x1FFF)],
        [Option(0, b"TC"), Option(1, b"?")],
        [Option(0, b"TC"), Option(0x0A, b"\2"), Option(0x0A, b"\2")],
        [Option(0, b"TC"), Option(0x0A, b"\x80")],
        [Option(0, b"TC"), Option(0x0A, b"")],
    ],
)
def test_a_flow_that_says_what_nobody_can_follow_is_rejected(options):
    """Covers RFC 7016 §2.3.11.1 [unknown-rejects], §2.3.11.1.1 [has-metadata].

    And §2.3.11.1.2 [one-at-most].
    """
    with pytest.raises(RemoteError):
        read_flow_options(options)


def test_unknown_options_from_8192_on_are_passed_by():
    """Covers RFC 7016 §2.3.11.1 [unknown-passed-by] [unknown-rejects]."""
    options = [Option(0x2000, b"?"), Option(0, b""), Option(1 << 40)]
    assert read_flow_options(options) == (b"", None)
    assert not has_unknown_option(options)
    assert has_unknown_option([*options, Option(0x1FFF)])

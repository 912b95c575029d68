"""Options and the lists of them."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations, peak

from rtmplite.errors import RemoteError
from rtmplite.rtmfp.wire.option import (
    MARKER,
    Option,
    encode_options,
    parse_option_list,
    parse_options,
)
from rtmplite.strategies.rtmfp import options

LISTS = st.lists(options(), max_size=4)


@given(LISTS, st.binary(max_size=3), st.sampled_from([bytes, memoryview]))
def test_a_list_is_read_as_far_as_its_marker(given_options, rest, kind):
    """Covers RFC 7016 §2.1.3 [option-layout] [marker], §2.1.4 [list-ends]."""
    data = encode_options(given_options, marker=True)
    assert data.endswith(MARKER)
    wire = kind(b"!" + data + rest)
    assert parse_options(wire, 1) == (given_options, 1 + len(data))
    assert parse_option_list(wire, 1) == (tuple(given_options), 1 + len(data))


@given(LISTS)
def test_a_list_without_a_marker_ends_with_its_field_or_not_at_all(given_options):
    """Covers RFC 7016 §2.1.4 [list-ends]."""
    data = encode_options(given_options)
    assert parse_options(data) == (given_options, len(data))
    with pytest.raises(RemoteError):
        parse_option_list(data)


@pytest.mark.parametrize(
    ("data", "option"),
    [
        ("03 00 54 43", Option(0, b"TC")),
        ("01 0a", Option(10)),
        ("04 c0 00 61 62", Option(0x2000, b"ab")),
        ("80 02 0a 02", Option(10, b"\x02")),
    ],
)
def test_length_counts_type_and_value(data, option):
    """Covers RFC 7016 §2.1.3 [option-layout]."""
    assert parse_options(bytes.fromhex(data)) == ([option], len(bytes.fromhex(data)))


@pytest.mark.parametrize("data", ["02 0a", "01 80", "05 00 54", "80", "ff ff ff 7f 00"])
def test_an_option_that_is_cut_off_is_refused(data):
    """Covers RFC 7016 §2 [truncation-noticed]."""
    for parse in (parse_options, parse_option_list):
        with pytest.raises(RemoteError):
            parse(bytes.fromhex(data))


@given(mutations(LISTS.map(lambda found: encode_options(found, marker=True))))
def test_any_bytes_are_read_or_refused(data):
    """Covers RFC 7016 §2 [truncation-noticed]."""
    try:
        found, end = parse_options(data)
    except RemoteError:
        event("refused")
        return
    event("read")
    assert 0 <= end <= len(data) and parse_options(encode_options(found))[0] == found


@pytest.mark.parametrize("unit", [b"\x01\x05", b"\x02\x81\x00", b"\x03\x83\x00!", b"\x02\x05!"])
def test_memory_is_bounded(unit):
    """Covers RFC 7016 §2.1.3 [option-layout]: thousands of tiny options take no more than that."""
    for data in (unit * 20, unit * (65536 // len(unit))):
        assert peak(lambda data=data: parse_options(data)) <= 32 * len(data) + 65536
        data += MARKER
        assert peak(lambda data=data: parse_option_list(data)) <= 32 * len(data) + 65536

"""Lists of options to their last byte."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.mutations import mutations, peak

from rtmplite.errors import RemoteError
from rtmplite.rtmfp.crypto import fields
from rtmplite.rtmfp.wire.option import MARKER, Option, encode_options
from rtmplite.strategies.rtmfp_crypto import unknown_options

LISTS = st.lists(unknown_options(), max_size=6)


@given(LISTS, LISTS)
def test_markers_are_passed_over(before, after):
    """RFC 7425 §4.3.1: what comes after a marker is read as well."""
    data = encode_options(before) + MARKER * 2 + encode_options(after)
    assert fields.read(data) == before + after


@given(LISTS.filter(bool), st.data())
def test_cut_option_aborts_all(options, data):
    """Covers RFC 7425 §3 [truncation-noticed] [error-aborts-element]."""
    encoded = encode_options(options)
    last = len(encode_options(options[-1:]))
    with pytest.raises(RemoteError):
        fields.read(encoded[: -data.draw(st.integers(1, last - 1))])


def test_more_options_than_anybody_has():
    """Covers RFC 7425 §3 [error-aborts-element]: a stranger's list is read up to a limit."""
    most = fields.OPTIONS_MOST
    options = [Option(9, b"x")] * most
    assert fields.read(encode_options(options)) == options
    assert fields.read(encode_options(options[: most // 2]) * 2) == options
    assert fields.read(MARKER * most) == []
    with pytest.raises(RemoteError, match="options"):
        fields.read(encode_options([*options, Option(9, b"x")]))
    with pytest.raises(RemoteError, match="options"):
        fields.read(encode_options(options[1:]) + MARKER + encode_options(options[:2]))
    with pytest.raises(RemoteError, match="Markers"):
        fields.read(MARKER * (most + 1))


def test_only_one():
    """RFC 7425 §4.3.3.1 and its like: none, one, or an error."""
    options = [Option(1, b"a"), Option(2, b"b"), Option(2, b"c")]
    assert fields.only(options, 0) is None
    assert fields.only(options, 1) == b"a"
    assert fields.values(options, 2) == [b"b", b"c"]
    with pytest.raises(RemoteError, match="more than once"):
        fields.only(options, 2)


@given(st.integers(0, 1 << 30), st.integers(0, 1 << 2048))
def test_keys(group, public):
    """Covers RFC 7425 §4.5.2.1 [ephemeral-key-layout]."""
    assert fields.read_key(fields.write_key(group, public)) == (group, public)
    assert fields.read_key(fields.write_key(group, 0) + b"\0\0\x07") == (group, 7)


@given(mutations(LISTS.map(encode_options)))
def test_never_crashes(data):
    """RFC 7425 §3: options, or RemoteError."""

    def attempt():
        with suppress(RemoteError):
            fields.read(data)

    assert peak(attempt) <= 32 * len(data) + 65536

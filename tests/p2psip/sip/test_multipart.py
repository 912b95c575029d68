"""Bodies of several parts come out as they went in, and no body does harm."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations, peak

from p2psip.errors import LocalError, RemoteError
from p2psip.sip.headers import Headers
from p2psip.sip.multipart import (
    MAX_DEPTH,
    MAX_PARTS,
    Part,
    leaves,
    parse_multipart,
    write_multipart,
)

MIXED = "multipart/mixed;boundary=b1"
types = st.sampled_from(["application/sdp", "text/plain;charset=utf-8", "application/isup"])
headers = st.lists(st.tuples(st.just("Content-Type"), types), max_size=1).map(Headers)
bodies = st.binary(max_size=30) | st.sampled_from([b"", b"\r\n", b"--b2", b"\r\n\r\n--", b"-b1"])
parts = st.lists(st.builds(Part, headers, bodies), min_size=1, max_size=4).map(tuple)


@given(parts)
def test_parsing_undoes_writing(some):
    """Covers RFC 2046 §5.1.1 [crlf-is-the-delimiters]."""
    assert parse_multipart(MIXED, write_multipart(some, "b1")) == some


@given(mutations(parts.map(lambda some: write_multipart(some, "b1"))) | st.binary())
def test_no_body_crashes(data):
    """Covers RFC 2046 §5.1.1: parts, or RemoteError, nothing else."""
    try:
        found = parse_multipart(MIXED, data)
    except RemoteError as error:
        event(str(error))
        return
    event("accepted")
    assert len(found) <= MAX_PARTS


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b"--b1\r\n\r\na\r\n--b1--", [b"a"]),
        (b"read\r\nthis\r\n--b1\r\n\r\na\r\n--b1--\r\nand that\r\n--b1\r\n", [b"a"]),
        (b"--b1  \t\r\n\r\na\r\n--b1 \r\n\r\nb\r\n--b1-- \r\n", [b"a", b"b"]),
        (b"--b1\r\n\r\nx--b1\r\n--b12\r\n--b1--", [b"x--b1\r\n--b12"]),
        (b"--b1\r\nSubject: x\r\n--b1--", [b""]),
        (b"--b1\r\n--b1--", [b""]),
        (b"--b1--", []),
    ],
)
def test_where_a_part_ends(body, found):
    """Covers RFC 2046 §5.1.1 [delimiter-begins-a-line] [spaces-behind-a-delimiter].

    And RFC 2046 §5.1.1 [preamble-is-ignored].
    """
    assert [part.body for part in parse_multipart(MIXED, body)] == found


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        (MIXED, b""),
        (MIXED, b"--b1\r\n\r\nno end"),
        (MIXED, b"--b1\r\nno header\r\n\r\n--b1--"),
        (MIXED, b"--b1\r\n\r\n" * (MAX_PARTS + 1) + b"\r\n--b1--"),
        ("multipart/mixed", b"--\r\n\r\n--\r\n--"),
        ('multipart/mixed;boundary="x "', b"--x \r\n\r\na\r\n--x --"),
        (f"multipart/mixed;boundary={'x' * 71}", b""),
        ("text/plain;boundary=b1", b"--b1--"),
    ],
)
def test_what_has_no_parts_is_refused(content_type, body):
    """Covers RFC 2046 §5.1.1 [boundary-is-named]."""
    with pytest.raises(RemoteError):
        parse_multipart(content_type, body)


@pytest.mark.parametrize(
    ("some", "boundary"),
    [
        ([Part()], ""),
        ([Part()], "x "),
        ([Part()], "x" * 71),
        ([], "b1"),
        ([Part(body=b"a\r\n--b1\r\nb")], "b1"),
        ([Part(Headers([("Subject", "a\r\nb")]))], "b1"),
        ([Part(Headers([("Subject", "a\rb")]))], "b1"),
        ([Part(Headers([("Subject", "a\nb")]))], "b1"),
    ],
)
def test_what_cannot_be_told_apart_is_not_written(some, boundary):
    """Covers RFC 2046 §5.1.1 [boundary-not-inside] [boundary-is-named]."""
    assert write_multipart([Part(Headers([("Subject", "a")]))], "b1")
    with pytest.raises(LocalError):
        write_multipart(some, boundary)


def nested(depth):
    """Parts within parts, each with a boundary of its own."""
    part = Part(Headers([("Content-Type", "text/plain")]), b"core")
    for level in range(depth):
        content_type = ("Content-Type", f"multipart/mixed;boundary=in{level}")
        part = Part(Headers([content_type]), write_multipart([part], f"in{level}"))
    return part


def test_parts_within_parts_are_bounded():
    """Covers RFC 2046 §5.1.1 [one-syntax]: alternative as mixed; recursion has an end."""
    inner = Part(Headers([("Content-Type", 'multipart/alternative;boundary="in ner"')]),
                 write_multipart([Part(body=b"1"), Part(body=b"2")], "in ner"))  # fmt: skip
    whole = write_multipart([Part(body=b"0"), inner, Part(body=b"3")], "b1")
    assert [part.body for part in leaves(MIXED, whole)] == [b"0", b"1", b"2", b"3"]
    [core] = leaves(MIXED, write_multipart([nested(MAX_DEPTH - 1)], "b1"))
    assert core.body == b"core"
    with pytest.raises(RemoteError):
        list(leaves(MIXED, write_multipart([nested(MAX_DEPTH)], "b1")))
    data = write_multipart([inner] * MAX_PARTS, "b1")
    assert peak(lambda: list(leaves(MIXED, data))) <= 32 * len(data) + 65536

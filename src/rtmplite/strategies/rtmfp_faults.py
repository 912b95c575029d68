"""RTMFP packets, chunks and startup components that every reader must refuse.

Own design, over RFC 7016 §2 and RFC 7425 §4 and §5.  A receiver leaves out a broken chunk and reads
the rest of the packet (RFC 7016 §2.3).  So a broken chunk is drawn alone, by type and payload.
"""

from typing import Final, TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from rtmplite.rtmfp.wire.option import Option, encode_options
from rtmplite.rtmfp.wire.vlu import encode_counted, encode_vlu
from rtmplite.strategies.faults import Fault, Octets, cut

Chunk: TypeAlias = tuple[int, bytes]  # type and payload

_BYTES: Final = st.binary(max_size=12)
_COUNTED: Final = _BYTES.map(encode_counted)
_TOO_SHORT: Final = cut(st.binary(min_size=1, max_size=12).map(encode_counted))
_ADDRESS: Final = st.one_of(
    st.binary(min_size=6, max_size=6).map(b"\x02".__add__),
    st.binary(min_size=18, max_size=18).map(b"\x82".__add__),
)
_VLU: Final = st.integers(0, 1 << 40).map(encode_vlu)
OPEN_VLU: Final = st.binary(max_size=3).map(lambda data: bytes(byte | 0x80 for byte in data))
"""Numbers whose last byte is missing: RFC 7016 §2.1.2."""
LONG_VLU: Final = st.integers(1 << 64, 1 << 70).map(
    lambda number: (
        b"".join(bytes((number >> shift & 0x7F | 0x80,)) for shift in range(70, 0, -7))
        + bytes((number & 0x7F,))
    )
)
"""Numbers that need more than 64 bits: RFC 7016 §2.1.2."""


def _joined(*parts: Octets) -> Octets:
    return st.tuples(*parts).map(b"".join)


def _flags(fixed: int) -> Octets:
    """The first byte of a packet; its mode is not 0, its reserved bits are any: RFC 7016 §2.2.4."""
    return st.builds(
        lambda mode, rest: bytes((fixed | mode | rest,)),
        st.integers(1, 3),
        st.sampled_from([0, 0x80, 0x40, 0x30]),
    )


_PING: Final = b"\x01\x00\x02hi"

PACKET_FAULTS: Final = (
    Fault("no flags", "RFC 7016 §2.2.4", st.just(b"")),
    Fault(
        "mode 0",
        "RFC 7016 §2.2.4",
        st.integers(0, 63).map(lambda rest: bytes((rest << 2,)) + bytes(4) + _PING),
    ),
    Fault("timestamp cut", "RFC 7016 §2.2.4", _joined(_flags(0x08), st.binary(max_size=1))),
    Fault("echo cut", "RFC 7016 §2.2.4", _joined(_flags(0x04), st.binary(max_size=1))),
    Fault(
        "echo after timestamp cut",
        "RFC 7016 §2.2.4",
        _joined(_flags(0x0C), st.binary(min_size=2, max_size=3)),
    ),
)
"""Every fault of a packet: RFC 7016 §2.2.4."""


def _chunk(name: str, section: str, type_id: int, *parts: Octets) -> Fault[Chunk]:
    payloads = _joined(*parts).map(lambda payload: (type_id, payload))
    return Fault(name, f"RFC 7016 §{section}", payloads)


_SESSION_ID: Final = st.binary(min_size=4, max_size=4)

STARTUP_FAULTS: Final = (
    _chunk("discriminator cut", "2.3.2", 0x30, _TOO_SHORT),
    _chunk("number not ended", "2.1.2", 0x30, OPEN_VLU),
    _chunk("number of more than 64 bits", "2.1.2", 0x30, LONG_VLU, _BYTES),
    _chunk("tag cut", "2.3.4", 0x70, _TOO_SHORT),
    _chunk("cookie cut", "2.3.4", 0x70, _COUNTED, _TOO_SHORT),
    _chunk("tag of a redirect cut", "2.3.5", 0x71, _TOO_SHORT),
    _chunk("address of a redirect cut", "2.3.5", 0x71, _COUNTED, _ADDRESS, cut(_ADDRESS, 1)),
    _chunk("old cookie cut", "2.3.6", 0x79, _TOO_SHORT),
    _chunk("session id of the initiator cut", "2.3.7", 0x38, cut(_SESSION_ID)),
    _chunk("echoed cookie cut", "2.3.7", 0x38, _SESSION_ID, _TOO_SHORT),
    _chunk("certificate cut", "2.3.7", 0x38, _SESSION_ID, _COUNTED, _TOO_SHORT),
    _chunk("component cut", "2.3.7", 0x38, _SESSION_ID, _COUNTED, _COUNTED, _TOO_SHORT),
    _chunk("session id of the responder cut", "2.3.8", 0x78, cut(_SESSION_ID)),
    _chunk("component of the responder cut", "2.3.8", 0x78, _SESSION_ID, _TOO_SHORT),
)
"""Every fault of the chunks of a startup: RFC 7016 §2.3."""


def _bits(*choices: int) -> Octets:
    return st.sampled_from(choices).map(lambda bits: bytes((bits,)))


def _numbers(ahead: int) -> Octets:
    """A sequence number, and an offset that is `ahead` beyond it: RFC 7016 §2.3.11."""
    return st.builds(
        lambda number, more: encode_vlu(number) + encode_vlu(number + more),
        st.integers(0, 1 << 40),
        st.integers(1, ahead),
    )


_HEAD: Final = (_bits(0, 0x10, 0x20, 0x30, 1), _VLU)  # of user data: flags and flow
_OPTIONS: Final = st.lists(_BYTES.map(lambda value: Option(10, value)), max_size=2).map(
    encode_options
)
_CUT_OPTION: Final = _OPTIONS.map(lambda options: options + b"\x05\x0aab")
_HALF_ACK: Final = cut(_joined(_VLU, _VLU, _VLU.filter(lambda number: len(number) > 1)))

SESSION_FAULTS: Final = (
    _chunk("numbers of a fragment cut", "2.3.1", 0x7F, _bits(0, 0x80), OPEN_VLU),
    _chunk("fragment of nothing", "2.3.1", 0x7F, _bits(0, 0x80), _VLU, _VLU),
    _chunk("forwarded discriminator cut", "2.3.3", 0x0F, _TOO_SHORT),
    _chunk("reply address cut", "2.3.3", 0x0F, _COUNTED, cut(_ADDRESS)),
    _chunk("no flags of user data", "2.3.11", 0x10),
    _chunk("numbers of user data cut", "2.3.11", 0x10, *_HEAD, OPEN_VLU),
    _chunk("offset beyond the number", "2.3.11", 0x10, *_HEAD, _numbers(1 << 20), _BYTES),
    _chunk("offset of 0", "2.3.11", 0x10, *_HEAD, _VLU, st.just(b"\0"), _BYTES),
    _chunk("option cut", "2.1.3", 0x10, _bits(0x80, 0xB0), _VLU, st.just(b"\x05\x01"), _CUT_OPTION),
    _chunk("options not ended", "2.1.4", 0x10, _bits(0x80), _VLU, st.just(b"\x05\x01"), _OPTIONS),
    _chunk("no flags", "2.3.12", 0x11),
    _chunk("options of next data not ended", "2.3.12", 0x11, _bits(0x80, 0x81), _OPTIONS),
    _chunk("bitmap acknowledgement cut", "2.3.13", 0x50, _HALF_ACK),
    _chunk("range acknowledgement cut", "2.3.14", 0x51, _HALF_ACK),
    _chunk("probe of no flow", "2.3.15", 0x18, OPEN_VLU),
    _chunk("exception cut", "2.3.16", 0x5E, _VLU, OPEN_VLU),
)
"""Every fault of the chunks of a session: RFC 7016 §2.3."""

_METADATA: Final = _BYTES.map(lambda value: Option(0, value))
_IGNORABLE: Final = st.builds(Option, st.integers(0x2000, 1 << 20), _BYTES)
_ASSOCIATION: Final = _VLU.map(lambda flow: Option(10, flow))


def _opening(
    name: str, section: str, *options: SearchStrategy[Option]
) -> Fault[tuple[Option, ...]]:
    return Fault(name, f"RFC 7016 §{section}", st.tuples(*options))


OPENING_FAULTS: Final = (
    _opening(
        "unknown option",
        "2.3.11.1",
        _METADATA,
        st.builds(Option, st.integers(1, 0x1FFF).filter(lambda kind: kind != 10), _BYTES),
    ),
    _opening("no metadata", "2.3.11.1.1", _IGNORABLE | _ASSOCIATION),
    _opening("answer to two flows", "2.3.11.1.2", _METADATA, _ASSOCIATION, _ASSOCIATION),
    _opening("flow id cut", "2.3.11.1.2", _METADATA, OPEN_VLU.map(lambda value: Option(10, value))),
)
"""Every reason in its options to reject a flow: RFC 7016 §2.3.11.1."""


def _fields(name: str, clause: str, *options: SearchStrategy[Option]) -> Fault[bytes]:
    """A field of options, which may have one of an unknown type first."""
    unknown = st.just(()) | st.tuples(st.builds(Option, st.just(0x55), _BYTES))
    drawn = st.tuples(unknown, st.tuples(*options))
    return Fault(name, clause, drawn.map(lambda some: encode_options([*some[0], *some[1]])))


def _option(kind: int, values: Octets) -> SearchStrategy[Option]:
    return values.map(lambda value: Option(kind, value))


_GROUP: Final = _option(0x15, _VLU)
_KEY: Final = _joined(_VLU, st.binary(min_size=1, max_size=8))
_HOSTNAME: Final = _option(0x00, _BYTES)

CERTIFICATE_FAULTS: Final = (
    Fault("option cut", "RFC 7425 §4.3.1", _OPTIONS.map(lambda some: some + b"\x05\x0eab")),
    _fields("two hostnames", "RFC 7425 §4.3.3.1", _HOSTNAME, _HOSTNAME),
    _fields("static and ephemeral keys", "RFC 7425 §4.3.3.5", _GROUP, _option(0x1D, _KEY)),
    _fields("group cut", "RFC 7425 §4.3.3.4", _option(0x15, OPEN_VLU)),
    _fields("group of a key cut", "RFC 7425 §4.3.3.5", _option(0x1D, OPEN_VLU)),
)
"""Every fault of a certificate: RFC 7425 §4.3."""

EPD_FAULTS: Final = (
    Fault(
        "option cut",
        "RFC 7425 §4.4.1",
        _BYTES.map(lambda name: encode_options([Option(0, name)]) + b"\7"),
    ),
    _fields("two hostnames", "RFC 7425 §4.4.2.1", _HOSTNAME, _HOSTNAME),
    _fields("two URIs", "RFC 7425 §4.4.2.2", _option(0x0A, _BYTES), _option(0x0A, _BYTES)),
    _fields(
        "fingerprint of another size",
        "RFC 7425 §4.4.2.3",
        _option(0x0F, st.binary(max_size=31) | st.binary(min_size=33, max_size=40)),
    ),
    _fields(
        "two fingerprints",
        "RFC 7425 §4.4.2.3",
        *[_option(0x0F, st.binary(min_size=32, max_size=32))] * 2,
    ),
)
"""Every fault of an endpoint discriminator: RFC 7425 §4.4."""

_HMAC_LENGTH: Final = (st.integers(0, 3) | st.integers(33, 1 << 20)).map(encode_vlu)

COMPONENT_FAULTS: Final = (
    Fault(
        "option cut",
        "RFC 7425 §4.5.1",
        _BYTES.map(lambda name: encode_options([Option(14, name)]) + b"\7"),
    ),
    _fields("two keys", "RFC 7425 §4.5.2.1", *[_option(0x0D, _KEY)] * 2),
    _fields("group of the key cut", "RFC 7425 §4.5.2.1", _option(0x0D, OPEN_VLU)),
    _fields("two groups selected", "RFC 7425 §4.5.2.3", *[_option(0x1D, _VLU)] * 2),
    _fields("no HMAC flags", "RFC 7425 §4.5.2.4", _option(0x1A, st.just(b""))),
    _fields(
        "HMAC length", "RFC 7425 §4.5.2.4", _option(0x1A, _joined(_bits(2, 3, 6), _HMAC_LENGTH))
    ),
    _fields("no sequence number flags", "RFC 7425 §4.5.2.5", _option(0x1E, st.just(b""))),
)
"""Every fault of a session keying component: RFC 7425 §4.5."""

METADATA_FAULTS: Final = (
    Fault(
        "another signature",
        "RFC 7425 §5.1.1",
        st.binary(min_size=3, max_size=8).filter(lambda data: data[:2] != b"TC"),
    ),
    Fault("no flags", "RFC 7425 §5.1.1", st.sampled_from([b"", b"T", b"TC"])),
    Fault(
        "no stream id",
        "RFC 7425 §5.1.1",
        st.integers(0, 255).map(lambda bits: b"TC" + bytes((bits & 0xFB, 1))),
    ),
    Fault("stream id cut", "RFC 7425 §5.1.1", OPEN_VLU.map(b"TC\x04".__add__)),
    Fault(
        "stream id of more than 24 bits",
        "RFC 7425 §5.1",
        st.integers(1 << 24, 1 << 40).map(lambda number: b"TC\x04" + encode_vlu(number)),
    ),
)
"""Every reason in its metadata to reject a flow: RFC 7425 §5.1.1."""

_EVENT: Final = b"\x04" + bytes(4)  # type and time of a user control message

MESSAGE_FAULTS: Final = (
    Fault("header cut", "RFC 7425 §5.1.2", st.binary(max_size=4)),
    Fault(
        "synchronization cut",
        "RFC 7425 §5.2",
        st.binary(max_size=7).map((_EVENT + b"\0\x22").__add__),
    ),
    Fault("timers cut", "RFC 7425 §5.3.4", st.binary(max_size=7).map((_EVENT + b"\0\x29").__add__)),
)
"""Every fault of a message in a flow: RFC 7425 §5.1.2, §5.2, §5.3.4."""

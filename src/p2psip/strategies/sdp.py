"""Session descriptions of every kind, and media that two ends could agree on.

Implements RFC 8866 §9, read as a generator.  Strategies are named for what they make:
plain nouns are valid, and `odd_` ones break a rule that a reader has to forgive.  Descriptions
that a reader must refuse are in `p2psip.strategies.sdp_faults`.

    >>> from hypothesis import given
    >>> @given(sessions())
    ... def test_reading_undoes_writing(session):
    ...     assert SessionDescription.parse(bytes(session)) == session
"""

import re
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from p2psip.sdp.attributes import DIRECTIONS
from p2psip.sdp.offer_answer import PROTOCOLS, Codec, LocalMedia, LocalTransport, make_offer
from p2psip.sdp.session import (
    Connection,
    MediaDescription,
    SessionDescription,
)
from p2psip.strategies.sdp_parts import attributes as attributes
from p2psip.strategies.sdp_parts import bandwidths as bandwidths
from p2psip.strategies.sdp_parts import connections as connections
from p2psip.strategies.sdp_parts import emails as emails
from p2psip.strategies.sdp_parts import groups as groups
from p2psip.strategies.sdp_parts import hosts as hosts
from p2psip.strategies.sdp_parts import origins as origins
from p2psip.strategies.sdp_parts import other_formats as other_formats
from p2psip.strategies.sdp_parts import phones as phones
from p2psip.strategies.sdp_parts import ports as ports
from p2psip.strategies.sdp_parts import rtp_formats as rtp_formats
from p2psip.strategies.sdp_parts import rtpmaps as rtpmaps
from p2psip.strategies.sdp_parts import texts as texts
from p2psip.strategies.sdp_parts import timings as timings
from p2psip.strategies.sdp_parts import tokens as tokens
from p2psip.strategies.sdp_parts import uris as uris
from p2psip.strategies.sdp_parts import values as values

DTMF: Final = Codec("telephone-event", 8000, 1, 101, "0-15")
AUDIO: Final = (
    Codec("PCMU", 8000, 1, 0),
    Codec("GSM", 8000, 1, 3),
    Codec("PCMA", 8000, 1, 8),
    Codec("G722", 8000, 1, 9),
    Codec("speex", 16000, 1, 96),
    Codec("speex", 8000, 1, 98),
    Codec("iLBC", 8000, 1, 97),
    Codec("opus", 48000, 2, 111),
)
VIDEO: Final = (
    Codec("H264", 90000, 1, 99, "profile-level-id=42e01f;packetization-mode=1"),
    Codec("H264", 90000, 1, 100, "profile-level-id=42e01f"),
    Codec("x-flv", 90000, 1, 97),
    Codec("H261", 90000, 1, 31),
    Codec("VP8", 90000, 1, 102),
)

_RTP: Final = ("RTP/SAVP", "UDP/TLS/RTP/SAVPF", *PROTOCOLS)
_KINDS: Final = ("audio", "video", "text", "application", "message", *[""] * 5)
_SHAPES: Final = st.sampled_from(  # kind, protocol, number of ports, addresses, title, ceilings
    list(
        product(
            _KINDS,
            [*_RTP, "udptl", "udp", "TCP/MSRP", "IL/TCP"],
            [1, 2, 3],
            ["none", "one", "groups"],
            [False, True],
            range(3),
        )
    )
)
_PORTS: Final = st.sampled_from(range(65536))
_GROUPS: Final = st.lists(groups(), min_size=1, max_size=2).map(tuple)


@cache
@st.composite
def media(draw: DrawFn) -> MediaDescription:
    """`m=` sections of any kind: the formats of RTP are payload types (RFC 8866 §5.14).

    Several `c=` lines are of multicast: RFC 8866 §5.7.
    """
    kind, protocol, count, places, titled, ceilings = draw(_SHAPES)
    port = draw(_PORTS)
    formats, attributes = draw(rtp_formats() if protocol in _RTP else other_formats())
    addresses: tuple[Connection, ...] = ()
    if places == "one":
        addresses = (Connection.to(draw(hosts())),)
    elif places == "groups":
        addresses = draw(_GROUPS)
    return MediaDescription(
        kind=kind or draw(tokens()),
        port=port,
        protocol=protocol,
        formats=formats,
        port_count=count,
        information=draw(texts()) if titled else "",
        connection=addresses[0] if addresses else None,
        bandwidths=tuple(draw(bandwidths()) for _ in range(ceilings)),
        attributes=attributes,
        more_connections=addresses[1:],
    )


_OPTIONAL: Final = st.sampled_from(  # i=, u=, e=, p=, c=, b=
    list(product([False, True], [False, True], range(3), range(2), [False, True], range(3)))
)
_COUNTS: Final = st.sampled_from(  # t=, a=, m=
    list(product([1, 1, 1, 2], range(4), [0, 0, 1, 1, 2, 3]))
)


@cache
@st.composite
def sessions(draw: DrawFn) -> SessionDescription:
    """Whole descriptions, every stream with an address: RFC 8866 §5, §5.7."""
    titled, has_uri, mails, calls, placed, ceilings = draw(_OPTIONAL)
    times, lines, streams = draw(_COUNTS)
    return _with_address(
        SessionDescription(
            origin=draw(origins()),
            name=draw(texts()),
            information=draw(texts()) if titled else "",
            uri=draw(uris()) if has_uri else "",
            emails=tuple(draw(emails()) for _ in range(mails)),
            phones=tuple(draw(phones()) for _ in range(calls)),
            connection=draw(connections()) if placed else None,
            bandwidths=tuple(draw(bandwidths()) for _ in range(ceilings)),
            times=tuple(draw(timings()) for _ in range(times)),
            attributes=tuple(draw(attributes()) for _ in range(lines)),
            media=tuple(draw(media()) for _ in range(streams)),
        )
    )


def _with_address(session: SessionDescription) -> SessionDescription:
    """Give an address to the session where a stream has none of its own: RFC 8866 §5.7."""
    if session.connection or all(each.connection for each in session.media):
        return session
    return replace(session, connection=Connection.to("192.0.2.1"))


_SOME: Final = st.binary(min_size=1, max_size=7)


@st.composite
def codecs(draw: DrawFn, kind: str = "audio") -> tuple[Codec, ...]:
    """Codecs that one end of a call might support, none of them twice: RFC 3264 §5.1.

    Telephone events come only beside something to hear.
    """
    pool = (*AUDIO, DTMF) if kind == "audio" else VIDEO
    some = tuple(dict.fromkeys(pool[octet % len(pool)] for octet in draw(_SOME)))
    return some if some != (DTMF,) else (AUDIO[0], DTMF)


_EVEN_PORTS: Final = st.sampled_from(range(1024, 64002, 2))
_OPTIONS: Final = st.sampled_from(
    list(
        product(
            DIRECTIONS,
            [False, True],
            [None, None, None, 10, 20, 30, 40, 60],
            [None, None, 10, 40, 150],
        )
    )
)


@st.composite
def local_media(draw: DrawFn, kind: str = "audio") -> LocalMedia:
    """One stream an end could have: RFC 3264 §5.1.  RTP ports are even: RFC 3550 §11."""
    direction, named, ptime, maxptime = draw(_OPTIONS)
    return LocalMedia(
        kind=kind,
        formats=draw(codecs(kind)),
        transport=LocalTransport(draw(_EVEN_PORTS)),
        direction=direction,
        mid=kind if named else None,
        ptime=ptime,
        maxptime=maxptime,
    )


_LOCAL: Final = {kind: local_media(kind) for kind in ("audio", "video")}
_CALLS: Final = st.sampled_from(
    list(product([("audio",), ("video",), ("audio", "video")], range(3), [False, True]))
)


@st.composite
def offers(draw: DrawFn) -> SessionDescription:
    """Offers of a caller with audio, video or both, among lines of all kinds: RFC 3264 §5."""
    kinds, others, before = draw(_CALLS)
    ours = [draw(_LOCAL[kind]) for kind in kinds]
    offer = make_offer(ours, draw(origins()), draw(hosts()))
    more = tuple(draw(media()) for _ in range(others))
    return offer.replace_media(more + offer.media if before else offer.media + more)


_NUMBERS: Final = st.sampled_from(
    [
        (rb"", rb""),
        (rb"(?m)^(o=\S+) ", rb"\1 -"),  # a session-id beyond 63 bits, in a number with a sign
        (rb"(?m)^(b=.*:\d+)\r", rb"\1.5\r"),
    ]
)


def odd_sessions() -> SearchStrategy[bytes]:
    """Descriptions with line ends, blank lines, lost lines of the kind §5 asks to forgive.

    Some have a number below zero or of parts, as phones write them.
    """
    written = st.builds(_renumbered, sessions(), _NUMBERS)
    return st.builds(_loosened, written, st.sampled_from([b"\n", b"\r\n\r\n", b"\r"]),
                     st.lists(st.sampled_from([b"s=", b"t=", b"k="]), max_size=3))  # fmt: skip


def _renumbered(session: SessionDescription, edit: tuple[bytes, bytes]) -> bytes:
    pattern, repl = edit
    return re.sub(pattern, repl, bytes(session))


def _loosened(data: bytes, line_end: bytes, lost: list[bytes]) -> bytes:
    lines = data.split(b"\r\n")
    first = next((i for i, line in enumerate(lines) if line[:2] == b"m="), len(lines))
    top = [line for line in lines[:first] if line[:2] not in lost]
    if b"t=" in lost:  # their r= and z= go with them
        top = [line for line in top if line[:2] not in (b"r=", b"z=")]
    return line_end.join([*top, *lines[first:]])

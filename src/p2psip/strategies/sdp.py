"""Session descriptions of every kind, and media that two ends could agree on.

Implements RFC 8866 §9, read as a generator.  Strategies are named for what they make:
plain nouns are valid, and `odd_` ones break a rule that a reader has to forgive.  Descriptions
that a reader must refuse are in `p2psip.strategies.sdp_faults`.

    >>> from hypothesis import given
    >>> @given(sessions())
    ... def test_reading_undoes_writing(session):
    ...     assert SessionDescription.parse(bytes(session)) == session
"""

from dataclasses import replace
from functools import cache
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from p2psip.sdp.attributes import DIRECTIONS
from p2psip.sdp.line import Attributes
from p2psip.sdp.offer_answer import PROTOCOLS, Codec, LocalMedia, LocalTransport, make_offer
from p2psip.sdp.session import (
    Bandwidth,
    Connection,
    MediaDescription,
    Origin,
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
_KINDS: Final = st.sampled_from(["audio", "video", "text", "application", "message"])
_STREAMS: Final = st.tuples(st.sampled_from(_RTP), rtp_formats()) | st.tuples(
    st.sampled_from(["udptl", "udp", "TCP/MSRP", "IL/TCP"]), other_formats()
)
_PLACES: Final = st.one_of(
    st.just(()),
    hosts().map(lambda host: (Connection.to(host),)),
    st.lists(groups(), min_size=1, max_size=2).map(tuple),
)
_BANDWIDTHS: Final = st.lists(bandwidths(), max_size=2).map(tuple)
_MAYBE: Final = st.just("") | texts()


def _media(
    kind: str,
    port: int,
    count: int,
    stream: tuple[str, tuple[tuple[str, ...], Attributes]],
    places: tuple[Connection, ...],
    information: str,
    bandwidths: tuple[Bandwidth, ...],
) -> MediaDescription:
    protocol, (formats, attributes) = stream
    return MediaDescription(
        kind=kind,
        port=port,
        protocol=protocol,
        formats=formats,
        port_count=count,
        information=information,
        connection=places[0] if places else None,
        bandwidths=bandwidths,
        attributes=attributes,
        more_connections=places[1:],
    )


@cache
def media() -> SearchStrategy[MediaDescription]:
    """`m=` sections of any kind: the formats of RTP are payload types (RFC 8866 §5.14).

    Several `c=` lines are of multicast: RFC 8866 §5.7.
    """
    return st.builds(
        _media,
        _KINDS | tokens(),
        st.integers(0, 65535),
        st.integers(1, 3),
        _STREAMS,
        _PLACES,
        _MAYBE,
        _BANDWIDTHS,
    )


@cache
def sessions() -> SearchStrategy[SessionDescription]:
    """Whole descriptions, every stream with an address: RFC 8866 §5, §5.7."""
    return st.builds(
        SessionDescription,
        origin=origins(),
        name=texts(),
        information=_MAYBE,
        uri=st.just("") | uris(),
        emails=st.lists(emails(), max_size=2).map(tuple),
        phones=st.lists(phones(), max_size=2).map(tuple),
        connection=st.none() | connections(),
        bandwidths=_BANDWIDTHS,
        times=st.lists(timings(), min_size=1, max_size=2).map(tuple),
        attributes=st.lists(attributes(), max_size=4).map(tuple),
        media=st.lists(media(), max_size=4).map(tuple),
    ).map(_with_address)


def _with_address(session: SessionDescription) -> SessionDescription:
    """Give an address to the session where a stream has none of its own: RFC 8866 §5.7."""
    if session.connection or all(each.connection for each in session.media):
        return session
    return replace(session, connection=Connection.to("192.0.2.1"))


@st.composite
def codecs(draw: DrawFn, kind: str = "audio") -> tuple[Codec, ...]:
    """Codecs that one end of a call might support, none of them twice: RFC 3264 §5.1.

    Telephone events come only beside something to hear.
    """
    pool = AUDIO if kind == "audio" else VIDEO
    some = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=6, unique=True))
    if kind == "audio" and draw(st.booleans()):
        some.insert(draw(st.integers(0, len(some))), DTMF)
    return tuple(some)


@st.composite
def local_media(draw: DrawFn, kind: str = "audio") -> LocalMedia:
    """One stream an end could have: RFC 3264 §5.1.  RTP ports are even: RFC 3550 §11."""
    return LocalMedia(
        kind=kind,
        formats=draw(codecs(kind)),
        transport=LocalTransport(2 * draw(st.integers(512, 32000))),
        direction=draw(st.sampled_from(DIRECTIONS)),
        mid=draw(st.none() | st.just(kind)),
        ptime=draw(st.none() | st.sampled_from([10, 20, 30, 40, 60])),
        maxptime=draw(st.none() | st.sampled_from([10, 40, 150])),
    )


def offers() -> SearchStrategy[SessionDescription]:
    """Offers of a caller with audio, video or both, among lines of all kinds: RFC 3264 §5."""
    return st.builds(
        _offer,
        st.sampled_from([(0,), (1,), (0, 1)]),
        st.tuples(local_media("audio"), local_media("video")),
        origins(),
        hosts(),
        st.lists(media(), max_size=2),
        st.booleans(),
    )


def _offer(
    wanted: tuple[int, ...],
    ours: tuple[LocalMedia, LocalMedia],
    origin: Origin,
    host: str,
    others: list[MediaDescription],
    before: bool,
) -> SessionDescription:
    offer = make_offer([ours[index] for index in wanted], origin, host)
    lines = [*others, *offer.media] if before else [*offer.media, *others]
    return offer.replace_media(lines)


def odd_sessions() -> SearchStrategy[bytes]:
    """Descriptions with line ends, blank lines, lost lines of the kind §5 asks to forgive."""
    return st.builds(_loosened, sessions().map(bytes), st.sampled_from([b"\n", b"\r\n\r\n", b"\r"]),
                     st.lists(st.sampled_from([b"s=", b"t=", b"k="]), max_size=3))  # fmt: skip


def _loosened(data: bytes, line_end: bytes, lost: list[bytes]) -> bytes:
    lines = data.split(b"\r\n")
    first = next((i for i, line in enumerate(lines) if line[:2] == b"m="), len(lines))
    top = [line for line in lines[:first] if line[:2] not in lost]
    if b"t=" in lost:  # their r= and z= go with them
        top = [line for line in top if line[:2] not in (b"r=", b"z=")]
    return line_end.join([*top, *lines[first:]])

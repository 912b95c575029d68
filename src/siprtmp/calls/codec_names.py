"""The codecs that this gateway can offer and answer with, with the extra `transcode` or without.

Own design: without the extra a codec that FLV does not have is as good as unknown, so that nothing
is agreed on which nobody would hear.  RFC 3264 §5 and §6.
"""

from collections.abc import Collection, Iterable
from typing import Final
from urllib.parse import unquote

from p2psip.sdp.codec import codecs_of
from p2psip.sdp.session import SessionDescription
from rtmplite.auth.credentials import fields
from siprtmp.media import sdp_map
from siprtmp.media.transcode import audio_decoder, libspeex
from siprtmp.media.translate.audio_formats import (
    NARROWBAND,
    OPUS,
    SPEEX_TO_G711,
    AudioCodec,
    find,
)

CODECS: Final = "codecs"  # in the query of a stream's name
EXTRA: Final = "transcode"  # what pip calls it
G711: Final = ("pcmu", "pcma", *SPEEX_TO_G711)


def possible(names: Iterable[str]) -> tuple[str, ...]:
    """Of these names of the client's API, those of codecs that can cross."""
    return tuple(names) if audio_decoder.is_available() else sdp_map.passing(names)


def offered(query: str = "") -> tuple[str, ...]:
    """The names for calls that stock tools place: RFC 3264 §5.

    Own design: a stock tool has a URL and nothing else, so `?codecs=aac,h264` in it names codecs as
    a rich client does.  AAC by RTP is for other gateways, and an INVITE has no octets to spare.
    """
    asked = known(unquote(fields(query).get(CODECS, "")).split(","))
    return asked or possible(sdp_map.STOCK_TOOLS)


def answered(video: Iterable[str] = ()) -> tuple[str, ...]:
    """The names for calls that stock tools take, with codecs beside H.264: RFC 3264 §6."""
    return possible((*sdp_map.STOCK_ANSWERS, *video))


def brief(names: Iterable[str]) -> tuple[str, ...]:
    """The names for an offer in a 200: without L16 and AAC if any other audio codec is left.

    Own design: an INVITE without an offer is short, and a datagram from a stranger is not answered
    with three times as much (`address_validation`): a longer 200 would have to wait for copies of
    the INVITE.  Those two are for other gateways, and have a long line for each rate.
    """
    names = tuple(names)
    kept = tuple(name for name in names if not name.startswith(("l16", "aac")))
    return kept if set(kept) - {"dtmf", *sdp_map.VIDEO_NAMES} else names


def everything() -> tuple[str, ...]:
    return known(sdp_map.EVERYTHING)


def known(names: Iterable[str]) -> tuple[str, ...]:
    """The names of a rich client that can be offered, see `sdp_map.known_names`.

    Opus is among them without the extra, too, as it passes to a client that names it.  `ulaw` and
    `alaw` need the extra and libspeex; of them and G.711 that passes, the first named counts.
    """
    wanted = sdp_map.known_names(names)
    usable = {*possible(wanted), OPUS.name}
    if not (audio_decoder.is_available() and libspeex.is_available()):
        usable -= SPEEX_TO_G711.keys()
    g711 = [name for name in wanted if name in usable and name in G711]
    usable -= {name for name in g711 if (name in SPEEX_TO_G711) != (g711[0] in SPEEX_TO_G711)}
    return tuple(name for name in wanted if name in usable)


def reported(codec: AudioCodec, names: Collection[str]) -> str:
    """What a client that has named these is told of the codec that was agreed on."""
    return NARROWBAND.reported if sdp_map.wants_speex(names) and codec.is_g711 else codec.reported


def lacking(theirs: SessionDescription) -> tuple[str, ...]:
    """The codecs of a description that the extra would add, none where it is installed."""
    if audio_decoder.is_available():
        return ()
    lines = [media for media in theirs.media if media.kind == "audio" and media.port]
    codecs = [codec for media in lines for codec in codecs_of(media)]
    found = (find(codec.name, codec.clock_rate, codec.channels) for codec in codecs)
    return tuple(codec.name for codec in found if codec is not None and not codec.passes)

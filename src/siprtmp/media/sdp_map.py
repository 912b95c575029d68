"""Codec names of the client's API as SDP, and an agreed SDP as a plan for each packet.

Implements RFC 3264 §5 and §6 by way of `p2psip.sdp.offer_answer`, for the codecs in
`siprtmp.media.translate.audio_formats`.

Own design: payload type numbers are those the original gateway offered, since its peers
may have learnt them.
"""

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from p2psip.errors import RemoteError
from p2psip.sdp.agreed_media import Agreed, AgreedMedia
from p2psip.sdp.attributes import rtcp_mux
from p2psip.sdp.codec import codecs_of
from p2psip.sdp.crypto import AgreedKeys
from p2psip.sdp.line import Connection, Origin, reaches
from p2psip.sdp.local_media import RepairSources
from p2psip.sdp.offer_answer import (
    PROTOCOLS,
    Codec,
    LocalMedia,
    LocalTransport,
    accepted,
    apply_answer,
    make_answer,
    make_offer,
)
from p2psip.sdp.sdes_transport import SECURE, SrtpTerms, offered_transport
from p2psip.sdp.session import SessionDescription
from siprtmp.media import video_lines
from siprtmp.media.translate.aac_passing import aac_fmtp, suits
from siprtmp.media.translate.audio_formats import (
    AAC_CODECS,
    ALAW,
    AUDIO_CODECS,
    DTMF_PAYLOAD_TYPE,
    NARROWBAND,
    SPEEX_TO_G711,
    ULAW,
    WIDEBAND,
    X_FLV_PAYLOAD_TYPE,
    AudioCodec,
    find,
)
from siprtmp.media.translate.video_tag import H264, VP8
from siprtmp.media.video_lines import VideoPlan

NO_CODEC: Final = "Not Acceptable Here"  # Source: RFC 3261 §21.4.26
# RFC 4733 §2.5.1.1 [events-offered]
DTMF: Final = Codec("telephone-event", 8000, payload_type=DTMF_PAYLOAD_TYPE, fmtp="0-15")
# RFC 4733 §2.2.1, for phones that take events by the clock of their audio alone: Field §"Events by
# one clock or the other".  They list no events, and so mean those of `DTMF`: RFC 4733 §2.4.1.
DTMF_BY_RATE: Final = {
    8000: DTMF,
    16000: Codec("telephone-event", 16000, payload_type=DTMF_PAYLOAD_TYPE + 2),
    48000: Codec("telephone-event", 48000, payload_type=DTMF_PAYLOAD_TYPE + 1),
}
# RFC 3551 §5 [video-at-90-khz] [fine-clock]
X_FLV: Final = Codec("x-flv", 90000, payload_type=X_FLV_PAYLOAD_TYPE)
EVERYTHING: Final = (*AUDIO_CODECS, "dtmf")
# Own design: the best audio first.  L16 is answered and not offered: it takes six times the octets.
_STOCK: Final = ("opus", "g722", "pcmu", "pcma", "wideband", "narrowband", "dtmf")
STOCK_TOOLS: Final = (*_STOCK, *video_lines.NAMES)  # since nobody knows what will be published
STOCK_ANSWERS: Final = (*_STOCK, H264, "l16", "l16-44")
AAC_NAMES: Final = tuple(codec.name for codec in AAC_CODECS)
VIDEO_NAMES: Final = ("flv", *video_lines.NAMES)
TALK: Final = "sendrecv", "sendrecv"  # the directions of audio and video: RFC 8866 §6.7
_NAME: Final = re.compile(r"(?=.*[A-Za-z])[\w.-]+", re.ASCII)  # of a host: no IPv4 address, no IPv6
LINES: Final = ("audio", "video", "x-flv")  # of a plan, in its order
PLAIN: Final = SrtpTerms(bytes, answers=False)  # which draws no key
HOLD: Final = "sendonly", "inactive"  # RFC 3264 §8.4; nobody wants to see a still frame


@dataclass(frozen=True, slots=True)
class AudioPlan:
    """The agreement of both ends on the audio of a call: RFC 3264 §6.1.

    `sending` holds (codec, payload type to put on packets), the peer's favourite first;
    `receiving` maps the payload types that will arrive.
    """

    media: AgreedMedia
    sending: tuple[tuple[AudioCodec, int], ...]
    receiving: Mapping[int, AudioCodec]

    @property
    def codec(self) -> AudioCodec:
        """The codec to report to the client: the first in common.  RFC 3264 §6.1."""
        return self.sending[0][0]

    def for_sound_format(self, sound_format: int) -> tuple[AudioCodec, int] | None:
        """The way to send tags of this SoundFormat, perhaps by the other law of G.711, or None."""
        plain = [pair for pair in self.sending if not pair[0].is_aac]
        exact = [pair for pair in plain if pair[0].sound_format == sound_format]
        laws = [pair for pair in plain if pair[0].is_g711] if sound_format in (ALAW, ULAW) else []
        return next(iter(exact + laws), None)

    def parameters(self, payload_type: int) -> str:
        """What the phone says of the format of this number, its `a=fmtp`: RFC 8866 §6.15."""
        numbers = self.media.send_payload_types
        return self.media.codecs[numbers.index(payload_type)].fmtp


@dataclass(frozen=True, slots=True)
class MediaPlan:
    """The agreement of both ends on a call, line by line; with `x_flv` nothing else is sent."""

    audio: AudioPlan
    video: VideoPlan | None = None
    x_flv: "XFlvPlan | None" = None


@dataclass(frozen=True, slots=True)
class XFlvPlan:
    """The agreement of two gateways on a tunnel: RFC 3264 §6.1; the types of packets each way."""

    media: AgreedMedia
    send_type: int
    receive_type: int


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Our media address: the host for `c=` and `o=`, the RTP port, an SDP session id.

    RFC 8866 §5.2 and §5.7.  `rtcp_port` is given where it may not be the next one.  `x_flv` and
    `video` are for the lines of x-flv and of H.264, which need their own: two lines of one port
    would be one stream (RFC 3264 §5.1).  0 and None when there are none.  `vp8` says that the
    line of H.264 has VP8 too, since video may be transcoded.  `repairs` are the sources of that
    line, if packets may be sent again by RTX (RFC 4588 §5.3).  `srtp` says what we want of
    SRTP, and `keys` are those that lines have already (RFC 4568 §7.1.4), by their names in `LINES`.
    """

    host: str
    port: int
    session_id: int
    rtcp_port: int | None = None
    video: LocalTransport | None = None
    x_flv: LocalTransport | None = None
    vp8: bool = False
    repairs: RepairSources | None = None
    srtp: SrtpTerms = PLAIN
    keys: Mapping[str, AgreedKeys] = field(default_factory=dict, repr=False)

    def offering(self, line: str, plain: LocalTransport) -> LocalTransport:
        """The transport of a line of an offer, with keys if we want SRTP: RFC 4568 §5.1.1."""
        return self.srtp.to_offer(plain, self.keys.get(line))

    def answering(
        self, line: str, media: LocalMedia, theirs: SessionDescription
    ) -> Iterator[LocalMedia]:
        """A line for an answer, if its transport suits the offer: RFC 4568 §5.1.2."""
        agreed = self.keys.get(line)
        found = [
            replace(media, transport=each)
            for each in self.srtp.to_answer(media.transport, theirs, media.kind, agreed)
        ]
        for one in found:  # of several one has to have a codec in common, too
            if len(found) == 1 or _is_answer(theirs, one, self):
                yield one
                return

    @property
    def transport(self) -> LocalTransport:
        """Plain RTP at this address: RFC 3264 §5.1."""
        return LocalTransport(self.port, rtcp_port=self.rtcp_port)

    @property
    def origin(self) -> Origin:
        """The `o=` line of a first description: RFC 8866 §5.2."""
        return Origin.at(self.host, self.session_id)


def read(sdp: bytes, hosts: Iterable[str]) -> SessionDescription:
    """Read a phone's description, as a call does: RFC 8866 §5.  Raises RemoteError.

    `hosts` are those that its signalling comes from.  Own design: the last of them stands for a
    name in `c=` (RFC 8866 §5.7), which most often is the phone's own; no stranger makes us ask DNS.
    """
    theirs = SessionDescription.parse(sdp)
    *_, host = "", *hosts

    def placed(where: Connection | None) -> Connection | None:
        is_name = where is not None and _NAME.fullmatch(where.address)
        return Connection.to(host) if host and is_name else where

    media = (replace(each, connection=placed(each.connection)) for each in theirs.media)
    return replace(theirs, connection=placed(theirs.connection), media=tuple(media))


def refusal(theirs: SessionDescription, srtp: SrtpTerms = PLAIN) -> RemoteError:
    """The error for a description without usable audio, or its fault: RFC 3261 §13.3.1.3.

    The reason is that of `srtp` if its terms leave no line of audio.
    """
    sounds = [each for each in theirs.media if each.kind == "audio"]
    fault = next((each.fault for each in sounds if each.fault), "")
    kept_out = SECURE if not srtp.answers else () if srtp.plain else PROTOCOLS
    is_kept_out = bool(sounds) and all(each.protocol in kept_out for each in sounds)
    # RFC 3261 §13.3.1.3 [488-for-the-offer]
    reason = srtp.refusal if is_kept_out else NO_CODEC
    return RemoteError(fault) if fault else RemoteError(reason, 488)


def known_names(names: Iterable[str]) -> tuple[str, ...]:
    """The names this version can offer, in lower case and in the client's order, each once.

    Own design: unknown ones are passed over, as clients name every codec they have; case counts
    as little as in SDP (RFC 8866 §6.6).
    """
    usable = {*AUDIO_CODECS, *SPEEX_TO_G711, "dtmf", *VIDEO_NAMES}
    return tuple(dict.fromkeys(name for name in map(str.lower, names) if name in usable))


def wants_speex(names: Iterable[str]) -> bool:
    """Whether a client has asked for Speex though the phone may have G.711."""
    return not SPEEX_TO_G711.keys().isdisjoint(names)


def passing(names: Iterable[str]) -> tuple[str, ...]:
    """The names without those of codecs that are made, for a gateway that cannot make them."""
    made = {name for name, codec in AUDIO_CODECS.items() if not codec.passes}
    return tuple(name for name in names if name not in made)


def default_names(narrowband: bool) -> tuple[str, ...]:
    """The codecs of a client that names none: Speex of its rate, digits, and x-flv.

    Own design: the original's default.  Another gateway takes x-flv, which carries every codec of
    either client; a phone refuses that line, and has the audio.
    """
    return ("narrowband" if narrowband else "wideband", "dtmf", "flv")


def offer(names: Sequence[str], ours: Endpoint, *, unnamed: bool = False) -> SessionDescription:
    """An offer of the codecs named, in that order: RFC 3264 §5.

    `unnamed` says the client named none, when Speex has number 96 at either rate.
    Raises RemoteError(488) when nothing is left to offer.
    """
    codecs = _codecs(names, unnamed)
    lines = []
    if any(not codec.is_telephone_event for codec in codecs):  # Field §"Sound first"
        lines.append(LocalMedia("audio", codecs, ours.offering("audio", ours.transport)))
    if "flv" in names and ours.x_flv is not None:
        # RFC 3551 §6 [one-kind-each], RFC 3550 §5.1 [types-part-no-streams]
        # and §5.2 [session-for-each-kind] [kinds-not-mixed]
        lines.append(LocalMedia("video", (X_FLV,), ours.offering("x-flv", ours.x_flv)))
    if ours.video is not None and (pictures := _pictures(names, ours)):
        lines.append(video_lines.line(pictures, ours.offering("video", ours.video)))
    if not lines:
        raise RemoteError(NO_CODEC, 488)
    return make_offer(lines, ours.origin, ours.host)


def offer_again(
    names: Sequence[str],
    ours: Endpoint,
    before: SessionDescription,
    theirs: SessionDescription | None,
    *,
    holds: bool = False,
) -> SessionDescription:
    """A new offer of all our codecs within a call: RFC 3264 §8, RFC 6337 §5.3.

    `before` and `theirs` are the descriptions in force: every codec keeps its number.  A
    line on hold is offered both ways, since the peer asks for our wish, unless our user `holds`
    (RFC 3264 §8.4).  RTCP goes on sharing the port of RTP (RFC 5761 §5.1.1).
    """
    # RFC 6337 §5.3 [hold-says-sendonly] [held-stays-held] [else-both-ways]
    # RFC 6337 §5.3 [own-wish-in-each-offer] [their-hold-is-not-ours]
    # Field §"Offers that keep a hold"
    sound, pictures = HOLD if holds else TALK
    # RFC 3261 §14.2 [offers-as-if-new] [offers-all-formats], RFC 6337 §5.1 [offers-its-own-wish]
    codecs = _codecs(names)
    lines: list[LocalMedia | None] = []
    for line in before.media:
        if line.kind == "audio" and line.port:
            transport = replace(ours.transport, rtcp_mux=rtcp_mux(line))
            lines.append(LocalMedia("audio", codecs, ours.offering("audio", transport), sound))
        elif ours.video is not None and line.port == ours.video.port:
            transport = replace(ours.video, rtcp_mux=rtcp_mux(line))
            video = video_lines.line(_pictures(names, ours), ours.offering("video", transport))
            lines.append(replace(video, direction=pictures))
        elif ours.x_flv is not None and line.port == ours.x_flv.port:
            tunnel = replace(ours.x_flv, rtcp_mux=rtcp_mux(line))
            tunnel = ours.offering("x-flv", tunnel)
            lines.append(LocalMedia("video", (X_FLV,), tunnel, pictures))
        else:
            # Not done: RFC 6337 §5.2.5 [video-is-tried-again]: a phone that has refused video,
            # which its user sees, is not asked for them with each hold.
            lines.append(None)
    # RFC 3261 §14.2 [overlaps-with-the-last]
    return make_offer(lines, ours.origin, ours.host, previous=before, remote=theirs)


def answer(
    theirs: SessionDescription,
    names: Sequence[str],
    ours: Endpoint,
    *,
    previous: SessionDescription | None = None,
    holds: bool = False,
) -> tuple[SessionDescription, MediaPlan]:
    """Answer an offer with the codecs named, in the offer's order: RFC 3264 §6.

    RTCP may share the port of RTP: see RFC 5761 §5.1.1.  A line of H.264 is answered if `ours` has
    a port for it.  Raises RemoteError(488) when no
    audio codec is in common.
    """
    codecs = _with_one_clock(_codecs(names), theirs)
    sound, pictures = HOLD if holds else TALK
    audio = LocalMedia("audio", codecs, replace(ours.transport, rtcp_mux=True), sound)
    media = [*ours.answering("audio", audio, theirs)]
    if "flv" in names and ours.x_flv is not None and offers_x_flv(theirs):
        tunnel = replace(ours.x_flv, rtcp_mux=True)
        x_flv = LocalMedia("video", (X_FLV,), tunnel, pictures)
        media += ours.answering("x-flv", x_flv, theirs)
    elif ours.video is not None:
        transport = replace(ours.video, rtcp_mux=True)
        named = _pictures(names, ours)
        shown = video_lines.lines_for(named, theirs, transport, pictures, ours.repairs)
        media += [one for each in shown for one in ours.answering("video", each, theirs)]
    session, agreed = make_answer(theirs, media, ours.origin, ours.host, previous=previous)
    return session, _plans(agreed, ours.host, theirs, ours.srtp)


def _is_answer(theirs: SessionDescription, media: LocalMedia, ours: Endpoint) -> bool:
    _, agreed = make_answer(theirs, [media], ours.origin, ours.host)
    return accepted(agreed, media.kind) is not None


def conclude(
    ours: SessionDescription, theirs: SessionDescription, our_side: Endpoint | None = None
) -> MediaPlan:
    """The plan that an answer to our offer makes: RFC 3264 §7.  Raises RemoteError(488).

    `our_side` has the keys of lines until now, which have to stay.
    """
    host = ours.connection.address if ours.connection else ""
    had_keys = our_side is not None and bool(our_side.keys)
    # RFC 8643 §3.3 [clear-without-keys] [failure-ends-it]
    made_of = [
        LocalMedia(line.kind, (), offered_transport(line, demands=had_keys)) for line in ours.media
    ]
    agreed = apply_answer(ours, video_lines.forgiven(theirs, ours), made_of)
    return _plans(agreed, host, theirs)


def keys_of(plan: MediaPlan | None) -> dict[str, AgreedKeys]:
    """The keys of each line of a plan that has some, by the names in `LINES`: RFC 4568 §5.1.3."""
    if plan is None:
        return {}
    lines = plan.audio, plan.video, plan.x_flv
    found = ((name, each.media.keys) for name, each in zip(LINES, lines, strict=True) if each)
    return {name: keys for name, keys in found if keys is not None}


def is_acceptable(
    theirs: SessionDescription,
    names: Sequence[str] = EVERYTHING,
    *,
    host: str = "0.0.0.0",
    srtp: SrtpTerms = PLAIN,
) -> bool:
    """Whether an offer has audio to answer with the codecs named, at our address `host`."""
    try:
        answer(theirs, names, Endpoint(host, 9, 0, srtp=srtp))
    except RemoteError:
        return False
    return True


def offers_x_flv(theirs: SessionDescription) -> bool:
    """Whether an offer has a tunnel, as a gateway's may: RFC 3264 §5.1."""
    lines = [media for media in theirs.media if media.kind == "video" and media.port]
    return any(_is_x_flv(codec) for media in lines for codec in codecs_of(media))


def _is_x_flv(codec: Codec) -> bool:
    return (codec.name.lower(), codec.clock_rate) == (X_FLV.name, X_FLV.clock_rate)


def _pictures(names: Sequence[str], ours: Endpoint) -> tuple[str, ...]:
    """The video codecs that are named, and VP8 beside H.264 where it can be made."""
    named = tuple(name for name in names if name in video_lines.NAMES)
    return (*named, VP8) if ours.vp8 and H264 in named else named


def speex_names(narrowband: bool) -> tuple[str, ...]:
    """The names to answer a client of Speex with: its own rate first, which can be cut to 8 kHz."""
    first, second = ("narrowband", "wideband") if narrowband else ("wideband", "narrowband")
    return (first, second, "dtmf", "flv")


def _codecs(names: Sequence[str], unnamed: bool = False) -> tuple[Codec, ...]:
    """The formats of an audio line, with events by 8000 and one other clock: RFC 4733 §2.2.1.

    That is the clock of the first codec that has another.  Own design: with events by each clock
    an INVITE of all codecs would be too long for UDP, Field §"Requests too long for UDP".
    """
    sounds = (name for name in names if name not in VIDEO_NAMES)
    all_names = (each for name in sounds for each in (AAC_NAMES if name == "aac" else (name,)))
    codecs = [_codec(name, unnamed) for name in dict.fromkeys(all_names)]
    events = [DTMF_BY_RATE[each.clock_rate] for each in codecs if each.clock_rate in DTMF_BY_RATE]
    others = [each for each in events if each != DTMF]
    return (*codecs, *(others[:1] if DTMF in codecs else ()))


def _with_one_clock(codecs: Sequence[Codec], theirs: SessionDescription) -> tuple[Codec, ...]:
    """The formats to answer with: of the events only one, for the peer's favourite audio.

    Own design: a peer that may choose among several may choose one that does not fit, as browsers
    have done.
    """
    offered = [each for line in theirs.media if line.kind == "audio" for each in codecs_of(line)]
    sounds = [codec for codec in codecs if not codec.is_telephone_event]
    first = next((each for each in offered if any(map(each.same, sounds))), DTMF)
    events = DTMF_BY_RATE.get(first.clock_rate, DTMF)
    if not any(map(events.same, offered)):
        events = DTMF
    return (*sounds, events) if DTMF in codecs else tuple(sounds)


def _codec(name: str, unnamed: bool) -> Codec:
    if name == "dtmf":
        return DTMF
    codec = AUDIO_CODECS.get(name) or SPEEX_TO_G711[name]
    number = WIDEBAND.payload_type if unnamed and codec is NARROWBAND else codec.payload_type
    fmtp = aac_fmtp(codec) if codec.is_aac else ""
    return Codec(codec.encoding, codec.clock_rate, codec.channels, number, fmtp)


def _plans(
    agreed: Agreed, host: str, theirs: SessionDescription, srtp: SrtpTerms = PLAIN
) -> MediaPlan:
    sound = accepted(agreed, "audio")
    audio = _plan(sound, host) if sound is not None else None
    if audio is None:
        raise refusal(theirs, srtp)
    pictures = [each for each in agreed if each.accepted and each.kind == "video"]
    for each in pictures:
        if each.codecs and _is_x_flv(each.codecs[0]) and _is_near(each, host):
            types = each.send_payload_types[0], each.receive_payload_types[0]
            return MediaPlan(audio, None, XFlvPlan(_plain(each), *types))
    video = next(filter(None, map(video_lines.plan, pictures)), None)
    if video is not None and _is_near(video.media, host):
        return MediaPlan(audio, replace(video, media=_plain(video.media)))
    return MediaPlan(audio)


def _plan(media: AgreedMedia, host: str) -> AudioPlan | None:
    """The plan of an accepted audio line, None without a codec that can cross."""
    sending, receiving = [], {}
    for codec, send, receive in zip(
        media.codecs, media.send_payload_types, media.receive_payload_types, strict=True
    ):
        known = find(codec.name, codec.clock_rate, codec.channels)
        if known is not None and (not known.is_aac or suits(known, codec.fmtp)):
            sending.append((known, send))
            receiving[receive] = known
    for known, send in sending:
        receiving.setdefault(send, known)  # Field §"Numbers of an answer's own"
    if not sending or not _is_near(media, host):
        return None
    return AudioPlan(_plain(media), tuple(sending), receiving)


def _is_near(media: AgreedMedia, host: str) -> bool:
    return media.remote is None or reaches(host, media.remote[0])


def _plain(media: AgreedMedia) -> AgreedMedia:
    """The line with its addresses as sockets write them, for comparison with sources."""
    if media.remote and media.remote_rtcp and media.remote_rtcp[0] != media.remote[0]:
        media = replace(media, remote_rtcp=None)  # no third host gets RTCP
    if media.remote is not None:
        plain = str(ipaddress.ip_address(media.remote[0]))
        media = replace(media, remote=(plain, media.remote[1]))
    return media

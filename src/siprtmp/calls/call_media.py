"""The reactions of a call to events of its media leg.

Own design: the half of `AudioCall` that no SIP message drives.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from p2psip.errors import LocalError, RemoteError
from p2psip.sdp.session import SessionDescription
from p2psip.server.port_shares import PortShare
from p2psip.sip.uri import Uri
from p2psip.ua.call import UserAgentCall
from p2psip.ua.uas import IncomingCall
from rtmplite.flv.audio import SoundFormat
from siprtmp.calls import codec_names
from siprtmp.calls.call_keys import CallKeys
from siprtmp.calls.call_x_flv import CallXFlv
from siprtmp.calls.context import CallContext, CallUser
from siprtmp.media import sdp_map
from siprtmp.media.audio_stream import AudioStream
from siprtmp.media.picture_group import PictureGroup
from siprtmp.media.sdp_map import Endpoint
from siprtmp.media.transcode import decoder

if TYPE_CHECKING:
    from siprtmp.calls.call_video import CallVideo

MAX_MADE: Final = 32  # pairs of codecs that are kept of a call; a publisher may change its pictures
NO_PORT: Final = "No Media Port"  # of --rtp-ports, or no descriptor for one
LATE_CURE: Final = "fewer calls if loop_lag_ms of /status is high, else a steadier publisher"
TRANSCODE: Final = f"install the extra {codec_names.EXTRA}: pip install 'siprtmp[transcode]'"
DEAD: Final = 'SIP;cause=408;text="Media Timeout"'  # Reason of the BYE: RFC 3326 §2


class CallMedia(ABC):
    """The listener of a call's leg; a phone that has vanished ends the call."""

    user: CallUser
    call: UserAgentCall | None
    leg: AudioStream | None
    facilities: CallContext
    keys: CallKeys
    _ringing: IncomingCall | None
    names: Sequence[str]
    _holders: set[object]
    _late: frozenset[str] = frozenset()  # media that the log has
    made: list[str]  # what was decoded and encoded so far, as "aac > opus"
    _peers: Collection[str]
    _share: PortShare | None = None  # of an incoming call
    _endpoint: Endpoint | None
    video: "CallVideo"
    x_flv: CallXFlv

    @abstractmethod
    def log_event(self, what: str, **values: object) -> None:
        """Write a line about this call into the log."""

    @abstractmethod
    def log_warning(self, what: str, **values: object) -> None:
        """Write a warning about this call into the log."""

    @abstractmethod
    def drop(self, now: float, reason: str, cause: str | None = None) -> None:
        """Hang up for a reason of the gateway's: RFC 3261 §15."""

    def on_hold_back(self, asker: object, hold: bool) -> None:
        """Hold the publisher back, see `pacing`."""
        self.hold_back(asker, hold)

    def on_digit(self, digit: str, now: float) -> None:
        """Tell the user of a key of the phone: RFC 4733 §2.5.2.2."""
        self.user.on_call_digit(digit, now)

    def hold_back(self, asker: object, hold: bool) -> None:
        """Tell the user to hold its publisher back while any medium asks for it."""
        before = bool(self._holders)
        (self._holders.add if hold else self._holders.discard)(asker)
        if bool(self._holders) != before:
            self.user.on_hold_back(hold)

    def on_unsuitable(self, sound_format: int) -> None:
        """Log that the phone does not hear the publisher: FLV 10.1 §E.4.2.1."""
        leg = self.leg
        agreed = [codec.name for codec, _ in leg.plan.sending] if leg and leg.plan else []
        name = sound_name(sound_format)
        if leg is not None and leg.ways.g711_rate:
            name = f"{name} of another rate than 8 kHz"
        missing = "" if decoder.is_available() else f", or {TRANSCODE}"
        cure = f"publish {or_(agreed)}{missing}"
        self.facilities.unsuitable += 1
        self.log_warning("sound-unsuitable", codec=name, agreed=",".join(agreed), cure=cure)
        self.user.on_unsuitable(f"The phone cannot hear {name}: {cure}.")

    def on_transcoding(self, sound_format: int, codec: str) -> None:
        """Log that the publisher's sound is decoded and encoded again."""
        self._tell_transcoding(sound_name(sound_format), codec)

    def on_transcoding_phone(self, codec: str) -> None:
        """Log that the phone's sound is decoded and encoded again."""
        making = self.leg.ways.making if self.leg is not None else []
        self._tell_transcoding(codec, making[-1].rpartition(" ")[2])

    def _tell_transcoding(self, codec: str, to: str) -> None:
        """Log a pair of codecs once: either side may alternate between them at each packet."""
        if self.note_made(f"{codec} > {to}"):
            self.log_event("transcoding", codec=codec, to=to)

    def note_made(self, making: str) -> bool:
        """Note what is decoded and encoded, for the record of the call; whether it is new."""
        is_new = making not in self.made and len(self.made) < MAX_MADE
        if is_new:
            self.made.append(making)
        return is_new

    @property
    def transcodes(self) -> bool:
        """Whether sound or pictures of either side are decoded and encoded now."""
        return bool(self.making)

    @property
    def making(self) -> list[str]:
        """What is decoded and encoded now, to the phone and from it, as "aac > opus"."""
        sound = self.leg.ways.making if self.leg is not None else []
        return sound + (self.video.leg.making if self.video.leg is not None else [])

    def on_late(self, kind: str, now: float) -> None:
        """Log, once for each medium of a call, that the publisher's is left out: see `pacing`."""
        if kind not in self._late:
            self._late = self._late | {kind}
            self.log_warning("media-late", kind=kind, cure=LATE_CURE)

    @property
    def left_out(self) -> int:
        """The packets of sound and the pictures that were published and came too late."""
        pictures = self.video.leg.left_out if self.video.leg is not None else 0
        return pictures + (self.leg.left_out if self.leg is not None else 0)

    def on_quiet(self, now: float) -> None:
        """Ask a silent phone whether it is still there: RFC 3261 §11."""
        if self.call is not None:
            self.call.ask(now)

    def on_silence(self, now: float) -> None:
        """End the call of a phone that has vanished, which would last for ever."""
        self.drop(now, "media timeout", DEAD)

    def on_drained(self, now: float) -> None:
        """Tell the user that the last packet has been sent."""
        self.user.on_drained(now)

    def show(self, group: PictureGroup, now: float) -> None:
        """Begin with the pictures that were published before the call: FLV 10.1 §E.4.3.1."""
        if self.x_flv.leg is not None:
            self.x_flv.leg.begin(group, self.user.sound_header.body, now)
        elif self.video.leg is not None:
            self.video.leg.group = group

    def _hosts(self, now: float) -> Collection[str]:
        """The hosts that the signalling comes from: the peer, or phones behind our own proxy."""
        if self.call is None:
            return ()
        host, media = self.call.peer_host, self.facilities.media
        if host is not None:
            return (host,)
        return (media.media_host, *media.phone_hosts(self.call.remote.uri, now))

    def _read(self, sdp: bytes, now: float) -> SessionDescription:
        """Read what the phone says: RFC 8866 §5.  Raises RemoteError."""
        return sdp_map.read(sdp, self._hosts(now))

    def _reached_at(self, contact: Uri, peers: Collection[str]) -> Uri:
        """Our Contact for peers at these hosts: RFC 3261 §8.1.1.8."""
        media = self.facilities.media
        if media.host_for(peers) == media.media_host:
            return contact
        transport = (contact.param("transport") or "udp").upper()
        here = self.facilities.agent.stack.contact(None, transport, next(iter(peers)))
        return contact.replace(host=here.host, port=here.port)

    def _open(self, peers: Collection[str], now: float) -> Endpoint:
        media, self._peers = self.facilities.media, peers
        try:
            self.leg, at = media.open_leg(self, peers, now, self._share)
        except LocalError as error:
            raise RemoteError(NO_PORT, 503) from error
        self.leg.on_late = partial(self.on_late, "sound")
        self.leg.on_tag, self.leg.ways.header = self.user.on_tag, self.user.sound_header
        # RFC 3264 §5 [numbers-of-64-bits] [version-below-2-62]
        session_id = int.from_bytes(self.facilities.random(4), "big")
        self._endpoint = Endpoint(at.host, at.port, session_id, rtcp_port=at.rtcp_port)
        return self._endpoint

    def _check(self, theirs: SessionDescription, peers: Collection[str]) -> None:
        """Raise RemoteError for an offer without sound that can cross: RFC 3264 §6."""
        host = self.facilities.media.host_for(peers)
        if sdp_map.is_acceptable(theirs, codec_names.everything(), host=host):
            return
        self.note_lack(theirs)
        raise sdp_map.refusal(theirs)

    def note_lack(self, theirs: SessionDescription) -> None:
        """Log the codecs of an offer that the extra would add, where that is not installed."""
        if codecs := codec_names.lacking(theirs):
            lack = {"codecs": ",".join(codecs), "install": codec_names.EXTRA}
            self.facilities.unsuitable += 1
            self.log_warning("transcode-missing", **lack, cure=TRANSCODE)

    def _offering(self, endpoint: Endpoint, now: float) -> Endpoint:
        """Our endpoint with ports for all lines of an offer beside the sound: RFC 3264 §5.1."""
        endpoint = self.x_flv.offered_at(endpoint, self._peers, now)
        return self.video.offered_at(endpoint, self._peers, now)

    def _answering(self, endpoint: Endpoint, theirs: SessionDescription, now: float) -> Endpoint:
        """Our endpoint with ports for the lines that an offer has: RFC 3264 §6."""
        endpoint = self.x_flv.answering(endpoint, theirs, self._peers, now)
        return self.video.answering(endpoint, theirs, self._peers, now)


def sound_name(sound_format: int) -> str:
    """The name of a SoundFormat, for people: FLV 10.1 §E.4.2.1."""
    try:
        return SoundFormat(sound_format).name.lower()
    except ValueError:
        return str(sound_format)


def or_(names: Sequence[str]) -> str:
    """Names as a choice: "a, b or c"."""
    return " or ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))

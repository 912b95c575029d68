"""The log lines of a session: what is made anew, what cannot be carried, and the cure.

Own design: an operator reads them, and so do publishers, which are told the same in one sentence.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from p2psip.errors import RemoteError
from p2psip.sdp.session import SessionDescription
from rtmplite.flv.audio import SoundFormat
from siprtmp.media.sdp_map import MediaPlan
from siprtmp.media.transcode import audio_decoder
from siprtmp.media.translate.flv_to_video import TOO_LONG
from siprtmp.media.translate.video_tag import H264, VP8
from siprtmp.media.video_lines import NAMES, offered_video

MAX_TRANSCODED: Final = 32  # pairs of codecs kept of a call; a publisher may change its video
TRANSCODE: Final = "install the extra transcode: pip install 'siprtmp[transcode]'"
TRANSCODE_VIDEO: Final = "--transcode-video"
LATE_CURE: Final = "fewer calls if loop_lag_ms of /status is high, else a steadier publisher"
SHOWN: Final = {"h264": "H.264", "h265": "H.265", "vp8": "VP8"}


class MediaLog(Protocol):
    """The log, which knows what the session is for."""

    def event(self, what: str, **values: object) -> None:
        """Write a line about a session."""

    def warning(self, what: str, **values: object) -> None:
        """Write a warning about a session."""

    def unsuitable(self, what: str, **values: object) -> None:
        """Write a warning that something cannot be carried, and count it."""


class SessionLog:
    """Writes the lines of one session, each as often as it is of use.

    `transcoded` has all that was decoded and encoded so far, as "aac > opus"; `can_make_video` says
    that the gateway may do so with video.
    """

    def __init__(self, log: MediaLog) -> None:
        self._log, self.can_make_video = log, False
        self._late: set[str] = set()  # media that the log has
        self.transcoded: list[str] = []

    def late(self, kind: str) -> None:
        """Log once for each medium that media of the publisher are left out: see `pacing`."""
        if kind not in self._late:
            self._late.add(kind)
            self._log.warning("media-late", kind=kind, cure=LATE_CURE)

    def refused(self, reason: str) -> None:
        """Log the first packet of SRTP that is dropped: RFC 3711 §3.3."""
        self._log.event("srtp-refused", reason=reason)

    def no_port(self, *, is_video: bool) -> None:
        """Log that there is no transport for a line beside the audio."""
        if is_video:
            self._log.unsuitable("video-without-port", cure="a wider --rtp-ports")
        else:
            self._log.event("video-without-port")

    def makes(self, transcodes: str, reason: str = "") -> None:
        """Log that media is made anew; of audio, which has no `reason`, each pair of codecs once.

        Either side may alternate between codecs at each packet.
        """
        is_new = transcodes not in self.transcoded
        if is_new and len(self.transcoded) < MAX_TRANSCODED:
            self.transcoded.append(transcodes)
        elif not reason:
            return
        codec, _, to = transcodes.partition(" > ")
        self._log.event("transcoding", codec=codec, to=to, **({"reason": reason} if reason else {}))

    def unsuitable_audio(self, name: str, plan: MediaPlan | None) -> str:
        """Log that the peer does not hear the publisher; the same for the publisher."""
        agreed = [codec.name for codec, _ in plan.audio.sending] if plan is not None else []
        missing = "" if audio_decoder.is_available() else f", or {TRANSCODE}"
        cure = f"publish {or_(agreed)}{missing}"
        values = {"codec": name, "agreed": ",".join(agreed), "cure": cure}
        self._log.unsuitable("sound-unsuitable", **values)
        return f"The phone cannot hear {name}: {cure}."

    def unsuitable_video(self, reason: str, plan: MediaPlan | None, max_octets: int) -> str:
        """Log that the peer does not see the publisher; return what to tell the publisher."""
        if plan is not None and plan.x_flv is not None:
            self._log.unsuitable("video-unsuitable", reason=reason)
            return f"The other side cannot get this: {reason}."
        names = plan.video.names if plan is not None and plan.video is not None else [H264]
        cure = f"publish {or_([SHOWN[name] for name in names])}"
        if reason == TOO_LONG:
            cure = f"publish slices of {max_octets} octets at most"
        if not self.can_make_video:
            cure += f", or start the gateway with {TRANSCODE_VIDEO}"
        self._log.unsuitable("video-unsuitable", reason=reason, cure=cure)
        return f"The phone cannot see this: {reason}; {cure}."

    def no_video(
        self, names: Sequence[str], offered: SessionDescription | None, sdp: bytes | None
    ) -> None:
        """Log that there is no video though one side has offered some: RFC 3264 §6.

        `names` are ours, `offered` is our offer if there was one, `sdp` the peer's description.
        """
        try:
            theirs = SessionDescription.parse(sdp or b"")
        except RemoteError:
            return
        codecs, is_ours = offered_video(offered or theirs), offered is not None
        if not codecs:
            return
        reason, cure = "no codec in common", "let the phone offer H264"
        if is_ours and not offered_video(theirs):
            reason, cure = "the phone refuses the line", "turn video on at the phone"
        elif not is_ours and set(NAMES).isdisjoint(names):
            reason, cure = "the client takes no pictures", "let the client name h264"
        elif not is_ours and VP8 in codecs and not self.can_make_video:
            cure += f", or start the gateway with {TRANSCODE_VIDEO}"
        self._log.event("video-refused", offered=",".join(codecs), reason=reason, cure=cure)


def sound_format_name(sound_format: int) -> str:
    """The name of a SoundFormat, for people: FLV 10.1 §E.4.2.1."""
    try:
        return SoundFormat(sound_format).name.lower()
    except ValueError:
        return str(sound_format)


def or_(names: Sequence[str]) -> str:
    """Names as a choice: "a, b or c"."""
    return " or ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))

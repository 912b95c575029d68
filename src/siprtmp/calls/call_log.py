"""The log lines of one call.

Own design: its start, answer and end, with the figures that an operator asks for; the page of log
events has them all.
"""

from collections.abc import Callable
from dataclasses import dataclass

from p2psip.errors import RemoteError
from p2psip.sdp.session import SessionDescription
from p2psip.sip.uri import Uri
from siprtmp.calls import codec_names
from siprtmp.media.sdp_map import MediaPlan
from siprtmp.media.session import MediaStatistics
from siprtmp.media.session_log import TRANSCODE
from siprtmp.operation.logs import Log


@dataclass(frozen=True, slots=True)
class Origin:
    """The direction, caller, callee, source and time of a call, for the operator.

    `source` is transport and host of the phone, or RTMP and the host of the client.
    """

    direction: str
    caller: str
    callee: str
    source: str
    at: float

    @property
    def facts(self) -> dict[str, object]:
        """All but the time, by the names that the operator knows."""
        return {name: getattr(self, name) for name in ("direction", "caller", "callee", "source")}


class CallLog:
    """Writes lines about one call: see the page of log events.

    `whose` gives what begins each line: the ids of the call and of its client.  `count` is called
    for each thing that cannot be carried.
    """

    def __init__(
        self, log: Log, count: Callable[[], None], whose: Callable[[], dict[str, object]]
    ) -> None:
        self._log, self._count, self._whose = log, count, whose

    def event(self, what: str, **values: object) -> None:
        self._log.event(what, **self._whose(), **values)

    def warning(self, what: str, **values: object) -> None:
        self._log.warning(what, **self._whose(), **values)

    def unsuitable(self, what: str, **values: object) -> None:
        """Write a warning that something cannot be carried, and count it for `/status`."""
        self._count()
        self.warning(what, **values)

    def begin(self, origin: Origin, trunk: str | None) -> None:
        by = {} if trunk is None else {"trunk": trunk}
        who = {"caller": origin.caller, "callee": origin.callee}
        self.event("call-start", direction=origin.direction, **who, **by)

    def refused(self, origin: Origin, callee: Uri, error: RemoteError) -> None:
        """Write that a limit of calls has refused `callee`: see `toll_guard`."""
        who = {"caller": origin.caller, "callee": str(callee), "source": origin.source}
        self.event("call-refused", **who, reason=f"{error.status} {error.reason}")

    def answer(self, plan: MediaPlan) -> None:
        kind = "x-flv" if plan.x_flv is not None else ""
        if plan.video is not None:
            kind = ",".join(plan.video.names)
        keys = plan.audio.media.keys
        more = {"video": kind} if kind else {}
        more |= {"srtp": keys.ours.suite} if keys is not None else {}
        self.event("call-answer", codec=plan.audio.codec.name, **more)

    def end(self, reason: str, seconds: float, of: MediaStatistics) -> None:
        video = {"video_sent": of.video_sent, "video_received": of.video_received}
        self.event(
            "call-end",
            reason=reason,
            seconds=round(seconds, 1),
            sent=of.sent,
            received=of.received,
            **(video if of.has_video else {}),
            **({"left_out": of.left_out} if of.left_out else {}),
            **({"srtp_refused": of.refused} if of.refused else {}),
        )

    def lack(self, theirs: SessionDescription) -> None:
        """Write the codecs of an offer that the extra would add, where that is not installed."""
        if codecs := codec_names.lacking(theirs):
            lack = {"codecs": ",".join(codecs), "install": codec_names.EXTRA}
            self.unsuitable("transcode-missing", **lack, cure=TRANSCODE)

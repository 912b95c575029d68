"""A call that hears recorded files: an announcement before the answer, a film after it.

Own design: a call sends at the pace of the audio, and holds its publisher back when that
is ahead; here the publisher is a file, which is read only as far as the call takes it.  RFC 3960 §3
is the announcement: a 183 with a description, whose media the caller hears before an answer that
may never come, and that costs nothing.
"""

from collections.abc import Callable
from typing import Final

from p2psip.errors import RemoteError
from p2psip.stack.stack import ServerHandle
from rtmplite.vod.playlist import Feeder, Library, Recording
from siprtmp.calls import codec_names, failures
from siprtmp.calls.call import Call
from siprtmp.calls.home import CallHome
from siprtmp.calls.observer import CallObserver
from siprtmp.media.sdp_map import MediaPlan
from siprtmp.media.sink import MediaSink
from siprtmp.media.transport import Waker

PLAYED: Final = "file played"
UNHEARD: Final = "sound unsuitable"
SOON: Final = 0.0  # a deadline that has passed


class PlayedCall(CallObserver, MediaSink):
    """The observer of a call that hears `announce` before the answer, and `file` after it.

    Either may be empty; both are files of `library`.  After the announcement `then` takes the call,
    if it is given, or else the call is refused.
    """

    def __init__(
        self,
        home: CallHome,
        library: Library | None,
        announce: str,
        file: str,
        then: Callable[[Call, float], None] | None = None,
    ) -> None:
        super().__init__()
        self._home, self._library = home, library
        self._announce, self._file, self._then = announce, file, then
        self.log_id = f"vod/{announce or file}"
        self._call = Call(self, self, home.context)
        self._feeder: Feeder | None = None
        self._is_early = self._is_held = self._is_over = self._is_read = False
        self._is_unheard = False  # the phone does not have the file's codec
        self._waker: Waker | None = None
        self.deadline: float | None = None

    def incoming(self, server: ServerHandle, now: float) -> None:
        contact = self._home.contact(server.request.uri.user or "", "")
        if not self._call.take(server, contact, now):
            self._is_over = True
            return
        # without an offer there is nothing to send early media to: RFC 3960 §3
        sip = self._call.call
        self._is_early = bool(self._announce and sip is not None and sip.remote_sdp)
        self._call.descriptions.are_proven = self._is_early and self._home.is_proven(server, now)
        if self._is_early or self._file:
            self._open(self._announce if self._is_early else self._file, now)
        else:
            self._go_on(now)

    def _open(self, name: str, now: float) -> None:
        if self._library is None:
            self._opened(None, now)
        else:
            self._library.open(name, self._opened)

    def _opened(self, recording: Recording | None, now: float) -> None:
        if recording is not None and not self._is_over:
            self._feeder = Feeder(recording, recording.index.start, self._pump)
            self._is_read = False
            self._answer(now)
            return
        if recording is not None:  # the caller has gone meanwhile
            recording.close()
            return
        self._home.context.log.warning("no-file", rtmp=self.log_id)
        self._refuse(*failures.NO_FILE, now)

    def _answer(self, now: float) -> None:
        try:
            self._call.answer(codec_names.answered(), now, early=self._is_early)
        except RemoteError as error:
            self._refuse(error.status, error.reason, now)
        else:
            if self._is_early:
                self._pump(now)

    def _pump(self, now: float) -> None:
        """Publish the tags that have been read, until the call holds them back; read more."""
        feeder = self._feeder
        if not (self._is_early or self._call.up_at is not None):
            return
        while feeder is not None and feeder is self._feeder and not self._is_read:
            self._publish(feeder, now)
            if self._is_unheard:
                self._give_up(now)
                return
            if self._is_held:
                return
            if feeder.ended:
                self._is_read = True
                self._call.publish_ended(now)
                return
            feeder.fill()
            if not (feeder.tags or feeder.ended):
                return  # the next block calls again

    def _give_up(self, now: float) -> None:
        """End the call: a file that nobody hears would be read as fast as it can be."""
        if self._is_early:
            self._refuse(488, "Not Acceptable Here", now)
        else:
            self._call.hang_up(now, UNHEARD)
            self._end()

    def _publish(self, feeder: Feeder, now: float) -> None:
        call = self._call
        while feeder.tags and not (self._is_held or self._is_unheard or self._is_over):
            tag = feeder.tags.popleft()
            call.publish(tag.tag_type, tag.timestamp, tag.data, now)

    def _go_on(self, now: float) -> None:
        """The announcement is over, or there was none."""
        self._close()
        self._is_early = False
        if self._then is not None:
            self._is_over = True
            self._stop_timer()
            self._then(self._call, now)
        elif self._file:
            self._open(self._file, now)
        else:
            self._refuse(*failures.ANNOUNCED, now)

    def _refuse(self, status: int, reason: str, now: float) -> None:
        self._call.refuse(status, reason, now)
        self._end()

    def _end(self) -> None:
        self._is_over = True
        self._close()
        self._stop_timer()

    def _close(self) -> None:
        feeder, self._feeder = self._feeder, None
        if feeder is not None:
            feeder.stop()
            feeder.recording.close()

    def _stop_timer(self) -> None:
        if self._waker is not None:
            self._waker.cancel()
            self._waker = None

    # -- Timed --------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        """Go on after the call has had enough for a while."""
        self.deadline = None
        self._pump(now)

    # -- CallObserver and MediaSink -----------------------------------------------------

    def on_call_up(self, plan: MediaPlan, now: float) -> None:
        self._pump(now)

    def on_call_cancelled(self, now: float) -> None:
        self._end()

    def on_call_over(self, reason: str, now: float) -> None:
        self._end()

    def on_unsuitable(self, text: str) -> None:
        """Play no more of a file that the phone cannot hear."""
        self._is_unheard = True

    def on_hold_back(self, hold: bool) -> None:
        self._is_held = hold
        if not hold and not self._is_over:
            if self._waker is None:
                self._waker = self._home.context.media.waker(self)
            self.deadline = SOON
            self._waker.set()

    def on_drained(self, now: float) -> None:
        if self._is_over:
            return
        if self._is_early:
            self._go_on(now)
        else:
            self._call.hang_up(now, PLAYED)
            self._end()

"""The sending flows of a message stream, and how long each message is worth repeating.

Implements RFC 7425 §5.1.1 and §5.3.5.  Commands, data and control share a flow and always arrive;
audio and video have flows of their own.  Of a live stream audio that is late is given up, and
frames when a key frame has made them useless; what comes after a frame that was given up is
left out until the next key frame.
"""

from collections import deque
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, Protocol

from rtmplite.flv.audio import is_sequence_header as is_audio_header
from rtmplite.flv.video import is_key_frame
from rtmplite.flv.video import is_sequence_header as is_video_header
from rtmplite.rtmfp.netconnection.messages import FlowMetadata, Intent
from rtmplite.rtmfp.session.flow_states import RecvState, SendState
from rtmplite.rtmfp.session.send_flow import FlowSender, Priority
from rtmplite.rtmp.wire.message import MessageType

if TYPE_CHECKING:
    from rtmplite.rtmfp.netconnection.flows import MessageSession, ReceivingFlow, SendingFlow
    from rtmplite.rtmfp.session.send_queue import Outgoing

_HEADER_SIZE: Final = 5  # bytes before the payload: §5.1.2
_COMPLETE: Final = (SendState.COMPLETE_LINGER, SendState.CLOSED)


class Medium(Enum):
    """A kind of message that has a flow of its own: §5.1.1 [many-flows].

    Own design: commands and data are small and go first, so that metadata arrive before the media
    that they describe.
    """

    COMMANDS = Priority.IMMEDIATE
    AUDIO = Priority.AUDIO
    VIDEO = Priority.VIDEO


_MEDIA: Final = {MessageType.AUDIO: Medium.AUDIO, MessageType.VIDEO: Medium.VIDEO}


def medium_of(type_id: int) -> Medium:
    """Choose the flow of a message: data messages go with the commands, in their order: §5.1.1."""
    return _MEDIA.get(type_id, Medium.COMMANDS)  # type: ignore[call-overload, no-any-return]


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """The seconds for which a live message is worth sending; None is for ever.

    Own design, where §5.1.1 has one second as an example.  A frame is given up `grace` after the
    next key frame, so that nothing is lost that was merely on its way, and at the latest after
    `video`.  `audio_intent` hints in which order audio is best received: for a
    conversation it may be the network's, where a frame that was lost holds up no other.
    """

    audio: float | None = 1.0
    video: float | None = 6.0
    grace: float = 0.5
    audio_intent: Intent = Intent.QUEUING_ORDER


LIVE: Final = Lifetimes()
RELIABLE: Final = Lifetimes(None, None)


class MediaFlowOwner(Protocol):
    """Own design: all that sending flows know of a `connection.FlowTransport`."""

    session: "MessageSession | None"
    lifetimes: Lifetimes

    @property
    def far_control(self) -> "ReceivingFlow | None":
        """The other end's canonical control flow, to which ours are associated: §5.3.5."""

    def media_flow_rejected(self, flow: "MediaFlow", now: float) -> None:
        """Note that the far end rejects the flow: §5.3.5.3, or §5.3 for the control flow."""

    def media_flow_moved(self, flow: "MediaFlow", now: float) -> None:
        """Note that a part of the queue has arrived."""


class MediaFlow(FlowSender):
    """A sending flow for one medium, opened when there is something to send: §5.3.5.

    Own design: `queued` counts the bytes that have neither arrived nor been given up.  `is_live`
    says whether it has had anything of a live stream to send, and not just commands.
    """

    def __init__(self, owner: MediaFlowOwner, stream_id: int, medium: Medium) -> None:
        self.stream_id, self.medium = stream_id, medium
        self.is_live = False
        self._owner = owner
        self._flow: SendingFlow | None = None
        self._closed = self._is_rejected = False
        self._refused = 0  # bytes, since the far end has rejected the flow

    @property
    def undelivered(self) -> int:
        """Bytes that have neither arrived nor been given up by us."""
        return 0 if self._flow is None else self._flow.queued + self._flow.refused + self._refused

    @property
    def queued(self) -> int:
        """Bytes that have neither arrived nor been given up by either end."""
        return self._flow.queued if self._flow is not None else 0

    @property
    def flow(self) -> "SendingFlow | None":
        """The flow of the session, None before there was anything to send: §5.3.5."""
        return self._flow

    @property
    def is_open(self) -> bool:
        """Whether it has been used, and neither been closed nor rejected: §5.3.5.3."""
        return self._flow is not None and not self._closed

    @property
    def is_waiting(self) -> bool:
        """Whether a message, even an abandoned one, is not acknowledged: §5.1.1."""
        return self._flow is not None and self._flow.has_entries

    @property
    def is_over(self) -> bool:
        """Whether the far end knows that it is closed, if it has ever heard of it: §5.3.6."""
        return self._flow is None or self._flow.state in _COMPLETE

    def send(self, data: bytes, now: float, lifetime: float | None = None) -> "Outgoing | None":
        """Send within `lifetime` seconds, nothing once rejected: §5.1.1, §5.3.5.3."""
        if self._closed:  # §5.3.5.3 [no-replacement]
            self._refused += len(data) if self._is_rejected else 0
            return None
        flow = self._flow or self._open(now)
        return None if flow is None else flow.send(data, now, lifetime=lifetime)

    def send_live(self, data: bytes, now: float, lifetimes: Lifetimes) -> None:
        """Send live; late audio is given up, what a decoder needs never: §5.1.1."""
        self.is_live = True
        mortal = self.medium is Medium.AUDIO and not is_audio_header(
            memoryview(data)[_HEADER_SIZE:]
        )
        # §5.1.1 [abandons]
        self.send(data, now, lifetimes.audio if mortal else None)

    def close(self, now: float) -> None:
        """Accept no more messages; those queued are still sent: §5.3.5.3."""
        if self.is_open and self._flow is not None:
            self._flow.close(now)  # §5.3.5.3 [closing-says-nothing]
        self._closed = True

    def on_exception(self, flow: "SendingFlow", code: int, now: float) -> None:
        """Give up a flow that the far end does not want: §5.3.5.3 [no-replacement]."""
        self._closed = self._is_rejected = True
        self._owner.media_flow_rejected(self, now)

    def on_writable(self, flow: "SendingFlow", now: float) -> None:
        """Tell the connection that a part of the media has arrived."""
        self._owner.media_flow_moved(self, now)

    def on_complete(self, flow: "SendingFlow", now: float) -> None:
        """All has arrived: §5.3.6."""
        self._owner.media_flow_moved(self, now)

    def _open(self, now: float) -> "SendingFlow | None":
        """Open it: §5.3.5, §5.3.2, §5.1.1; None if nothing is to answer: RFC 7016 §3.6.2.1."""
        session, answered = self._owner.session, self._owner.far_control
        assert session is not None  # nothing is flushed before there is one
        if answered is not None and answered.state is not RecvState.OPEN:
            self._closed = True
            return None
        is_audio = self.medium is Medium.AUDIO
        # §5.1.1 [intent]
        intent = self._owner.lifetimes.audio_intent if is_audio else Intent.QUEUING_ORDER
        self._flow = session.open_flow(
            bytes(FlowMetadata(self.stream_id, intent)),  # §5.1.1 [one-stream] [intent]
            now,
            associated=answered,  # §5.3.5 [associated], §5.3.2 [server-returns]
            sender=self,
            priority=self.medium.value,
            time_critical=is_audio,
        )
        return self._flow


class VideoFlow(MediaFlow):
    """The flow of video, whose frames depend on each other: §5.1.1."""

    def __init__(self, owner: MediaFlowOwner, stream_id: int) -> None:
        super().__init__(owner, stream_id, Medium.VIDEO)
        self._group: deque[Outgoing] = deque()  # the frames since the last key frame
        self._broken = False

    def send_live(self, data: bytes, now: float, lifetimes: Lifetimes) -> None:
        """Send a frame unless it depends on one that was given up: §5.1.1."""
        self.is_live = True
        payload = memoryview(data)[_HEADER_SIZE:]
        if lifetimes.video is None or is_video_header(payload):
            self.send(data, now)
            return
        if is_key_frame(payload):
            self._supersede(now + lifetimes.grace)  # §5.1.1 [abandons]
        elif self._is_broken():  # §5.1.1 [abandons]
            return
        if (sent := self.send(data, now, lifetimes.video)) is not None:
            self._group.append(sent)

    def _supersede(self, expires: float) -> None:
        """Give up at `expires` the frames that a key frame replaces."""
        for each in self._group:
            each.expires = min(each.expires, expires)
        self._group.clear()
        self._broken = False

    def _is_broken(self) -> bool:
        """Whether a frame since the last key frame was given up."""
        if not self.queued:
            self._group.clear()  # all have arrived
        self._broken = self._broken or any(each.abandoned for each in self._group)
        return self._broken


def make_media_flow(owner: MediaFlowOwner, stream_id: int, medium: Medium) -> MediaFlow:
    """Make the flow of a medium: §5.1.1."""
    if medium is Medium.VIDEO:
        return VideoFlow(owner, stream_id)
    return MediaFlow(owner, stream_id, medium)

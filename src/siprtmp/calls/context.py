"""The surroundings of a call: ports, timers, a user to tell, and a log.

Own design: the protocols between the gateway's machines and its edge.  RFC 3261 §13 is behind most
events of a `CallUser`.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from p2psip.server.port_shares import PortShare
from p2psip.sip.uri import Uri
from p2psip.stack.stack import ServerHandle
from p2psip.ua.messages import InstantMessage, Messages
from p2psip.ua.requests.extensions import Extensions
from p2psip.ua.requests.request_validation import CALL_METHODS
from p2psip.ua.transfers import Referral
from p2psip.ua.ua import UserAgent
from siprtmp.calls.toll_guard import Tolls
from siprtmp.calls.trunks import Trunks
from siprtmp.media.audio_stream import AudioStream
from siprtmp.media.conversion import PictureTranscoding
from siprtmp.media.sdp_map import MediaPlan
from siprtmp.media.stream import StreamListener
from siprtmp.media.translate.sound_header import SoundHeader
from siprtmp.media.transport import MediaAddress, Timed, Waker
from siprtmp.media.tunnel_stream import TunnelStream
from siprtmp.media.video_stream import VideoStream
from siprtmp.operation.logs import Log

if TYPE_CHECKING:
    from siprtmp.calls.call import AudioCall
    from siprtmp.calls.call_media import CallMedia


KEY_FRAME_WANTED: Final = "NetStream.Publish.KeyFrameWanted"  # Own design: RTMP has no such code
UNSUITABLE: Final = "NetStream.Publish.Unsuitable"  # Own design: what cannot be carried

# What the user agents of RTMP clients take beyond calls.
EXTENSIONS: Final = Extensions(methods=(*CALL_METHODS, "MESSAGE", "REFER", "NOTIFY"))


class MediaEdge(Protocol):
    """Opens the ports and timers of legs; `MediaSide` is the real one."""

    @property
    def media_host(self) -> str:
        """The address that peers outside know us by: RFC 8866 §5.7."""

    @property
    def pictures(self) -> PictureTranscoding | None:
        """How pictures are decoded and encoded, None if they are not."""

    def host_for(self, peers: Collection[str]) -> str:
        """The address of ours that peers at these hosts can reach: RFC 8866 §5.7."""

    def open_leg(
        self,
        listener: "CallMedia",
        peers: Collection[str],
        now: float,
        share: PortShare | None = None,
    ) -> tuple[AudioStream, MediaAddress]:
        """A leg, and where peers at these hosts send to (RFC 3550 §11).

        Raises LocalError when no port is left, or none for `share`, whose ports these are and those
        of the call's other legs.
        """

    def open_video(
        self, listener: StreamListener, peers: Collection[str], now: float, sound: AudioStream
    ) -> tuple[VideoStream, MediaAddress]:
        """A leg for pictures, as `open_leg` has it for `sound`."""

    def phone_hosts(self, user: Uri, now: float) -> Collection[str]:
        """Where the phones of a user of ours registered from: RFC 3261 §10.2."""

    def open_x_flv(
        self, listener: StreamListener, peers: Collection[str], now: float, sound: AudioStream
    ) -> tuple[TunnelStream, MediaAddress]:
        """A tunnel, as `open_leg` has it for sound; its name is that of the call's `sound`."""

    def close_leg(self, leg: AudioStream | VideoStream | TunnelStream) -> None:
        """Stop waking a leg that is closed."""

    def waker(self, machine: Timed) -> Waker:
        """A timer for a machine."""


class CallUser(Protocol):
    """The RTMP side of a call: a rich client's line, or a stock tool's name."""

    log_id: str
    sound_header: SoundHeader  # of its publisher
    takes_opus: bool  # by Enhanced RTMP

    @property
    def host(self) -> str:
        """The host of its client, empty without one."""

    @property
    def payer(self) -> str:
        """The key that its calls are counted under, see `toll_guard`."""

    def on_call_ringing(self, status: int, reason: str, now: float) -> None:
        """A provisional response other than 100: RFC 3261 §13.2.2.1."""

    def on_call_up(self, plan: MediaPlan, now: float) -> None:
        """The 200 was received, or sent and acknowledged: RFC 3261 §13.2.2.4, §13.3.1.4."""

    def on_call_failed(self, status: int, reason: str, now: float) -> None:
        """The call failed before it came up: RFC 3261 §13.2.2.3."""

    def on_call_cancelled(self, now: float) -> None:
        """The caller gave up before an answer: RFC 3261 §9.2."""

    def on_call_over(self, reason: str, now: float) -> None:
        """It was up, and is over: RFC 3261 §15."""

    def on_call_held(self, held: bool, now: float) -> None:
        """The phone put the call on hold, or took it off: RFC 3264 §8.4."""

    def on_call_digit(self, digit: str, now: float) -> None:
        """The phone has pressed a key: RFC 4733 §2.5.2.2."""

    def on_call_message(self, message: InstantMessage, now: float) -> None:
        """The phone has sent an instant message within the call: RFC 3428 §7."""

    def on_call_refer(self, call: "AudioCall", referral: Referral, now: float) -> None:
        """The phone asks us to call somebody else: RFC 3515 §2.4.2.  A RemoteError declines."""

    def on_call_transferred(self, status: int, reason: str, now: float) -> None:
        """The phone says what became of the call that we asked for: RFC 3515 §2.4.5."""

    def on_call_request_failed(self, what: str, reason: str, now: float) -> None:
        """The phone, or the way to it, has refused what the user asked for: RFC 3261 §21."""

    def takes(self, codec: str) -> bool:
        """Whether its players take pictures of this codec, which is not H.264.

        E-RTMP v2 §"Enhancing NetConnection connect Command".
        """

    def on_tag(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        """Sound or a picture from the phone as an RTMP message: RTMP 1.0 §7.1.4."""

    def on_unsuitable(self, text: str) -> None:
        """Tell the publisher what cannot be carried, and what to do."""

    def on_key_frame_wanted(self) -> None:
        """Ask the publisher for a key frame, since the phone lacks a picture: RFC 5104 §3.5.1."""

    def on_hold_back(self, hold: bool) -> None:
        """Hold the publisher back if `hold`, else let it go on."""

    def on_drained(self, now: float) -> None:
        """All that was published has been sent."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The caller, callee, source and time of a call, for the operator.

    `source` is transport and host of the phone, or RTMP and the host of the client.
    """

    direction: str
    caller: str
    callee: str
    source: str
    at: float


@dataclass(slots=True)
class CallContext:
    """The services that all calls of the gateway share.

    `share(server, now)` is the share of ports for an INVITE; None if the call may have any.
    """

    agent: UserAgent
    media: MediaEdge
    random: Callable[[int], bytes]
    log: Log
    tolls: Tolls
    calls: "set[AudioCall]" = field(default_factory=set)
    trunks: Trunks = field(default_factory=Trunks)
    unsuitable: int = 0  # what could not be carried, of calls and rooms, since the start
    on_begin: "Callable[[AudioCall, float], None]" = lambda call, now: None
    on_up: "Callable[[AudioCall, float], object]" = lambda call, now: None
    on_end: "Callable[[AudioCall, str, float], None]" = lambda call, reason, now: None
    share: Callable[[ServerHandle, float], PortShare | None] = lambda server, now: None
    messages: Messages = field(init=False)

    def __post_init__(self) -> None:
        self.messages = Messages(self.agent.core)

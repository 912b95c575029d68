"""Browsers that publish to an application, such as `call` or `room`, or play from one.

Own design: publishing to `call` places a call or waits for one, as by RTMP (see `call_app`), and
the answer to the offer does not wait for the phone.  Until that answers nothing is sent to it, and
then it gets the headers of the codecs and a key frame.  H.264 is taken where the browser has it,
since phones seldom have anything else.
"""

from collections.abc import Callable
from typing import Final

from p2psip.errors import RemoteError
from p2psip.sdp.codec import codecs_of
from p2psip.sdp.session import SessionDescription
from rtmplite.amf.values import Value
from rtmplite.errors import RemoteError as RtmpError
from rtmplite.flv.headers import is_header
from rtmplite.live.streams import LivePlayer, LiveStream, Viewer
from siprtmp.calls.home import KEY_FRAME_WANTED
from siprtmp.media.browser_transport import BrowserTransport
from siprtmp.media.session_log import MediaLog
from siprtmp.media.translate.video_tag import H264, VP8
from siprtmp.web.browser_client import BrowserClient
from siprtmp.web.browser_peers import (
    AUDIO_NAMES,
    SILENT_SECONDS,
    BrowserPeer,
    BrowserSeat,
    BrowserViewer,
    PeerOwner,
)

PUBLISHED: Final = "NetStream.Publish.Start"
BEGUN: Final = "NetStream.Play.PublishNotify"
FOUR_CCS: Final[list[Value]] = ["vp08", "Opus"]  # what these browsers know beside H.264


class ClientPublisher(BrowserPeer):
    """A browser that publishes to an application; `client` is its connection."""

    takes_opus = True

    def __init__(
        self,
        live: LiveStream,
        transport: BrowserTransport,
        owner: PeerOwner,
        log: MediaLog,
        clock: Callable[[], float],
        connect: Callable[["ClientPublisher"], BrowserClient],
    ) -> None:
        super().__init__(live, transport, owner, log, clock)
        self.client = connect(self)
        self._heard, self._at = clock(), 0
        self._headers: dict[int, bytes] = {}  # of the codecs, by type

    @property
    def named(self) -> dict[str, object]:
        return {"rtmp": self.client.id}

    def takes(self, codec: str) -> bool:
        return True

    def _names(self, offer: SessionDescription) -> tuple[str, ...]:
        return names_for(offer)

    def _begin(self, now: float) -> None:
        self.client.begin("publish", FOUR_CCS, now)

    def _leave(self, now: float) -> None:
        self.client.close(now, "the browser has gone")

    def on_tag(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        self._heard, self._at = now, timestamp
        if is_header(type_id, payload):
            self._headers[type_id] = payload
        self._publish(type_id, payload, now)

    def _publish(self, type_id: int, payload: bytes, now: float) -> None:
        try:
            self.client.publish(type_id, self._at, payload, now)
        except RtmpError as error:
            self.end(str(error), now)

    # -- ClientBrowser ------------------------------------------------------------------

    def told(self, code: str, now: float) -> None:
        if code == PUBLISHED:
            for type_id, payload in self._headers.items():
                self._publish(type_id, payload, now)
        if code in (PUBLISHED, KEY_FRAME_WANTED):
            self.session.request_key_frame(now)

    def seat(self, live: LiveStream, viewer: Viewer, now: float) -> LivePlayer:
        raise RemoteError("It publishes")

    def is_silent(self, now: float) -> bool:
        return now - self._heard > SILENT_SECONDS


class ClientViewer(BrowserViewer):
    """A browser that plays from an application, and waits until somebody publishes there."""

    def __init__(
        self,
        live: LiveStream,
        transport: BrowserTransport,
        owner: PeerOwner,
        log: MediaLog,
        clock: Callable[[], float],
        connect: Callable[["ClientViewer"], BrowserClient],
    ) -> None:
        super().__init__(live, transport, owner, log, clock)
        self.client = connect(self)

    @property
    def named(self) -> dict[str, object]:
        return {"rtmp": self.client.id}

    def _names(self, offer: SessionDescription) -> tuple[str, ...]:
        return super()._names(offer) if self.live.publishing else names_for(offer)

    def _wanted(self, kind: str) -> str:
        return super()._wanted(kind) if self.live.publishing else f"offer {H264} or {VP8}"

    def _begin(self, now: float) -> None:
        self.client.begin("play", FOUR_CCS[self._has_h264 :], now)
        if self.live.publishing:
            self._codec_to_make(now)
            self.choose(now)
        self.transport.on_connected = self._connected

    def _connected(self, now: float) -> None:
        self._sit()
        self.on_key_frame_wanted()

    def _leave(self, now: float) -> None:
        super()._leave(now)
        self.client.close(now, "the browser has gone")

    @property
    def has_layers(self) -> bool:
        return False  # phones and rooms have one track

    @property
    def _has_h264(self) -> bool:
        return H264 in self.session.terms.names

    # -- ClientBrowser ------------------------------------------------------------------

    def told(self, code: str, now: float) -> None:
        if code == BEGUN:
            self.choose(now)

    def seat(self, live: LiveStream, viewer: Viewer, now: float) -> LivePlayer:
        self.live = live
        self._seat = BrowserSeat(self, now, viewer)
        return self._seat.player

    def is_silent(self, now: float) -> bool:
        return False


def names_for(offer: SessionDescription) -> tuple[str, ...]:
    """What to answer where the other end is likely to be a phone: H.264 if it is offered."""
    offered = {each.name.lower() for media in offer.media for each in codecs_of(media)}
    return (*AUDIO_NAMES, H264 if H264 in offered else VP8)

"""All browsers that publish and play, by the secret names of their sessions.

Own design: an offer costs little before its browser has answered by ICE, and is forgotten soon; who
makes too many of them is told to wait, and where all places for them are taken the oldest goes.
"""

from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple, Protocol

from p2psip.errors import RemoteError
from p2psip.sdp.jsep import BrowserEnd, BrowserOffer, IceFragment
from p2psip.stack.fair_pool import tally
from rtmplite.limits.rate_limit_key import rate_limit_key
from rtmplite.live.streams import Framing, LiveStream, Registry
from rtmplite.rtmp.netconnection import Application
from siprtmp.media.browser_transport import BrowserTransport
from siprtmp.media.sink import AUDIO
from siprtmp.media.stream import StreamSettings
from siprtmp.media.transcode.video_transcoder import VideoTranscoders
from siprtmp.media.translate.conversion import AudioHeader
from siprtmp.web.b_frames import CURE, VideoWatch
from siprtmp.web.browser_client import Applications, BrowserClient
from siprtmp.web.browser_peers import BrowserPeer, BrowserPublisher, BrowserViewer
from siprtmp.web.client_peers import ClientPublisher, ClientViewer
from siprtmp.web.layers import VideoLayers
from siprtmp.web.made_video import MadeVideo
from siprtmp.web.opus_framing import OpusFraming

LIVE: Final = "live"  # the application whose streams are had without a connection
MAX_SESSIONS: Final = 2000  # of which one host has as many as are free: half, if it is alone
MAX_OPENING: Final = 256  # offers whose browser has not connected yet ...
MAX_OPENING_OF_HOST: Final = 32  # ... and of those from one host
MAX_ENDED: Final = 1000  # sessions whose end can still be asked for ...
ENDED_SECONDS: Final = 60.0  # ... for so long
ABSENT: Final = "Nobody publishes that"
_ID_OCTETS: Final = 18  # drawn, so that nobody finds the session of another
_TAG_OCTETS: Final = 6  # of the entity-tag of its ICE


class BrowserLog(Protocol):
    """The log of a gateway."""

    def event(self, what: str, **values: object) -> None:
        """Write a line."""

    def warning(self, what: str, **values: object) -> None:
        """Write a warning."""


class BrowserPort(Protocol):
    """The port of all browsers: `settings` makes those of a session's streams."""

    def attach(self, now: float) -> tuple[BrowserTransport, BrowserEnd]:
        """A transport for a new browser, and what our end of it says in an answer."""

    def restart(
        self, transport: BrowserTransport, theirs: tuple[str, str], now: float
    ) -> BrowserEnd:
        """Have ICE begin anew, with a browser of these credentials: RFC 9725 §4.3.3."""

    def detach(self, transport: BrowserTransport) -> None:
        """Take back a transport that is closed."""

    def settings(self) -> StreamSettings:
        """What the streams of a session are made with."""


class Asked(NamedTuple):
    """A request for a session: the stream, the offer, and where the client is."""

    app: str
    name: str
    sdp: bytes
    source: tuple[str, int]
    left: Callable[[], None]  # to be called when it has ended
    query: str = ""  # what the client proves itself by, and what it says of a call
    layer: str = ""  # the track of the stream's video that it wants to play


@dataclass(slots=True)
class BrowserSession:
    """A browser that is here; `id` is the secret part of its address, `tag` that of its ICE."""

    id: str
    tag: str
    peer: BrowserPeer
    offer: BrowserOffer
    ufrag: str  # of the browser's ICE
    asked: Asked
    log: "PeerLog"
    begun: float
    kind: str


class PeerLog:
    """The `MediaLog` of one session, which names the stream in each line."""

    def __init__(self, log: BrowserLog, values: Mapping[str, object]) -> None:
        self._log, self._values = log, values

    def event(self, what: str, **values: object) -> None:
        self._log.event(what, **self._values, **values)

    def warning(self, what: str, **values: object) -> None:
        self._log.warning(what, **self._values, **values)

    unsuitable = warning


class BrowserSessions:
    """Begins and ends the sessions of browsers, within limits.

    `transcoders` make video for those that cannot show a stream's, None if nothing may be made.
    `on_end` is told of each session that ends, and the reason.
    """

    def __init__(
        self,
        registry: Registry,
        port: BrowserPort,
        random: Callable[[int], bytes],
        clock: Callable[[], float],
        log: BrowserLog,
        applications: Callable[[str], Application | None] = lambda name: None,
        transcoders: VideoTranscoders | None = None,
    ) -> None:
        self._registry, self._port, self._random = registry, port, random
        self._clock, self._log = clock, log
        self._applications = Applications(applications, registry, random, clock)
        self._of_host: dict[str, int] = {}
        self._ended: dict[str, tuple[str, float]] = {}  # reason and time, the oldest first
        self._sessions: dict[str, BrowserSession] = {}
        self._by_peer: dict[BrowserPeer, BrowserSession] = {}
        self._opus: dict[LiveStream, OpusFraming] = {}
        self._watches: dict[LiveStream, VideoWatch] = {}
        self._layers: dict[LiveStream, VideoLayers] = {}
        self._transcoders = transcoders
        self._made: dict[tuple[LiveStream, str], MadeVideo] = {}
        self.on_end: Callable[[BrowserSession, str], object] = lambda session, reason: None

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def opening(self) -> int:
        """The number of browsers that have not connected yet."""
        return sum(not each.peer.transport.is_ready for each in self._sessions.values())

    def find(self, identifier: str) -> BrowserSession | None:
        """The session of a secret name."""
        return self._sessions.get(identifier)

    def reason(self, identifier: str) -> str:
        """Why the session of a secret name has ended, if that was lately; else empty."""
        reason, at = self._ended.get(identifier, ("", 0.0))
        return reason if self._clock() - at < ENDED_SECONDS else ""

    def publish(self, asked: Asked) -> tuple[BrowserSession, bytes]:
        """Have a browser publish; its session, and the answer.

        Raises RemoteError: 409 for a name in use, 503 for too many, 488 for an offer that does not
        suit, and what an application refuses a client for.
        """
        if asked.app != LIVE:
            return self._open(ClientPublisher, "sendonly", asked, self._clock())
        now, live = self._clock(), self._registry.open(asked.app, asked.name)
        publisher = live.publisher
        if live.publishing and (publisher is None or not publisher.is_silent(now)):
            raise RemoteError(f"{asked.name} is already published", 409)
        return self._open(BrowserPublisher, "sendonly", asked, now)

    def play(self, asked: Asked) -> tuple[BrowserSession, bytes]:
        """Have a browser play; its session, and the answer.  Raises RemoteError, 409 for no stream.

        The others are those of `publish`.
        """
        if asked.app != LIVE:  # which may come later
            return self._open(ClientViewer, "recvonly", asked, self._clock())
        if not self._registry.open(asked.app, asked.name).publishing:
            raise RemoteError(ABSENT, 409)  # WHEP §4.2.8 [absent-is-409]
        return self._open(BrowserViewer, "recvonly", asked, self._clock())

    def _open(
        self, kind: type[BrowserPeer], flow: str, asked: Asked, now: float
    ) -> tuple[BrowserSession, bytes]:
        self._make_room(asked.source[0], now)
        transport, end = self._port.attach(now)
        host, source_port = asked.source
        named = {"source": host, "port": source_port, "app": asked.app, "name": asked.name}
        log = PeerLog(self._log, named)
        peer = self._peer(kind, asked, transport, log)
        peer.wanted_layer = asked.layer
        try:
            offer = BrowserOffer.read(asked.sdp, transport.at.host, flow)
        except RemoteError as error:
            peer.end(error.reason, now)
            raise
        transport.fingerprint = offer.fingerprint
        transport.ice.theirs = offer.ufrag, offer.password
        answer = end.answer(offer, peer.answer(offer.plain, self._port.settings(), now))
        transport.route(answer)
        # WHEP §5 [addresses-are-secret]
        # RFC 9725 §5 [addresses-are-secret]
        identifier, tag = self._draw(_ID_OCTETS), self._draw(_TAG_OCTETS)
        verb = "publish" if flow == "sendonly" else "play"
        session = BrowserSession(identifier, tag, peer, offer, offer.ufrag, asked, log, now, verb)
        self._sessions[identifier] = self._by_peer[peer] = session
        tally(self._of_host, rate_limit_key(host), 1)
        log.event(f"{verb}-start", **peer.named)
        return session, bytes(answer)

    def _peer(
        self, kind: type[BrowserPeer], asked: Asked, transport: BrowserTransport, log: PeerLog
    ) -> BrowserPeer:
        live = self._registry.open(asked.app, asked.name)
        if not issubclass(kind, ClientPublisher | ClientViewer):
            return kind(live, transport, self, log, self._clock)
        name = "?".join(filter(None, (asked.name, asked.query)))
        connect = partial(
            BrowserClient,
            applications=self._applications,
            source=asked.source,
            app=asked.app,
            name=name,
        )
        return kind(live, transport, self, log, self._clock, connect)

    def restart(self, session: BrowserSession, theirs: IceFragment) -> bytes:
        """Restart the ICE of a session, and give our side of it: RFC 9725 §4.3.3."""
        named = theirs.ufrag, theirs.password
        end = self._port.restart(session.peer.transport, named, self._clock())
        session.ufrag, session.tag = theirs.ufrag, self._draw(_TAG_OCTETS)
        session.log.event("ice-restart")
        return end.fragment(session.offer)

    def _draw(self, octets: int) -> str:
        return urlsafe_b64encode(self._random(octets)).decode()

    def _make_room(self, host: str, now: float) -> None:
        """Have a place for one offer more.  Raises RemoteError(503) if there is none."""
        free, source = MAX_SESSIONS - len(self._sessions), rate_limit_key(host)
        if (
            self._of_host.get(source, 0) >= free
        ):  # none is free, or this host has as many: `fair_pool`
            raise RemoteError("Too many browsers", 503)
        opening = [each for each in self._sessions.values() if not each.peer.transport.is_ready]
        of_host = Counter(rate_limit_key(each.asked.source[0]) for each in opening)
        # RFC 9725 §5 [offers-are-limited]
        if of_host[source] >= MAX_OPENING_OF_HOST:
            raise RemoteError("Too many offers without a connection", 503)
        if len(opening) >= MAX_OPENING:
            opening[0].peer.end("too many offers", now)

    def ended(self, peer: BrowserPeer, reason: str, now: float) -> None:
        """Forget a browser, and log its end."""
        self._port.detach(peer.transport)
        session = self._by_peer.pop(peer, None)
        if session is None:  # it has not begun
            return
        del self._sessions[session.id]
        tally(self._of_host, rate_limit_key(session.asked.source[0]), -1)
        self._ended[session.id] = reason, now
        if len(self._ended) > MAX_ENDED:
            del self._ended[next(iter(self._ended))]
        session.asked.left()
        session.log.event(
            f"{session.kind}-end",
            seconds=round(now - session.begun, 1),
            codecs=" ".join(peer.live.codecs[:8]),
            reason=reason,
        )
        self.on_end(session, reason)

    def join_opus(self, live: LiveStream) -> Framing:
        if live not in self._opus:
            header = AudioHeader()
            for type_id, body in live.opening():
                if type_id == AUDIO:
                    header.put(body)
            log = PeerLog(self._log, {"app": live.app, "name": live.name})
            self._opus[live] = OpusFraming(header, log)
        self._opus[live].viewers += 1
        return self._opus[live]

    def leave_opus(self, live: LiveStream) -> None:
        self._opus[live].viewers -= 1
        if not self._opus[live].viewers:
            del self._opus[live]

    # -- the video of streams -----------------------------------------------------------

    @property
    def makes_video(self) -> bool:
        return self._transcoders is not None

    def watch(self, live: LiveStream, now: float) -> VideoWatch:
        if live not in self._watches:
            self._watches[live] = VideoWatch(live, self)
            self._watches[live].begin(now)
        return self._watches[live]

    def layers(self, live: LiveStream, now: float) -> VideoLayers:
        if live not in self._layers:
            budget, limit = self._registry.budget, self._registry.group_limit
            ended = partial(self._layers.pop, live)
            self._layers[live] = VideoLayers(live, budget, limit, ended)
            self._layers[live].begin(now)
        return self._layers[live]

    def unwatch(self, live: LiveStream) -> None:
        del self._watches[live]

    def found_b_frames(self, live: LiveStream, now: float) -> None:
        """Warn once for a publication, and have its viewers end, or see what is made of it."""
        if self._transcoders is None:
            self._log.warning("b-frames", app=live.app, name=live.name, cure=CURE)
        self.codec_changed(live, now)

    def codec_changed(self, live: LiveStream, now: float) -> None:
        for peer in list(self._by_peer):
            if isinstance(peer, BrowserViewer) and peer.live is live:
                peer.choose(now)

    def made_video(self, live: LiveStream, codec: str) -> MadeVideo:
        key, transcoders = (live, codec), self._transcoders
        assert transcoders is not None
        if key not in self._made:
            log = PeerLog(self._log, {"app": live.app, "name": live.name})
            self._made[key] = MadeVideo(live, codec, transcoders, log, partial(self._made.pop, key))
        return self._made[key]

    def end(self, session: BrowserSession, reason: str = "ended by the client") -> None:
        """End a session."""
        session.peer.end(reason, self._clock())

    def stop(self) -> None:
        """End all sessions."""
        for session in list(self._sessions.values()):
            self.end(session, "shutdown")

"""Live streams: one publisher, any number of players, and bytes made once for all of them.

Own design: RTMP 1.0 §7.2.2.1 and §7.2.2.6 say what publish and play are, not how a server joins
them.  A message is encoded once for all players with the same `Framing`, into bytes that do not
depend on what a player had before: a late or a slow player needs no bytes of its own.  Only whole
messages are ever left out.  Only its framing knows which protocol a player speaks.

    >>> class Screen:  # stands for a connection
    ...     def __init__(self) -> None:
    ...         self.output, self.output_size = [], 0
    ...     def put(self, data: bytes) -> None:
    ...         self.output.append(data)
    >>> def written(type_id: int, timestamp: int, payload: bytes) -> bytes:
    ...     return b"%d at %d: %s" % (type_id, timestamp, payload)
    >>> registry = Registry()
    >>> live, screens = registry.open("live", "demo"), [Screen(), Screen()]
    >>> players = [live.join(screen, written, None, now=0.0) for screen in screens]
    >>> live.write(8, 20, b"some audio", now=0.0)
    >>> screens[0].output[0] is screens[1].output[0]
    True
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol, TypeAlias

from rtmplite.flv.published_video import PublishedVideo
from rtmplite.flv.tag import TagType
from rtmplite.limits.memory_budget import Account, MemoryBudget
from rtmplite.live.group_cache import KEEPING, Beginning, GroupCache
from rtmplite.live.slow_consumer import SlowConsumerPolicy
from rtmplite.live.timestamp_rebase import ReplaceablePublisher, TimestampRebase
from rtmplite.live.tracks import Tracks, Weight
from rtmplite.shared_objects.server import SharedObjects

AUDIO: Final = TagType.AUDIO
VIDEO: Final = TagType.VIDEO
DATA: Final = TagType.SCRIPT

_NOTHING, _ESSENTIAL, _START = Weight.NOTHING, Weight.ESSENTIAL, Weight.START

# Writes a message for a player's protocol, from type, timestamp in ms and payload.
# Players whose framings are equal get the same bytes.
Framing: TypeAlias = Callable[[int, int, bytes], bytes]


class Sink(Protocol):
    """Own design: the destination of a published stream, such as a `LiveStream` or a phone."""

    def write(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        """Take one message of type 8, 9 or 18; `timestamp` in ms: RTMP 1.0 §7.1.2 to §7.1.5."""

    def end(self, now: float) -> None:
        """Note that no more will come, because it was unpublished or cut off."""


class MendedSink(Sink, Protocol):
    """A sink that may keep a frame for a moment.  Own design: see `PublishedVideo`."""

    @property
    def audio_sink(self) -> Callable[[int, int, bytes, float], None] | None:
        """Where audio that is no header goes unchanged now, None while a frame waits."""

    @property
    def deadline(self) -> float | None:
        """When to call `tick`."""

    def tick(self, now: float) -> None:
        """Pass on a frame that nothing has followed."""


def mended(sink: Sink) -> MendedSink:
    """Give a sink what odd encoders send as decoders need it: FLV 10.1 §E.4.3.2."""
    return PublishedVideo(sink)


class Outlet(Protocol):
    """Own design: the connection of a player; `output_size` is 0 while its socket takes all."""

    output_size: int

    def put(self, data: bytes) -> None:
        """Queue whole messages, already cut into chunks: RTMP 1.0 §5.3."""

    def abort(self, reason: str, now: float) -> None:
        """Close without sending the queue, which would never be read."""


class Viewer(Protocol):
    """A player's end that hears of publishers; `ServerStream` tells its client."""

    def published(self, now: float) -> None:
        """A publisher has come: NetStream.Play.PublishNotify (RTMP 1.0 §7.2.2)."""

    def unpublished(self, now: float) -> None:
        """The publisher has gone: NetStream.Play.UnpublishNotify (RTMP 1.0 §7.2.2)."""


class LivePlayer:
    """One place in the audience of a stream, from `LiveStream.join` to `leave`.

    Own design: `waiting` is the whole state.  It is true if the player joined late or fell behind,
    until there is a good place to start; `on_begun` is called when it gets the message there.
    `grace` is how many bytes it was given at once when it joined, which do not make it slow.
    """

    __slots__ = ("_live", "audio", "behind_since", "framing", "grace", "is_here", "is_limited",
                 "on_begun", "outlet", "paused", "short_way", "video", "viewer",
                 "waiting")  # fmt: skip

    def __init__(
        self, live: "LiveStream", outlet: Outlet, framing: Framing, viewer: Viewer | None
    ) -> None:
        self._live, self.outlet, self.framing, self.viewer = live, outlet, framing, viewer
        self.audio = self.video = True
        self.waiting = live.has_begun
        self.paused, self.grace, self.is_here, self.is_limited = False, 0, True, False
        self.behind_since: float | None = None
        self.on_begun: Callable[[float], None] | None = None
        self.short_way: Callable[[bytes], None] | None = None

    def wants(self, type_id: int) -> bool:
        """Whether its client has not switched this medium off: RTMP 1.0 §7.2.2.4, §7.2.2.5."""
        return self.video if type_id == VIDEO else self.audio if type_id == AUDIO else True

    def select(
        self, *, audio: bool | None = None, video: bool | None = None, paused: bool | None = None
    ) -> None:
        """Switch a medium, or all, off and on: RTMP 1.0 §7.2.2.4, §7.2.2.5, §7.2.2.8.

        A medium that is switched on again begins at a key frame, as for a player that has joined.
        """
        self.audio = self.audio if audio is None else audio
        self.waiting = self.waiting or bool(video and not self.video) or bool(paused is False)
        self.video = self.video if video is None else video
        self.paused = self.paused if paused is None else paused
        self._live.rearrange()

    def go_by(self, short_way: Callable[[bytes], None] | None) -> None:
        """Have this stand for the outlet's `put`, while nothing waits there.  Own design."""
        if short_way != self.short_way and not self.is_limited:
            self.short_way = short_way
            self._live.rearrange()

    def limit_by(self, framing: Framing) -> None:
        """Write by `framing` from now on, which may replace the outlet, so without a short way."""
        self.framing, self.short_way, self.is_limited = framing, None, True
        self._live.rearrange()

    def leave(self, now: float) -> None:
        """Give up the place.  Own design: a second call does nothing."""
        self.is_here = False
        self._live.left(self, now)

    def keeps_up(self, policy: SlowConsumerPolicy, now: float) -> bool:
        """Whether a player whose socket is full gets the message; abort it if it is too slow."""
        size = self.outlet.output_size
        if size < policy.skip // 2:
            self.grace = 0
        if self.behind_since is None and size > policy.skip + self.grace:
            self.behind_since, self.waiting = now, True
            self._live.rearrange()
        late = self.behind_since is not None and now - self.behind_since > policy.seconds
        if size > policy.limit or late:
            self.outlet.abort(f"too slow: {size} bytes behind", now)
            return False
        if self.behind_since is not None and size < policy.skip // 2:
            self.behind_since = None
        return self.behind_since is None


_Way: TypeAlias = Callable[[bytes], None]
_Audience = list[tuple[Framing, list[LivePlayer], list[_Way]]]  # the short ways of those with one


class LiveStream:
    """A name under which one client publishes and any number play.

    Own design: a stream exists while it is used.  It is a `Sink` and can be written to directly, as
    the gateway does with the audio of a phone.  `on_players_changed` is called after a player has
    joined or left, `ask_key_frame` where one has lost video; a recorder sets `recorded`.
    `publisher` may be replaced, and pays for what is kept of its stream; it is None where no
    connection publishes.  `since` is when the last publication began, `is_copy` whether another
    process of this server has its publisher, and so records and pushes it.
    """

    def __init__(self, registry: "Registry", app: str, name: str) -> None:
        self.app, self.name = app, name
        self.publishing, self.kind, self.recorded = False, "live", False
        self.since, self.is_copy = 0.0, False
        self.on_players_changed: Callable[[LiveStream, float], None] | None = None
        self.ask_key_frame: Callable[[float], None] | None = None
        self._registry, self._policy = registry, registry.slow_consumer
        self.publisher: ReplaceablePublisher | None = None
        self._succession: TimestampRebase | None = None
        self._tracks, self._account = Tracks(), Account(registry.budget)
        self._group = self._new_group()
        self._codecs: list[str] = []
        self._players: list[LivePlayer] = []
        self._taps: list[Sink] = []
        self._flowing: dict[int, _Audience] | None = None  # by type id; None: to be made again
        self._waiting: list[LivePlayer] = []
        self._recall: Callable[[], None] | None = None  # of who writes audio in our place

    @property
    def players(self) -> int:
        """The number of clients that play it or wait for it."""
        return len(self._players)

    @property
    def viewers(self) -> list[Viewer]:
        """The ends of its players, as far as they hear of publishers.  RTMP 1.0 §7.2.2.1."""
        return [player.viewer for player in self._players if player.viewer is not None]

    @property
    def has_begun(self) -> bool:
        """Whether a player that joins now has missed media."""
        return self._tracks.begun

    @property
    def kinds(self) -> frozenset[int]:
        """The message types that this publication has had so far."""
        return frozenset(self._tracks.kinds)

    @property
    def starts_at(self) -> int | None:
        """The time in ms of the key frame that a player who joins now begins with, if any."""
        return self._group.messages[0][1] if self._group.messages else None

    @property
    def kept(self) -> Sequence[tuple[int, int, bytes]]:
        """Type, time in ms and payload of the messages since the last key frame.  Own design."""
        return self._group.messages

    @property
    def timestamp(self) -> int:
        """The time of the last message, in ms, 0 before the first."""
        self._take_back()
        return self._tracks.timestamp

    @property
    def codecs(self) -> list[str]:
        """Own design: the names of the codecs of this publication, or else of the last one."""
        return self._tracks.codecs if self.publishing else self._codecs

    def opening(self) -> list[tuple[int, bytes]]:
        """Type and payload of metadata and codec headers, in the order `join` sends them."""
        return self._tracks.opening()

    def tap(self, sink: Sink) -> None:
        """Give `sink` every message of this publication, and its end, as a recorder needs it."""
        self._take_back()
        self._taps.append(sink)

    def untap(self, sink: Sink) -> None:
        """Give `sink` no more messages; it is not told of the end.  Own design: see `tap`."""
        self._taps = [each for each in self._taps if each is not sink]

    def keep_beginning(self) -> Beginning:
        """Keep what is published from now on, to `join` with it later, and `end` it."""
        kept = Beginning(GroupCache(self._policy.limit // 2, Account(self._registry.budget)))
        self.tap(kept)
        return kept

    def begin(
        self, now: float, kind: str = "live", publisher: ReplaceablePublisher | None = None
    ) -> None:
        """Begin a publication: the tracks of a former one are forgotten.

        Players that are here get everything from the first message on.  The first `write` does
        this too.  A `publisher` that is there is replaced, and only recordings end with it; look
        at `publishing` first, as `LiveApplication` does to refuse a name that is in use.  `kind` is
        the type of RTMP 1.0 §7.2.2.6.
        """
        self._take_back()
        self._end_taps(now)
        before, self.publisher, self._succession = self.publisher, publisher, None
        if before is not None:
            before.replaced(now)
            if self._tracks.kinds:
                self._succession = TimestampRebase(self._tracks.timestamp)
        self.publishing, self.kind, self.recorded = True, kind, False
        self.since, self.is_copy = now, publisher is not None and publisher.is_copy
        self._account.close()
        self._tracks = Tracks(None if publisher is None else self._account)
        self._group = self._new_group()
        for player in self._players:
            player.waiting = player.behind_since is not None
            if player.viewer is not None:
                player.viewer.published(now)
        self.rearrange()
        self._registry.keep(self)
        for on_begin in self._registry.on_begin:
            on_begin(self, now)

    def write(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        """Take one message of type 8, 9 or 18 and give it to every player that is ready for it.

        `timestamp` is in ms.  Implements RTMP 1.0 §7.1.2, §7.1.4 and §7.1.5 for an audience.
        RemoteError if the publisher's codec headers need more memory than it may use.

        Departs from RTMP Errata §5.2 [not-backwards]: times are passed on as they come.
        """
        if self._recall is not None:
            self._take_back()
        if not self.publishing:
            self.begin(now)
        weight, payload = self._tracks.note(type_id, timestamp, payload, now)
        if weight is _NOTHING:
            return
        if self._succession is not None:
            is_media = type_id != DATA and weight is not _ESSENTIAL
            timestamp = self._succession.next(timestamp, is_media=is_media)
            self._tracks.timestamp = timestamp
        group = self._group
        if weight is _START:
            group.begin()
        if group.is_open:
            if weight is not _ESSENTIAL:
                octets = group.octets + len(payload) + KEEPING
                if octets <= group.paid and timestamp < group.until:  # as mostly: saves a call
                    group.octets = octets
                    group.messages.append((type_id, timestamp, payload))
                else:
                    group.put(type_id, timestamp, payload)
            elif self._tracks.has_switched:
                group.drop()  # its video and audio need the headers before
        for tap in self._taps:
            tap.write(type_id, timestamp, payload, now)
        if not self._players:
            return
        skippable = weight is not _ESSENTIAL
        if self._flowing is None:
            self._arrange()
        if self._waiting and skippable:
            self._release(weight, now)
        audience = self._flowing if skippable else None
        groups = self._audience(type_id, weight) if audience is None else audience[type_id]
        for framing, players, ways in groups:
            data = framing(type_id, timestamp, payload)
            if len(ways) == len(players):  # nobody is behind
                for put in ways:
                    put(data)
                continue
            for player in players:
                outlet = player.outlet
                if outlet.output_size and not player.keeps_up(self._policy, now) and skippable:
                    continue
                outlet.put(data)

    def end(self, now: float) -> None:
        """End the publication; the players stay for the next one."""
        self._take_back()
        if not self.publishing:
            return
        self._codecs = self._tracks.codecs
        self.publishing, self.publisher, self._tracks = False, None, Tracks()
        self._account.close()
        self._group = self._new_group()
        for player in list(self._players):
            if player.viewer is not None:
                player.viewer.unpublished(now)
        self._end_taps(now)
        self._registry.keep(self)
        for on_end in self._registry.on_end:
            on_end(self, now)

    def join(
        self,
        outlet: Outlet,
        framing: Framing,
        viewer: Viewer | None,
        now: float,
        queued: int = 0,
        beginning: Beginning | None = None,
    ) -> LivePlayer:
        """Add a player: metadata and codec headers come first, the rest from a key frame on.

        FLV 10.1 §E.4.3.1 and §E.4.2.1 say why nothing decodes without the headers.
        `framing` writes the messages for this player; see `Framing`.  If all since the last key
        frame is kept, it comes now, each message at its own time; but not if it and the `queued`
        bytes that wait for this client already are more than a player may be behind.  A player with
        the `beginning` gets all there was instead.
        """
        self._take_back()
        player = LivePlayer(self, outlet, framing, viewer)
        if beginning is not None and beginning.is_whole:
            for message in beginning.messages:
                outlet.put(framing(*message))
            player.waiting, player.grace = False, beginning.octets
            self._players.append(player)
            self._changed(now)
            return player
        fits = queued + self._group.octets <= self._policy.limit
        group = self._group.messages if fits else []
        begin = group[0][1] if group else self._tracks.timestamp
        for type_id, payload in self._tracks.opening():
            at = 0 if type_id == DATA else begin  # or ffmpeg sees text
            outlet.put(framing(type_id, at, payload))
        for message in group:
            outlet.put(framing(*message))
        if group:
            player.waiting, player.grace = False, self._group.octets
        self._players.append(player)
        self._changed(now)
        return player

    def left(self, player: LivePlayer, now: float) -> None:
        """Forget a player; for `LivePlayer.leave` alone."""
        if player in self._players:
            self._players.remove(player)
            self._changed(now)

    def rearrange(self) -> None:
        """Sort the audience anew before the next message, once for any number of changes."""
        self._take_back()
        self._flowing = None

    def offload(self, recall: Callable[[], None]) -> tuple[Framing, list[_Way]] | None:
        """Let another write plain audio to all players in our place, until `recall` is called.

        It writes whole messages by this framing to all short ways, which are those of players that
        keep up, and tells by `returned` how far it has come.  None unless `write` would do just
        that.
        Own design: for a packet pump, which writes the usual messages at less cost.
        """
        is_plain = self.publishing and self._tracks.begun and AUDIO in self._tracks.kinds
        if not is_plain or self._succession is not None or self._taps or self._group.is_open:
            return None
        if self._flowing is None:
            self._arrange()
        assert self._flowing is not None
        groups = self._flowing[AUDIO]
        if self._waiting or len(groups) != 1:
            return None
        framing, players, ways = groups[0]
        if len(ways) != len(players):
            return None
        self._recall = recall
        return framing, ways

    def returned(self, timestamp: int | None) -> None:
        """Go on ourselves after a message of this time, in ms; None if there was none."""
        self._recall = None
        if timestamp is not None:
            self._tracks.timestamp = timestamp

    def _take_back(self) -> None:
        if self._recall is not None:
            self._recall()

    def _new_group(self) -> GroupCache:
        return GroupCache(self._registry.group_limit, self._account)

    def _end_taps(self, now: float) -> None:
        taps, self._taps = self._taps, []
        for tap in taps:
            tap.end(now)

    def _changed(self, now: float) -> None:
        self.rearrange()
        self._registry.keep(self)
        if self.on_players_changed is not None:
            self.on_players_changed(self, now)
        for on_audience in self._registry.on_audience:
            on_audience(self, now)

    def _arrange(self) -> None:
        ready = [player for player in self._players if not player.paused]
        self._waiting = [player for player in ready if player.waiting]
        flowing = [player for player in ready if not player.waiting]
        self._flowing = {type_id: _by_framing(flowing, type_id) for type_id in (AUDIO, VIDEO, DATA)}

    def _audience(self, type_id: int, weight: Weight) -> _Audience:
        """The players to send to: waiting ones too if a decoder cannot do without."""
        if weight is Weight.ESSENTIAL:
            return _by_framing([each for each in self._players if not each.paused], type_id)
        if self._flowing is None:
            self._arrange()
        assert self._flowing is not None
        return self._flowing[type_id]

    def _release(self, weight: Weight, now: float) -> None:
        """Resume the waiting players that can start with the present message."""
        for player in self._waiting:
            if not player.video or self._tracks.can_begin(weight, now):
                if player.outlet.output_size and not player.keeps_up(self._policy, now):
                    continue
                player.waiting = False
                self.rearrange()
                if player.on_begun is not None:
                    player.on_begun(now)


def _by_framing(players: list[LivePlayer], type_id: int) -> _Audience:
    groups: dict[Framing, list[LivePlayer]] = {}
    for player in players:
        if player.wants(type_id):
            groups.setdefault(player.framing, []).append(player)
    return [
        (framing, group, [each.short_way for each in group if each.short_way is not None])
        for framing, group in groups.items()
    ]


class Registry:
    """All live streams of a server, by application and name.

    Own design: a stream is here while it is published or played; an idle one is forgotten, so
    open it again rather than keep it.  `on_begin` and `on_end` are called when a publication
    begins and ends, `on_audience` when a player has joined or left.  A fetcher says whether it
    can publish a stream once a player waits for it.  `budget` is the memory for unfinished
    messages, codec headers and the frames since a key frame, which are kept for late players if
    `keeps_groups`; `shared` are the shared objects of all connections.
    """

    def __init__(
        self,
        slow_consumer: SlowConsumerPolicy | None = None,
        budget: MemoryBudget | None = None,
        shared: SharedObjects | None = None,
        *,
        keeps_groups: bool = True,
    ) -> None:
        self.keeps_groups = keeps_groups
        self.slow_consumer = slow_consumer or SlowConsumerPolicy()
        self.budget = budget or MemoryBudget()
        self.shared = SharedObjects() if shared is None else shared
        self.on_begin: list[Callable[[LiveStream, float], None]] = []
        self.on_end: list[Callable[[LiveStream, float], None]] = []
        self.on_audience: list[Callable[[LiveStream, float], None]] = []
        self.fetchers: list[Callable[[str, str], bool]] = []
        self._streams: dict[tuple[str, str], LiveStream] = {}

    @property
    def group_limit(self) -> int:
        """The bytes of a group that is kept for late players, 0 if none is.

        Half of what a player may be behind, so that the group alone closes nobody.
        """
        return self.slow_consumer.limit // 2 if self.keeps_groups else 0

    @property
    def streams(self) -> int:
        """The number of streams in use."""
        return len(self._streams)

    def __iter__(self) -> Iterator[LiveStream]:
        """The streams in use."""
        return iter(list(self._streams.values()))

    def get(self, app: str, name: str) -> LiveStream | None:
        """The stream of that name if it is in use."""
        return self._streams.get((app, name))

    def open(self, app: str, name: str) -> LiveStream:
        """The stream of that name; a new one if none is in use, since players may come first."""
        return self._streams.get((app, name)) or LiveStream(self, app, name)

    def can_fetch(self, live: LiveStream) -> bool:
        """Whether a fetcher would publish it for a player that joins."""
        return any(fetches(live.app, live.name) for fetches in self.fetchers)

    def keep(self, live: LiveStream) -> None:
        """Know `live` for as long as it has a publisher or a player."""
        key = (live.app, live.name)
        if live.publishing or live.players:
            self._streams.setdefault(key, live)
        elif self._streams.get(key) is live:
            del self._streams[key]


_: type[Sink] = LiveStream  # the type checker's proof

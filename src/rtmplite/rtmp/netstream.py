"""The server's side of one NetStream: it is published, or played, or neither.

Implements RTMP 1.0 §7.2.2.  The client asks to publish or to play, the application allows it or
not; in between the stream waits for that verdict.  `NETSTREAM` is the table of its states.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol, TypeAlias

from rtmplite.amf import amf0
from rtmplite.amf.values import Value
from rtmplite.errors import RemoteError
from rtmplite.live.duration_limit import DurationLimit
from rtmplite.live.streams import LivePlayer, LiveStream, MendedSink, Sink, mended
from rtmplite.live.timestamp_rebase import ANSWER
from rtmplite.rtmp.lent_reading import AudioSink
from rtmplite.rtmp.message_transport import ConnectionEnd, text
from rtmplite.rtmp.wire import control
from rtmplite.rtmp.wire.capabilities import Capabilities
from rtmplite.rtmp.wire.command import Command, on_status
from rtmplite.rtmp.wire.message import Message, MessageType

MAX_NAME: Final = 4096  # characters of a stream's name, with keys and tokens
MAX_KIND: Final = 32  # characters
RELEASED: Final = 0.5  # s that a ping is unanswered until who comes back has its name again

Ask: TypeAlias = Callable[["ServerStream", float], None]
"""Hands a request of the client over to who decides, which answers now or later: §7.2.2."""


ANY: Final = -2.0  # what is live, else what is recorded: RTMP 1.0 §7.2.2.1
LIVE_ONLY: Final = -1.0  # RTMP 1.0 §7.2.2.1
TO_THE_END: Final = -1.0  # RTMP 1.0 §7.2.2.1


@dataclass(frozen=True, slots=True)
class PlayRequest:
    """The further arguments of play: RTMP 1.0 §7.2.2.1.

    `start` is in ms, or `ANY` or `LIVE_ONLY`; `duration` is in ms, or `TO_THE_END`.  Without
    `reset` the stream is appended to the playlist of this client.
    """

    start: float = ANY
    duration: float = TO_THE_END
    reset: bool = True

    @classmethod
    def parse(cls, args: tuple[Value, ...]) -> "PlayRequest":
        """Parse the arguments after the name; a wrong one counts as absent: Field §"Play times".

        RTMP 1.0 §7.2.2.1 gives seconds, the unit of scripts; clients send ms, and the two special
        values with or without the factor.
        """
        start, duration, reset = [*args, None, None, None][:3]
        begin, length = _number(start, ANY), _number(duration, TO_THE_END)
        if begin < 0:
            begin = LIVE_ONLY if begin in (LIVE_ONLY, 1000 * LIVE_ONLY) else ANY
        return cls(begin, length if length >= 0 else TO_THE_END, reset is None or bool(reset))


class Playback(Protocol):
    """Plays a recorded stream to one client.  Own design: a live stream needs no such object."""

    def pause(self, paused: bool, at: float, now: float) -> None:
        """Pause or go on; `at` is the client's time in ms: RTMP 1.0 §7.2.2.8."""

    def seek(self, milliseconds: float, now: float) -> None:
        """Go on from a time of the client's: RTMP 1.0 §7.2.2.7."""

    def select(self, now: float, *, audio: bool | None = None, video: bool | None = None) -> None:
        """Switch a medium off or on: RTMP 1.0 §7.2.2.4, §7.2.2.5."""

    def play2(self, options: Mapping[str, Value], now: float) -> None:
        """Go over to another stream, by NetStreamPlayOptions: RTMP 1.0 §7.2.2.2."""

    def buffer(self, milliseconds: int, now: float) -> None:
        """Take the length of the client's buffer: RTMP 1.0 §7.1.7."""

    def stop(self, now: float) -> None:
        """Stop without a word: the client is gone, or plays another stream."""


def _number(value: Value, default: float) -> float:
    """Read a time that a client sent; `default` for NaN and numbers beyond 32 bits."""
    return value if isinstance(value, float) and abs(value) < 1 << 32 else default


class State(StrEnum):
    """The uses of a stream.  Own design: §7.2.2 describes them in words and draws no figure."""

    IDLE = "idle"
    WANTS_TO_PUBLISH = "wants to publish"
    PUBLISHING = "publishing"
    WANTS_TO_PLAY = "wants to play"
    PLAYING = "playing"


class Event(StrEnum):
    """A command of the client, or a verdict of the application: §7.2.2."""

    PUBLISH = "publish"
    PUBLISH_ACCEPTED = "publish accepted"
    PUBLISH_REJECTED = "publish rejected"
    PLAY = "play"
    PLAY_ACCEPTED = "play accepted"
    PLAY_REJECTED = "play rejected"
    STOP = "closeStream, deleteStream, end"


class Do(StrEnum):
    """The actions of a stream: calls to the application, or messages to the client: §7.2.2."""

    ASK_TO_PUBLISH = "ask to publish"
    ASK_TO_PLAY = "ask to play"
    SAY_BEGIN = "StreamBegin"
    SAY_ERROR = "onStatus error"
    WITHDRAW = "withdraw the question"
    DONE = "tell that it is over"


# publish and play first stop whatever the stream did before.  An event without an arrow is
# ignored: it is a verdict that comes too late.
NETSTREAM: Final[Mapping[State, Mapping[Event, tuple[State, tuple[Do, ...]]]]] = {
    State.IDLE: {
        Event.PUBLISH: (State.WANTS_TO_PUBLISH, (Do.ASK_TO_PUBLISH,)),
        Event.PLAY: (State.WANTS_TO_PLAY, (Do.ASK_TO_PLAY,)),
    },
    State.WANTS_TO_PUBLISH: {
        Event.PUBLISH_ACCEPTED: (State.PUBLISHING, (Do.SAY_BEGIN,)),
        Event.PUBLISH_REJECTED: (State.IDLE, (Do.SAY_ERROR,)),
        Event.STOP: (State.IDLE, (Do.WITHDRAW,)),
    },
    State.PUBLISHING: {Event.STOP: (State.IDLE, (Do.DONE,))},
    State.WANTS_TO_PLAY: {
        Event.PLAY_ACCEPTED: (State.PLAYING, (Do.SAY_BEGIN,)),
        Event.PLAY_REJECTED: (State.IDLE, (Do.SAY_ERROR,)),
        Event.STOP: (State.IDLE, ()),
    },
    State.PLAYING: {Event.STOP: (State.IDLE, (Do.DONE,))},
}


@dataclass(frozen=True, slots=True)
class ServedClient:
    """The owner of a stream, by connect; `instance` is `app` without the first part: §7.2.1.1."""

    connection: ConnectionEnd
    id: str
    app: str
    instance: str
    tc_url: str
    capabilities: Capabilities

    @property
    def host(self) -> str:
        """The host that it has now.  Own design: RTMFP lets a client move."""
        return self.connection.peer_address[0]


class ServerStream:
    """One message stream of a client, from createStream to deleteStream: §7.2.2.

    `name` is the client's name of the stream, `path` the same with the rest of the application's
    name before it: both ways to split a URL give the same `path` (see `ServedClient.instance`);
    `query` is what followed a question mark.  `kind` is live, record or append: §7.2.2.6.
    `released` is the name that its client has asked by releaseStream to be free before it asks to
    publish.  `request` holds the further arguments of play, `buffer` the length of the client's
    buffer in ms.  An application that answers `on_publish` later may set `on_withdrawn`, called
    when the client waits no longer; `on_done` is called once when publishing or playing has ended.
    Own design: members without a section are what servers need beyond the texts.
    """

    is_copy = False

    def __init__(
        self, client: ServedClient, stream_id: int, ask_publish: Ask, ask_play: Ask
    ) -> None:
        self.client, self.connection, self.id = client, client.connection, stream_id
        self._ask_publish, self._ask_play = ask_publish, ask_play
        self.released = ""
        self.state = State.IDLE
        self.name, self.path, self.query, self.kind = "", "", "", "live"
        self.request, self.buffer = PlayRequest(), 0
        self.playback: Playback | None = None
        self._sink: MendedSink | None = None
        self._player: LivePlayer | None = None
        self._excerpt: DurationLimit | None = None
        self.on_withdrawn: Callable[[float], None] | None = None
        self.on_done: Callable[[float], None] | None = None

    @property
    def is_used(self) -> bool:
        """Whether the stream is published or played now."""
        return self.state in (State.PUBLISHING, State.PLAYING)

    def on_media(self, message: Message, now: float) -> None:
        """Pass on published media; drop media in any other state: §7.2.2.6."""
        if self._sink is None:
            return
        type_id, timestamp, _, payload = message
        if type_id == MessageType.DATA_AMF3:  # a zero before the AMF0 values: RTMP Errata §7.2
            type_id, payload = MessageType.DATA, payload[1:]
        self._sink.write(type_id, timestamp, payload, now)

    @property
    def audio_sink(self) -> AudioSink | None:
        """Where `on_media` leads audio now, if it goes straight there."""
        return self._sink.audio_sink if self._sink is not None else None

    def on_command(self, command: Command, now: float) -> bool:
        """Obey a NetStream command; false if §7.2.2 has no such command."""
        if (handler := _COMMANDS.get(command.name)) is None:
            return False
        handler(self, command, now)
        return True

    def accept_publish(self, sink: Sink, now: float) -> None:
        """Take media to `sink` (§7.2.2.6, §7.3.1); a late verdict only ends `sink`."""
        if Do.SAY_BEGIN not in self._on(Event.PUBLISH_ACCEPTED):
            sink.end(now)
            return
        self._sink = mended(sink)
        self.connection.transport.send_control(control.StreamBegin(self.id))
        # §7.2.2.6 [on-status]
        self.status("NetStream.Publish.Start", f"{self.name} is now published.")

    def reject_publish(self, code: str, description: str, now: float) -> None:
        """Refuse, with a code such as NetStream.Publish.BadName: §7.2.2."""
        if Do.SAY_ERROR in self._on(Event.PUBLISH_REJECTED):
            self.status(code, description, "error")

    def end_publish(self, code: str, description: str, now: float) -> None:
        """End by an error, and close, as ffmpeg and librtmp would go on sending: §7.2.2."""
        self.status(code, description, "error")
        self.connection.close(now, reason=description)

    def is_silent(self, now: float) -> bool:
        """Whether the client neither sends nor answers: see `timestamp_rebase`."""
        return self.connection.transport.is_silent(now)

    @property
    def newcomer(self) -> tuple[str, bool]:
        """What `yields_to` asks of the stream that wants a name: its host, and whether it released.

        Own design: a client that comes back says so by releaseStream.
        """
        return self.client.host, self.released == self.name

    def yields_to(self, newcomer: tuple[str, bool], now: float) -> bool:
        """Whether the client that publishes is lost, so that a `newcomer` may have the name.

        One that comes back does so soon: a ping that its host has not answered needs to wait less.
        """
        is_back = newcomer == (self.client.host, True)
        return self.connection.transport.is_silent(now, RELEASED if is_back else ANSWER)

    def replaced(self, now: float) -> None:
        """Tell that another publishes under this name, and close; the sink goes to that one."""
        self._sink = None
        self.connection.transport.sinks_changed()
        description = f"{self.name} is published by another client now."
        self.end_publish("NetStream.Publish.BadName", description, now)

    def rename(self, name: str) -> None:
        """Take the name that an authority has chosen in place of the client's."""
        self.name = name
        self.path = "/".join(part for part in (self.client.instance, name) if part)

    def redirect(self, url: str, description: str, now: float) -> None:
        """Send the client to another server, then close: Field §"Redirects"."""
        more: dict[str, Value] = {"ex": {"code": 302.0, "redirect": url}}
        code = "NetConnection.Connect.Rejected"
        status = on_status("error", code, description or f"Ask {url}.", **more)
        self.connection.send_command(status, self.id)
        self.connection.close(now, f"sent to {url}")

    def accept_play(self, live: LiveStream, now: float) -> None:
        """Start, or wait for a publisher, with all that players wait for: §7.2.2.1."""
        if Do.SAY_BEGIN not in self._on(Event.PLAY_ACCEPTED):
            return
        self.connection.transport.send_control(control.StreamBegin(self.id))
        self._say_start()
        # §7.2.2.1 [waits], §7.2.2.6 [any-client-plays]
        self._player = player = self.connection.transport.join(live, self.id, self, now)
        if self.request.duration != TO_THE_END:
            since = None if player.waiting else live.starts_at
            self._excerpt = DurationLimit(player, self.request.duration, since)
            player.limit_by(self._excerpt)

    @property
    def is_over(self) -> bool:
        """Whether a live stream has been played for the duration that was asked for: §7.2.2.1."""
        return self._excerpt is not None and self._excerpt.is_over

    @property
    def deadline(self) -> float | None:
        """When to call `tick`."""
        if self.is_over:
            return 0.0
        return self._sink.deadline if self._sink is not None else None

    def tick(self, now: float) -> None:
        """End a playback that is over, and pass on a published frame that nothing follows."""
        if self.is_over:
            self.finish(now)
        if self._sink is not None:
            self._sink.tick(now)

    def finish(self, now: float) -> None:
        """End a limited live playback as the end of a recording: §7.2.2.1, RTMP 1.0 §7.1.7."""
        self.stop(now)
        self.complete()

    def complete(self, **more: Value) -> None:
        """End playback: a status for programs, data for scripts: RTMP 1.0 §7.1.7."""
        self.connection.transport.synchronize(self.id)  # RFC 7425 §5.2 [eof-after-media]
        self.play_status("NetStream.Play.Complete", self.name, **more)
        self.status("NetStream.Play.Stop", f"Stopped playing {self.name}.")
        self.connection.transport.send_control(control.StreamEof(self.id))

    def play_status(self, code: str, details: str, **more: Value) -> None:
        """Send the data message of ActionScript's onPlayStatus, which RTMP does not define."""
        information: dict[str, Value] = {"level": "status", "code": code, "details": details}
        self.data("onPlayStatus", information | more)

    def accept_recorded(self, now: float) -> None:
        """Start `playback`: §7.2.2.1, in the order of its message flow."""
        if Do.SAY_BEGIN in self._on(Event.PLAY_ACCEPTED):
            self.connection.transport.send_control(control.StreamIsRecorded(self.id))
            self.connection.transport.send_control(control.StreamBegin(self.id))
            self._say_start()

    def reject_play(self, code: str, description: str, now: float) -> None:
        """Refuse, with a code such as NetStream.Play.StreamNotFound (§7.2.2.1)."""
        if Do.SAY_ERROR in self._on(Event.PLAY_REJECTED):
            self.status(code, description, "error")  # §7.2.2.1 [not-found]

    def published(self, now: float) -> None:
        """Tell the player that a publisher has come, as Flash Media Server does."""
        if self._player is not None:
            self.connection.transport.send_control(control.StreamBegin(self.id))
            self.status("NetStream.Play.PublishNotify", f"{self.name} is now published.")

    def unpublished(self, now: float) -> None:
        """Say the end: a status for ffmpeg, an event for Flash: RTMP 1.0 §7.1.7."""
        self.connection.transport.synchronize(self.id)  # RFC 7425 §5.2 [eof-after-media]
        self.status("NetStream.Play.UnpublishNotify", f"{self.name} is now unpublished.")
        self.connection.transport.send_control(control.StreamEof(self.id))

    def stop(self, now: float) -> None:
        """Neither publish nor play any more; the client is told nothing: §7.2.2.3."""
        sink, player, playback = self._sink, self._player, self.playback
        todo = self._on(Event.STOP)
        self._sink = self._player = self.playback = self._excerpt = None
        if playback is not None:
            playback.stop(now)
        if player is not None:
            player.leave(now)
        if sink is not None:
            self.connection.transport.sinks_changed()
            sink.end(now)
        withdraw, self.on_withdrawn = self.on_withdrawn, None
        if Do.WITHDRAW in todo and withdraw is not None:
            withdraw(now)
        done, self.on_done = self.on_done, None
        if Do.DONE in todo and done is not None:
            done(now)

    def unpublish(self, now: float) -> None:
        """Stop publishing and tell the client, as librtmp asks by FCUnpublish."""
        if self._sink is not None:
            self.stop(now)
            self.status("NetStream.Unpublish.Success", f"{self.name} is now unpublished.")

    def _on_publish(self, command: Command, now: float) -> None:
        """Ask the application; `false` instead of a name is ActionScript's way to stop."""
        if command.args and command.args[0] is False:
            self._on_close(command, now)
            return
        self.stop(now)
        self._take_name(command)
        kind = text(command.args[1]) if len(command.args) > 1 else ""
        self.kind = kind[:MAX_KIND] or "live"
        self._on(Event.PUBLISH)
        self._ask_publish(self, now)

    def on_buffer(self, milliseconds: int, now: float) -> None:
        """Remember the length of the client's buffer: RTMP 1.0 §7.1.7."""
        self.buffer = milliseconds
        if self.playback is not None:
            self.playback.buffer(milliseconds, now)

    def status(
        self, code: str, description: str, level: str = "status", details: Value = None
    ) -> None:
        """Send an onStatus for this stream, with its name if `details` is None: §7.2.2."""
        details = self.name if details is None else details
        status = on_status(level, code, description, details=details, clientid=self.client.id)
        self.connection.send_command(status, self.id)

    def data(self, *values: Value) -> None:
        """Send a data message of our own: RTMP 1.0 §7.1.2."""
        self.connection.send_media(MessageType.DATA, 0, self.id, amf0.encode(*values))

    def _on_play(self, command: Command, now: float) -> None:
        """Play, without `reset` after what is queued; play(false) stops: §7.2.2.1."""
        if command.args and command.args[0] is False:
            self._on_close(command, now)
            return
        self.request = PlayRequest.parse(command.args[1:])
        if self.request.reset or self.playback is None:
            self.stop(now)
            self._on(Event.PLAY)
        self._take_name(command)
        self._ask_play(self, now)

    def _on_play2(self, command: Command, now: float) -> None:
        """Change a recording's stream, or play another live one: §7.2.2.2."""
        options = command.args[0] if command.args else None
        if not isinstance(options, dict):
            self.status("NetStream.Play.Failed", "play2 without options.", "error")
        elif self.playback is not None:
            self.playback.play2(options, now)
        else:
            name = options.get("streamName")
            self._on_play(Command("play", args=(name, options.get("start"))), now)

    def _on_close(self, command: Command, now: float) -> None:
        if self.state is State.PUBLISHING:
            self.unpublish(now)  # Field §"Names in use" [freed-by-close-stream]
        elif self.state is State.PLAYING:
            self.stop(now)
            self.status("NetStream.Play.Stop", f"Stopped playing {self.name}.")
        else:
            self.stop(now)

    def _on_pause(self, command: Command, now: float) -> None:
        """Pause or go on (§7.2.2.8); a live stream goes on without its paused players."""
        paused = bool(command.args and command.args[0])
        if self._player is not None:
            self._player.select(paused=paused)  # §7.2.2.8 [stops]
        if self.playback is not None:
            at = command.args[1] if len(command.args) > 1 else 0.0
            self.playback.pause(paused, at if isinstance(at, float) else 0.0, now)
        word = "Pause" if paused else "Unpause"
        self.status(f"NetStream.{word}.Notify", f"{word}d {self.name}.")  # §7.2.2.8 [notify]

    def _on_seek(self, command: Command, now: float) -> None:
        """Seek in a recording: §7.2.2.7; a live stream and a wrong time give an error status.

        Departs from §7.2.2.7 [notify-or-error]: a failure is a status as well, since clients send
        the command without a number that an _error could name.
        """
        at = command.args[0] if command.args else None
        if self.playback is None:
            self.status("NetStream.Seek.Failed", f"{self.name} is live.", "error")
        elif not isinstance(at, float) or not 0 <= at < 1 << 32:
            self.status("NetStream.Seek.InvalidTime", "This is no time.", "error")
        else:
            self.playback.seek(at, now)

    def _on_receive(self, command: Command, now: float) -> None:
        """Switch a medium off or on (§7.2.2.4, §7.2.2.5)."""
        wanted = bool(command.args and command.args[0])
        of_audio = command.name == "receiveAudio"
        audio, video = (wanted, None) if of_audio else (None, wanted)
        if self._player is not None:
            # §7.2.2.4 [switched-off], §7.2.2.5 [switched-off]
            self._player.select(audio=audio, video=video)
        elif self.playback is not None:
            self.playback.select(now, audio=audio, video=video)
        else:
            return
        if wanted:  # §7.2.2.4 [says-when-on], §7.2.2.5 [says-when-on]
            # §7.2.2.4 [says-when-on], §7.2.2.5 [says-when-on]
            self.status("NetStream.Seek.Notify", f"{command.name} {self.name}.")
            # §7.2.2.4 [says-when-on], §7.2.2.5 [says-when-on]
            self.status("NetStream.Play.Start", f"Started playing {self.name}.")

    def _on(self, event: Event) -> tuple[Do, ...]:
        """Follow the arrow of `NETSTREAM`, if there is one, and give its orders."""
        self.state, todo = NETSTREAM[self.state].get(event, (self.state, ()))
        return todo

    def _take_name(self, command: Command) -> None:
        given = text(command.args[0]) if command.args else ""
        if len(given) > MAX_NAME:
            raise RemoteError(f"a name of {len(given)} characters")
        name, _, self.query = given.partition("?")
        self.rename(name)

    def _say_start(self) -> None:
        """Say Play.Start; Flash LivePlayer lets a script see media after |RtmpSampleAccess only."""
        if self.request.reset:  # §7.2.2.1 [reset-if-asked]
            self.status("NetStream.Play.Reset", f"Playing and resetting {self.name}.")
        # §7.2.2.1 [start-is-told]
        self.status("NetStream.Play.Start", f"Started playing {self.name}.")
        self.data("|RtmpSampleAccess", True, True)


_COMMANDS: Final[Mapping[str, Callable[[ServerStream, Command, float], None]]] = {
    "publish": ServerStream._on_publish,
    "play": ServerStream._on_play,
    "play2": ServerStream._on_play2,
    "closeStream": ServerStream._on_close,
    "pause": ServerStream._on_pause,
    "pauseRaw": ServerStream._on_pause,  # Flash LivePlayer 9 and later
    "seek": ServerStream._on_seek,
    "receiveAudio": ServerStream._on_receive,
    "receiveVideo": ServerStream._on_receive,
}

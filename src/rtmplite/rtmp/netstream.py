"""The server's side of one NetStream: it is published, or played, or neither.

Implements RTMP 1.0 §7.2.2.  Which of the two is the client's wish, whether it may is the
application's verdict; in between a stream is asking, and says nothing.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from rtmplite.amf import amf0
from rtmplite.amf.values import Value
from rtmplite.errors import RemoteError
from rtmplite.live.duration_limit import DurationLimit
from rtmplite.live.streams import LiveStream, Player, Sink
from rtmplite.rtmp.application import MAX_NAME, TO_THE_END, Playback, PlayRequest
from rtmplite.rtmp.message_transport import text
from rtmplite.rtmp.wire import control
from rtmplite.rtmp.wire.command import Command, on_status
from rtmplite.rtmp.wire.message import Message, MessageType

if TYPE_CHECKING:
    from rtmplite.rtmp.netconnection import NetConnection


MAX_KIND: Final = 32  # characters


class State(StrEnum):
    """What a stream is used for.  Own design: the texts draw no figure."""

    IDLE = "idle"
    WANTS_TO_PUBLISH = "wants to publish"
    PUBLISHING = "publishing"
    WANTS_TO_PLAY = "wants to play"
    PLAYING = "playing"


class ServerStream:
    """One message stream of a client, from createStream to deleteStream: §7.2.2.

    `name` is what the client called it, `path` the same seen from the application's name on:
    both ways to split a URL give the same `path` (see `NetConnection.instance`); `query` is
    what followed a question mark.  `kind` is live, record or append: §7.2.2.6.  `request` is what
    else the client said about playing, `buffer` how many ms it wants in hand.  An application that
    answers `on_publish` later may set `on_withdrawn`, called when the client waits no longer;
    `on_done` is called once when publishing or playing, once begun, is over.
    """

    def __init__(self, connection: "NetConnection", stream_id: int) -> None:
        self.connection, self.id = connection, stream_id
        self.state = State.IDLE
        self.name, self.path, self.query, self.kind = "", "", "", "live"
        self.request, self.buffer = PlayRequest(), 0
        self.playback: Playback | None = None
        self._sink: Sink | None = None
        self._player: Player | None = None
        self._excerpt: DurationLimit | None = None
        self.on_withdrawn: Callable[[float], None] | None = None
        self.on_done: Callable[[float], None] | None = None

    def on_media(self, message: Message, now: float) -> None:
        """Pass on what is published here; drop it in any other state: §7.2.2.6."""
        if self._sink is None:
            return
        type_id, timestamp, _, payload = message
        if type_id == MessageType.DATA_AMF3:  # a zero before the AMF0 values: RTMP Errata §7.2
            type_id, payload = MessageType.DATA, payload[1:]
        self._sink.write(type_id, timestamp, payload, now)

    def on_command(self, command: Command, now: float) -> bool:
        """Obey a NetStream command; false if §7.2.2 has no such command."""
        if (handler := _COMMANDS.get(command.name)) is None:
            return False
        handler(self, command, now)
        return True

    def accept_publish(self, sink: Sink, now: float) -> None:
        """Start: what comes from now on goes to `sink`: §7.2.2.6 [on-status], §7.3.1.

        Own design: a verdict that comes too late, on a stream that asks no longer, be it this or
        another, does nothing, except that `sink` is ended.
        """
        if self.state is not State.WANTS_TO_PUBLISH:
            sink.end(now)
            return
        self.state, self._sink = State.PUBLISHING, sink
        self.connection.send_control(control.StreamBegin(self.id))
        self.status("NetStream.Publish.Start", f"{self.name} is now published.")

    def reject_publish(self, code: str, description: str, now: float) -> None:
        """Refuse, with a code such as NetStream.Publish.BadName: §7.2.2."""
        if self.state is State.WANTS_TO_PUBLISH:
            self.state = State.IDLE
            self.status(code, description, "error")

    def end_publish(self, code: str, description: str, now: float) -> None:
        """Take back an `accept_publish`, then close the connection: §7.2.2.

        Own design: ffmpeg and librtmp go on sending whatever they are told; a closed connection
        is what they understand.
        """
        self.status(code, description, "error")
        self.connection.close(now, reason=description)

    def is_silent(self, now: float) -> bool:
        """Whether the client is lost, as far as anybody can tell.  Own design: `succession`."""
        return self.connection.is_silent(now)

    def replaced(self, now: float) -> None:
        """Tell the client that another one has its name, then close.  Own design: should it hear.

        What it published is the other's now, so it is not ended.
        """
        self._sink = None
        description = f"{self.name} is published by another client now."
        self.end_publish("NetStream.Publish.BadName", description, now)

    def rename(self, name: str) -> None:
        """Take another name than the client gave.  Own design: as an authority may decide."""
        self.name = name
        self.path = "/".join(part for part in (self.connection.instance, name) if part)

    def redirect(self, url: str, description: str, now: float) -> None:
        """Send the client to another server, then close: Field §"Redirects"."""
        more: dict[str, Value] = {"ex": {"code": 302.0, "redirect": url}}
        code = "NetConnection.Connect.Rejected"
        status = on_status("error", code, description or f"Ask {url}.", **more)
        self.connection.send_command(status, self.id)
        self.connection.close(now, f"sent to {url}")

    def accept_play(self, live: LiveStream, now: float) -> None:
        """Start, or wait for a publisher: §7.2.2.1, in the order of its message flow.

        rtmpdump waits for StreamBegin, Flash Player for |RtmpSampleAccess before it shows
        anything to a script, and ffmpeg for either of the two codes.
        """
        if self.state is not State.WANTS_TO_PLAY:
            return
        self.state = State.PLAYING
        self.connection.send_control(control.StreamBegin(self.id))
        self._say_start()
        self._player = player = self.connection.join(live, self.id, self, now)
        if self.request.duration != TO_THE_END:
            self._excerpt = player.framing = DurationLimit(player, self.request.duration)
            live.rearrange()

    @property
    def is_over(self) -> bool:
        """Whether the client has had as much of a live stream as it wanted: §7.2.2.1."""
        return self._excerpt is not None and self._excerpt.is_over

    def finish(self, now: float) -> None:
        """End an excerpt as a recording ends: §7.2.2.1, RTMP 1.0 §7.1.7.  Own design."""
        self.stop(now)
        self.complete()

    def complete(self, **more: Value) -> None:
        """Say that this was all: RTMP 1.0 §7.1.7.

        rtmpdump and ffmpeg end at the status, scripts wait for the data message.
        """
        self.connection.synchronize(self.id)  # RFC 7425 §5.2 [eof-after-media]
        self.play_status("NetStream.Play.Complete", self.name, **more)
        self.status("NetStream.Play.Stop", f"Stopped playing {self.name}.")
        self.connection.send_control(control.StreamEof(self.id))

    def play_status(self, code: str, details: str, **more: Value) -> None:
        """What ActionScript's NetStream.onPlayStatus is called with.  Own design: RTMP has none."""
        information: dict[str, Value] = {"level": "status", "code": code, "details": details}
        self.data("onPlayStatus", information | more)

    def accept_recorded(self, now: float) -> None:
        """Start what `playback` plays: §7.2.2.1, in the order of its message flow."""
        if self.state is State.WANTS_TO_PLAY:
            self.state = State.PLAYING
            self.connection.send_control(control.StreamIsRecorded(self.id))
            self.connection.send_control(control.StreamBegin(self.id))
            self._say_start()

    def reject_play(self, code: str, description: str, now: float) -> None:
        """Refuse, with a code such as NetStream.Play.StreamNotFound: §7.2.2.1 [not-found]."""
        if self.state is State.WANTS_TO_PLAY:
            self.state = State.IDLE
            self.status(code, description, "error")

    def published(self, now: float) -> None:
        """Tell the player that somebody publishes.  Own design: as Flash Media Server does."""
        if self._player is not None:
            self.connection.send_control(control.StreamBegin(self.id))
            self.status("NetStream.Play.PublishNotify", f"{self.name} is now published.")

    def unpublished(self, now: float) -> None:
        """Tell the player that nothing more will come: RTMP 1.0 §7.1.7.

        ffmpeg and rtmpdump end at the status, players of Flash's family at the event.
        """
        self.connection.synchronize(self.id)  # RFC 7425 §5.2 [eof-after-media]
        self.status("NetStream.Play.UnpublishNotify", f"{self.name} is now unpublished.")
        self.connection.send_control(control.StreamEof(self.id))

    def stop(self, now: float) -> None:
        """Neither publish nor play any more; nothing is said: §7.2.2.3."""
        sink, player, playback = self._sink, self._player, self.playback
        withdrawn = self.state is State.WANTS_TO_PUBLISH
        begun = self.state in (State.PUBLISHING, State.PLAYING)
        self.state, self._sink, self._player, self.playback = State.IDLE, None, None, None
        self._excerpt = None
        if playback is not None:
            playback.stop(now)
        if player is not None:
            player.leave(now)
        if sink is not None:
            sink.end(now)
        withdraw, self.on_withdrawn = self.on_withdrawn, None
        if withdrawn and withdraw is not None:
            withdraw(now)
        done, self.on_done = self.on_done, None
        if begun and done is not None:
            done(now)

    def unpublish(self, now: float) -> None:
        """Stop publishing and say so.  Own design: librtmp asks for it by FCUnpublish."""
        if self._sink is not None:
            self.stop(now)
            self.status("NetStream.Unpublish.Success", f"{self.name} is now unpublished.")

    def _on_publish(self, command: Command, now: float) -> None:
        """Publish; where a name should be, ActionScript has false for publishing no longer."""
        if command.args and command.args[0] is False:
            self._on_close(command, now)
            return
        self.stop(now)
        self._take_name(command)
        kind = text(command.args[1]) if len(command.args) > 1 else ""
        self.kind = kind[:MAX_KIND] or "live"
        self.state = State.WANTS_TO_PUBLISH
        connection = self.connection
        connection.application.on_publish(connection, self, self.name, now)

    def on_buffer(self, milliseconds: int, now: float) -> None:
        """Remember how much the client wants in hand: RTMP 1.0 §7.1.7."""
        self.buffer = milliseconds
        if self.playback is not None:
            self.playback.buffer(milliseconds, now)

    def status(
        self, code: str, description: str, level: str = "status", details: Value = None
    ) -> None:
        """Send an onStatus for this stream: §7.2.2; the name is what it details, if nothing is."""
        details = self.name if details is None else details
        status = on_status(level, code, description, details=details, clientid=self.connection.id)
        self.connection.send_command(status, self.id)

    def data(self, *values: Value) -> None:
        """Send a data message of our own: RTMP 1.0 §7.1.2."""
        self.connection.send_media(MessageType.DATA, 0, self.id, amf0.encode(*values))

    def _on_play(self, command: Command, now: float) -> None:
        """Play at once, or, without `reset`, after what is recorded and plays already: §7.2.2.1.

        `start` means nothing to a live stream.  ActionScript's play(false) plays no longer.
        """
        if command.args and command.args[0] is False:
            self._on_close(command, now)
            return
        self.request = PlayRequest.parse(command.args[1:])
        if self.request.reset or self.playback is None:
            self.stop(now)
            self.state = State.WANTS_TO_PLAY
        self._take_name(command)
        connection = self.connection
        connection.application.on_play(connection, self, self.name, now)

    def _on_play2(self, command: Command, now: float) -> None:
        """§7.2.2.2; a live stream has one bit rate, so changing it is playing another."""
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
            self.unpublish(now)
        elif self.state is State.PLAYING:
            self.stop(now)
            self.status("NetStream.Play.Stop", f"Stopped playing {self.name}.")
        else:
            self.stop(now)

    def _on_pause(self, command: Command, now: float) -> None:
        """§7.2.2.8 [notify]; a live stream goes on without those who pause."""
        paused = bool(command.args and command.args[0])
        if self._player is not None:
            self._player.select(paused=paused)
        if self.playback is not None:
            at = command.args[1] if len(command.args) > 1 else 0.0
            self.playback.pause(paused, at if isinstance(at, float) else 0.0, now)
        word = "Pause" if paused else "Unpause"
        self.status(f"NetStream.{word}.Notify", f"{word}d {self.name}.")

    def _on_seek(self, command: Command, now: float) -> None:
        """§7.2.2.7: what is live cannot be sought in, and nothing by what is no time.

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
        """§7.2.2.4 [says-when-on], §7.2.2.5 [says-when-on]."""
        wanted = bool(command.args and command.args[0])
        of_audio = command.name == "receiveAudio"
        audio, video = (wanted, None) if of_audio else (None, wanted)
        if self._player is not None:
            self._player.select(audio=audio, video=video)
        elif self.playback is not None:
            self.playback.select(now, audio=audio, video=video)
        else:
            return
        if wanted:
            self.status("NetStream.Seek.Notify", f"{command.name} {self.name}.")
            self.status("NetStream.Play.Start", f"Started playing {self.name}.")

    def _take_name(self, command: Command) -> None:
        given = text(command.args[0]) if command.args else ""
        if len(given) > MAX_NAME:
            raise RemoteError(f"a name of {len(given)} characters")
        name, _, self.query = given.partition("?")
        self.rename(name)

    def _say_start(self) -> None:
        """Flash Player shows a script nothing of the media before |RtmpSampleAccess."""
        if self.request.reset:  # §7.2.2.1 [reset-if-asked]
            self.status("NetStream.Play.Reset", f"Playing and resetting {self.name}.")
        self.status("NetStream.Play.Start", f"Started playing {self.name}.")
        self.data("|RtmpSampleAccess", True, True)


_COMMANDS: Final[Mapping[str, Callable[[ServerStream, Command, float], None]]] = {
    "publish": ServerStream._on_publish,
    "play": ServerStream._on_play,
    "play2": ServerStream._on_play2,
    "closeStream": ServerStream._on_close,
    "pause": ServerStream._on_pause,
    "pauseRaw": ServerStream._on_pause,  # Flash Player 9 and later
    "seek": ServerStream._on_seek,
    "receiveAudio": ServerStream._on_receive,
    "receiveVideo": ServerStream._on_receive,
}

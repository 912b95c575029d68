"""Plays files to one client, at the pace of the clock or as far ahead as its buffer allows.

Implements RTMP 1.0 §7.2.2.1, RTMP 1.0 §7.2.2.7 and RTMP 1.0 §7.2.2.8 for recorded streams.  A
machine: it sends through the stream's connection, `deadline` says when to call `tick`.  A client
that does not read holds up its own playback alone, since the file is read only as fast as the
client takes it.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from rtmplite.amf.values import Value
from rtmplite.flv.headers import is_header
from rtmplite.flv.index import IndexPlace
from rtmplite.flv.tag import Tag, TagType
from rtmplite.flv.video import is_key_frame
from rtmplite.rtmp.netstream import ANY, LIVE_ONLY, MAX_NAME, TO_THE_END, PlayRequest
from rtmplite.rtmp.wire.message import TIMESTAMP_MASK
from rtmplite.vod.playlist import Feeder, Item, Library, Playlist, Recording, request_of

if TYPE_CHECKING:
    from rtmplite.rtmp.netstream import ServerStream

BURST: Final = 256 * 1024  # bytes sent before others have a turn
RETRY: Final = 0.02  # s until a socket that was full is looked at again
MIN_AHEAD: Final = 100  # ms sent before their time, whatever the client wants
FOREVER: Final = float("inf")


class FilePlayback:
    """Plays a client's playlist: RTMP 1.0 §7.2.2.1.

    `wake` is called when `deadline` has changed; `position` is the client's time of the last
    message sent, in ms.
    """

    def __init__(
        self, stream: "ServerStream", library: Library, wake: Callable[["FilePlayback"], None]
    ) -> None:
        self.stream, self._library, self._wake = stream, library, wake
        self.deadline: float | None = None
        self.position = 0.0
        self.playlist = Playlist()
        self._epoch = 0  # changes when answers of the library that are under way come too late
        self._started = self._pumping = self._paused = False
        self._item: Item | None = None  # the one that `_feeder` plays
        self._feeder: Feeder | None = None
        # The moment at which the client's time 0 is or would have been due.
        self._zero: float | None = None
        self._paused_at = 0.0
        self._skip = -FOREVER  # the client's time up to which nothing is sent again
        self._until = FOREVER  # the last file time to be sent
        self._one_frame = False
        self._audio = self._video = True
        self._needs_key = False
        self._burst = 0
        self._sent_bytes = 0
        self._successor: tuple[Recording, IndexPlace, str] | None = None  # play2 switches to it

    # -- commands of the client ---------------------------------------------------------

    def append(self, name: str, request: PlayRequest) -> None:
        """Play this after all items before it: RTMP 1.0 §7.2.2.1."""
        if not self.playlist.has_room:
            self._fail("Too many streams in the playlist.")
            return
        idle = self.playlist.current is None
        self.playlist.append(name, request)
        if idle:
            self._open(self.playlist.current)

    def pause(self, paused: bool, at: float, now: float) -> None:
        """Pause, or go on with the first unsent message: RTMP 1.0 §7.2.2.8."""
        if paused and not self._paused:
            self._paused_at = now
        elif not paused and self._paused:
            self._skip = max(self._skip, at if at > self.position else -FOREVER)
            if self._zero is not None:
                self._zero += now - self._paused_at
        self._paused = paused
        self._pump(now)

    def seek(self, milliseconds: float, now: float) -> None:
        """Go on from the key frame before that time: RTMP 1.0 §7.2.2.7."""
        ends = self.playlist.ends
        if ends is None:
            self.stream.status("NetStream.Seek.Failed", "Nothing is played yet.", "error")
            return
        if milliseconds > ends:
            description = f"It ends at {ends / 1000:g} s."
            self.stream.status("NetStream.Seek.InvalidTime", description, "error", ends / 1000)
            return
        item = self.playlist.at(milliseconds)
        assert item is not None and item.shift is not None  # since one has an end
        self.stream.status("NetStream.Seek.Notify", f"Seeking {milliseconds:.0f} ms.")
        self.stream.status("NetStream.Play.Start", f"Started playing {item.name}.")
        self._drop_successor()
        at = milliseconds - item.shift
        if item is self._item and self._feeder is not None:
            self._begin(self._feeder.recording, item, at, now)
        else:
            self._open(item, at)

    def select(self, now: float, *, audio: bool | None = None, video: bool | None = None) -> None:
        """Switch a medium, frames at a key frame: RTMP 1.0 §7.2.2.4 and RTMP 1.0 §7.2.2.5."""
        self._needs_key = self._needs_key or bool(video and not self._video)
        self._audio = self._audio if audio is None else audio
        self._video = self._video if video is None else video

    def buffer(self, milliseconds: int, now: float) -> None:
        """Send as far ahead as the client's buffer is long: RTMP 1.0 §7.1.7."""
        self._pump(now)

    def play2(self, options: Mapping[str, Value], now: float) -> None:
        """Change the playlist, or the stream within it: RTMP 1.0 §7.2.2.2.

        `transition` is one of ActionScript's NetStreamPlayTransitions, "switch" if it is missing;
        any other word is refused.
        """
        name, old = options.get("streamName"), options.get("oldStreamName")
        # RTMP 1.0 §7.2.2.2 [options-of-actionscript]
        transition = options.get("transition") or "switch"
        if transition == "stop":
            self.playlist.forget_the_rest()
        elif not isinstance(name, str) or not 0 < len(name) <= MAX_NAME:
            self._fail("play2 names no stream.")
        elif transition in ("append", "appendAndWait"):
            self.append(name, request_of(options))
        elif transition in ("reset", "resume"):
            self._close()
            self.playlist, self.position = Playlist(), 0.0
            self.append(name, request_of(options))
        elif transition in ("swap", "switch"):
            self._change(name, old if isinstance(old, str) else "")
        else:
            self._fail(f"No such transition: {str(transition)[:80]}")

    def stop(self, now: float) -> None:
        """Close the files and send nothing more.  Own design: late answers are ignored."""
        self._close()
        self._set_deadline(None)

    # -- sending in time ----------------------------------------------------------------

    def tick(self, now: float) -> None:
        """Send the messages that are due.  Own design: to be called at `deadline`."""
        if self.deadline is not None and now >= self.deadline:
            self._pump(now)

    def _pump(self, now: float) -> None:
        """Send what is allowed, set the deadline; files that answer at once call it again."""
        if self._pumping:
            return
        self._pumping = True
        try:
            deadline = self._send_due(now)
        finally:
            self._pumping = False
        self._set_deadline(deadline)

    def _send_due(self, now: float) -> float | None:
        """Send tags until one is not due, the socket is full, or the burst is used up."""
        while (feeder := self._feeder) is not None and not self._paused:
            if not feeder.tags:
                feeder.fill()
                if not feeder.tags and feeder.ended:
                    self._item_ended(now)
                    continue
                if not feeder.tags:
                    return None  # the file is being read
            deadline = self._hindrance(feeder.tags[0], now)
            if deadline is not None:
                return deadline
            self._take(feeder.tags.popleft(), now)
        return None

    def _hindrance(self, tag: Tag, now: float) -> float | None:
        """The time to try again, None if the tag can be sent now."""
        connection = self.stream.connection
        if connection.output_size or (self._burst >= BURST and connection.queued):
            return now + RETRY
        if self._burst >= BURST:
            self._burst = 0
            return now
        assert self._item is not None and self._item.shift is not None
        time = (tag.timestamp + self._item.shift) / 1000
        if tag.tag_type == TagType.SCRIPT or time * 1000 <= self._skip:
            return None
        if self._zero is None:
            self._zero = now - time
        due = self._zero + time - max(self.stream.buffer, MIN_AHEAD) / 1000
        return due if due > now else None

    def _take(self, tag: Tag, now: float) -> None:
        """Send one tag or leave it out; end the item or switch files if it is time for that."""
        assert self._item is not None and self._item.shift is not None
        if tag.timestamp > self._until:
            self._item_ended(now)
            return
        if self._successor is not None and tag.timestamp >= self._successor[1].timestamp:
            self._switch(now)
            return
        time = tag.timestamp + self._item.shift
        needed = is_header(tag.tag_type, tag.data)
        if not needed and (time <= self._skip or not self._wants(tag)):
            return
        self._send(tag, time)
        if self._one_frame and not needed and self._feeder is not None:
            kinds = self._feeder.recording.index.kinds
            if tag.tag_type == (TagType.VIDEO if TagType.VIDEO in kinds else TagType.AUDIO):
                self._item_ended(now)

    def _wants(self, tag: Tag) -> bool:
        if tag.tag_type == TagType.AUDIO:
            return self._audio
        if tag.tag_type != TagType.VIDEO:
            return True
        if self._needs_key and self._video and is_key_frame(tag.data):
            self._needs_key = False
        return self._video and not self._needs_key

    def _send(self, tag: Tag, time: int) -> None:
        stream = self.stream
        self._burst += len(tag.data)
        self._sent_bytes += len(tag.data)
        if tag.tag_type != TagType.SCRIPT:
            self.position = max(self.position, time)
        stream.connection.send_media(tag.tag_type, time & TIMESTAMP_MASK, stream.id, tag.data)

    # -- from file to file --------------------------------------------------------------

    def _open(self, item: Item | None, at: float | None = None) -> None:
        self._close()
        if item is None:
            return
        if item.shift is None:
            item.base = self.position
        self._library.open(item.name, partial(self._opened, self._epoch, item, at))

    def _opened(
        self, epoch: int, item: Item, at: float | None, recording: Recording | None, now: float
    ) -> None:
        if epoch != self._epoch:
            if recording is not None:
                recording.close()
            return
        if recording is not None and item.request.start == LIVE_ONLY:
            recording.close()
            recording = None
        if recording is None:
            self._missing(item, now)
            return
        self.stream.accept_recorded(now)
        if at is None:
            if self._started:
                self._play_status("NetStream.Play.Switch", item.name)
            start = 0.0 if item.request.start == ANY else item.request.start
            self._until = FOREVER
            if item.request.duration != TO_THE_END:
                self._until = start + item.request.duration
            self._one_frame = item.request.duration == 0
            at = start
        self._started = True
        self._begin(recording, item, at, now)

    def _begin(self, recording: Recording, item: Item, at: float, now: float) -> None:
        """Play from a time in the file, with the decoder's headers first."""
        index = recording.index
        from_start = at <= 0
        place = index.start if from_start else index.before(at)
        if item.shift is None:
            item.shift = round(item.base) - (0 if from_start or not item.base else place.timestamp)
        if self._one_frame:
            self._until = FOREVER
        item.ends = item.shift + min(index.duration, self._until)
        self._zero, self._skip, self._needs_key = None, -FOREVER, False
        self.position = place.timestamp + item.shift
        self._play_from(recording, item, place, with_head=not from_start)
        self._pump(now)

    def _play_from(
        self, recording: Recording, item: Item, place: IndexPlace, with_head: bool
    ) -> None:
        if self._feeder is not None:
            self._feeder.stop()
        index = recording.index
        is_inside = with_head and place.position != index.first
        head = index.head_at(place.position) if is_inside else ()
        self._item, self._feeder = item, Feeder(recording, place, self._pump, head)

    def _item_ended(self, now: float) -> None:
        if self._successor is not None:
            self._switch(now)
            return
        following = self.playlist.advance()
        self._close()
        if following is None:
            self._complete()
        else:
            self._open(following)

    def _complete(self) -> None:
        """Tell the client that playback is complete, with duration and size: RTMP 1.0 §7.1.7."""
        self.stream.complete(duration=self.position / 1000, bytes=float(self._sent_bytes))

    def _missing(self, item: Item, now: float) -> None:
        """Play the next item in place of a missing file: RTMP 1.0 §7.2.2.1."""
        following = self.playlist.advance()
        if following is not None:
            self._open(following)
            return
        description = f"No such recording: {item.name}"
        if self._started:
            self.stream.status("NetStream.Play.StreamNotFound", description, "error")
            self._complete()
        else:
            self.stream.playback = None
            self.stream.reject_play("NetStream.Play.StreamNotFound", description, now)

    def _change(self, name: str, old: str) -> None:
        """Replace one stream of the playlist, the one that plays if `old` names none."""
        item = self.playlist.find(old) if old else self.playlist.current
        if item is None:
            self._fail(f"{old or 'Nothing'} is not played.")
        elif item is not self._item:
            item.name = name
        else:
            self._drop_successor()
            # RTMP 1.0 §7.2.2.2 [a-file-for-each-bit-rate]
            self._library.open(name, partial(self._successor_opened, self._epoch, name))

    def _successor_opened(
        self, epoch: int, name: str, recording: Recording | None, now: float
    ) -> None:
        """Prepare to switch at the successor's first key frame after the client's position."""
        place = None
        if epoch == self._epoch and self._item is not None and recording is not None:
            # RTMP 1.0 §7.2.2.2 [on-the-same-time-line]
            place = recording.index.after(self.position - (self._item.shift or 0))
        if recording is not None and place is None:
            recording.close()
        if epoch != self._epoch:
            return
        if recording is None or place is None:
            self._fail(f"No such recording, or it is shorter: {name}")
            return
        self._drop_successor()
        self._successor = (recording, place, name)
        self.stream.status("NetStream.Play.Transition", f"Going over to {name}.")
        self._pump(now)

    def _switch(self, now: float) -> None:
        assert self._successor is not None and self._item is not None and self._feeder is not None
        (recording, place, name), self._successor = self._successor, None
        self._feeder.recording.close()
        self._item.name = name
        self._play_from(recording, self._item, place, with_head=True)
        self._play_status("NetStream.Play.TransitionComplete", name)

    def _drop_successor(self) -> None:
        if self._successor is not None:
            self._successor[0].close()
            self._successor = None

    def _close(self) -> None:
        """Close the open files; answers of the library that are under way come too late."""
        self._epoch += 1
        self._drop_successor()
        if self._feeder is not None:
            self._feeder.stop()
            self._feeder.recording.close()
        self._feeder = self._item = None

    # -- status messages ----------------------------------------------------------------

    def _play_status(self, code: str, details: str) -> None:
        """Send a play status with duration and size, as Flash Media Server does."""
        duration, size = self.position / 1000, float(self._sent_bytes)
        self.stream.play_status(code, details, duration=duration, bytes=size)

    def _fail(self, description: str) -> None:
        self.stream.status("NetStream.Play.Failed", description, "error")

    def _set_deadline(self, deadline: float | None) -> None:
        if deadline != self.deadline:
            self.deadline = deadline
            self._wake(self)

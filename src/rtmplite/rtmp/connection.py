"""The transport of messages over TCP: handshake, chunks, control messages, pings.

Implements RTMP 1.0 §5.4 and RTMP 1.0 §7.1.7 for both ends; `server` and `client` say what differs.
A sans-I/O machine: bytes go in by `receive`, bytes come out of `take_output`, and whoever owns the
socket is told by `on_output` that there are some.  All times are in seconds on a clock that never
runs backwards.
"""

import sys
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol, Self

from rtmplite.errors import RemoteError
from rtmplite.limits.memory_budget import Account, MemoryBudget
from rtmplite.live.timestamp_rebase import ANSWER, QUIET
from rtmplite.rtmp.bandwidth import Throttle
from rtmplite.rtmp.handshake import ClientHandshake, ServerHandshake
from rtmplite.rtmp.lent_reading import LentReading
from rtmplite.rtmp.message_transport import ConnectionLimits, MessageTransport
from rtmplite.rtmp.wire import control
from rtmplite.rtmp.wire.chunk_reader import ChunkReader
from rtmplite.rtmp.wire.chunk_writer import (
    CHUNK_STREAMS,
    COMMAND_CHUNKS,
    CONTROL_CHUNKS,
    ChunkFraming,
    ChunkWriter,
    encode_absolute,
)
from rtmplite.rtmp.wire.command import Command
from rtmplite.rtmp.wire.message import Message, MessageType

if TYPE_CHECKING:
    from rtmplite.live.streams import LivePlayer, LiveStream, Viewer

AT_ONCE: Final = 16  # messages that one `receive` uses where others wait for the loop
ROOM: Final = 64 * 1024  # bytes, for the handshake, headers and small messages beside a long one


class ChunkEnd(Protocol):
    """An end of a NetConnection over the chunk stream, as the owner of its socket sees it.

    Own design: time passes for the end, and bytes are its transport's business.
    """

    @property
    def transport(self) -> "ChunkTransport":
        """The transport of its messages: RTMP 1.0 §5."""

    @property
    def closed(self) -> bool:
        """Whether the connection has ended."""

    @property
    def deadline(self) -> float | None:
        """When to call `tick`, None once closed."""

    def tick(self, now: float) -> None:
        """Act on the deadlines that have passed."""

    def abort(self, reason: str, now: float) -> None:
        """Close at once."""


class ChunkTransport(MessageTransport):
    """The half of a connection over the chunk stream that servers and clients share.

    Own design: it reads no further while `reading` is false (someone asked for a pause) or
    `deciding` is true (the peer's last command has no answer yet).  A few bytes that come in the
    meantime are kept.  Where `on_behind` is set, `receive` uses at most `AT_ONCE` messages; it is
    called when more are left, and `receive` is to be called again for them.
    """

    def __init__(
        self,
        handshake: ServerHandshake | ClientHandshake,
        now: float,
        limits: ConnectionLimits,
        account: Account | None = None,
    ) -> None:
        super().__init__(now, limits)
        self.output: list[bytes] = []  # `output_size` is kept by the socket's owner and `put`
        self._counted = self._turn_size = 0  # of `output` while `_busy`: messages and their bytes
        self.on_output: Callable[[ChunkTransport], None] | None = None
        self.short_way: Callable[[bytes], None] | None = None
        self._players: list[LivePlayer] = []
        self.on_reading: Callable[[ChunkTransport], None] | None = None
        self.on_behind: Callable[[], None] | None = None
        self._handshake: ServerHandshake | ClientHandshake | None = handshake
        self._account = account or Account(MemoryBudget())
        self._reader = ChunkReader(limits.message, account=self._account)
        self.lent = LentReading(self._reader)
        self._writer = ChunkWriter()
        self._held, self._backlog = b"", deque[Message]()
        self._busy = False
        self._heard = now
        self._pinged: float | None = None
        self._probed: float | None = None  # as well, and before, if it its user `is_watched`
        self._ack_every, self._acknowledged, self._window_told = 0, 0, 0
        self._their_acknowledgement = 0
        self._throttle: Throttle | None = None
        self._obeys, self._is_busy = True, False  # limits of our output; our socket

    def receive(self, data: bytes, now: float) -> None:
        """Take bytes from the peer; never raises.

        A peer that breaks the rules is closed, and `reason` says why.  Feed `b""` to go on after
        `resume_reading`.
        """
        if self.closed:
            return
        if self.lent.is_lent:
            self._reclaim()
        self._heard, self._pinged, self._probed = now, None, None
        try:
            if self.output_size > self.limits.unread:
                raise RemoteError(f"{self.output_size} bytes that it does not read")
            if self._busy or self.deciding or not self.reading:
                self._hold(data)
            else:
                self._take(data, now)
        except RemoteError as error:
            self.abort(str(error), now)  # RTMP Errata §2 [errors-abort]

    @property
    def is_behind(self) -> bool:
        """Own design: whether messages are left that can be used."""
        return bool(self._backlog) and self.reading and not self.deciding

    def take_output(self) -> list[bytes]:
        """Own design: give the bytes to send, in order, and forget them."""
        output = self.output.copy()
        self.output.clear()
        self._counted = self._turn_size = 0
        return output

    def put(self, data: bytes) -> None:
        """Queue bytes that are whole chunked messages: RTMP 1.0 §5.3."""
        if self.closed:
            return
        if self._throttle is not None:
            self._throttle.push(data)
            self.output_size += len(data)
            self._release(self._throttle.ready())
            return
        if not self.output and self.on_output is not None:
            self.on_output(self)
        self.output.append(data)
        if self.output_size:
            self.output_size += len(data)

    def choose_way(self) -> None:
        """Have players go by `short_way` while nothing waits and no limit is to be obeyed.

        Own design: for the socket's owner, which may take media at less cost than `put` does.
        """
        self._reclaim()
        is_short = not (self.closed or self._throttle is not None or self.output_size)
        for player in self._players:
            player.go_by(self.short_way if is_short else None)

    def unsent(self, size: int) -> None:
        """Hear from the socket's owner how many bytes it could not send.

        Own design: they count as `output_size`, with those that a limit of the peer holds back.
        """
        self._is_busy = size > 0
        self.output_size = size + (self._throttle.size if self._throttle is not None else 0)
        self.choose_way()

    def send_command(self, command: Command, stream_id: int = 0) -> None:
        """Send a command as type 20, for every peer: RTMP 1.0 §7.1.1, RTMP Errata §8.1.1."""
        # RTMP Errata §8.1.1 [no-extended-without]
        self.put(self._writer.write(command.message(stream_id), COMMAND_CHUNKS))

    def send_shared(self, message: Message) -> None:
        """Send a shared object message: RTMP 1.0 §7.1.3."""
        self.put(self._writer.write(message, COMMAND_CHUNKS))

    def send_control(self, message: control.Control) -> None:
        """Send a control message that can pass what waits: RTMP 1.0 §5.4, RTMP 1.0 §6.2."""
        raw, size = message.message(), self._writer.chunk_size
        data = encode_absolute(raw.type_id, 0, 0, raw.payload, CONTROL_CHUNKS, size)
        if self._throttle is not None and isinstance(message, control.Acknowledgement):
            self._throttle.passed(len(data))
            self.output_size += len(data)
            self._release([data])
        else:
            self.put(data)

    def send_window(self, size: int) -> None:
        """Ask for an Acknowledgement after each `size` bytes: RTMP 1.0 §5.4.4."""
        self._window_told = size
        self.send_control(control.WindowAcknowledgementSize(size))

    def send_chunk_size(self, size: int) -> None:
        """Say and use a new chunk size: RTMP 1.0 §5.4.1."""
        self.send_control(control.SetChunkSize(size))
        self._writer.set_chunk_size(size)

    def send_media(self, type_id: int, timestamp: int, stream_id: int, payload: bytes) -> None:
        """Send media that nobody else gets, with absolute time in ms: RTMP 1.0 §7.1."""
        size = self._writer.chunk_size
        chunks = CHUNK_STREAMS[type_id]
        self.put(encode_absolute(type_id, timestamp, stream_id, payload, chunks, size))

    def join(
        self, live: "LiveStream", stream_id: int, viewer: "Viewer", now: float
    ) -> "LivePlayer":
        """Play `live` on message stream `stream_id`: RTMP 1.0 §7.2.2.1."""
        player = live.join(self, ChunkFraming(stream_id), viewer, now, self.queued)
        self._players = [*(each for each in self._players if each.is_here), player]
        self.choose_way()
        return player

    def outlet(self, stream_id: int) -> Self:
        """Take the chunks of a live stream as they are: RTMP 1.0 §7.2.2.6."""
        return self

    @property
    def queued(self) -> int:
        """Own design: how many bytes wait, with those of this turn."""
        if not self._busy:
            return self.output_size + sum(map(len, self.output))
        fresh = self.output[self._counted :]  # each command of a read asks: count nothing twice
        self._counted += len(fresh)
        self._turn_size += sum(map(len, fresh))
        return self.output_size + self._turn_size

    @property
    def account(self) -> Account:
        """Own design: the account that memory kept for this peer is charged to."""
        return self._account

    @property
    def room(self) -> int:
        """Own design: how many bytes the peer may send at once, a message in chunks of any size."""
        return self._reader.max_message + ROOM

    def proceed(self, now: float) -> None:
        """Own design: use the bytes that were kept while nothing was read, see `receive`."""
        self.receive(b"", now)

    @property
    def deadline(self) -> float | None:
        """Own design: when to call `tick`, None once closed."""
        if self.closed:
            return None
        self._note_heard(self.lent.follow())
        if not self._settled:
            at = self._opened + self.limits.setup
        elif self._pinged is not None:
            at = self._pinged + self.limits.ping_timeout
        else:
            at = self._heard + self.limits.ping_after
            if self._probed is None and self.user.is_watched:
                at = min(at, self._heard + QUIET)
        stuck = None if self._throttle is None else self._throttle.deadline
        return at if stuck is None else min(at, stuck)

    def tick(self, now: float) -> None:
        """Ping a silent peer that we read from, give up one still silent: RTMP 1.0 §7.1.7."""
        if self._throttle is not None and self._throttle.tick(now):
            self._obey_no_longer(self._throttle)
        deadline = self.deadline
        if deadline is None or now < deadline:
            return
        if not self.reading or self.deciding:
            self._heard = self._opened = now
        elif not self._settled:
            self.abort("nothing asked in time", now)
        elif self._pinged is None:
            if now < self._heard + self.limits.ping_after:
                self._probed = now
            else:
                self._pinged = now
            self.send_control(control.PingRequest(int(now * 1000) & 0xFFFFFFFF))
        else:
            self.abort("silent", now)

    def is_silent(self, now: float, answer: float = ANSWER) -> bool:
        """Whether a publisher neither sends nor answers a ping for so long: RTMP 1.0 §7.1.7."""
        self._note_heard(self.lent.follow())
        is_heard = self.reading and not self.deciding
        return is_heard and self._probed is not None and now - self._probed >= answer

    def _shut(self, now: float) -> None:
        """Have the socket's owner send the queue, unless aborted: RTMP 1.0 §5.3."""
        if self._throttle is not None:
            self._obey_no_longer(self._throttle)
        self.choose_way()
        if self.on_output is not None:
            self.on_output(self)
        if self.aborted:
            self.output.clear()
        self._backlog.clear()
        self._held = b""
        self._account.close()

    def sinks_changed(self) -> None:
        """Own design: read everything here, from the next message on."""
        self._reclaim()

    def _lend(self, stream_id: int) -> None:
        """Have usual audio read elsewhere from now on, if nothing waits and nobody has to."""
        if self.closed or self.deciding or not self.reading or self.output_size or self._throttle:
            return
        most = sys.maxsize
        if self._ack_every:
            most = self._ack_every - (self._reader.bytes_received - self._acknowledged)
        self.lent.begin(stream_id, most, self.user.audio_sink(stream_id))

    def _reclaim(self) -> None:
        self._note_heard(self.lent.end())

    def _note_heard(self, heard: float | None) -> None:
        if heard is not None:
            self._heard, self._pinged, self._probed = heard, None, None
            self.user.heard_audio(heard)

    def _reading_changed(self) -> None:
        self._reclaim()
        if self.on_reading is not None:
            self.on_reading(self)

    def _hold(self, data: bytes) -> None:
        self._account.take(len(data))
        self._held += data
        if len(self._held) > min(self.limits.held, self._reader.max_message):
            raise RemoteError(f"{len(self._held)} bytes before an answer")

    def _take(self, data: bytes, now: float) -> None:
        if self._held:
            self._account.give(len(self._held))
            data, self._held = self._held + data, b""
        self._busy, self._counted, self._turn_size = True, 0, 0
        try:
            if self._handshake is not None:
                data = self._shake(self._handshake, data, now)
            backlog, reader = self._backlog, self._reader
            if data:
                backlog.extend(reader.feed(data))
            most = len(backlog) if self.on_behind is None else AT_ONCE
            message = None
            while most and backlog and self.reading and not self.deciding:
                most -= 1
                message = backlog.popleft()
                if message.type_id in CHUNK_STREAMS:
                    self.user.on_media(message, now)
                else:
                    self._on_message(message, now)
            if self._ack_every and reader.bytes_received - self._acknowledged >= self._ack_every:
                self._acknowledge()
        finally:
            self._busy = False
        if backlog:
            if self.is_behind and self.on_behind is not None:
                self.on_behind()
        elif message is not None and message.type_id == MessageType.AUDIO and self.lent.is_due():
            self._lend(message.stream_id)

    def _shake(
        self, handshake: ServerHandshake | ClientHandshake, data: bytes, now: float
    ) -> bytes:
        if reply := handshake.receive(data, now):
            self.put(reply)
        if not handshake.done:
            return b""
        self._handshake = None
        self._handshaken(now)
        return handshake.rest

    def _acknowledge(self) -> None:
        """Report how many bytes have arrived (RTMP 1.0 §5.4.3)."""
        received = self._reader.bytes_received
        self._acknowledged = received  # RTMP 1.0 §5.4.4 [ack-since-last]
        # RTMP 1.0 §5.4.3 [ack-every-window]
        self.send_control(control.Acknowledgement(received))

    def _release(self, ready: list[bytes]) -> None:
        """Send the messages that the peer's limit no longer holds back."""
        for data in ready:
            if not self.output and self.on_output is not None:
                self.on_output(self)
            self.output.append(data)
            if not self._is_busy:
                self.output_size -= len(data)

    def _limit(self, message: control.SetPeerBandwidth) -> None:
        """Obey RTMP 1.0 §5.4.5, as long as this peer acknowledges what it gets."""
        if message.size != self._window_told:
            self.send_window(message.size)  # RTMP 1.0 §5.4.5 [answer-with-window]
        if self._throttle is not None:
            self._throttle.limit(message)
            self._release(self._throttle.ready())
        elif self._obeys:
            self._throttle = Throttle.begun(message, self._their_acknowledgement)
            self.choose_way()

    def _obey_no_longer(self, throttle: Throttle) -> None:
        self._throttle, self._obeys = None, False
        self._release(list(throttle.drain()))
        self.choose_way()

    def _on_control(self, message: control.Control, now: float) -> None:
        """Obey RTMP 1.0 §5.4.3 to RTMP 1.0 §5.4.5.

        At once, whatever their time says (RTMP 1.0 §6.2).

        Own design: without a limit of the peer's an Acknowledgement changes nothing; TCP's own
        window slows us down.
        """
        match message:
            case control.WindowAcknowledgementSize(size):
                self._ack_every = size
            case control.Acknowledgement(sequence_number):
                self._their_acknowledgement = sequence_number
                if self._throttle is not None:
                    self._throttle.acknowledged(sequence_number)
                    self._release(self._throttle.ready())
            case control.SetPeerBandwidth():
                self._limit(message)
            case _:
                super()._on_control(message, now)

    def _handshaken(self, now: float) -> None:
        """Hook: the handshake is over."""

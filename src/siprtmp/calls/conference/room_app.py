"""Conference rooms: the RTMP application `room`, and the SIP addresses of the same names.

Own design: the operator names the rooms.  Who publishes to rtmp://HOST/room/NAME talks in it, who
plays it listens to everybody, and a phone that calls sip:NAME@DOMAIN does both.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

from p2psip.errors import RemoteError
from p2psip.sip.message import Request
from p2psip.stack.request_origin import host_of
from p2psip.stack.stack import ServerHandle
from rtmplite.flv.headers import is_header
from rtmplite.live.streams import Registry
from rtmplite.rtmp.application import OpenApplication
from rtmplite.rtmp.netconnection import NetConnection
from rtmplite.rtmp.netstream import ServerStream
from siprtmp.calls import codec_names, failures
from siprtmp.calls.call import Call
from siprtmp.calls.conference.room import APP, Member, Place, Room, Screen
from siprtmp.calls.home import (
    BAD_NAME,
    KEY_FRAME_WANTED,
    NO_ROOM,
    NOT_FOUND,
    UNSUITABLE,
    CallHome,
    hold_back,
    may_play,
    may_publish,
)
from siprtmp.calls.observer import CallObserver
from siprtmp.media.sdp_map import MediaPlan
from siprtmp.media.session_log import TRANSCODE
from siprtmp.media.sink import AUDIO, VIDEO, DiscardPacer, MediaSink
from siprtmp.media.transcode import audio_decoder

OPERATOR: Final = "operator"  # the reason in the log
MAX_REASONS: Final = 8  # for which a publisher is not heard, and that the log has


class RoomApplication(OpenApplication):
    """The rooms of one gateway, which last as long as it."""

    def __init__(self, home: CallHome, names: Iterable[str], registry: Registry) -> None:
        self.home = home
        media = home.context.media
        self.rooms: Mapping[str, Room] = {name: Room(name, media, registry) for name in names}

    def __len__(self) -> int:
        return sum(len(room.members) for room in self.rooms.values())

    def on_publish(
        self, connection: NetConnection, stream: ServerStream, name: str, now: float
    ) -> None:
        room = self.rooms.get(stream.path)
        if room is None:
            stream.reject_publish(BAD_NAME, NO_ROOM, now)
        elif may_publish(self.home, connection, stream, now):
            payer = self.home.payer(stream.client, None, stream.query)
            if place := room.reserve(payer, is_known=True):
                stream.accept_publish(RoomPublisher(room, place, stream, self.home, now), now)
            else:
                stream.reject_publish(failures.REJECTED, failures.told(*failures.BUSY), now)

    def on_play(
        self, connection: NetConnection, stream: ServerStream, name: str, now: float
    ) -> None:
        room = self.rooms.get(stream.path)
        if room is None:
            stream.reject_play(NOT_FOUND, NO_ROOM, now)
        elif may_play(self.home, connection, stream, now):
            stream.accept_play(room.open(), now)

    def find(self, request: Request) -> Callable[[ServerHandle, float], None] | None:
        if request.method != "INVITE" or not self.home.is_local_domain(request.uri):
            return None
        room = self.rooms.get(request.uri.user or "")
        return None if room is None else RoomPhone(room, self.home).incoming


class RoomPublisher(Screen):
    """A publisher in a room: the sink of its stream.

    It has no way to hear and see; its players do.
    """

    def __init__(
        self, room: Room, place: Place, stream: ServerStream, home: CallHome, now: float
    ) -> None:
        self._place, self._stream, self._reasons = place, stream, set[str]()
        self._context, self._since = home.context, now
        hold = partial(hold_back, stream.connection)
        self._pace = DiscardPacer(hold, home.context.media.waker)
        self._member = room.enter(self, now)
        self._about: dict[str, object] = {"rtmp": stream.client.id, "room": room.name}
        source = f"RTMP:{stream.client.host}"
        self._context.log.event("room-enter", **self._about, source=source)

    def write(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        self._pace.put(timestamp / 1000, now)  # a file is read at the pace at which it is heard
        self._member.write(type_id, payload, now)
        if (reason := self._member.unsuitable) and reason not in self._reasons:
            self._say_unsuitable(reason)

    def _say_unsuitable(self, reason: str) -> None:
        """Tell the publisher and the operator, of the first few reasons: FLV 10.1 §E.4.2.1."""
        if len(self._reasons) == MAX_REASONS:
            return
        self._reasons.add(reason)
        missing = "" if audio_decoder.is_available() else f", or {TRANSCODE}"
        cure = f"publish pcmu or pcma{missing}"
        self._context.unsuitable += 1
        self._context.log.warning("sound-unsuitable", **self._about, reason=reason, cure=cure)
        text = f"The room cannot hear this: {reason}; {cure}"
        self._stream.status(UNSUITABLE, text, "warning")

    def end(self, now: float) -> None:
        self._pace.stop()
        self._member.leave(now)
        self._place.close()
        seconds = round(now - self._since, 1)
        self._context.log.event("room-leave", **self._about, seconds=seconds)

    # Screen

    def ask_key_frame(self, now: float) -> None:
        """Tell the publisher, which may understand it: RTMP 1.0 §7.2.2."""
        self._stream.status(KEY_FRAME_WANTED, "The room needs a key frame.")

    def about(self) -> Mapping[str, object]:
        client = self._stream.client
        return {"kind": "publisher", "source": f"RTMP:{client.host}", "rtmp": client.id}

    def expel(self, now: float) -> None:
        """Disconnect it."""
        self._stream.connection.close(now, "ended by the operator")


class RoomPhone(CallObserver, MediaSink, Screen):
    """A phone that calls a room: the observer and the sink of its call.

    It is a member from its ACK on; media may come before that, and their headers come once.
    """

    def __init__(self, room: Room, home: CallHome) -> None:
        super().__init__()
        self._room, self._home = room, home
        self.log_id = f"{APP}/{room.name}"
        self._call = Call(self, self, home.context)
        self._member: Member | None = None
        self._place: Place | None = None
        self._headers: dict[int, bytes] = {}  # of the codecs, by type

    def incoming(self, server: ServerHandle, now: float) -> None:
        """Answer at once: RFC 3261 §13.3.1.4.  The caller has its place from here on."""
        call, name = self._call, self._room.name
        if not call.take(server, self._home.contact(name, name), now):
            return
        is_known = self._home.is_proven(server, now)
        self._place = self._room.reserve(host_of(server.flow), is_known=is_known)
        if self._place is None:
            call.refuse(*failures.BUSY, now)
            return
        try:
            call.answer(codec_names.answered(), now)
        except RemoteError as error:
            call.refuse(error.status, error.reason, now)
            self._place.close()

    # Screen

    def hear(self, tag: bytes, at: int, now: float) -> None:
        self._call.publish(AUDIO, at, tag, now)

    def see(self, tag: bytes, at: int, now: float) -> None:
        self._call.publish(VIDEO, at, tag, now)

    def ask_key_frame(self, now: float) -> None:
        self._call.request_key_frame(now)

    def about(self) -> Mapping[str, object]:
        call = self._call
        name = call.call.id if call.call is not None else ""
        return {"kind": "phone", "caller": call.origin.caller, "call": name}

    def expel(self, now: float) -> None:
        """Hang up: RFC 3261 §15."""
        self._call.drop(now, OPERATOR)

    # CallObserver and MediaSink

    def on_call_up(self, plan: MediaPlan, now: float) -> None:
        if self._member is None:
            self._member = self._room.enter(self, now)
            self._call.log.event("room-enter", room=self._room.name)
            for type_id, payload in self._headers.items():
                self._member.write(type_id, payload, now)

    def on_call_cancelled(self, now: float) -> None:
        self.on_call_over("cancelled", now)

    def on_call_over(self, reason: str, now: float) -> None:
        if self._place is not None:
            self._place.close()
        if self._member is not None:
            self._member.leave(now)
            self._member = None

    def on_tag(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        if self._member is not None:
            self._member.write(type_id, payload, now)
        elif is_header(type_id, payload):
            self._headers[type_id] = payload

    def on_key_frame_wanted(self) -> None:
        self._room.wants_key_frame = True

"""A room: phones and streams that hear each other, and see who speaks.

Own design: whoever is in a room is a member with a seat at its mixer.  Video is that of the
member that is the loudest, from its next key frame on; they are passed on as they are, so all
members that see need to understand them.
"""

from collections.abc import Callable, Mapping
from itertools import count
from typing import Final

from p2psip.stack.fair_pool import Pool
from rtmplite.flv.video import is_key_frame, is_sequence_header
from rtmplite.live.streams import LiveStream, Registry
from siprtmp.calls.call import MediaEdge
from siprtmp.calls.metadata import DATA, on_metadata
from siprtmp.media.mixer import Hear, Mixer, Seat
from siprtmp.media.sink import AUDIO, VIDEO
from siprtmp.media.transcode.to_samples import ToSamples
from siprtmp.media.translate.audio_formats import PCMU
from siprtmp.media.translate.conversion import UnsuitableError
from siprtmp.media.transport import Waker

APP: Final = "room"
MAX_MEMBERS: Final = 50
HOLD: Final = 1.0  # s for which a speaker is shown at least
_HEAD: Final = bytes([PCMU.tag_byte])


def hearing(screen: "Screen") -> Hear:
    """Give a seat's audio to a screen as tags: FLV 10.1 §E.4.2.1."""
    hear = screen.hear
    return lambda audio, at, now: hear(_HEAD + audio.ulaw, at, now)


class Screen:
    """A member as the others' audio and video reach it; the default is one that they do not."""

    def hear(self, tag: bytes, at: int, now: float) -> None:
        """Take a tag of audio, at a time in ms of the room: FLV 10.1 §E.4.2.1."""

    def see(self, tag: bytes, at: int, now: float) -> None:
        """Take a tag of video: FLV 10.1 §E.4.3.1."""

    def ask_key_frame(self, now: float) -> None:
        """Ask the source of this member's video for a key frame: RFC 5104 §3.5.1."""

    def about(self) -> Mapping[str, object]:
        """Tell an operator who that is."""
        return {}

    def expel(self, now: float) -> None:
        """Have it leave, as the operator wants."""


class Member:
    """A participant of a room, until `leave`."""

    def __init__(self, room: "Room", screen: Screen, now: float) -> None:
        self.room, self.screen, self.number = room, screen, room.next_number()
        self.is_muted = False  # nobody hears it
        self.seat: Seat = room.mixer.sit(hearing(screen), now)
        self._ears = ToSamples()
        self.header = b""  # the sequence header of its video
        self.waits = True  # for a key frame of the speaker
        self.unsuitable = ""  # why its audio cannot be heard

    def write(self, type_id: int, payload: bytes, now: float) -> None:
        """Take what the member says or shows: FLV 10.1 §E.4.2.1, §E.4.3.1."""
        if type_id == AUDIO and not self.is_muted:
            try:
                self.seat.put(self._ears.decode(payload))
            except UnsuitableError as error:
                self.unsuitable = str(error)
        elif type_id == VIDEO and payload:
            if is_sequence_header(payload):
                self.header = payload
            self.room.show(self, payload, now)

    def leave(self, now: float) -> None:
        self.seat.leave()
        self._ears = ToSamples()
        self.room.left(self, now)


class Place:
    """A place in a room, from the INVITE or the publish on, until `close`."""

    def __init__(self, pool: Pool, holder: str) -> None:
        self._pool, self._holder, self._is_open = pool, holder, True
        pool.add(holder, 1)

    def close(self) -> None:
        """Give it back.  Idempotent."""
        if self._is_open:
            self._is_open = False
            self._pool.add(self._holder, -1)


class Audience(Screen):
    """The stream of a room, for players, recordings and relays, while anybody is in it."""

    def __init__(self, live: LiveStream, now: float) -> None:
        self._live, self.waits = live, True
        live.begin(now)
        live.write(DATA, 0, on_metadata((PCMU.sound_format, PCMU.clock_rate)), now)

    def hear(self, tag: bytes, at: int, now: float) -> None:
        self._live.write(AUDIO, at, tag, now)

    def see(self, tag: bytes, at: int, now: float) -> None:
        self._live.write(VIDEO, at, tag, now)

    def end(self, now: float) -> None:
        """End the stream with the last member."""
        self._live.on_players_changed = self._live.ask_key_frame = None
        self._live.end(now)


class Room:
    """One room of a gateway; it costs nothing while nobody is in it."""

    def __init__(self, name: str, media: MediaEdge, registry: Registry) -> None:
        self.name, self.mixer, self._registry = name, Mixer(), registry
        self.members: list[Member] = []
        self._places = Pool(MAX_MEMBERS)
        self._media = media
        self._waker: Waker | None = None
        self._audience: Audience | None = None
        self._audience_seat: Seat | None = None
        self._speaker: Member | None = None
        self.wants_key_frame = False  # a member lacks a frame
        self._shown_since = 0.0
        self._numbers = count(1)
        self.on_members: Callable[[Member, bool], object] = lambda member, has_come: None

    def reserve(self, holder: str, *, is_known: bool) -> "Place | None":
        """A place for one more of this host or user, None if the room is full for it.

        Own design: nobody has all places; see `fair_pool`, also for `is_known`.
        """
        has_room = self._places.has_room(holder, known=is_known)
        return Place(self._places, holder) if has_room else None

    def next_number(self) -> int:
        """The number of another member; none comes twice."""
        return next(self._numbers)

    @property
    def deadline(self) -> float | None:
        """When to call `tick`: the next block of the mix."""
        return self.mixer.deadline

    def tick(self, now: float) -> None:
        self.mixer.tick(now)
        self._look(now)

    def enter(self, screen: Screen, now: float) -> Member:
        if self._audience is None:
            self._audience = Audience(self.open(), now)
            self._audience_seat = self.mixer.sit(hearing(self._audience), now)
        member = Member(self, screen, now)
        self.members.append(member)
        self.on_members(member, True)
        self._wake()
        if self._speaker is not None:  # the new member sees from the next key frame on
            self._speaker.screen.ask_key_frame(now)
        return member

    def open(self) -> LiveStream:
        """The room's stream; who plays it hears and sees everybody."""
        live = self._registry.open(APP, self.name)
        live.on_players_changed = self._players_changed
        live.ask_key_frame = self._ask_key_frame
        return live

    def left(self, member: Member, now: float) -> None:
        if member in self.members:
            self.members.remove(member)
            self.on_members(member, False)
        if self._speaker is member:
            self._speaker = None
        if not self.members:
            self._close(now)

    def show(self, member: Member, payload: bytes, now: float) -> None:
        """Pass a frame of the speaker on to all others."""
        if self._speaker is None:
            self._turn_to(member, now)
        if member is not self._speaker or is_sequence_header(payload):
            return
        if self.wants_key_frame:
            self.wants_key_frame = False
            member.screen.ask_key_frame(now)
        at, is_key = self.mixer.clock(now), is_key_frame(payload)
        for each in self._viewers(member):
            screen = each.screen if isinstance(each, Member) else each
            if each.waits and not is_key:
                continue
            if each.waits and member.header:
                screen.see(member.header, at, now)
            each.waits = False
            screen.see(payload, at, now)

    def _viewers(self, member: Member) -> list["Member | Audience"]:
        seeing: list[Member | Audience] = [each for each in self.members if each is not member]
        return seeing if self._audience is None else [*seeing, self._audience]

    def _look(self, now: float) -> None:
        """Turn to the loudest member that shows video, not too often."""
        seat = self.mixer.speaker
        loudest = next((each for each in self.members if each.seat is seat), None)
        is_new = loudest is not None and loudest is not self._speaker and loudest.header
        if loudest is not None and is_new and now - self._shown_since >= HOLD:
            self._turn_to(loudest, now)

    def _turn_to(self, member: Member, now: float) -> None:
        self._speaker, self._shown_since = member, now
        for each in self._viewers(member):
            each.waits = True
        member.screen.ask_key_frame(now)

    def _players_changed(self, live: LiveStream, now: float) -> None:
        if live.players:
            self._ask_key_frame(now)

    def _ask_key_frame(self, now: float) -> None:
        if self._speaker is not None:
            self._speaker.screen.ask_key_frame(now)

    def _close(self, now: float) -> None:
        if self._audience is not None and self._audience_seat is not None:
            self._audience_seat.leave()
            self._audience.end(now)
            self._audience = self._audience_seat = None
        if self._waker is not None:
            self._waker.cancel()
            self._waker = None

    def _wake(self) -> None:
        if self._waker is None:
            self._waker = self._media.waker(self)
        self._waker.set()

"""The stories of all calls, those that have just ended too; see `CallStory`.

Own design: the first messages and lines of a call come before the call is one.  They wait by their
Call-ID, a few of a few, until it begins.
"""

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Final

from p2psip.transaction.flow import LOCAL, Flow
from siprtmp.calls.call import Call
from siprtmp.calls.stream_user import StreamUser
from siprtmp.web.branches.call_story import PARTS, CallStory, Clients, LogLine, Media, Noted, Sip
from siprtmp.web.branches.sip_step import MAX_OCTETS, call_id_in
from siprtmp.web.resources.branch import Change, Path, Teller
from siprtmp.web.resources.entity import JSON, Entity

Row = dict[str, object]
MAX_ENDED: Final = 50
_WAITING: Final = 64  # Call-IDs that wait
_OF_ONE: Final = 16  # messages and lines of one


class CallStories:
    """Notes what happens to calls, and tells the subscribers of the parts of a call.

    `offset` plus `now` is the time since 1970.
    """

    def __init__(self, offset: float) -> None:
        self._offset = offset
        self._stories: dict[str, CallStory] = {}
        self._known: dict[str, list[CallStory]] = {}  # by their Call-IDs, also ended ones
        self._calls: dict[str, Call] = {}
        self._ended: OrderedDict[str, CallStory] = OrderedDict()
        self._waiting: OrderedDict[str, list[Noted]] = OrderedDict()
        self.teller: Teller | None = None

    def message(self, data: bytes, flow: Flow, now: float, *, is_sent: bool) -> None:
        """Note a SIP message; one to ourselves is noted once."""
        if is_sent or flow.transport != LOCAL:
            self._note(call_id_in(data), Sip(now, is_sent, flow, data))

    def line(
        self, call_id: str, event: str, about: Row, write: Callable[[], str], now: float
    ) -> None:
        """Note a line of the log that is about a call."""
        self._note(call_id, LogLine(now, event, about, write))

    def begin(self, name: str, call: Call, now: float) -> None:
        """A call has begun; what has waited for it is its beginning."""
        assert call.call is not None
        call_id = call.call.id
        waited = self._waiting.get(call_id, [])
        begun = min((each.at for each in waited), default=now)
        story = CallStory(name, call_id, begun)
        for each in waited:
            story.note(each)
        story.begin(_clients(call), now)
        if (before := self._ended.pop(name, None)) is not None:
            self._forget(before)
        self._stories[name], self._calls[name] = story, call
        self._known.setdefault(call_id, []).append(story)

    def end(self, name: str, row: Row, now: float) -> None:
        """A call has ended; `row` has the reason, and what it was at its end."""
        story = self._stories[name]
        story.up_at = self._calls[name].up_at
        del self._calls[name]
        story.end({**row, "ended_at": round(self._offset + now, 3)}, now)
        self._ended[name] = story
        while len(self._ended) > MAX_ENDED:
            self._forget(self._ended.popitem(last=False)[1])

    def tick(self, now: float) -> None:
        """Look after the media of each call that is up; once a second will do."""
        for name, call in self._calls.items():
            story = self._stories[name]
            story.up_at = call.up_at
            for part, said in story.look(partial(_media, call), now):
                self._tell(story, part, partial(dict, said))

    def parts(self, name: str) -> list[str]:
        """The names below a call."""
        return [*PARTS] if name in self._stories else []

    def messages(self, name: str) -> list[Sip]:
        """The SIP messages that are kept of a call, in order."""
        return self._stories[name].messages if name in self._stories else []

    def ended(self) -> list[Row]:
        """The rows of the calls that have ended, the latest first."""
        return [each.end_row or {} for each in reversed(self._ended.values())]

    def read(self, path: Path, now: float) -> Entity | None:
        """What a part of a call holds."""
        story = self._stories.get(path[0]) if len(path) == 2 else None
        if story is None or path[1] not in PARTS:
            return None
        return Entity(JSON, story.read(path[1], now))

    # -- within -------------------------------------------------------------------------

    def _note(self, call_id: str, noted: Noted) -> None:
        stories = self._known.get(call_id)
        if stories is None:
            self._wait(call_id, noted)
            return
        for story in stories:
            if (told := story.note(noted)) is not None:
                part, say = told
                self._tell(story, part, say)

    def _wait(self, call_id: str, noted: Noted) -> None:
        """Keep what may be the beginning of a call: an INVITE, and what follows one."""
        waiting = self._waiting.get(call_id)
        if waiting is None:
            is_begin = isinstance(noted, LogLine) or noted.data.startswith(b"INVITE ")
            if not (call_id and is_begin):
                return
            waiting = self._waiting[call_id] = []
            if len(self._waiting) > _WAITING:
                self._waiting.popitem(last=False)
        if isinstance(noted, Sip):
            noted = noted._replace(data=noted.data[:MAX_OCTETS])
        if len(waiting) < _OF_ONE:
            waiting.append(noted)

    def _forget(self, story: CallStory) -> None:
        del self._stories[story.name]
        alike = self._known[story.call_id]
        alike.remove(story)
        if not alike:
            del self._known[story.call_id]
            self._waiting.pop(story.call_id, None)
        if self.teller is not None:
            for part in PARTS:
                self.teller.changed((story.name, part), Change.DELETE, None)

    def _tell(self, story: CallStory, part: str, say: Callable[[], Row]) -> None:
        if self.teller is not None and self.teller.is_heard((story.name, part)):
            self.teller.notify((story.name, part), Entity(JSON, say()))


def _media(call: Call) -> Media:
    seen = call.statistics
    counts = seen.codec or "", seen.sent, seen.received, seen.rtp
    return Media(*counts, call.is_of_browser, call.dtls_suite or seen.srtp, _clients(call))


def _clients(call: Call) -> Clients:
    user = call.user
    if not isinstance(user, StreamUser):
        return Clients()
    return Clients(user.is_published, user.remote.players)

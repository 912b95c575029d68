"""The publisher's side of a call as a stream of its own, for recordings.

Own design: `call/NAME` is what the phone says, and `said/NAME` is the other side, each tag as it
was published: in the publisher's quality and at its times.  No client may play or publish it.
"""

from typing import Final

from rtmplite.live.streams import LiveStream, Registry
from siprtmp.calls.call import Call
from siprtmp.calls.metadata import DATA
from siprtmp.calls.stream_user import StreamUser
from siprtmp.media.sink import AUDIO, VIDEO, Published
from siprtmp.media.video.gop_cache import Message

APP: Final = "said"


class PublishedSides:
    """The publishers' sides of all calls, each under the name of its call's stream."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._published: dict[Call, PublishedSide] = {}

    def follow(self, call: Call, now: float) -> None:
        """Have what is published for a call that is up from now on: RFC 3261 §13.2.2.4.

        It is left out where a call of the same name has it already.
        """
        user = call.user
        if call not in self._published and isinstance(user, StreamUser):
            live = self._registry.open(APP, user.remote.name)
            if not live.publishing:
                live.begin(now)
                side = self._published[call] = PublishedSide(live, user.published)
                call.record(side)

    def stop(self, call: Call, now: float) -> None:
        side = self._published.pop(call, None)
        if side is not None:
            call.record(None)
            side.end(now)


class PublishedSide:
    """The stream of one publisher; a sink.

    It begins with what has come before the call, without which nothing can be decoded: the header
    of the audio, and the video since the last key frame.
    """

    def __init__(self, live: LiveStream, published: Published) -> None:
        self._live, self._header = live, published.header.body
        self._group: list[Message] = list(published.gop)

    def write(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        if (self._header or self._group) and type_id != DATA:
            self._begin(timestamp, now)
        self._live.write(type_id, timestamp, payload, now)

    def _begin(self, timestamp: int, now: float) -> None:
        """Write what has come before: FLV 10.1 §E.4.2.1, §E.4.3.1."""
        group, self._group = self._group, []
        if self._header:
            at = group[0][0] if group else timestamp
            self._live.write(AUDIO, at, self._header, now)
            self._header = b""
        for at, frame in group:
            self._live.write(VIDEO, at, frame, now)

    def end(self, now: float) -> None:
        """End the stream, which begins again if another publisher comes: RTMP 1.0 §7.2.2.3."""
        self._header, self._group = b"", []
        self._live.end(now)

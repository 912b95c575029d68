"""The states of a call and the keys of its phone, for tools that can only publish and play.

Own design: they are data messages `onStatus`, with an information object as RTMP 1.0 §7.2.2 has it,
whose code begins with NetStream.Call: the form in which Flash Media Server tells a player of
NetStream.Data.Start.  A command onStatus would not do: GStreamer gives up a publication when
another one than NetStream.Publish.Start answers it, and a phone rings before that.
"""

from enum import StrEnum
from typing import Final

from rtmplite.amf import amf0
from rtmplite.amf.values import Value
from rtmplite.live.streams import LiveStream
from rtmplite.rtmp.netstream import ServerStream
from siprtmp.calls.call import AudioCall
from siprtmp.calls.metadata import DATA, announce

NAME: Final = "onStatus"


class CallStatus(StrEnum):
    """The codes: RTMP 1.0 §7.2.2."""

    RINGING = "NetStream.Call.Ringing"
    ANSWERED = "NetStream.Call.Answered"
    HELD = "NetStream.Call.Held"
    RESUMED = "NetStream.Call.Resumed"
    DIGIT = "NetStream.Call.Digit"
    ENDED = "NetStream.Call.Ended"


class CallStates:
    """Tells the states of the calls of one name.

    Own design: `remote` begins with its metadata, which are better once the phone's first sound or
    picture has come; that the phone has answered is told to the players then.
    """

    def __init__(self, remote: LiveStream) -> None:
        self._remote = remote
        self._untold: list[bytes] = []

    def tell(
        self,
        publisher: ServerStream | None,
        call: AudioCall | None,
        status: CallStatus,
        description: str,
        now: float,
    ) -> None:
        """Tell the publisher, and the players of a call that is up: RTMP 1.0 §7.1.2."""
        information: dict[str, Value] = {
            "level": "status",
            "code": status.value,
            "description": description,
        }
        if publisher is not None:
            publisher.data(NAME, information)
        if call is None or call.up_at is None or not self._remote.players:
            return
        self._untold.append(amf0.encode(NAME, information))
        if status is not CallStatus.ANSWERED and not self._remote.publishing:
            announce(self._remote, call, now)
        if self._remote.publishing:
            self.flush(now)

    def flush(self, now: float) -> None:
        """Tell the players what they have not been told: RTMP 1.0 §7.1.2."""
        untold, self._untold = self._untold, []
        for each in untold:
            self._remote.write(DATA, self._remote.timestamp, each, now)

    def forget(self) -> None:
        """Forget a call that ended without sound."""
        self._untold = []

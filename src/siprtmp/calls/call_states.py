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
from siprtmp.calls.metadata import DATA

NAME: Final = "onStatus"


class CallStatus(StrEnum):
    """The codes: RTMP 1.0 §7.2.2."""

    RINGING = "NetStream.Call.Ringing"
    ANSWERED = "NetStream.Call.Answered"
    HELD = "NetStream.Call.Held"
    RESUMED = "NetStream.Call.Resumed"
    DIGIT = "NetStream.Call.Digit"
    ENDED = "NetStream.Call.Ended"


def tell(
    publisher: ServerStream | None,
    remote: LiveStream,
    status: CallStatus,
    description: str,
    now: float,
) -> None:
    """Tell the publisher, and the players if the phone has said anything: RTMP 1.0 §7.1.2.

    The stream begins with the first sound or picture, whose metadata comes first.
    """
    information: dict[str, Value] = {
        "level": "status",
        "code": status.value,
        "description": description,
    }
    if publisher is not None:
        publisher.data(NAME, information)
    if remote.publishing:
        remote.write(DATA, remote.timestamp, amf0.encode(NAME, information), now)

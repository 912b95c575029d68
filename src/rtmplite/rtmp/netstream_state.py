"""The states of a server's NetStream as one table.

Own design: RTMP 1.0 §7.2.2.1, RTMP 1.0 §7.2.2.3 and RTMP 1.0 §7.2.2.6 describe publish, play and
deleteStream in words and draw no figure.  publish and play first stop whatever the stream did
before.

    >>> NETSTREAM[State.WANTS_TO_PLAY][Event.PLAY_REJECTED]
    (<State.IDLE: 'idle'>, (<Do.SAY_ERROR: 'onStatus error'>,))
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class State(StrEnum):
    """The uses of a stream."""

    IDLE = "idle"
    WANTS_TO_PUBLISH = "wants to publish"
    PUBLISHING = "publishing"
    WANTS_TO_PLAY = "wants to play"
    PLAYING = "playing"


class Event(StrEnum):
    """A command of the client, or a verdict of the application."""

    PUBLISH = "publish"
    PUBLISH_ACCEPTED = "publish accepted"
    PUBLISH_REJECTED = "publish rejected"
    PLAY = "play"
    PLAY_ACCEPTED = "play accepted"
    PLAY_REJECTED = "play rejected"
    STOP = "closeStream, deleteStream, end"


class Do(StrEnum):
    """The actions of a stream: calls to the application, or messages to the client."""

    ASK_TO_PUBLISH = "ask to publish"
    ASK_TO_PLAY = "ask to play"
    SAY_BEGIN = "StreamBegin"
    SAY_ERROR = "onStatus error"
    WITHDRAW = "withdraw the question"
    DONE = "tell that it is over"


# An event without an arrow is ignored: it is a verdict that comes too late.
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

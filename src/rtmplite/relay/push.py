"""A live stream pushed to another server.

Own design: a push is a player of the local stream whose bytes go to another server.  All pushes of
a stream share their bytes, and a slow one is skipped or cut off as any slow player.
Implements RTMP 1.0 §7.2.2.6 from the client's side.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from math import inf
from typing import Final

from rtmplite.amf import amf0
from rtmplite.flv.metadata import wrapped
from rtmplite.live.group_cache import Beginning
from rtmplite.live.streams import Framing, LivePlayer, LiveStream
from rtmplite.relay.link import DEFAULT_BACKOFF, Dial, Link, ReconnectBackoff
from rtmplite.relay.session import FlowSession, RelaySession
from rtmplite.rtmfp.netconnection.messages import encode_message
from rtmplite.rtmp.client import DEFAULT_LIMITS, Target
from rtmplite.rtmp.wire.chunk_writer import ChunkFraming
from rtmplite.rtmp.wire.message import MessageType

_META_DATA: Final = amf0.encode("onMetaData")


class Push(Link):
    """Publishes `live` on another server: RTMP 1.0 §7.2.2.6."""

    _start_code = "NetStream.Publish.Start"
    # Servers send little to a publisher, and not all answer pings.  A dead one is noticed because
    # its socket takes no more bytes.
    _limits = replace(DEFAULT_LIMITS, ping_after=inf)

    def __init__(
        self,
        live: LiveStream,
        target: Target,
        dial: Dial,
        random: Callable[[int], bytes],
        backoff: ReconnectBackoff = DEFAULT_BACKOFF,
    ) -> None:
        super().__init__(target, dial, random, backoff)
        self.live = live
        # Messages until the server is connected; a stream that has begun keeps its group anyway.
        self._beginning: Beginning | None = None if live.has_begun else live.keep_beginning()
        self._players: dict[RelaySession, LivePlayer] = {}

    @property
    def players(self) -> int:
        """Count the players of `live` that belong to this push."""
        return len(self._players)

    def prepare(self, session: RelaySession) -> None:
        """Send the first commands of Flash Media Live Encoder: some servers wait for them."""
        session.call("releaseStream", session.target.stream)
        session.call("FCPublish", session.target.stream)

    def ask(self, session: RelaySession) -> None:
        """Ask to publish the stream: RTMP 1.0 §7.2.2.6."""
        session.send("publish", session.target.stream, "live", stream_id=session.stream_id)

    def _started(self, session: RelaySession, now: float) -> None:
        self._publish(session, now)

    def _joined(self, session: RelaySession, now: float) -> None:
        """Publish there from a key frame on, and leave the old server then."""

        def go_over(now: float) -> None:
            if session is self._next:
                self._promote(session, now)

        player = self._publish(session, now)
        # E-RTMP v2 §"Message Flow When Handling NetConnection.Connect.ReconnectRequest"
        # [leave-at-boundary]
        player.on_begun = go_over
        if not player.waiting:  # it has begun already, or nothing has been published
            go_over(now)

    def _publish(self, session: RelaySession, now: float) -> LivePlayer:
        beginning, self._beginning = self._beginning, None
        outlet, framing = session.outlet(), _framing(session)
        player = self.live.join(outlet, framing, None, now, beginning=beginning)
        if beginning is not None:
            beginning.end(now)
        self._players[session] = player
        return player

    def _left(self, session: RelaySession, now: float) -> None:
        player = self._players.pop(session, None)
        if player is not None:
            player.leave(now)
        if session.stream_id and not session.closed:
            session.call("FCUnpublish", session.target.stream)
            session.send("deleteStream", float(session.stream_id))


def _framing(session: RelaySession) -> Framing:
    return in_flows if isinstance(session, FlowSession) else publishing(session.stream_id)


def in_flows(type_id: int, timestamp: int, payload: bytes) -> bytes:
    """Write a message as a publisher does over RTMFP: RFC 7425 §5.1.2, Field §"@setDataFrame"."""
    return encode_message(type_id, timestamp, _published(type_id, payload))


def _published(type_id: int, payload: bytes) -> bytes:
    is_metadata = type_id == MessageType.DATA and payload.startswith(_META_DATA)
    return wrapped(payload) if is_metadata else payload


@cache
def publishing(stream_id: int) -> Framing:
    """Give the framing of a publisher on `stream_id`: RTMP 1.0 §7.2.2.6, Field §"@setDataFrame".

    It is the same function for each stream id, so that pushes share bytes.
    """

    usual = ChunkFraming(stream_id)

    def frame(type_id: int, timestamp: int, payload: bytes) -> bytes:
        return usual(type_id, timestamp, _published(type_id, payload))

    return frame

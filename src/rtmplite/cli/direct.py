"""`python -m rtmplite play --peer ID` and `publish --direct`: streams from client to client."""

import argparse
from collections.abc import Sequence
from typing import Final

import gevent

from rtmplite.cli import publish as sending
from rtmplite.errors import LocalError
from rtmplite.flv.tag import Tag
from rtmplite.net.client.client import ClientStream
from rtmplite.net.client.rtmfp_client import RtmfpClient
from rtmplite.rtmp.wire.message import Message

LOOK: Final = 0.02  # s between looks for the first player


class DirectPlaying:
    """A stream that is played from a peer, and the client that plays it."""

    def __init__(self, client: RtmfpClient, stream: ClientStream) -> None:
        self._client, self._stream = client, stream

    @property
    def ended(self) -> bool:
        """Whether no more will come."""
        return self._stream.ended

    @property
    def is_drained(self) -> bool:
        """Whether all that has come has been read."""
        return self._stream.is_drained

    def read(self, timeout: float) -> Message | None:
        """The next message, as `ClientStream.read` gives it."""
        return self._stream.read(timeout)

    def close(self) -> None:
        """End it, and the connection to the server."""
        self._client.close()


def play(client: RtmfpClient, peer: str, name: str, timeout: float) -> DirectPlaying:
    """Play `name` from a peer.  Raises LocalError for a wrong id, and the errors of `play_from`."""
    try:
        return DirectPlaying(client, client.play_from(_id(peer), name, timeout=timeout))
    except BaseException:
        client.close()
        raise


def publish(
    client: RtmfpClient, name: str, options: argparse.Namespace, tags: Sequence[Tag]
) -> int:
    """Print our peer id, wait for the first player, and send the tags to all players."""
    try:
        publishing = client.publish_direct(name)
        print(f"peer {client.peer_id.hex()}", flush=True)
        while not publishing.players:
            gevent.sleep(LOOK)
        sending.send(options, tags, publishing)
        publishing.delete()
    except BaseException:
        client.leave()
        raise
    client.close()
    return 0


def _id(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise LocalError(f"{text} is no peer id") from None

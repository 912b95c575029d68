"""Where a packet pump writes the audio of a phone: to the RTMP players of a call's stream.

Own design: see `siprtmp.media.offload`.
"""

from collections.abc import Callable

from rtmplite.live.streams import LiveStream
from rtmplite.rtmp.wire.framing import CHUNK_SIZE, ChunkFraming
from siprtmp.media.offload import Players
from siprtmp.media.stream import AUDIO


def players_of(remote: LiveStream, recall: Callable[[], None]) -> Players | None:
    """The RTMP players of a stream, until `recall`; None if any is written other than chunks."""
    offloaded = remote.offload(recall)
    if offloaded is None:
        return None
    framing, outlets = offloaded
    if not isinstance(framing, ChunkFraming):
        remote.returned(None)
        return None
    header = framing(AUDIO, 0, b"")  # a body fits into one chunk: RTMP 1.0 §5.3.1.2.1
    return Players(header, CHUNK_SIZE, tuple(outlets), remote.returned)

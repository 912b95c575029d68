"""A relay: play a stream, add a watermark to its metadata, and publish it elsewhere.

python rtmp_watermark.py rtmp://127.0.0.1/live/a rtmfp://127.0.0.1/live/b "seen by us"
"""

import sys

from rtmplite import MessageType, Player, Publisher, metadata

source, destination = sys.argv[1:3]


def marked(payload: bytes) -> bytes:
    """Give onMetaData one member more, in the wrapper that a publisher sends it in."""
    members = metadata.read(payload)
    if members is None:  # some other data message
        return payload
    return metadata.wrapped(metadata.build(extra=members | {"watermark": sys.argv[3]}))


with Publisher.open(destination) as publisher, Player.open(source) as player:
    print("relaying", flush=True)
    for type_id, timestamp, _, payload in player:
        if type_id == MessageType.DATA:
            payload = marked(payload)
        publisher.write(type_id, timestamp, payload)

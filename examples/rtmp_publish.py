"""Publish an FLV file as a live stream, as fast as it is to be watched.

python rtmp_publish.py film.flv rtmp://127.0.0.1/live/NAME    or rtmfp:, or rtmps:
"""

import sys
from pathlib import Path

import gevent

from rtmplite import Publisher, TagType, metadata, read_flv

path, url = sys.argv[1:]
header, tags = read_flv(Path(path).read_bytes())
with Publisher.open(url) as publisher:
    print(f"publishing {len(tags)} messages to {url}", flush=True)
    at = 0
    for tag in tags:
        gevent.sleep(max(0, tag.timestamp - at) / 1000)
        at = max(at, tag.timestamp)
        data = metadata.wrapped(tag.data) if tag.tag_type == TagType.SCRIPT else tag.data
        publisher.write(tag.tag_type, tag.timestamp, data)
print(f"{at / 1000:.1f} s published")

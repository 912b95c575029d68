"""A program that publishes a file at its own pace, at times as they are after many days.

`python old_publisher.py FILE URL MILLISECONDS`
"""

import sys
import time
from pathlib import Path

from rtmplite.cli.publish import load
from rtmplite.net.client.rtmp_client import RtmpClient
from rtmplite.rtmp.client import Target


def main(path: str, url: str, start: str) -> None:
    """Send it all."""
    target = Target.parse(url)
    stream = RtmpClient.connect(target.tc_url).create_stream()
    stream.publish(target.stream)
    began = time.monotonic()
    for tag in load(Path(path)):
        if (early := began + tag.timestamp / 1000 - time.monotonic()) > 0:
            time.sleep(early)  # nobody else runs here
        stream.write(tag.tag_type, (int(start) + tag.timestamp) & 0xFFFFFFFF, tag.data)
    stream.delete()


if __name__ == "__main__":
    main(*sys.argv[1:])

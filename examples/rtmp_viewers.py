"""A server for RTMP and RTMFP that counts the viewers of each stream.

python rtmp_viewers.py 127.0.0.1 1935    then publish and play rtmp://127.0.0.1/live/NAME
"""

import sys

from rtmplite import LiveApplication, LiveStream, RtmpServer

most: dict[str, int] = {}


def on_audience(live: LiveStream, now: float) -> None:
    """Tell how many watch; called in gevent's hub when a player has joined or left."""
    most[live.name] = max(most.get(live.name, 0), live.players)
    print(f"{live.name}: {live.players} viewers, {most[live.name]} at most", flush=True)


def on_begin(live: LiveStream, now: float) -> None:
    """Tell that somebody publishes."""
    print(f"{live.name}: on air", flush=True)


at = sys.argv[1], int(sys.argv[2])
with RtmpServer({"live": LiveApplication()}, rtmp=at, rtmfp=at) as server:
    server.registry.on_audience.append(on_audience)
    server.registry.on_begin.append(on_begin)
    print("ready: rtmp://{}:{}/live".format(*at), flush=True)
    server.serve_forever()

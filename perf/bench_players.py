"""What players cost: one publisher of `live`, 50 frames of sound a second, and 25 pictures.

The row of 0 players is what the publisher itself costs.
"""

from collections.abc import Iterator

from cpu import Usage
from gateway import Gateway
from load import Tally, drive
from nginx import Nginx
from options import Options
from results import Row
from rtmp_load import Player, Publisher

STREAM = "bench"


def measure(
    server: Gateway | Nginx, players: int, video: bool, seconds: float, stream: str = STREAM
) -> tuple[Usage, Tally]:
    """One run: who plays is there before the first frame."""
    url = server.url(stream).rpartition("/")[0]
    publisher = Publisher(url, stream, video)
    audience = [Player(url, stream) for _ in range(players)]
    meter = server.meter()
    tally = drive([publisher], seconds, "bunched", meter.window, audience)
    for leg in (publisher, *audience):
        leg.close()
    return meter.usage, tally


def rows(options: Options) -> Iterator[Row]:
    """Two rows per medium and number of players; their runs take turns."""
    for load, video in (("audio", False), ("audio+video", True)):
        for players in options.players:
            pairs = []
            for _ in range(options.runs):
                with Nginx(options.server_core) as nginx:
                    reference = measure(nginx, players, video, options.seconds)
                with Gateway(options.server_core, profile=options.profile) as gateway:
                    pairs.append((reference, measure(gateway, players, video, options.seconds)))
            references, ours = zip(*pairs, strict=True)
            nginx_row = Row.of("nginx-rtmp", load, players, "bunched", references)
            yield nginx_row
            yield Row.of("siprtmp", load, players, "bunched", ours, reference=nginx_row)

"""What a player over RTMFP costs, beside one over RTMP: the same publisher, 50 sounds a second."""

from collections.abc import Iterator, Sequence

from cpu import Usage
from gateway import Gateway
from load import Reader, Tally, drive
from options import Options
from results import Row
from rtmfp_load import RtmfpPlayer
from rtmp_load import Player, Publisher

STREAM = "bench"
MOST = 50  # whole machines play here: more of them would be too much for the core they share


def measure(players: int, by_rtmfp: bool, options: Options) -> tuple[Usage, Tally]:
    """One run: who plays is there before the first frame."""
    with Gateway(options.server_core, profile=options.profile) as gateway:
        publisher = Publisher(gateway.url("").rstrip("/"), STREAM, video=False)
        audience: Sequence[Reader]
        if by_rtmfp:
            audience = [
                RtmfpPlayer(f"rtmfp://{gateway.rtmfp}/live", STREAM) for _ in range(players)
            ]
        else:
            url = f"rtmp://{gateway.rtmp}/live"
            audience = [Player(url, STREAM) for _ in range(players)]
        meter = gateway.meter()
        tally = drive([publisher], options.seconds, "bunched", meter.window, audience)
        for leg in (publisher, *audience):
            leg.close()
    return meter.usage, tally


def rows(options: Options) -> Iterator[Row]:
    """Two rows per number of players; their runs take turns."""
    for players in options.players:
        if not 0 < players <= MOST:
            continue
        pairs = [
            (measure(players, False, options), measure(players, True, options))
            for _ in range(options.runs)
        ]
        rtmp, rtmfp = zip(*pairs, strict=True)
        reference = Row.of("rtmp", "audio", players, "bunched", rtmp)
        yield reference
        yield Row.of("rtmfp", "audio", players, "bunched", rtmfp, reference=reference)

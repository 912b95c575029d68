"""What a call costs: a rich client and a phone, 50 frames of Speex a second each way."""

from collections.abc import Iterator

from cpu import Server, Usage
from gateway import Gateway
from load import SPEEX_8K, SPEEX_16K, Arrivals, Leg, Tally, drive
from options import Options
from relay import Relay
from results import Row

# Many calls that begin at once are late with their first frames; their pacers take two seconds to
# give that delay back.
WARM_UP = 3.0
LOADS = {"speex 8 kHz": SPEEX_8K, "speex 16 kHz": SPEEX_16K}


def measure_relay(
    calls: int, frame: bytes, arrivals: Arrivals, options: Options
) -> tuple[Usage, Tally]:
    """One run of the reference."""
    with Relay(calls, options.server_core) as relay:
        return measure(relay, relay.legs(frame), arrivals, options.seconds)


def measure_gateway(
    calls: int, frame: bytes, arrivals: Arrivals, options: Options
) -> tuple[Usage, Tally]:
    """One run of the gateway."""
    with Gateway(options.server_core, profile=options.profile) as gateway:
        return measure(gateway, gateway.call_legs(calls, frame), arrivals, options.seconds)


def measure(
    server: Server, legs: list[Leg], arrivals: Arrivals, seconds: float
) -> tuple[Usage, Tally]:
    """Drive the legs, and read the server's clock meanwhile."""
    meter = server.meter()
    tally = drive(legs, seconds, arrivals, meter.window, warm_up=WARM_UP)
    for leg in legs:
        leg.close()
    return meter.usage, tally


def rows(options: Options) -> Iterator[Row]:
    """Two rows per rate, number of calls and way of arriving; their runs take turns."""
    for load, frame in LOADS.items():
        for calls in options.calls:
            for arrivals in options.arrivals:
                what = (calls, frame, arrivals, options)
                pairs = [
                    (measure_relay(*what), measure_gateway(*what)) for _ in range(options.runs)
                ]
                relay, gateway = zip(*pairs, strict=True)
                reference = Row.of("relay", load, calls, arrivals, relay)
                yield reference
                yield Row.of("siprtmp", load, calls, arrivals, gateway, reference=reference)

"""`python -m rtmplite probe`: plays a stream and prints its tracks, rates and delays."""

import argparse
import json
import sys
from typing import Any, Final

from rtmplite.amf.values import Value
from rtmplite.cli.publish import URL
from rtmplite.errors import LocalError, RemoteError
from rtmplite.live.probe import Probe
from rtmplite.net.client.client import Client, ClientStream
from rtmplite.net.client.reconnecting import begin
from rtmplite.net.client.rtmfp_client import connect
from rtmplite.net.clock import now
from rtmplite.net.redaction import public
from rtmplite.net.server.settings import TrustSettings
from rtmplite.net.server.transports import trust
from rtmplite.net.settings import add_options, chosen, rows
from rtmplite.net.usage import add_timeout, seconds, sentence
from rtmplite.rtmp.client import Target

SECONDS: Final = 5.0
PROGRESS: Final = 0.5  # s


def add_to(commands: Any) -> None:
    """Add the command to a parser's."""
    said = "play a stream for a while and tell its tracks, rates and delays"
    probe = commands.add_parser("probe", help=said, description=sentence(said))
    probe.add_argument("url", metavar="URL", help=URL)
    probe.add_argument(
        "--seconds", type=seconds, default=SECONDS, metavar="S", help="Play it for S seconds (5)."
    )
    probe.add_argument("--json", action="store_true", help="Print JSON.")
    add_timeout(probe.add_argument)
    add_options(probe.add_argument, rows(TrustSettings))
    probe.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Play the stream, then print the report.  Raises RemoteError if nothing is played."""
    target = Target.parse(options.url)
    if not target.stream:
        raise LocalError(f"{options.url} names no stream")
    began = now()
    times: list[float] = []
    tls = trust(chosen(TrustSettings, vars(options)))

    def reach(where: Target) -> Client:
        client = connect(where, timeout=options.timeout, tls=tls)
        times[:] = [now()]
        return client

    def play(stream: ClientStream, name: str) -> None:
        times.append(now())
        stream.play(name, timeout=options.timeout)

    client, stream, _ = begin(target, reach, play, options.timeout)
    try:
        connected, answered = times
        probe = Probe(answered)
        _watch(stream, probe, options.seconds)
        if not probe.tracks:
            late = f"nothing is played within {options.seconds:g} s"
            reason = "it ends at once" if stream.ended else late
            raise RemoteError(reason, "NetStream.Play.StreamNotFound")
    finally:
        client.close()
    report: dict[str, Any] = {
        "url": public(options.url),
        "connect_ms": round((connected - began) * 1000, 1),
        "round_trip_ms": round((answered - connected) * 1000, 1),
        **probe.report(now()),
        "metadata": {name: _plain(value) for name, value in probe.metadata.items()},
    }
    print(json.dumps(report, indent=1) if options.json else "\n".join(_lines(report)))
    return 0


def _watch(stream: ClientStream, probe: Probe, time: float) -> None:
    end, told = now() + time, now()
    while (left := end - now()) > 0 and not (stream.ended and stream.is_drained):
        message = stream.read(timeout=min(left, PROGRESS))
        if message is not None:
            probe.note(message.type_id, message.timestamp, message.payload, now())
        if now() - told >= PROGRESS and sys.stderr.isatty():
            told = now()
            print(f"{time - left:5.1f} of {time:g} s", end="\r", file=sys.stderr)


def _lines(report: dict[str, Any]) -> list[str]:
    lines = [f"{report['url']}  {report['seconds']:g} s"]
    for track in report["tracks"]:
        words = [f"{track['kind']}  {track['codec']}"]
        words += [f"track {track['track_id']}"] if "track_id" in track else []
        words += [f"{track['hz']} Hz"] if "hz" in track else []
        words += [f"{track['channels']} ch"] if "channels" in track else []
        words += [f"{track['rate']:g}/s"] if "rate" in track else []
        words += [f"{track['kbit_s']:g} kbit/s"] if "kbit_s" in track else []
        if "key_frame_interval" in track:
            longest = track["longest_key_frame_interval"]
            words.append(f"key frame every {track['key_frame_interval']:g} s (at most {longest:g})")
        words.append(f"jitter {track['jitter_ms']:g} ms")
        lines.append("  ".join(words))
    known = report["metadata"]
    if "width" in known and "height" in known:
        lines.append(f"picture  {known['width']:g}x{known['height']:g}")
    times = ("connect_ms", "round_trip_ms", "first_message_ms", "first_key_frame_ms", "backlog_ms")
    told = [
        f"{name[:-3].replace('_', ' ')} {report[name]:g}"
        for name in times
        if report[name] is not None
    ]
    return [*lines, "ms  " + "  ".join(told)]


def _plain(value: Value) -> object:
    """Convert a value for JSON, to text where JSON has no such type."""
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value if isinstance(value, str | float | bool) or value is None else str(value)

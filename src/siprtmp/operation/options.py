"""The options of `siprtmp serve`, in groups that follow the order in which they are needed.

Own design: no option has a default here, so that "not given" can be told from a value and the
configuration file stands between the two; and none may be shortened, so that a later version can
have a new one.  The Settings page of the documentation is made from this parser.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from rtmplite.errors import LocalError
from rtmplite.net.addresses import RTMP_PORT, listener, parse
from siprtmp.operation import rtmp_options
from siprtmp.operation.arguments import (
    Parser,
    VideoLimits,
    count,
    merge,
    milliseconds,
    packet_size,
    port_range,
    program,
    seconds,
    video_limits,
)

LOG_LEVELS: Final = ("debug", "info", "warning", "error")
LOG_FORMATS: Final = ("text", "json")

_USUAL: Final = {"sip": 5060, "sips": 5061, "ws": 8081, "http": 8080, "stun": 3478}
MANY: Final = ("sip", "sips", "ws")  # listeners that may have an address of each family

GROUPS: Final[Mapping[str, Sequence[str]]] = {
    "the configuration": ("config",),
    "listeners": (
        *("rtmp", "rtmps", "rtmpt", "rtmfp", "sip", "sips", "ws", "http"),
        *("tls-cert", "tls-key", "external-ip", "stun", "turn"),
    ),
    "who may connect, publish, play and call": (
        *("users", "users-only", "allow-anonymous", "keep-first-line"),
        *("publish-key", "play-key", "sign-key", "sign-play"),
        *("on-connect", "on-publish", "on-play", "on-done", "hook-timeout", "hook-requests"),
    ),
    "calls": (
        *("domain", "call-from", "outbound-proxy", "answer-timeout", "media-timeout", "sip-t1"),
        *("max-user-calls", "max-user-calls-per-hour", "max-user-messages-per-hour"),
        *("allow-targets", "room", "mix-calls"),
    ),
    "media": (
        *("rtp-ports", "nat", "transcode-video", "video-packet-size", "gop-cache", "merge-ms"),
        *("record", "vod", "shared"),
    ),
    "limits of RTMP clients": (
        *("max-connections", "max-per-address", "max-message", "max-rtmfp-memory", "idle"),
    ),
    "relays": ("push", "pull", "ca", "insecure"),
    "clients that connect by RTMFP": (
        *("rtmfp-peers", "rtmfp-relay-host", "rtmfp-redirect-to", "rtmfp-overflow-to"),
    ),
    "operation and logs": (
        "state",
        "location",
        "call-records",
        "capture",
        "drain",
        "reconnect-to",
        "log-level",
        "log-format",
    ),
}

Add = Callable[..., None]


def build_parser() -> argparse.ArgumentParser:
    """The parser of `siprtmp serve`; a bad option raises ConfigError."""
    parser = Parser(
        prog=f"{program()} serve",
        usage="%(prog)s [OPTION...]",
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
        description="Run the gateway between RTMP streams and SIP calls until it gets SIGTERM. "
        "HOST:PORT is an address such as 127.0.0.1:1935 or [::1]:1935; port 0 takes a free port, "
        "and off opens no listener. Defaults are in parentheses.",
        add_help=False,
    )
    declared: dict[str, dict[str, Any]] = {}

    def add(option: str, **details: Any) -> None:
        declared[option.removeprefix("--")] = details

    _add_listeners(add)
    _add_rights(add)
    _add_calls(add)
    _add_media(add)
    _add_files(add)
    _add_operation(add)
    rtmp_options.add_options(add)
    parser.add_argument("-h", "--help", action="help", help="Show these options.")
    for title, names in GROUPS.items():
        group = parser.add_argument_group(title)
        for name in names:
            group.add_argument(f"--{name}", **declared[name])
    return parser


def stun_server(text: str) -> tuple[str, int]:
    """Read the address of a server to ask.  Raises ArgumentTypeError."""
    try:
        host, port = parse(text, usual_port("stun"))
    except LocalError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if port == 0:
        raise argparse.ArgumentTypeError(f"{text!r}: a server has a port of 1 to 65535")
    return host, port


def usual_port(listener: str) -> int:
    """The port that messages show for a listener, or another option with an address."""
    return _USUAL.get(listener, RTMP_PORT)


def _add_listeners(add: Add) -> None:
    for name, what in (
        ("rtmp", "RTMP clients here (127.0.0.1:1935)"),
        ("rtmps", "RTMP clients over TLS here, with the certificate of --tls-cert (off)"),
        ("rtmpt", "RTMP clients that come through HTTP here (off)"),
        ("rtmfp", "RTMFP clients here, by UDP (127.0.0.1:1935)"),
        (
            "sip",
            "phones and SIP servers here, by UDP and TCP, at an address of IPv4, of IPv6, or at "
            "both (127.0.0.1:5060)",
        ),
        (
            "sips",
            "phones and SIP servers here, by TLS with the certificate of --tls-cert, at one "
            "address or both as for --sip (off)",
        ),
        (
            "ws",
            "phones in browsers here, by WebSocket, and wss:// if there is a --tls-cert, at one "
            "address or both as for --sip (off)",
        ),
        ("http", "requests for /status and /live/NAME.flv here (127.0.0.1:8080)"),
    ):
        details = {"action": "extend", "nargs": "+"} if name in MANY else {}
        read = partial(listener, usual=usual_port(name))
        add(f"--{name}", metavar="HOST:PORT", type=read, help=f"Accept {what}.", **details)
    add(
        "--external-ip",
        metavar="IP",
        help="Write this address into SIP and SDP for peers outside the local network, where "
        "a router forwards it to this machine.",
    )
    add(
        "--stun",
        action="extend",
        nargs="+",
        type=stun_server,
        metavar="HOST:PORT",
        help="Ask these STUN servers for the address that --external-ip would name, and for that "
        "of each call's sound. The first that answers counts; --external-ip wins over all.",
    )
    add(
        "--turn",
        metavar="URI",
        help="Send and receive the sound of phones outside the local network through this TURN "
        "server, turn:USER@HOST:PORT. The environment variable TURN_PASSWORD has the password.",
    )


def _add_rights(add: Add) -> None:
    add(
        "--users",
        type=Path,
        metavar="FILE",
        help="Let the users of this file log in and publish; `siprtmp users` makes its lines. "
        "SIGHUP reads it again.",
    )
    add(
        "--allow-anonymous",
        action="store_true",
        help="Serve everybody who reaches the listeners, also beyond loopback.",
    )
    add(
        "--keep-first-line",
        action="store_true",
        help="Refuse a second login of one identity; without this option the first login ends.",
    )


def _add_calls(add: Add) -> None:
    add(
        "--domain",
        action="extend",
        nargs="+",
        metavar="NAME",
        help="Serve the users of these SIP domains (localhost and the listener's address).",
    )
    add(
        "--call-from",
        metavar="URI",
        help="Make this the caller of calls that are placed by publishing to `call` (sip:call@ "
        "and the first domain).",
    )
    add(
        "--outbound-proxy",
        metavar="URI",
        help="Send requests here whose domain DNS does not resolve.",
    )
    add(
        "--answer-timeout",
        type=seconds,
        metavar="S",
        help="Give up a call that nobody has answered after S seconds (60).",
    )
    add(
        "--media-timeout",
        type=seconds,
        metavar="S",
        help="End a call whose phone has sent no RTP, RTCP or SIP for S seconds (60).",
    )
    add(
        "--sip-t1",
        type=milliseconds,
        metavar="MS",
        help="Set timer T1 of RFC 3261, the round trip that retransmissions assume (500).",
    )
    for name, what in (
        ("calls", "calls at once (10"),
        ("calls-per-hour", "calls an hour (60"),
        ("messages-per-hour", "messages an hour (600"),
    ):
        add(
            f"--max-user-{name}",
            type=count,
            metavar="N",
            help=f"Allow each user N {what} where other machines reach a listener); "
            "0 is any number.",
        )
    add(
        "--allow-targets",
        action="extend",
        nargs="+",
        metavar="PATTERN",
        help="Let users call these addresses outside the domains, as USER@HOST with * for any "
        "letters.",
    )


def _add_media(add: Add) -> None:
    add(
        "--room",
        action="extend",
        nargs="+",
        metavar="NAME",
        help="Open these conference rooms: phones that call sip:NAME at a domain, and RTMP clients "
        "that publish or play room/NAME, hear each other.",
    )
    add(
        "--mix-calls",
        action="store_true",
        help="Publish both sides of each call as one stream too, mixed/NAME: their sound as AAC, "
        "and the phone's pictures, with --transcode-video those of both sides.",
    )
    add(
        "--rtp-ports",
        type=port_range,
        metavar="LOW-HIGH",
        help="Take the UDP ports for sound from this range, two for each call (above 32768).",
    )
    add(
        "--nat",
        action="store_true",
        help="Send sound to the address that a phone's sound comes from, for phones behind a NAT.",
    )
    add(
        "--transcode-video",
        nargs="?",
        const=VideoLimits(),
        type=video_limits,
        metavar="WIDTHxHEIGHT@RATE,KBITS",
        help="Decode and encode pictures that a phone cannot take as they are, with the extra "
        "transcode (off). Limits such as 640x360@15,500 hold for all phones; baseline among them "
        "allows Constrained Baseline alone.",
    )
    add(
        "--video-packet-size",
        type=packet_size,
        metavar="N",
        help="Send H.264 to phones in RTP packets whose payloads have at most N octets (1200).",
    )
    add(
        "--merge-ms",
        type=merge,
        metavar="N",
        help="Collect output to a player for N milliseconds before it is sent (0).",
    )


def _add_files(add: Add) -> None:
    add(
        "--record",
        type=Path,
        metavar="DIR",
        help="Store what is published in this folder, as FLV files, and both sides of calls.",
    )
    add(
        "--vod",
        type=Path,
        metavar="DIR",
        help="Play the FLV files of this folder as rtmp://HOST/vod/NAME.",
    )
    add(
        "--shared",
        type=Path,
        metavar="DIR",
        help="Keep the persistent shared objects of clients in this folder.",
    )


def _add_operation(add: Add) -> None:
    add(
        "--config",
        type=Path,
        metavar="FILE",
        help="Read settings from this TOML file, whose keys are these names.",
    )
    add(
        "--state",
        type=Path,
        metavar="DIR",
        help="Keep registrations over a restart in this folder, and the socket of `siprtmp calls`.",
    )
    add(
        "--location",
        metavar="URL",
        help="Share registrations with other gateways through this Redis (redis://HOST:PORT/0).",
    )
    add(
        "--call-records",
        type=Path,
        metavar="FILE",
        help="Append a line of JSON to this file at the end of each call: who, when, codecs, "
        "packets, loss, quality.",
    )
    add(
        "--capture",
        type=Path,
        metavar="FILE",
        help="Write what goes through the SIP, RTP, RTMP and RTMFP sockets to this file, a pcap, "
        "and the keys of RTMFP to FILE.keys, for `siprtmp lint` and Wireshark.",
    )
    add(
        "--log-level",
        choices=LOG_LEVELS,
        help="Write log lines of this level and above (info).",
    )
    add(
        "--log-format",
        choices=LOG_FORMATS,
        help="Write log lines as text, or as one JSON object a line (text).",
    )

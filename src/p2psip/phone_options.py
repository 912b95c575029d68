"""The options of the commands that place or take calls.

Own design: a password in the environment is hidden from other users, and a command line is not.
"""

import argparse
import os
from pathlib import Path
from typing import Final

from p2psip.errors import LocalError
from p2psip.net import addresses
from p2psip.net.media.relayed_ports import PASSWORD as TURN_PASSWORD
from p2psip.net.phone.wav import LAWS
from p2psip.rtp.payload.g711 import CLOCK_RATE
from p2psip.transaction.flow import HostPort

PASSWORD: Final = "SIP_PASSWORD"  # the environment variable
FOR_EXAMPLE: Final = "for example bob@example.com"


def add_nat_options(group: "argparse._ArgumentGroup") -> None:
    """Add --stun, --turn and --ice."""
    group.add_argument(
        "--stun",
        action="append",
        metavar="HOST:PORT",
        help="Ask this STUN server for the address that peers outside the local network reach.  "
        "Given more than once, the first that answers counts.",
    )
    group.add_argument(
        "--turn",
        metavar="URI",
        help="Have the audio of peers outside go through this server, turn:USER@HOST:PORT.  The "
        f"environment variable {TURN_PASSWORD} has the password.",
    )
    group.add_argument(
        "--ice",
        action="store_true",
        help="Have the audio go by the best way that works, directly, by the address of --stun, or "
        "through --turn, if the other side has ICE too.",
    )


def stun_of(options: argparse.Namespace) -> list[HostPort]:
    """The STUN servers given.  Raises LocalError unless each is an address."""
    return [addresses.parse(each) for each in getattr(options, "stun", None) or ()]


def turn_of(options: argparse.Namespace) -> tuple[str, str] | None:
    """The TURN server given, and its password.  Raises LocalError where that is missing."""
    uri: str | None = getattr(options, "turn", None)
    if uri is None:
        return None
    if not os.environ.get(TURN_PASSWORD):
        raise LocalError(f"the password of --turn is missing, say it in {TURN_PASSWORD}")
    return uri, os.environ[TURN_PASSWORD]


def add_identity(command: argparse.ArgumentParser) -> "argparse._ArgumentGroup":
    """The options for the caller's address and password."""
    group = command.add_argument_group("identity")
    group.add_argument(
        "--registrar",
        action="append",
        metavar="HOST[:PORT]",
        help="Send registrations and calls to this server, instead of the server that the domain "
        "of the own address leads to; by TLS as sips:HOST:PORT, or "
        "sip:HOST:PORT;transport=tls.  Given several times, register by each of these servers, and "
        "call by the first that is there.",
    )
    group.add_argument(
        "--password",
        metavar="WORD",
        help=f"The password of the own address.  The environment variable {PASSWORD} is the safer "
        "place for it: other users of this machine can read command lines.",
    )
    group.add_argument("--display", default="", metavar="NAME", help="The name to show to others.")
    return group


def add_from(group: "argparse._ArgumentGroup") -> None:
    """The own address, where a command can do without."""
    group.add_argument(
        "--from", dest="aor", metavar="ADDRESS", help=f"The own address, {FOR_EXAMPLE}."
    )


def add_audio_options(command: argparse.ArgumentParser) -> "argparse._ArgumentGroup":
    """What is said in a call, and what is kept of it."""
    group = command.add_argument_group("calls")
    source = group.add_mutually_exclusive_group()
    source.add_argument(
        "--play", type=Path, metavar="WAV", help="Play this file (8000 Hz, mono), then hang up."
    )
    source.add_argument(
        "--tone", type=hertz, metavar="HZ", help="Play a tone of this frequency, without end."
    )
    group.add_argument("--record", type=Path, metavar="WAV", help="Record the other side here.")
    group.add_argument(
        "--codec",
        action="append",
        type=str.upper,
        choices=sorted(LAWS),
        help="Offer this codec alone.  Given twice, the first is preferred.",
    )
    group.add_argument(
        "--seconds", type=seconds, metavar="S", help="Hang up after S seconds of talk."
    )
    return group


def add_network(command: argparse.ArgumentParser) -> "argparse._ArgumentGroup":
    """Where to be reached, and how long to wait."""
    group = command.add_argument_group("network")
    group.add_argument(
        "--listen",
        metavar="HOST:PORT",
        help="Receive at this address of this machine; port 0 takes a free one.",
    )
    group.add_argument(
        "--ca",
        type=Path,
        metavar="FILE",
        help="Trust the certificates in this PEM file for TLS, instead of the system's.",
    )
    group.add_argument(
        "--timeout",
        type=seconds,
        default=30.0,
        metavar="S",
        help="Wait S seconds for an answer (default: 30).",
    )
    return group


def count(text: str) -> int:
    """Read a number of calls.  Raises ArgumentTypeError."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of calls")
    return int(text)


def hertz(text: str) -> int:
    """Read the frequency of a tone.  Raises ArgumentTypeError."""
    if not text.isdecimal() or not 0 < int(text) < CLOCK_RATE // 2:
        raise argparse.ArgumentTypeError(f"{text!r} is not a frequency below 4000 Hz")
    return int(text)


def seconds(text: str) -> float:
    """Read a time in seconds.  Raises ArgumentTypeError."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e7:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return value

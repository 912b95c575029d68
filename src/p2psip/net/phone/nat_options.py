"""The options of a phone behind an address translator, for command lines.

Own design: commands that have audio share them; a password is never on a command line, where other
users of the machine can read it.
"""

import argparse
import os

from p2psip.errors import LocalError
from p2psip.net import addresses
from p2psip.net.media.relayed_ports import PASSWORD
from p2psip.transaction.flow import HostPort


def add_nat_options(group: "argparse._ArgumentGroup") -> None:
    """Add --stun and --turn."""
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
        f"environment variable {PASSWORD} has the password.",
    )


def stun_of(options: argparse.Namespace) -> list[HostPort]:
    """The STUN servers given.  Raises LocalError for one that is no address."""
    return [addresses.parse(each) for each in getattr(options, "stun", None) or ()]


def turn_of(options: argparse.Namespace) -> tuple[str, str] | None:
    """The TURN server given, and its password.  Raises LocalError where that is missing."""
    uri: str | None = getattr(options, "turn", None)
    if uri is None:
        return None
    if not os.environ.get(PASSWORD):
        raise LocalError(f"the password of --turn is missing, say it in {PASSWORD}")
    return uri, os.environ[PASSWORD]

"""`siprtmp calls`: list the calls, registrations and streams of a gateway, end one, or mix a call.

Own design: the client of `control_socket`.  Names that peers have chosen are shown as printable
ASCII, so that none of them can send control codes to the operator's terminal.
"""

import json
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from p2psip.sip import strict_json
from siprtmp.edge.state_folder import CONTROL_SOCKET
from siprtmp.operation.arguments import ConfigError, Parser, program

TIMEOUT: Final = 15.0  # s
MAX_REPLY: Final = 256 * 1024 * 1024  # bytes

_COLUMNS: Final = {
    "calls": [
        *("since", "state", "caller", "callee", "source"),
        *("codec", "video", "lost", "mos", "id"),
    ],
    "registrations": ["user", "contact", "source", "expires", "id"],
    "streams": ["since", "name", "source", "codecs", "players", "id"],
    "trunks": ["name", "address", "state", "calls", "reason"],
}

_ACTIONS: Final = {
    "end": "Hang up the call, take back the registration or disconnect the publisher with this "
    "id; the beginning of an id is enough.",
    "mix": "Publish both sides of this call from now on, mixed, as mixed/NAME.",
    "unmix": "Publish them no longer.",
}
_OPTIONAL: Final = ("trunks",)  # kinds that many gateways have none of


def run(arguments: Sequence[str]) -> int:
    """List everything, or do one thing; returns the exit code, 1 for an unknown id.

    Raises ConfigError where no gateway answers.
    """
    options = _parser().parse_args(arguments)
    action = next((each for each in _ACTIONS if getattr(options, each) is not None), None)
    request = {"do": "list"} if action is None else {"do": action, "id": getattr(options, action)}
    reply = ask(options.state, request)
    if options.json:
        print(strict_json.dumps(reply))
    elif "error" not in reply:
        print("\n".join(_lines(reply) if action is None else _done(reply)))
    if "error" in reply:
        print(f"siprtmp: {_plain(reply['error'])}", file=sys.stderr)
        return 1
    return 0


def ask(folder: Path, request: dict[str, str]) -> dict[str, Any]:
    """Send one request to the gateway that runs with this folder, and return its answer.

    Raises ConfigError where no gateway runs, or it does not answer.
    """
    data = bytearray()
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as gateway:
            gateway.settimeout(TIMEOUT)
            gateway.connect(str(folder / CONTROL_SOCKET))
            gateway.sendall(json.dumps(request).encode("ascii") + b"\n")
            while piece := gateway.recv(1 << 16):
                data += piece
                if len(data) > MAX_REPLY:
                    break
        reply = json.loads(data)
    except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
        raise ConfigError(f"--state {folder}: no gateway runs with this folder") from None
    except OSError as error:
        raise ConfigError(f"--state {folder}: {error.strerror or error}") from None
    except ValueError:
        raise ConfigError(f"--state {folder}: the gateway gave no answer") from None
    if not isinstance(reply, dict):
        raise ConfigError(f"--state {folder}: that is no gateway")
    return reply


def _parser() -> Parser:
    parser = Parser(
        prog=f"{program()} calls",
        allow_abbrev=False,
        description="List the calls, registrations and streams of a running gateway, end one, or "
        "publish both sides of a call.",
    )
    add, only = parser.add_argument, parser.add_mutually_exclusive_group()
    add(
        "--state",
        type=Path,
        required=True,
        metavar="DIR",
        help="The folder that the gateway runs with as --state.",
    )
    for option, said in _ACTIONS.items():
        only.add_argument(f"--{option}", metavar="ID", help=said)
    add("--json", action="store_true", help="Print JSON, for programs.")
    return parser


def _done(reply: dict[str, Any]) -> list[str]:
    """The lines that report a change, such as "ended: call"."""
    return [
        f"{word}: {_plain(', '.join(map(str, what)) if isinstance(what, list) else str(what))}"
        for word, what in reply.items()
    ]


def _lines(reply: dict[str, Any]) -> list[str]:
    """A table for each kind, with aligned columns."""
    lines = []
    for kind, columns in _COLUMNS.items():
        rows = reply.get(kind, [])
        if not rows and kind in _OPTIONAL:
            continue
        lines.append(f"{kind}: {len(rows)}")
        if rows:
            cells = [[_cell(row, name) for name in columns] for row in rows]
            lines += _table([[name.upper() for name in columns], *cells])
    return lines


def _table(rows: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  "
        + "  ".join(f"{text:{width}}" for text, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _cell(row: dict[str, Any], name: str) -> str:
    match name:
        case "since":
            return _duration(row.get("seconds"))
        case "expires":
            return _duration(row.get("expires"))
        case "lost":  # in percent, from the phone and to it
            figures = (row.get("lost_from_phone"), row.get("lost_to_phone"))
            return "/".join("-" if figure is None else f"{figure:.1f}%" for figure in figures)
        case "mos":  # from the phone and to it
            scores = (row.get("mos_from_phone"), row.get("mos_to_phone"))
            return "/".join("-" if each is None else f"{each:.1f}" for each in scores)
        case "codecs":
            return _plain("+".join(map(str, row.get("codecs") or ()))) or "-"
    value = row.get(name)
    return "-" if value in (None, "") else _plain(str(value))


def _duration(seconds: float | None) -> str:
    """As `59s`, `1m05s`, `2h05m` or `3d04h`."""
    if seconds is None:
        return "-"
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02}m"
    return f"{whole // 86400}d{whole % 86400 // 3600:02}h"


def _plain(text: str) -> str:
    """The text in printable ASCII; other characters as Python escapes."""
    return "".join(
        letter if letter.isascii() and letter.isprintable() else ascii(letter)[1:-1]
        for letter in text
    )

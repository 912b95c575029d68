"""`rtclab explain`: prints every field of a packet, a message, a file or a capture.

Own design: octets come as a file, as hexadecimal digits, or on standard input.
"""

import argparse
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from p2psip.errors import SipError
from p2psip.sdp.attributes import RtpMap
from p2psip.sip import strict_json
from rtclab.command_line.arguments import ConfigError, Parser, program
from rtclab.command_line.files import STANDARD, print_lines, read_octets
from rtclab.explain.capture import capture
from rtclab.explain.fields.context import Context, RtmfpKey
from rtclab.explain.fields.field import Field, Span
from rtclab.explain.guess import PROTOCOLS, guessed
from rtclab.explain.render import as_json, text_lines
from rtclab.unwrap.capture_file import is_capture

_HEX: Final = re.compile(rb"(?:0x)?(?:[0-9A-Fa-f]{2}[\s:]*)+")
_KEY_OCTETS: Final = (16, 32)  # of AES-128, and of what it is taken from


def run(arguments: Sequence[str]) -> int:
    """Explain the octets; returns the exit code, 1 if anything in them is wrong.

    Raises ConfigError for a bad option, or if there is nothing to read.
    """
    options = _parser().parse_args(arguments)
    context = Context(keys=(*options.key, *options.rtmfp_keys))
    context.rtpmaps |= {each.payload_type: each for each in options.rtpmap}
    data = octets_of(options.input)
    field = explain(data, context, options.protocol, options.packets)
    print_lines(
        [strict_json.dumps(as_json(field, data))] if options.json else text_lines(field, data)
    )
    return 1 if any(True for _ in field.faults()) else 0


def explain(
    data: bytes, context: Context, protocol: str | None = None, packets: range | None = None
) -> Field:
    """Describe octets by a protocol of `PROTOCOLS`, or by the one that they look like.

    Raises ConfigError for `packets` that are not there.
    """
    if packets is not None and (protocol is not None or not is_capture(data)):
        raise ConfigError("--packets is for captures")
    if protocol is not None:
        return PROTOCOLS[protocol](Span.all(data), context)
    if is_capture(data):
        return capture(data, context, packets)
    return guessed(Span.all(data), context)


def octets_of(name: str) -> bytes:
    """Read a file, digits or standard input; a text of nothing but digits counts as digits.

    Raises ConfigError where there is nothing.
    """
    if name == STANDARD or os.path.exists(name):  # which takes a long line of digits for no file
        raw = read_octets(name)
    elif _HEX.fullmatch(name.encode("utf-8", "replace").strip()):
        raw = name.encode()
    else:
        raise ConfigError(f"{name} is no file, and no hexadecimal digits")
    if not raw:
        raise ConfigError("there are no octets to explain")
    digits = raw.strip()
    if _HEX.fullmatch(digits):
        return bytes.fromhex(re.sub(rb"[\s:]|\A0x", b"", digits).decode())
    return raw


def _parser() -> Parser:
    parser = Parser(
        prog=f"{program()} explain",
        allow_abbrev=False,
        description="Print every field of a packet, a message, a file or a capture: its octets, "
        "what they mean, and the class and the section of the specification behind it. Errors "
        "stand at the field that has them. Exit code 1 says that there are some.",
    )
    add = parser.add_argument
    add(
        "input",
        nargs="?",
        default=STANDARD,
        metavar="FILE|HEX",
        help="A file, or hexadecimal digits; standard input without it.",
    )
    add(
        "--as",
        dest="protocol",
        choices=sorted(PROTOCOLS),
        metavar="PROTOCOL",
        help=f"What the octets are, instead of a guess: {', '.join(PROTOCOLS)}.",
    )
    add("--json", action="store_true", help="Print JSON, for programs.")
    add(
        "--packets",
        type=packet_range,
        metavar="FIRST[-LAST]",
        help="Explain these packets of a capture only, counted from 1.",
    )
    add(
        "--rtpmap",
        type=rtpmap,
        action="append",
        default=[],
        metavar="'TYPE ENCODING/RATE'",
        help="What a payload type of RTP is, such as '101 telephone-event/8000', where no session "
        "description says so; may be repeated.",
    )
    add(
        "--key",
        type=rtmfp_key,
        action="append",
        default=[],
        metavar="KEY[:HMACKEY]",
        help="The key of one direction of an RTMFP session and, if its packets have an HMAC, the "
        "key of that, in hexadecimal digits; may be repeated.",
    )
    add(
        "--rtmfp-keys",
        type=key_file,
        default=(),
        metavar="FILE",
        help="Such keys, one a line, as `serve --capture` writes them.",
    )
    return parser


def packet_range(text: str) -> range:
    """Read `FIRST[-LAST]`."""
    first, dash, last = text.partition("-")
    numbers = [first, last if dash else first]
    if not all(each.isascii() and each.isdigit() and len(each) < 10 for each in numbers):
        raise argparse.ArgumentTypeError(f"{text!r} is not FIRST-LAST")
    chosen = range(int(numbers[0]), int(numbers[1]) + 1)
    if not chosen or not chosen[0]:
        raise argparse.ArgumentTypeError(f"{text!r}: packets are counted from 1 upwards")
    return chosen


def rtpmap(text: str) -> RtpMap:
    """Read what an a=rtpmap has: RFC 8866 §6.6."""
    try:
        return RtpMap.parse(text)
    except SipError:
        raise argparse.ArgumentTypeError(f"{text!r} is not 'TYPE ENCODING/RATE'") from None


def key_file(name: str) -> tuple[RtmfpKey, ...]:
    """Read a file of keys, one a line, as `serve --capture` writes it; `#` begins a comment."""
    try:
        lines = Path(name).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{name}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise argparse.ArgumentTypeError(f"{name} is no text") from None
    texts = (line.partition("#")[0].strip() for line in lines)
    return tuple(rtmfp_key(text) for text in texts if text)


def rtmfp_key(text: str) -> RtmfpKey:
    """Read `KEY[:HMACKEY]`."""
    key, _, hmac_key = text.partition(":")
    try:
        read = RtmfpKey(bytes.fromhex(key), bytes.fromhex(hmac_key))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not in hexadecimal digits") from None
    if len(read.key) not in _KEY_OCTETS:
        raise argparse.ArgumentTypeError(f"a key has 16 or 32 octets, and not {len(read.key)}")
    return read

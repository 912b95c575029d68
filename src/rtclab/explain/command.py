"""`rtclab explain`: prints every field of a packet, a message, a file or a capture.

Own design: octets come as a file, as hexadecimal digits, or on standard input.
"""

import argparse
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from p2psip.errors import SipError
from p2psip.sdp.attributes import RtpMap
from p2psip.sdp.crypto import CryptoAttribute
from p2psip.sip import strict_json
from p2psip.srtp.suites import SUITES
from rtclab.command_line.arguments import ConfigError, Parser, program
from rtclab.command_line.files import STANDARD, print_lines, read_octets
from rtclab.explain.capture import capture
from rtclab.explain.fields.context import Context, RtmfpKey
from rtclab.explain.fields.field import Field, Span
from rtclab.explain.guess import PROTOCOLS, guessed
from rtclab.explain.render import as_json, text_lines
from rtclab.unwrap.capture_file import is_capture
from rtclab.unwrap.key_log import DtlsSecret, SrtpMaster, read_key_log
from rtclab.unwrap.srtp import SrtpSessions

_HEX: Final = re.compile(rb"(?:0x)?(?:[0-9A-Fa-f]{2}[\s:]*)+")
_CRYPTO: Final = re.compile(r"\A(?:a=)?crypto:")
_INLINE: Final = re.compile(r"\binline:", re.IGNORECASE)
_LOGGED: Final = re.compile(r"[A-Z][A-Z_0-9]+\s")  # a label of a key log
_KEY_OCTETS: Final = (16, 32)  # of AES-128, and of what it is taken from


class KeyFile(NamedTuple):
    """What a file of keys has: keys of RTMFP and of SRTP, and secrets of DTLS by their clients."""

    rtmfp: tuple[RtmfpKey, ...] = ()
    srtp: tuple[SrtpMaster, ...] = ()
    dtls: Mapping[bytes, DtlsSecret] = MappingProxyType({})


NO_KEYS: Final = KeyFile()


def run(arguments: Sequence[str]) -> int:
    """Explain the octets; returns the exit code, 1 if anything in them is wrong.

    Raises ConfigError for a bad option, or if there is nothing to read.
    """
    options = _parser().parse_args(arguments)
    context = Context(
        keys=(*options.key, *options.keys.rtmfp),
        srtp=SrtpSessions((*options.srtp_key, *options.keys.srtp), options.keys.dtls),
    )
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
        "--srtp-key",
        type=srtp_key,
        action="append",
        default=[],
        metavar="'SUITE inline:KEY'",
        help="A key of SRTP as a=crypto has it, where no session description says it; may be "
        "repeated.",
    )
    add_key_file(parser)
    return parser


def add_key_file(parser: Parser) -> None:
    """Add the option of a file of keys, which `lint` has as well."""
    parser.add_argument(
        "--keys",
        "--rtmfp-keys",
        type=key_file,
        default=NO_KEYS,
        metavar="FILE",
        help="Keys, one a line: those that `serve --capture` writes, of RTMFP and of the DTLS of "
        "browsers; a key log of SSLKEYLOGFILE, as Firefox writes for DTLS; or keys of SRTP as "
        "a=crypto has them.",
    )


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


def key_file(name: str) -> KeyFile:
    """Read a file of keys, one a line; `#` begins a comment.

    Own design: lines of a key log that are of no use here are passed over, such as those of TLS.
    """
    try:
        lines = Path(name).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{name}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise argparse.ArgumentTypeError(f"{name} is no text") from None
    texts = [text for line in lines if (text := line.partition("#")[0].strip())]
    try:
        log = read_key_log(texts)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{name}: {error}") from None
    others = [text for text in texts if _INLINE.search(text) or not _LOGGED.match(text)]
    srtp = tuple(srtp_key(text) for text in others if _INLINE.search(text))
    rtmfp = tuple(rtmfp_key(text) for text in others if not _INLINE.search(text))
    return KeyFile(rtmfp, srtp, log)


def srtp_key(text: str) -> SrtpMaster:
    """Read a key of SRTP, alone or as a line of a description has it: RFC 4568 §9.1."""
    value = _CRYPTO.sub("", text)
    if not value[:1].isdigit():
        value = f"1 {value}"
    try:
        read = CryptoAttribute.parse(value)
    except SipError as error:
        # what is wrong is told without the key
        raise argparse.ArgumentTypeError(f"a key is 'SUITE inline:KEY': {error}") from None
    if not read.is_usable:
        raise argparse.ArgumentTypeError(f"a key that is not for any of {', '.join(SUITES)}")
    return SrtpMaster(SUITES[read.suite], read.keys[0].key, read.keys[0].salt)


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

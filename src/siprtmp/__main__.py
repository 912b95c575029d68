"""`siprtmp`, or `python -m siprtmp`: the command line.

Own design: the first word chooses a command, and `serve` is meant when it is missing.  A
mistake of the operator's is one line on standard error and exit code 2.  Each command imports what
it needs when it is called, so that `--help` and the tools for packets need no gateway.
"""

import gc
import getpass
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from rtmplite.net.redaction import public
from siprtmp import __version__
from siprtmp.operation.arguments import ConfigError, did_you_mean, program
from siprtmp.operation.build import build

USAGE: Final = """\
usage: {program} [COMMAND] [OPTION...]

A gateway between telephones (SIP) and streams (RTMP, RTMFP): a stream can call a
phone, and what the phone says is a stream.

commands:
  serve [OPTION...]      Run the gateway; this is meant without a command.
  demo [OPTION...]       Place a call through a gateway on loopback, and judge it.
  calls --state DIR      List the calls of a running gateway, or end one.
  doctor [PEER]          Say what is wrong with this machine or on the way to a peer.
  check-config FILE      Say whether a configuration file is good.
  users USER REALM       Ask for a password, and print lines for the --users file.
  explain [FILE|HEX]     Print every field of a packet, message, file or capture.
  oracle COMMAND         Test another implementation of the protocols with our codecs.
  conform PROTO TARGET   Judge a running program by the requirements of a protocol.
  load URL               Put many clients on a server, and say where it breaks.
  lint FILE              Find what breaks a rule in a capture, and draw its calls.

{program} COMMAND --help lists the options of serve, demo, calls, explain, oracle, conform,
load and lint.
{program} --version prints the version, and whether modules are compiled.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments and arguments[0] in ("-h", "--help", "help"):
        print(USAGE.format(program=program()), end="")
        return 0
    if arguments and arguments[0] == "--version":
        print(f"siprtmp {__version__} ({build()})")
        return 0
    name, rest = "serve", list(arguments)
    if rest and not rest[0].startswith("-"):
        name = rest.pop(0)
    command = _COMMANDS.get(name)
    if command is None:
        like = did_you_mean(name, _COMMANDS) or "; try --help"
        print(f"siprtmp: no such command: {name}{like}", file=sys.stderr)
        return 2
    if name in ("check-config", "users") and set(rest) & {"-h", "--help"}:
        print(USAGE.format(program=program()), end="")
        return 0
    try:
        code = command(rest)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader of our output has seen enough, such as `head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:  # as a shell says it: 128 and the number of SIGINT
        return 130
    except ConfigError as error:
        print(f"siprtmp: {public(str(error))}", file=sys.stderr)
        return 2


def serve(arguments: Sequence[str]) -> int:
    gc.disable()  # modules stay: to search them for garbage is an eighth of the start
    from siprtmp.edge import serve_command

    gc.enable()
    return serve_command.run(arguments)


def demo(arguments: Sequence[str]) -> int:
    from siprtmp.demo import run

    return run(arguments)


def calls(arguments: Sequence[str]) -> int:
    """List the calls and streams of a running gateway, or end one."""
    from siprtmp.edge import calls_command

    return calls_command.run(arguments)


def doctor(arguments: Sequence[str]) -> int:
    from rtmplite.net.last_resort import interrupted_quietly
    from siprtmp.doctor import run

    interrupted_quietly()
    return run(arguments)


def laboratory(name: str, arguments: Sequence[str]) -> int:
    """Run a command of rtclab, which is known here by this name alone."""
    import runpy

    code: int = runpy.run_module("rtclab")["main"]([name, *arguments])
    return code


def check_config(arguments: Sequence[str]) -> int:
    from siprtmp.settings.check import check
    from siprtmp.settings.load import load_file

    if len(arguments) != 1:
        raise ConfigError("check-config takes one FILE")
    check(load_file(Path(arguments[0])))
    print(f"{arguments[0]}: good")
    return 0


def users(arguments: Sequence[str]) -> int:
    """Print the lines of a user for the --users file; RFC 7616 §3.4.2 makes the hashes.

    The password is asked for, or read from standard input when that is no terminal.  A new file
    that the shell has opened for them gets mode 0600.
    """
    from p2psip.sip.auth import ha1
    from rtmplite.net.secret_files import keep_private

    if len(arguments) != 2 or any(":" in argument for argument in arguments):
        raise ConfigError("users takes USER and REALM, neither with a colon")
    user, realm = arguments
    if sys.stdin.isatty():
        password = getpass.getpass(f"Password of {user} in {realm}: ")
    else:
        password = sys.stdin.readline().rstrip("\n")
    if not password:
        raise ConfigError("an empty password is no password")
    keep_private(sys.stdout)
    for algorithm in ("SHA-256", "MD5"):
        print(f"{user}:{realm}:{ha1(user, realm, password, algorithm)}")
    return 0


_COMMANDS: Final[Mapping[str, Callable[[Sequence[str]], int]]] = {
    "serve": serve,
    "demo": demo,
    "calls": calls,
    "doctor": doctor,
    "check-config": check_config,
    "users": users,
    "explain": partial(laboratory, "explain"),
    "oracle": partial(laboratory, "oracle"),
    "conform": partial(laboratory, "conform"),
    "load": partial(laboratory, "load"),
    "lint": partial(laboratory, "lint"),
}


if __name__ == "__main__":
    sys.exit(main())

"""SIP for the command line: register, call, answer calls, send messages, query; serve phones.

Own design: the exit code is 0 if the command did its work, 1 if the other side refused or was
silent, 2 if the command was given wrongly; the reason is one line on standard error.
"""

import argparse
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NoReturn

import gevent
from gevent.event import Event

from p2psip.agent import Agent, Call
from p2psip.call_audio import CallAudio, say
from p2psip.errors import LocalError, RemoteError
from p2psip.net import addresses
from p2psip.net.locator import ServerLocator, proxies
from p2psip.net.phone.settings import Account, CallSettings, NetworkSettings
from p2psip.net.phone.wav import LAWS
from p2psip.net.tls import TlsContexts, client_context
from p2psip.phone_options import (
    FOR_EXAMPLE,
    PASSWORD,
    add_audio_options,
    add_from,
    add_identity,
    add_nat_options,
    add_network,
    count,
    seconds,
    stun_of,
    turn_of,
)
from p2psip.serve import add_options, serve
from p2psip.sip.address import Address
from p2psip.sip.grammar import bracketed
from p2psip.sip.uri import Uri
from p2psip.transaction.flow import WEB
from p2psip.ua.messages import InstantMessage

NAME: Final = "p2psip"
FAILED: Final = 1
BAD_USAGE: Final = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    options = _parser().parse_args(arguments)
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        gevent.signal_handler(number, stop.set)
    try:
        code: int = options.run(options, stop)
        return code
    except (RemoteError, TimeoutError) as error:
        print(f"p2psip: {error}{_advice(error, options)}", file=sys.stderr)
        return FAILED
    except (LocalError, OSError) as error:
        print(f"p2psip: {_in_words(error)}", file=sys.stderr)
        return BAD_USAGE


class _Parser(argparse.ArgumentParser):
    """Reports a wrong command line in one line, without the page of usage before it."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_USAGE, f"{self.prog.removeprefix('python -m ')}: {message}\n")


def _program() -> str:
    """The words that started this program: `p2psip`, or `python -m p2psip`."""
    return NAME if Path(sys.argv[0]).stem == NAME else f"python -m {NAME}"


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog=_program(),
        description="A SIP phone for the command line: it registers, calls, answers and asks; and "
        "a registrar and proxy for other phones.",
        epilog=f"Each command explains its options: {_program()} call --help.  "
        "The exit code is 0 if the command did its work, 1 if the other side refused or was "
        "silent, and 2 if the command was given wrongly.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND", title="commands")

    def command(name: str, run: Callable[..., int], summary: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=summary, description=f"{summary}.")
        added.set_defaults(run=run)
        return added

    register = command("register", _register, "Register an address until interrupted")
    register.add_argument("aor", metavar="ADDRESS", help=f"The address to register, {FOR_EXAMPLE}.")
    add_identity(register)
    add_network(register).add_argument(
        "--seconds", type=seconds, metavar="S", help="End after S seconds."
    )

    call = command("call", _call, "Call a user and talk until either side hangs up")
    call.add_argument("uri", metavar="CALLEE", help="The address to call, as user@host[:port].")
    add_from(add_identity(call))
    add_audio_options(call)
    add_nat_options(add_network(call))

    listen = command("listen", _listen, "Answer incoming calls, one at a time, and print messages")
    listen.add_argument(
        "aor", metavar="ADDRESS", nargs="?", help=f"Register this address first, {FOR_EXAMPLE}."
    )
    add_identity(listen)
    add_audio_options(listen).add_argument(
        "--calls", type=count, metavar="N", help="End after N calls."
    )
    add_nat_options(add_network(listen))
    _add_questions(command)
    add_options(command("serve", serve, "Serve the phones of a domain, as registrar and proxy"))
    return parser


def _add_questions(
    command: Callable[[str, Callable[..., int], str], argparse.ArgumentParser],
) -> None:
    """Add the commands that send one request, or print the events of a subscription."""
    message = command("message", _message, "Send an instant message")
    message.add_argument("uri", metavar="TO", help="The address to write to, as user@host[:port].")
    message.add_argument("text", metavar="TEXT", help="The text of the message.")
    add_from(add_identity(message))
    add_network(message)

    refer = command("refer", _refer, "Ask a phone to call somebody")
    refer.add_argument("uri", metavar="PHONE", help="The phone to ask, as user@host[:port].")
    refer.add_argument("target", metavar="TARGET", help="The address that it is to call.")
    add_from(add_identity(refer))
    add_network(refer)

    subscribe = command("subscribe", _subscribe, "Print the events of a user until interrupted")
    subscribe.add_argument(
        "event", metavar="EVENT", help="The event package: dialog, message-summary, presence..."
    )
    subscribe.add_argument("uri", metavar="USER", help="The user to watch, as user@host[:port].")
    add_from(add_identity(subscribe))
    add_network(subscribe).add_argument(
        "--seconds", type=seconds, metavar="S", help="End after S seconds."
    )

    options = command("options", _options, "Print what a user or a server can do")
    options.add_argument("uri", metavar="TARGET", help="The user or server to ask: sip:example.com")
    add_from(add_identity(options))
    add_network(options)


def _register(options: argparse.Namespace, stop: Event) -> int:
    with _agent(options, options.aor) as agent:
        granted = agent.register(options.timeout)
        say(f"registered {agent.aor.uri} for {granted} s")
        stop.wait(options.seconds)
        if not agent.registered:
            raise RemoteError("the registrar knows us no longer", 480)
    return 0


def _call(options: argparse.Namespace, stop: Event) -> int:
    talk = CallAudio(options, stop)
    with _agent(options, options.uri) as agent:

        def dial() -> Call | Exception:
            try:
                return agent.call(
                    options.uri, options.timeout, on_audio=talk.hear, on_ringing=_tell
                )
            except (RemoteError, TimeoutError, LocalError) as error:
                return error

        dialing = gevent.spawn(dial)
        stop.rawlink(lambda _: dialing.kill(block=False))
        match dialing.get():
            case Call() as call:
                talk.run(call)
            case Exception() as error:
                raise error
            case _:
                raise RemoteError("given up before anybody answered", 487)
    return 0


def _listen(options: argparse.Namespace, stop: Event) -> int:
    CallAudio(options, stop)  # so that a file that cannot be read is reported at once
    taken, done = 0, 0

    def on_call(call: Call) -> None:
        nonlocal taken, done
        if taken > done or taken == options.calls:
            call.reject()
            return
        taken += 1
        try:
            say(f"call from {call.remote.uri}")
            talk = CallAudio(options, stop)
            call.on_audio = talk.hear
            call.answer(options.timeout)
            talk.run(call)
        finally:
            done += 1
            if done == options.calls:
                stop.set()

    with _agent(options, options.aor) as agent:
        agent.on_call, agent.on_message = on_call, _show
        if options.aor:
            agent.register(options.timeout)
        say(f"listening at {agent.contact}")
        stop.wait()
        while taken > done:  # each call hangs up and writes its recording
            gevent.sleep(0.01)
    return 0


def _message(options: argparse.Namespace, stop: Event) -> int:
    with _agent(options, options.uri) as agent:
        response = agent.message(options.uri, options.text, options.timeout)
        say(f"{response.status} {response.reason}")
    return 0


def _refer(options: argparse.Namespace, stop: Event) -> int:
    with _agent(options, options.uri) as agent:
        agent.refer(options.uri, options.target, options.timeout, on_progress=_tell)
    return 0


def _subscribe(options: argparse.Namespace, stop: Event) -> int:
    def show(content_type: str, body: bytes) -> None:
        say(f"{content_type}\n{body.decode(errors='replace')}")

    with _agent(options, options.uri) as agent:
        watch = agent.subscribe(options.uri, options.event, show, options.timeout)
        stop.wait(options.seconds)
        if watch.reason:
            raise RemoteError(f"the subscription has ended: {watch.reason}", 480)
        watch.close()
    return 0


def _options(options: argparse.Namespace, stop: Event) -> int:
    with _agent(options, options.uri) as agent:
        response = agent.options(str(_uri(options.uri)), options.timeout)
        say(f"{response.status} {response.reason}")
        for name, value in response.headers:
            say(f"{name}: {value}")
    return 0


def _agent(options: argparse.Namespace, other: str | None) -> Agent:
    """The agent that the options describe, at an address that reaches `other`."""
    identity = _uri(options.aor) if options.aor else None
    servers = proxies(options.registrar)
    server = servers[0] if servers else other and _uri(other)
    listen = options.listen or f"{_own_address(server) if server else '127.0.0.1'}:0"
    address = addresses.parse(listen)
    named = [each for each in (*servers, identity, other and _uri(other)) if isinstance(each, Uri)]
    is_secure, by_web = any(map(_is_secure, named)), any(map(_is_web, named))
    domain = str(identity.replace(user=None)).removeprefix("sip:") if identity else None
    try:
        return Agent(
            Account(
                (identity.user if identity else None) or "anonymous",
                domain,
                password=options.password or os.environ.get(PASSWORD),
                display=options.display,
                registrar=options.registrar,
            ),
            NetworkSettings(
                listen=address,
                tls=_tls(options.ca) if is_secure else None,
                websocket=by_web,
                stun=stun_of(options),
                turn=turn_of(options),
                ice=getattr(options, "ice", False),
            ),
            CallSettings(codecs=getattr(options, "codec", None) or tuple(LAWS)),
        )
    except OSError as error:
        raise LocalError(f"{listen}: {addresses.bind_failure(error)}") from None


def _tls(ca: Path | None) -> TlsContexts:
    return TlsContexts(client_context(ca))


def _uri(text: str) -> Uri:
    try:
        is_whole = text.lower().startswith(("sip:", "sips:", "tel:"))
        # in a header the parameters of a bare URI are not its own: RFC 3261 §20.10
        uri = Address.parse(text if "<" in text else f"<{text if is_whole else f'sip:{text}'}>").uri
    except RemoteError as error:
        raise LocalError(f"{text!r} is not an address: {error.reason}") from None
    if uri.scheme not in ("sip", "sips") or not uri.host:
        raise LocalError(f"{text!r} is not a SIP URI")
    return uri


def _is_secure(uri: Uri) -> bool:
    """Whether a URI is reached by TLS alone: RFC 5630 §3.1."""
    return uri.scheme == "sips" or (uri.param("transport") or "").lower() in ("tls", "wss")


def _is_web(uri: Uri) -> bool:
    """Whether a URI is reached by WebSocket: RFC 7118 §5.2."""
    return (uri.param("transport") or "").upper() in WEB


def _own_address(uri: Uri) -> str:
    """The address of this machine, as text for a URI, from which packets for `uri` leave."""
    flows = ServerLocator(transports=("UDP", "TCP", "TLS", *WEB)).flows(uri)
    if not flows:
        raise LocalError(f"{uri.host} cannot be found")
    host, port = flows[0].remote
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect((host, port))
        return bracketed(s.getsockname()[0])


def _in_words(error: Exception) -> str:
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror


def _advice(error: Exception, options: argparse.Namespace) -> str:
    """The remedy for a missing password, to follow the error; "" for any other error."""
    asked = isinstance(error, RemoteError) and error.status in (401, 407)
    if not asked or options.password or os.environ.get(PASSWORD):
        return ""
    if options.aor is None:
        return f"; give the own address by --from, and its password in {PASSWORD}"
    return f"; the password is missing, say it in {PASSWORD}"


def _show(message: InstantMessage) -> None:
    say(f"message from {message.sender.uri}: {message.text!r}")


def _tell(status: int, reason: str) -> None:
    say(f"{status} {reason}")


if __name__ == "__main__":
    sys.exit(main())

"""Goes the way to a peer, step by step: names, a connection, a first answer.

Own design: one OPTIONS for SIP (RFC 3261 §11), one handshake for RTMP (RTMP 1.0 §5.2); more would
change something there.
"""

import os
import time
from collections.abc import Iterator
from typing import Final

from gevent import Timeout, socket

from p2psip.errors import LocalError, SipError
from p2psip.net.locator import ServerLocator, server_uri
from p2psip.sip.message import Response, parse_message
from p2psip.transaction.flow import Flow
from rtmplite.errors import LocalError as RtmpError
from rtmplite.rtmp.wire.url import split
from siprtmp.doctor.finding import StepFound, faulty, good
from siprtmp.operation.arguments import ConfigError

PATIENCE: Final = 3.0  # s for each step
_RTMP_PORT: Final = 1935
_PACKET: Final = 1536  # octets of C1. Source: RTMP 1.0 §5.2.3
_SILENT: Final = "is it up, is the port right, does a firewall drop it?"
_OPTIONS: Final = (
    "OPTIONS {uri} SIP/2.0\r\n"
    "Via: SIP/2.0/{transport} {host}:{port};rport;branch=z9hG4bK{token}\r\n"
    "Max-Forwards: 70\r\nFrom: <sip:doctor@{host}>;tag={token}\r\nTo: <{uri}>\r\n"
    "Call-ID: {token}\r\nCSeq: 1 OPTIONS\r\nContact: <sip:doctor@{host}:{port}>\r\n"
    "Content-Length: 0\r\n\r\n"
)


def reached(target: str) -> Iterator[StepFound]:
    """Go to a peer of SIP or RTMP.  Raises ConfigError for another target."""
    if target.startswith("sip:"):
        yield from _sip(target)
    elif target.startswith("rtmp://"):
        yield from _rtmp(target)
    else:
        raise ConfigError(f"{target}: the doctor knows sip:HOST and rtmp://HOST/APP")


def _sip(target: str) -> Iterator[StepFound]:
    try:
        uri = server_uri(target)
    except LocalError as error:
        raise ConfigError(str(error)) from None
    begun = time.monotonic()
    flows = ServerLocator().flows(uri)
    if not flows:
        cure = "look at its NAPTR, SRV and A records"
        yield faulty("resolve", "dns", f"DNS has no server of {uri.host}", cure, _since(begun))
        return
    listed = ", ".join(_said(each) for each in flows)
    yield good("resolve", listed, _since(begun))
    for flow in flows:
        yield _asked(flow, target)


def _asked(flow: Flow, target: str) -> StepFound:
    step, begun = f"OPTIONS to {_said(flow)}", time.monotonic()
    kind = socket.SOCK_DGRAM if flow.transport == "UDP" else socket.SOCK_STREAM
    family = socket.AF_INET6 if ":" in flow.remote[0] else socket.AF_INET
    with socket.socket(family, kind) as way:
        try:
            with Timeout(PATIENCE, TimeoutError()):
                way.connect(flow.remote)
                host, port = way.getsockname()[:2]
                words = {"host": host, "port": port, "token": os.urandom(8).hex()}
                way.send(_OPTIONS.format(uri=target, transport=flow.transport, **words).encode())
                answer = parse_message(way.recv(1 << 16))
        except SipError as error:
            return faulty(step, "no-sip", f"the answer is no SIP: {error}", _SILENT, _since(begun))
        except OSError as error:
            return _lost(step, error, begun)
    assert isinstance(answer, Response)
    return good(step, f"{answer.status} {answer.reason}", _since(begun))


def _said(flow: Flow) -> str:
    return f"{flow.remote[0]}:{flow.remote[1]} by {flow.transport}"


def _rtmp(target: str) -> Iterator[StepFound]:
    try:
        url = split(target)
    except RtmpError as error:
        raise ConfigError(f"{target}: {error}") from None
    begun = time.monotonic()
    try:
        with Timeout(PATIENCE, TimeoutError()):
            found = socket.getaddrinfo(url.host, url.port or _RTMP_PORT, type=socket.SOCK_STREAM)
    except OSError:
        cure = "look at its A and AAAA records"
        yield faulty("resolve", "dns", f"DNS has no address of {url.host}", cure, _since(begun))
        return
    family, kind, _, _, at = found[0]
    step = " ".join(("connect to", str(at[0]), str(at[1])))
    yield good("resolve", str(at[0]), _since(begun))
    with socket.socket(family, kind) as way:
        begun = time.monotonic()
        try:
            with Timeout(PATIENCE, TimeoutError()):
                way.connect(at)
        except OSError as error:
            yield _lost(step, error, begun)
            return
        yield good(step, "connected", _since(begun))
        yield _shaken(way)


def _shaken(way: socket.socket) -> StepFound:
    begun, data = time.monotonic(), b""
    try:
        with Timeout(PATIENCE, TimeoutError()):
            way.send(b"\x03" + bytes(8) + os.urandom(_PACKET - 8))
            while len(data) <= _PACKET and (more := way.recv(_PACKET)):
                data += more
    except OSError as error:
        return _lost("handshake", error, begun)
    if len(data) <= _PACKET or data[0] != 3:
        what = f"{len(data)} octets that are no handshake"
        return faulty("handshake", "no-rtmp", what, "is this the port of RTMP?", _since(begun))
    return good("handshake", "version 3", _since(begun))


def _lost(step: str, error: OSError, begun: float) -> StepFound:
    took = _since(begun)
    if isinstance(error, ConnectionRefusedError):
        cure = "nothing listens there: is the program up, and the port right?"
        return faulty(step, "port-closed", "refused", cure, took)
    if isinstance(error, TimeoutError):
        return faulty(step, "silent", f"no answer within {PATIENCE:g} s", _SILENT, took)
    return faulty(step, "unreachable", error.strerror or str(error), _SILENT, took)


def _since(begun: float) -> float:
    return 1000 * (time.monotonic() - begun)

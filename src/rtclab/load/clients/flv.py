"""Players of FLV by HTTP and WebSocket, with TLS or without.

Own design: the standard library reads HTTP and wsproto the WebSocket, both from gevent's sockets.
"""

import ssl
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from http.client import HTTPException, HTTPResponse
from urllib.parse import SplitResult, urlsplit

from gevent import socket

from rtclab.command_line.arguments import ConfigError
from rtclab.load.clients.client import Work, note_failure, own_url
from rtclab.load.clients.http import connected, target
from rtclab.load.clients.streams import frame
from rtclab.load.figures.tally import Tally
from rtmplite.errors import RemoteError
from rtmplite.flv.file import FlvReader
from rtmplite.net.clock import now

try:
    from wsproto import ConnectionType, WSConnection
    from wsproto.events import (
        AcceptConnection,
        BytesMessage,
        CloseConnection,
        Ping,
        RejectConnection,
        Request,
    )
    from wsproto.utilities import RemoteProtocolError

    AVAILABLE = True
except ImportError:  # without the extra there is HTTP, and no WebSocket
    AVAILABLE = False

PIECE = 65536


def player(url: str, tls: ssl.SSLContext | None, number: int) -> Work:
    """Play `url`; raises ConfigError for ws without the extra `web`."""
    parts = urlsplit(own_url(url, number, each=False))
    by_websocket = parts.scheme in ("ws", "wss")
    if by_websocket and not AVAILABLE:
        raise ConfigError("ws needs wsproto: pip install siprtmp[web]")
    return partial(_play, parts, tls, _websocket if by_websocket else _http)


def _play(
    parts: SplitResult,
    tls: ssl.SSLContext | None,
    pieces: Callable[[socket.socket, SplitResult], Iterator[bytes]],
    tally: Tally,
) -> None:
    tally.begin(now())
    try:
        with closing(connected(parts, tls)) as connection:
            reader = FlvReader()
            for data in pieces(connection, parts):
                if reader.header is None:
                    tally.connect(now())
                for tag in reader.feed(data):
                    frame(tally, tag.tag_type, tag.timestamp, tag.data)
            tally.fail("the stream has ended", refused=True)
    except (RemoteError, OSError) as error:
        note_failure(tally, error)


def _http(connection: socket.socket, parts: SplitResult) -> Iterator[bytes]:
    """The body of the answer, in whichever coding; RemoteError unless it is a 200."""
    connection.sendall(
        f"GET {target(parts)} HTTP/1.1\r\nHost: {parts.netloc.rpartition('@')[2]}\r\n"
        "Accept: */*\r\nUser-Agent: rtclab\r\n\r\n".encode()
    )
    try:
        response = HTTPResponse(connection)
        response.begin()
        if response.status != 200:
            raise RemoteError(f"{response.status} {response.reason}")
        connection.settimeout(None)
        while data := response.read1(PIECE):
            yield data
    except HTTPException as error:
        raise RemoteError(f"no answer by HTTP: {error!r}") from None


def _websocket(connection: socket.socket, parts: SplitResult) -> Iterator[bytes]:
    """The binary messages; RemoteError if the server refuses."""
    machine = WSConnection(ConnectionType.CLIENT)
    host = parts.netloc.rpartition("@")[2]
    connection.sendall(machine.send(Request(host=host, target=target(parts))))
    while received := connection.recv(PIECE):
        try:
            machine.receive_data(received)
        except RemoteProtocolError as error:
            raise RemoteError(f"no WebSocket: {error}") from None
        for event in machine.events():
            match event:
                case AcceptConnection():
                    connection.settimeout(None)
                case BytesMessage(data=data):
                    yield bytes(data)
                case Ping():
                    connection.sendall(machine.send(event.response()))
                case RejectConnection(status_code=status):
                    raise RemoteError(f"{status} to the WebSocket")
                case CloseConnection(code=code, reason=reason):
                    raise RemoteError(f"closed with {code} {reason or ''}".rstrip())

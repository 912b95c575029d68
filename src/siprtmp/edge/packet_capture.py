"""`--capture FILE`: what the gateway sees on its SIP, RTP, RTMP and RTMFP sockets, as a capture.

Own design: sockets are wrapped where they are opened, by the taps of both families.  What TLS
carries is written as it is read, in the clear, and the keys of RTMFP sessions and the secrets of
the DTLS of browsers go to a file beside: both files are for their owner alone.  The capture ends at
`LIMIT`, and when the disk is full; calls go on.
"""

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar, cast

from gevent import get_hub

import p2psip.net.tap
import rtmplite.net.tap
from p2psip.net.clock import monotonic, wallclock
from p2psip.transaction.flow import Flow
from rtmplite.net.http.rtmpt import CONTENT_TYPE
from rtmplite.rtmfp.crypto.cipher import FlashCipher
from rtmplite.rtmfp.crypto.profile import CryptoProfile, KeyingAnswer, Keys
from siprtmp.edge.pcap_file import Address, CapturedConnection, PcapFile
from siprtmp.operation.arguments import ConfigError
from siprtmp.operation.logs import Log

LIMIT: Final = 256 << 20  # octets
FLUSH: Final = 1.0  # s: what a gateway that is killed may lose
_MODE: Final = 0o600
_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
_TUNNEL_TYPE: Final = f"Content-Type: {CONTENT_TYPE}"
_MAX_CONNECTIONS: Final = 1024  # connections of HTTP whose sequence numbers are remembered
_ANY: Final = ("0.0.0.0", "::")
UDP: Final = "UDP"
NOWHERE: Final = ("0.0.0.0", 5060)  # for a flow that has not been opened here yet

_T = TypeVar("_T")


class PacketCapture(p2psip.net.tap.SocketTap, rtmplite.net.tap.SocketTap):
    """A capture of every socket that is opened from now on, until `close`.

    It is the tap of both families, unless `is_tap` is false: then it has only the packets that it
    is given.  Raises ConfigError if a file cannot be written.
    """

    def __init__(self, path: Path, log: Log, limit: int = LIMIT, *, is_tap: bool = True) -> None:
        self._path, self._log, self._limit = path, log, limit
        self._offset, self._hosts = wallclock(), dict[str, str]()
        self._connections: dict[
            tuple[Address, Address], CapturedConnection
        ] = {}  # of HTTP with tunnels, or of SIP
        self.keys_path = path.with_name(f"{path.name}.keys")
        self._file: BinaryIO | None = None
        try:
            self._file = os.fdopen(_opened(path), "wb")
            self._pcap = PcapFile(self._file)
            self._keys = os.fdopen(_opened(self.keys_path), "wb", buffering=0)
        except OSError as error:
            if self._file is not None:
                self._file.close()
            raise ConfigError(f"--capture {error.filename}: {error.strerror}") from None
        self._flusher = get_hub().loop.timer(FLUSH, FLUSH, ref=False)
        self._flusher.start(self._flush)
        self._is_tap = is_tap
        if is_tap:
            p2psip.net.tap.Tapping.current = rtmplite.net.tap.Tapping.current = self
        log.warning("capturing", file=path, keys=self.keys_path, most=f"{limit >> 20} MiB")

    def close(self) -> None:
        """Complete the files, and look no more.  Idempotent."""
        self._finish()
        if self._is_tap:
            p2psip.net.tap.Tapping.current = p2psip.net.tap.SocketTap()
            rtmplite.net.tap.Tapping.current = rtmplite.net.tap.SocketTap()

    @property
    def size(self) -> int:
        """The octets of the capture."""
        return self._pcap.size

    @property
    def is_over(self) -> bool:
        """Whether nothing is written any more."""
        return self._file is None

    def message(self, data: bytes, flow: Flow, at: float, *, is_sent: bool) -> None:
        """Write a SIP message, which went at the time `at`; that of a stream, as it was read."""
        near = self._towards(flow.local or NOWHERE, flow.remote)
        source, target = (near, flow.remote) if is_sent else (flow.remote, near)
        if flow.transport == UDP:
            self._write(partial(self._pcap.datagram, source, target, data), at)
            return
        begun = CapturedConnection(near, flow.remote)
        connection = self._connections.setdefault((near, flow.remote), begun)
        self._write(partial(self._pcap.piece, connection, source, data), at)

    def datagram(self, source: Address, target: Address, data: bytes) -> None:
        self._write(partial(self._pcap.datagram, source, target, data))

    def watched(self, source: Address, target: Address, data: bytes) -> None:
        """Write a datagram of which one end, which is ours, may be a wildcard."""
        self.datagram(self._towards(source, target), self._towards(target, source), data)

    def piece(self, connection: CapturedConnection, source: Address, data: bytes) -> None:
        self._write(partial(self._pcap.piece, connection, source, data))

    def end(self, connection: CapturedConnection, source: Address) -> None:
        self._write(partial(self._pcap.end, connection, source))

    def datagrams(self, opened: socket.socket) -> socket.socket:
        def received(result: tuple[bytes, Any], size: int) -> None:
            data, source = result
            self.datagram(source[:2], self._near(opened, source[:2]), data)

        def sent(size: int, data: bytes, target: Any) -> None:
            self.datagram(self._near(opened, target[:2]), target[:2], bytes(data))

        return cast(socket.socket, _Watched(opened, recvfrom=received, sendto=sent))

    def connection(self, opened: socket.socket, tls: _T) -> tuple[socket.socket, _T]:
        """Look at a TCP connection; with TLS only its end is seen on the socket.

        What workers tell each other by a Unix socket is left out.
        """
        if opened.family == socket.AF_UNIX:
            return opened, tls
        tap = _ConnectionTap(opened, self)
        if tls is None:
            stream = _Watched(
                opened,
                recv=tap.received,
                send=tap.sent,
                sendmsg=tap.sent_buffers,
                close=tap.closed,
            )
            return cast(socket.socket, stream), tls
        stream = _Watched(opened, close=tap.closed, recv=tap.ended)
        plain = _Watched(tls, receive=tap.decrypted, send=tap.encrypted)
        return cast(socket.socket, stream), cast(_T, plain)

    def profile(self, profile: CryptoProfile) -> CryptoProfile:
        """Watch both sides of a keying for its keys: RFC 7016 §3.5.1.1, §3.5.1.1.1."""

        def initiated(half: Any, far_certificate: bytes) -> Any:
            return _Watched(half, agree=lambda keys, far: self.keys(keys))

        def responded(answer: KeyingAnswer, *far: bytes) -> None:
            self.keys(answer.keys)

        return cast(CryptoProfile, _Watched(profile, initiate=initiated, respond=responded))

    def tunnelled(
        self,
        listening: Address,
        far: Address,
        request: tuple[str, bytes],
        answer: tuple[str, bytes],
    ) -> None:
        """Write a request of a tunnel and its answer, with as much of HTTP as it takes."""
        if self._file is None:
            return
        near = self._towards(listening, far)
        connection = self._connections.setdefault((near, far), CapturedConnection(near, far))
        if len(self._connections) > _MAX_CONNECTIONS:
            del self._connections[next(iter(self._connections))]
        (path, body), (status, reply) = request, answer
        for source, start, data in (
            (far, f"POST {path} HTTP/1.1", body),
            (near, f"HTTP/1.1 {status}", reply),
        ):
            head = f"{start}\r\n{_TUNNEL_TYPE}\r\nContent-Length: {len(data)}\r\n\r\n"
            self.piece(connection, source, head.encode() + data)

    def keys(self, keys: Keys) -> None:
        """Write the keys of an RTMFP session, a line for each direction; threads may call this."""
        if self._file is None or not isinstance(keys.cipher, FlashCipher):
            return
        for each in keys.cipher.protections:
            hmac_key = f":{each.hmac_key.hex()}" if each.hmac_length else ""
            self.secret(f"{each.key.hex()}{hmac_key}".encode())

    def secret(self, line: bytes) -> None:
        """Write a line of the file of keys: of an RTMFP session, or of a browser's DTLS."""
        if self._file is None:
            return
        with suppress(OSError, ValueError):  # closed meanwhile, or a full disk
            self._keys.write(line + b"\n")

    def _near(self, opened: socket.socket, far: Address) -> Address:
        """The own address of a socket, towards `far` if it is bound to all."""
        return self._towards(opened.getsockname()[:2], far)

    def _towards(self, bound: Address, far: Address) -> Address:
        host, port = bound
        if host in _ANY:
            if far[0] not in self._hosts:
                self._hosts[far[0]] = _source_towards(far)
            host = self._hosts[far[0]]
        return host, port

    def _write(self, write: Any, at: float | None = None) -> None:
        """Write a packet, unless the capture has ended; a capture never ends a call."""
        if self._file is None:
            return
        try:
            write(self._offset + (monotonic() if at is None else at))
        except ValueError:  # an address that is none, as of a relay
            return
        except OSError as error:
            self._stopped(error.strerror or str(error))
            return
        if self._pcap.size >= self._limit:
            self._stopped("it has reached its limit")

    def _stopped(self, reason: str) -> None:
        self._log.warning("capture-stopped", file=self._path, reason=reason)
        self._finish()

    def _flush(self) -> None:
        if self._file is None:
            return
        try:
            self._file.flush()
        except OSError as error:
            self._stopped(error.strerror or str(error))

    def _finish(self) -> None:
        if self._file is None:
            return
        file, self._file = self._file, None
        self._flusher.stop()
        self._flusher.close()
        self._keys.close()
        try:
            file.close()
        except OSError as error:
            reason = error.strerror or str(error)
            self._log.warning("capture-stopped", file=self._path, reason=reason)


class _Watched:
    """Has all that `inner` has; each call of the methods named is told, with result and arguments.

    What is told may give another result instead.
    """

    def __init__(self, inner: Any, **told: Callable[..., Any]) -> None:
        self._inner = inner
        for name, tell in told.items():
            setattr(self, name, partial(_call, getattr(inner, name), tell))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def _call(method: Callable[..., Any], tell: Callable[..., Any], *arguments: Any) -> Any:
    result = method(*arguments)
    instead = tell(result, *arguments)
    return result if instead is None else instead


class _ConnectionTap:
    """What is said on a connection, written by either end."""

    def __init__(self, opened: socket.socket, capture: PacketCapture) -> None:
        self._opened, self._capture = opened, capture
        self._connection: CapturedConnection | None = None

    def _told(self) -> CapturedConnection | None:
        """The connection with its addresses, which it has once it is connected."""
        if self._connection is None:
            try:
                far = self._opened.getpeername()[:2]
                self._connection = CapturedConnection(self._opened.getsockname()[:2], far)
            except OSError:
                return None
        return self._connection

    def received(self, data: bytes, size: int) -> None:
        if data:
            self.decrypted(data)
        else:
            self.ended(data)

    def ended(self, data: bytes, size: int = 0) -> None:
        """Write that the far end has closed, if nothing has come."""
        if not data and (connection := self._told()) is not None:
            self._capture.end(connection, connection.far)

    def decrypted(self, data: bytes, *_: object) -> None:
        if data and (connection := self._told()) is not None:
            self._capture.piece(connection, connection.far, data)

    def sent(self, size: int, data: bytes) -> None:
        """Write what the system has taken."""
        self.encrypted(None, data[:size])

    def sent_buffers(self, size: int, buffers: Any) -> None:
        self.encrypted(None, b"".join(buffers)[:size])

    def encrypted(self, result: None, data: bytes) -> None:
        if data and (connection := self._told()) is not None:
            self._capture.piece(connection, connection.near, bytes(data))

    def closed(self, result: None) -> None:
        if self._connection is not None:
            self._capture.end(self._connection, self._connection.near)


def _opened(path: Path) -> int:
    """Open a file for its owner alone, also if it was there with other rights."""
    fd = os.open(path, _FLAGS, _MODE)
    os.fchmod(fd, _MODE)
    return fd


def _source_towards(far: Address) -> str:
    """The address that the system sends from to a host."""
    family = socket.AF_INET6 if ":" in far[0] else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((*far, 0, 0) if family == socket.AF_INET6 else far)
            host: str = probe.getsockname()[0]
            return host
    except OSError:
        return "::1" if family == socket.AF_INET6 else "127.0.0.1"

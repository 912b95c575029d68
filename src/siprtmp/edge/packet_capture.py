"""`--capture FILE`: what the gateway sees on its SIP, RTP, RTMP and RTMFP sockets, as a capture.

Own design: sockets are wrapped where they are opened, by the taps of both families.  What TLS
carries is written as it is read, in the clear, and the keys of RTMFP sessions go to a file beside:
both files are for their owner alone.  The capture ends at `LIMIT`, and when the disk is full; calls
go on.
"""

import os
import socket
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar, cast

from gevent import get_hub

import p2psip.net.tap
import rtmplite.net.tap
from p2psip.net.clock import monotonic, wallclock
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

_T = TypeVar("_T")


class PacketCapture(p2psip.net.tap.SocketTap, rtmplite.net.tap.SocketTap):
    """A capture of every socket that is opened from now on, until `close`.

    It is the tap of both families.  Raises ConfigError if a file cannot be written.
    """

    def __init__(self, path: Path, log: Log, limit: int = LIMIT) -> None:
        self._path, self._log, self._limit = path, log, limit
        self._offset, self._hosts = wallclock(), dict[str, str]()
        self._connections: dict[
            tuple[Address, Address], CapturedConnection
        ] = {}  # of HTTP with tunnels
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
        p2psip.net.tap.Tapping.current = rtmplite.net.tap.Tapping.current = self
        log.warning("capturing", file=path, keys=self.keys_path, most=f"{limit >> 20} MiB")

    def close(self) -> None:
        """Complete the files, and look no more.  Idempotent."""
        self._finish()
        p2psip.net.tap.Tapping.current = p2psip.net.tap.SocketTap()
        rtmplite.net.tap.Tapping.current = rtmplite.net.tap.SocketTap()

    def datagram(self, source: Address, target: Address, data: bytes) -> None:
        self._write(partial(self._pcap.datagram, source, target, data))

    def piece(self, connection: CapturedConnection, source: Address, data: bytes) -> None:
        self._write(partial(self._pcap.piece, connection, source, data))

    def end(self, connection: CapturedConnection, source: Address) -> None:
        self._write(partial(self._pcap.end, connection, source))

    def datagrams(self, opened: socket.socket) -> socket.socket:
        return cast(socket.socket, _UdpSocket(opened, self))

    def connection(self, opened: socket.socket, tls: _T) -> tuple[socket.socket, _T]:
        tap = _ConnectionTap(opened, self)
        stream = _TcpSocket(opened, self, tap, is_tls=tls is not None)
        tls_tap = None if tls is None else _TlsTap(tls, self, tap)
        return cast(socket.socket, stream), cast(_T, tls_tap)

    def profile(self, profile: CryptoProfile) -> CryptoProfile:
        return cast(CryptoProfile, _Profile(profile, self))

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
            with suppress(OSError, ValueError):  # closed meanwhile, or a full disk
                self._keys.write(f"{each.key.hex()}{hmac_key}\n".encode())

    def near(self, opened: socket.socket, far: Address) -> Address:
        """The own address of a socket, towards `far` if it is bound to all."""
        return self._towards(opened.getsockname()[:2], far)

    def _towards(self, bound: Address, far: Address) -> Address:
        host, port = bound
        if host in _ANY:
            if far[0] not in self._hosts:
                self._hosts[far[0]] = _source_towards(far)
            host = self._hosts[far[0]]
        return host, port

    def _write(self, write: Any) -> None:
        """Write a packet, unless the capture has ended; a capture never ends a call."""
        if self._file is None:
            return
        try:
            write(self._offset + monotonic())
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


class _Wrapper:
    """Has all that the wrapped object has."""

    def __init__(self, inner: Any, capture: PacketCapture) -> None:
        self._inner, self._capture = inner, capture

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class _UdpSocket(_Wrapper):
    """A UDP socket that is looked at."""

    def recvfrom(self, size: int) -> tuple[bytes, Any]:
        data, source = self._inner.recvfrom(size)
        near = self._capture.near(self._inner, source[:2])
        self._capture.datagram(source[:2], near, data)
        return data, source

    def sendto(self, data: bytes, target: Any) -> int:
        sent: int = self._inner.sendto(data, target)
        near = self._capture.near(self._inner, target[:2])
        self._capture.datagram(near, target[:2], bytes(data))
        return sent


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

    def received(self, data: bytes) -> None:
        if (connection := self._told()) is not None:
            if data:
                self._capture.piece(connection, connection.far, data)
            else:
                self._capture.end(connection, connection.far)

    def sent(self, data: bytes) -> None:
        if data and (connection := self._told()) is not None:
            self._capture.piece(connection, connection.near, data)

    def closed(self) -> None:
        if self._connection is not None:
            self._capture.end(self._connection, self._connection.near)


class _TcpSocket(_Wrapper):
    """A TCP socket that is looked at; with TLS only its end is."""

    def __init__(
        self, inner: socket.socket, capture: PacketCapture, tap: _ConnectionTap, *, is_tls: bool
    ) -> None:
        super().__init__(inner, capture)
        self._tap, self._is_tls = tap, is_tls

    def recv(self, size: int) -> bytes:
        data: bytes = self._inner.recv(size)
        if not self._is_tls or not data:
            self._tap.received(data)
        return data

    def send(self, data: bytes) -> int:
        sent: int = self._inner.send(data)
        if not self._is_tls:
            self._tap.sent(bytes(data[:sent]))
        return sent

    def sendmsg(self, buffers: Any) -> int:
        sent: int = self._inner.sendmsg(buffers)
        if not self._is_tls:
            self._tap.sent(b"".join(buffers)[:sent])
        return sent

    def close(self) -> None:
        self._tap.closed()
        self._inner.close()


class _TlsTap(_Wrapper):
    """TLS that is looked at where it is in the clear."""

    def __init__(self, inner: Any, capture: PacketCapture, tap: _ConnectionTap) -> None:
        super().__init__(inner, capture)
        self._tap = tap

    def receive(self, data: bytes) -> bytes:
        plain: bytes = self._inner.receive(data)
        if plain:
            self._tap.received(plain)
        return plain

    def send(self, data: bytes) -> None:
        self._tap.sent(bytes(data))
        self._inner.send(data)


class _Profile(_Wrapper):
    """A cryptography profile whose keys are written down: RFC 7016 §3.5.1.1."""

    def initiate(self, far_certificate: bytes) -> Any:
        return _Agreement(self._inner.initiate(far_certificate), self._capture)

    def respond(self, far_component: bytes, far_certificate: bytes) -> KeyingAnswer:
        answer: KeyingAnswer = self._inner.respond(far_component, far_certificate)
        self._capture.keys(answer.keys)
        return answer


class _Agreement(_Wrapper):
    """An initiator's half of a keying: RFC 7016 §3.5.1.1.1."""

    def agree(self, far_component: bytes) -> Keys:
        keys: Keys = self._inner.agree(far_component)
        self._capture.keys(keys)
        return keys


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

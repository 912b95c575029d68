"""The port of all browsers, by UDP and TCP, whose packets find their session.

Own design: a check of ICE names its session, by a user name that was given out; what else comes
counts only from an address that such a check has come from.  A datagram of a stranger costs a look
into one table, and gets no answer.
"""

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from gevent import get_hub
from gevent.monkey import get_original

from p2psip.errors import RemoteError
from p2psip.nat.demultiplexing import DatagramKind, kind_of
from p2psip.nat.ice_credentials import HostPort
from p2psip.nat.ice_lite import IceLite
from p2psip.nat.stun import StunClass, StunMessage, StunType
from p2psip.net.alarm import Alarm
from p2psip.net.clock import monotonic, wallclock
from p2psip.net.tap import Tapping
from p2psip.sdp.jsep import BrowserEnd
from rtmplite.live.streams import Registry
from rtmplite.rtmp.netconnection import Application
from siprtmp.edge.webrtc_tcp import MAX_PACKET, WebRtcTcp, bound_alike
from siprtmp.media.browser_transport import BrowserTransport
from siprtmp.media.stream import StreamSettings
from siprtmp.media.transcode import audio_decoder
from siprtmp.media.transcode.video_transcoder import VideoTranscoders
from siprtmp.media.transport import MediaAddress
from siprtmp.operation.arguments import ConfigError, needs_extra
from siprtmp.settings.table import MediaSettings, is_wildcard
from siprtmp.web.browser_sessions import BrowserLog, BrowserSessions

try:
    from p2psip.net import dtls
except ImportError:  # without the extra
    dtls = None  # type: ignore[assignment]

READ: Final = 1  # libev's number for an io watcher that waits for input
BURST: Final = 64  # datagrams read per wake-up
BUFFER: Final = 1 << 20  # octets the system may keep for us while the loop is busy
MEDIA_TIMEOUT: Final = 60.0  # s without media or reports, beside the consent of ICE

plain_socket: Final[type[socket.socket]] = get_original("socket", "socket")


class WebRtcSide:
    """The `BrowserPort` of a gateway, and its `sessions`.

    Raises OSError as `bind` does, and ConfigError without the extra.
    """

    def __init__(
        self,
        address: tuple[str, int],
        external: str | None,
        media: MediaSettings,
        registry: Registry,
        log: BrowserLog,
        applications: Callable[[str], Application | None] = lambda name: None,
        transcoders: VideoTranscoders | None = None,
    ) -> None:
        if dtls is None:
            raise ConfigError(needs_extra("--webrtc", "webrtc"))
        self._identity = dtls.DtlsIdentity()
        self._packet_size = media.video_packet_size
        bound, stream = bound_alike(partial(_bound, address))
        self.address: HostPort = bound.getsockname()[:2]
        self._socket: Any = Tapping.current.datagrams(bound)
        hosts = [external, None if is_wildcard(address[0]) else self.address[0]]
        self._told = [(host, self.address[1]) for host in dict.fromkeys(hosts) if host]
        self._by_name: dict[bytes, BrowserTransport] = {}
        self._by_source: dict[HostPort, BrowserTransport] = {}
        self.sessions = BrowserSessions(
            registry, self, os.urandom, monotonic, log, applications, transcoders
        )
        self._tcp = WebRtcTcp(stream, self)
        self._watcher: Any = get_hub().loop.io(bound.fileno(), READ)
        self._watcher.start(self._receive)

    # -- BrowserPort --------------------------------------------------------------------

    def attach(self, now: float) -> tuple[BrowserTransport, BrowserEnd]:
        identity, ice = self._identity, IceLite(os.urandom, now)
        host, port = self._told[0]
        transport = BrowserTransport(
            MediaAddress(host, port, port),
            ice,
            lambda fingerprint: dtls.DtlsEnd(identity, fingerprint),
            self._send,
            Alarm,
            os.urandom,
            now,
        )
        return transport, self._known(transport)

    def restart(
        self, transport: BrowserTransport, theirs: tuple[str, str], now: float
    ) -> BrowserEnd:
        self._by_name.pop(transport.ice.ufrag.encode(), None)
        transport.ice = transport.ice.restarted(theirs, os.urandom, now)
        return self._known(transport)

    def _known(self, transport: BrowserTransport) -> BrowserEnd:
        ice = transport.ice
        self._by_name[ice.ufrag.encode()] = transport
        fingerprint, told = self._identity.fingerprint, tuple(self._told)
        return BrowserEnd(ice.ufrag, ice.password, fingerprint, told, has_tcp=True)

    def detach(self, transport: BrowserTransport) -> None:
        self._by_name.pop(transport.ice.ufrag.encode(), None)
        for source in tuple(transport.ice.sources):
            if self._by_source.get(source) is transport:
                del self._by_source[source]
                if (connection := self._tcp.connections.get(source)) is not None:
                    connection.close()

    def settings(self) -> StreamSettings:
        return StreamSettings(
            os.urandom,
            cname=os.urandom(9).hex(),  # RFC 3550 §6.5.1
            media_timeout=MEDIA_TIMEOUT,
            wallclock=wallclock(),
            max_octets=self._packet_size,
            transcoding=audio_decoder.is_available(),
        )

    # -- datagrams ----------------------------------------------------------------------

    def _receive(self) -> None:
        for _ in range(BURST):
            try:
                data, source = self._socket.recvfrom(MAX_PACKET)
            except BlockingIOError:
                return
            except OSError:
                return  # what is behind it is read at the next wake-up
            if source[:2] not in self._tcp.connections:  # one address is that of one peer
                self.take(data, source[:2], monotonic())

    def take(self, data: bytes, source: HostPort, now: float) -> None:
        """Take a packet that has come by UDP or TCP."""
        kind = kind_of(data)
        if kind is DatagramKind.STUN:
            self._check(data, source, now)
        elif kind is not None and (transport := self._by_source.get(source)) is not None:
            transport.received(kind, data, now)

    def _check(self, data: bytes, source: HostPort, now: float) -> None:
        """Give a check to the session that it names, unless the address is another's.

        An answer to a check of ours names none, and counts only from where a check has come.
        """
        try:
            request = StunMessage.parse(data)
        except RemoteError:
            return
        name = (request.get(StunType.USERNAME) or b"").partition(b":")[0]
        asks = request.kind is StunClass.REQUEST
        transport = self._by_name.get(name) if asks else self._by_source.get(source)
        if transport is None or self._by_source.get(source, transport) is not transport:
            return
        before = tuple(transport.ice.sources)
        transport.check(request, source, now)
        sources = transport.ice.sources
        if source not in before and source in sources:
            self._by_source[source] = transport
        for gone in before:
            if gone not in sources:
                self._by_source.pop(gone, None)

    def knows(self, source: HostPort) -> bool:
        return source in self._by_source

    def lost(self, source: HostPort) -> None:
        if (transport := self._by_source.pop(source, None)) is not None:
            transport.ice.lost(source)

    def _send(self, data: bytes, to: HostPort) -> None:
        if (connection := self._tcp.connections.get(to)) is not None:
            connection.send(data)
            return
        with suppress(OSError):  # lost on the way, as UDP may
            self._socket.sendto(data, to)

    def stop(self) -> None:
        """End all sessions, and close the port."""
        self.sessions.stop()
        self._tcp.close()
        self._watcher.stop()
        self._watcher.close()
        self._socket.close()


def _bound(address: HostPort) -> socket.socket:
    """A UDP socket at an address.  Raises OSError as `bind` does."""
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    bound = plain_socket(family, socket.SOCK_DGRAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
    bound.setblocking(False)
    try:
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound

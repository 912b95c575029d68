"""The UDP ports and the timers of calls.

Own design: a call has a pair of ports (RFC 3550 §11); this opens their sockets, and wakes the
machines that use them.
"""

import os
from collections.abc import Callable, Collection

from p2psip.errors import LocalError
from p2psip.net.alarm import Alarm
from p2psip.net.clock import wallclock
from p2psip.net.descriptors import MEDIA, refuse_last
from p2psip.net.port_pool import PortPool
from p2psip.net.rtp_ports import MediaPort
from p2psip.sip.uri import Uri
from siprtmp.calls.call import AudioCall
from siprtmp.calls.context import Timed
from siprtmp.edge.local_network import LocalNetwork
from siprtmp.edge.wakeup_coalescing import WakeupCoalescer
from siprtmp.media.leg import Leg
from siprtmp.operation.config import Settings
from siprtmp.operation.logs import Log


class MediaSide:
    """The `MediaEdge` of all calls.

    `media_host` is where peers outside send media to, `host_for` has the address for given peers;
    `phone_hosts` tells where a user's phones have registered from.
    """

    def __init__(
        self,
        settings: Settings,
        bind_ip: str,
        network: LocalNetwork,
        phone_hosts: Callable[[Uri, float], Collection[str]],
        log: Log,
    ) -> None:
        self.media_host = settings.external_ip or bind_ip
        self._phone_hosts, self.host_for = phone_hosts, network.host_for
        self._bind_ip, self._log = bind_ip, log
        self._latch, self._timeout = settings.nat, settings.media_timeout
        self._ports = PortPool(*settings.rtp_ports)
        self._alarms: dict[Leg, Alarm] = {}
        self._gatherer = WakeupCoalescer()

    @property
    def legs(self) -> int:
        """The number of calls that have ports."""
        return len(self._alarms)

    def open_leg(self, listener: AudioCall, now: float) -> tuple[Leg, int]:
        """Ports and a leg for a call: RFC 3550 §11.  Raises LocalError without free ports."""
        port = self._open_port()
        alarm: Alarm
        leg = Leg(
            port,
            listener,
            os.urandom,
            now,
            cname=f"{os.urandom(6).hex()}@{self.media_host}",  # RFC 3550 §6.5.1 [cname-is-unique]
            media_timeout=self._timeout,
            wallclock=wallclock(),
            wake=lambda: alarm.set(),
        )
        port.on_rtp, port.on_rtcp = leg.on_rtp, leg.on_rtcp
        alarm = self._alarms[leg] = Alarm(leg)
        self._gatherer.set_calls(len(self._alarms))
        return leg, port.rtp_port

    def phone_hosts(self, user: Uri, now: float) -> Collection[str]:
        """Where the phones of a user of ours registered from: RFC 3261 §10.2."""
        return self._phone_hosts(user, now)

    def close_leg(self, leg: Leg) -> None:
        """Stop the timer of a leg that is closed."""
        alarm = self._alarms.pop(leg, None)
        if alarm is not None:
            alarm.cancel()
        self._gatherer.set_calls(len(self._alarms))

    def reserve(self) -> MediaPort:
        """Ports whose traffic is dropped: RFC 3550 §11.  Raises LocalError without free ports."""
        return self._open_port()

    def waker(self, machine: Timed) -> Alarm:
        """A timer for a machine."""
        return Alarm(machine)

    def _open_port(self) -> MediaPort:
        """A pair of ports, whose datagrams are dropped until somebody takes them."""
        try:
            refuse_last(MEDIA)
            return MediaPort(self._bind_ip, self._ports, _unheard, _unheard, latch=self._latch)
        except OSError as error:  # no descriptor is left, or the address has gone
            self._log.warning("no-media-port", reason=error.strerror)
            raise LocalError("no media port") from error


def _unheard(data: bytes, now: float) -> None:
    """Drop a datagram, on ports that have no leg yet."""

"""Looks at the machine: settings, ports, addresses, certificate, names, clock and limits.

Own design: a port is tried by binding it, for a moment, so that a gateway that runs already counts
as the program that has it.  A certificate is verified by itself, as the one root, which tells its
times and whether the key fits, and leaves the chain to the peers.
"""

import errno
import ipaddress
import resource
import ssl
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from gevent import socket

import siprtmp
from p2psip.errors import LocalError
from p2psip.net.locator import ServerLocator, server_uri
from p2psip.net.tls import names_in, server_context
from rtmplite.net.server.settings import TlsSettings
from siprtmp.doctor.finding import NOTE, StepFound, faulty, good
from siprtmp.operation.arguments import ConfigError
from siprtmp.settings.load import load
from siprtmp.settings.table import ListenerSettings, NetworkSettings, is_wildcard

ENOUGH_FILES: Final = 4096  # a call has some six, a client of RTMP has one
ENOUGH_BUFFER: Final = 1 << 20  # octets, what the port of browsers asks for
_BUFFERS: Final = Path("/proc/sys/net/core/rmem_max")
_DATAGRAMS: Final = ("rtmfp", "webrtc")
_BOTH: Final = "sip"
_EXPIRED, _NOT_YET = 10, 9  # OpenSSL's numbers of these errors
_WHY: Final = {
    errno.EADDRINUSE: ("port-busy", "another program has it: stop that, or name another port"),
    errno.EACCES: ("port-forbidden", "ports below 1024 need CAP_NET_BIND_SERVICE"),
    errno.EADDRNOTAVAIL: ("address-absent", "this machine has no such address: see `ip address`"),
}


def examined(arguments: Sequence[str]) -> Iterator[StepFound]:
    """Look at the machine as it would be served with these options."""
    try:
        settings = load(arguments)
    except ConfigError as error:
        said = str(error)
        fault = "extra-missing" if "needs the extra" in said else "settings"
        yield faulty("settings", fault, said, "change the option or the file as it says")
        return
    yield good("settings", "they can be served")
    yield from _ports(settings.listeners)
    yield from _outside(settings.listeners, settings.network)
    yield from _certificate(settings.tls)
    yield from _proxy(settings.calls.outbound_proxy)
    yield _clock(time.time())
    yield _files(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    yield from _buffers(_BUFFERS)


def _ports(listeners: ListenerSettings) -> Iterator[StepFound]:
    for name, (host, port) in listeners.all():
        kinds = [socket.SOCK_DGRAM] if name in _DATAGRAMS else [socket.SOCK_STREAM]
        if name == _BOTH:
            kinds.append(socket.SOCK_DGRAM)
        for kind in kinds:
            yield _port(f"--{name} {host}:{port}", host, port, kind)


def _port(step: str, host: str, port: int, kind: int) -> StepFound:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    word = "UDP" if kind == socket.SOCK_DGRAM else "TCP"
    with socket.socket(family, kind) as tried:
        if kind == socket.SOCK_STREAM:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((host, port))
        except OSError as error:
            fault, cure = _WHY.get(error.errno or 0, ("port", "see the reason"))
            return faulty(step, fault, f"{word}: {error.strerror}", cure)
    return good(step, f"{word} is free")


def _outside(listeners: ListenerSettings, network: NetworkSettings) -> Iterator[StepFound]:
    """Whether phones outside get an address that they can reach."""
    told = bool(network.external_ip or network.stun or network.turn)
    for host, _ in listeners.sip:
        inside = not is_wildcard(host) and ipaddress.ip_address(host).is_private
        if inside and not ipaddress.ip_address(host).is_loopback and not told:
            cure = "name the router's address by --external-ip, or a server by --stun"
            what = f"{host} is an address of a local network: phones outside hear nothing"
            yield StepFound("NAT", NOTE, what, "nat", cure)


def _certificate(tls: TlsSettings) -> Iterator[StepFound]:
    path = tls.tls_cert
    if path is None:
        return
    step = f"--tls-cert {path}"
    try:
        context, names = server_context(path, tls.tls_key), sorted(names_in(path))
    except LocalError as error:
        yield faulty(step, "certificate", str(error), "give a PEM file with its own key")
        return
    number = _verified(context, path)
    if number == _EXPIRED:
        yield faulty(step, "certificate-expired", "it has expired", "renew it, and send SIGHUP")
    elif number == _NOT_YET:
        cure = "set the clock of this machine, or wait"
        yield faulty(step, "certificate-early", "it is not valid yet", cure)
    else:
        yield good(step, f"it is for {', '.join(names) or 'no name'}")


def _verified(context: ssl.SSLContext, path: Path) -> int:
    """Return OpenSSL's error number for a handshake with our own certificate, 0 if it is valid."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    client.load_verify_locations(path)
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = client.wrap_bio(down, up), context.wrap_bio(up, down, server_side=True)
    for _ in range(3):  # there, back, there
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError as error:
                return int(error.verify_code)
    return 0


def _proxy(name: str | None) -> Iterator[StepFound]:
    if name is None:
        return
    step, begun = f"--outbound-proxy {name}", time.monotonic()
    found = ServerLocator().flows(server_uri(name))
    took = 1000 * (time.monotonic() - begun)
    if found:
        yield good(step, f"{len(found)} servers by DNS", took)
    else:
        cure = "look at its SRV and A records, and at /etc/resolv.conf"
        yield faulty(step, "dns", "DNS has no server of that name", cure, took)


def _clock(now: float) -> StepFound:
    """Own design: a clock before the day of this program's files is wrong."""
    made = Path(siprtmp.__file__).stat().st_mtime
    if now < made:
        cure = "set it, as by systemd-timesyncd: certificates and nonces depend on it"
        return faulty("clock", "clock", time.strftime("it says %F", time.gmtime(now)), cure)
    return good("clock", time.strftime("%FT%TZ", time.gmtime(now)))


def _files(limit: int) -> StepFound:
    if limit != resource.RLIM_INFINITY and limit < ENOUGH_FILES:
        cure = "raise it by `ulimit -n 20000`, or LimitNOFILE= of systemd"
        what = f"{limit} files and sockets, enough for few clients"
        return faulty("descriptors", "descriptors", what, cure)
    return good("descriptors", f"{limit} files and sockets")


def _buffers(path: Path) -> Iterator[StepFound]:
    if path.exists():
        size = int(path.read_text())
        if size < ENOUGH_BUFFER:
            cure = f"sysctl net.core.rmem_max={ENOUGH_BUFFER}"
            what = f"{size} octets at most: datagrams are lost under load"
            yield StepFound("UDP buffers", NOTE, what, "udp-buffers", cure)
        else:
            yield good("UDP buffers", f"{size} octets")

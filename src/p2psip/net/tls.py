"""TLS that takes bytes and gives bytes, for the sockets of `p2psip.net.tcp`.

Implements RFC 3261 §26.2.2 for both sides: a server shows its certificate, a client checks that it
is good for the host of the next hop.

Departs from RFC 3261 §26.2.1 [rsa-aes-cbc-sha]: OpenSSL no longer offers that suite, with which a
stolen key opens all that was recorded before.
Departs from RFC 3261 §26.3.1 [mutual-authentication]: no client is asked for a certificate: phones
have none, and prove a password.

Own design: OpenSSL is fed and emptied through memory, so that one connection machine serves TCP
and TLS alike.  Contexts are read when a connection begins, so that a renewed certificate is used
for the next one.
"""

import ipaddress
import ssl
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from Crypto.Util.asn1 import DerObject, DerObjectId, DerOctetString, DerSequence

from p2psip.errors import LocalError, RemoteError
from p2psip.sip.uri import Uri
from p2psip.transaction.flow import Flow

HANDSHAKE: Final = b"\x16"  # the first octet of TLS, which no HTTP request begins with
READ_SIZE: Final = 65536  # octets asked of OpenSSL at once; it gives a record, 16 KiB at most
MAX_CERTIFICATE: Final = 100  # names of one certificate that are looked at
_ALTERNATIVE_NAMES: Final = "2.5.29.17"  # in DER, as the octets that follow begin fields
_EXTENSIONS: Final = b"\xa3"
_DNS_NAME: Final = b"\x82"


@dataclass(slots=True)
class TlsContexts:
    """The settings of TLS, without `server` for opening alone; `names` are in its certificate."""

    client: ssl.SSLContext
    server: ssl.SSLContext | None = None
    names: frozenset[str] = frozenset()

    def begin(self, domain: str = "") -> "Tls":
        """The TLS of a new connection: as a client if it is to `domain`."""
        context = self.client if domain else self.server  # §26.3.1 [servers-have-tls] [opens-tls]
        assert context is not None
        return Tls(context, domain)


class Tls:
    """One TLS connection; `ended` becomes true when the peer says that nothing more will come.

    `domain` is the name that the server's certificate must be good for (RFC 3263 §4.1); without one
    we are the server.  `is_ready` tells that the handshake is over.
    """

    def __init__(self, context: ssl.SSLContext, domain: str = "") -> None:
        self._from_peer, self._to_peer = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._domain = domain
        self._tls = context.wrap_bio(
            self._from_peer,
            self._to_peer,
            server_side=not domain,
            server_hostname=None if not domain or _address(domain) else domain,
        )
        self._waiting = bytearray()  # what cannot be encrypted before the handshake is over
        self.is_ready = self.ended = False
        self._shake()

    def receive(self, data: bytes) -> bytes:
        """Decrypt bytes of the peer.  Raises ssl.SSLError, for which `take_output` has an alert."""
        self._from_peer.write(data)
        if not self.is_ready and not self._shake():
            return b""
        pieces = []
        while not self.ended:
            try:
                piece = self._tls.read(READ_SIZE)
            except ssl.SSLWantReadError:
                break
            except ssl.SSLZeroReturnError:
                piece = b""
            self.ended = not piece
            pieces.append(piece)
        return b"".join(pieces)

    def send(self, data: bytes) -> None:
        """Encrypt bytes for the peer, or keep them until the handshake is over."""
        if self.is_ready:
            self._tls.write(data)
        else:
            self._waiting += data

    def take_output(self) -> bytes:
        return self._to_peer.read()

    @property
    def called(self) -> str:
        """The name by which a client has called us (SNI), "" for none.  Own design."""
        return str(getattr(self._tls, "called", ""))

    @property
    def waiting(self) -> int:
        """How many octets wait for the end of the handshake."""
        return len(self._waiting)

    def _shake(self) -> bool:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        if self._domain and self._tls.context.verify_mode is ssl.CERT_REQUIRED:
            # §26.2.2 [certificate-is-validated]
            _check_name(self._tls.getpeercert() or {}, self._domain)
        self.is_ready = True
        if self._waiting:
            self._tls.write(bytes(self._waiting))
            self._waiting.clear()
        return True


def may_open(flow: Flow, contexts: TlsContexts | None) -> bool:
    """Whether a connection can be opened: by TLS to a name alone."""
    return flow.transport in ("TCP", "WS") or (contexts is not None and bool(flow.domain))


def server_context(certificate: Path, key: Path | None = None) -> ssl.SSLContext:
    """Settings of a listener; `certificate` is a PEM file with the chain, and the key without one.

    Raises LocalError naming the file that cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2  # whatever the system still allows
    context.options |= ssl.OP_NO_RENEGOTIATION  # a client could make us compute for ever
    context.sni_callback = _note_name
    chain, private = _content(certificate), _content(key or certificate)
    try:
        context.load_cert_chain(certificate, key, password="")  # lest a passphrase is asked for
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise LocalError(_complaint(certificate, key, chain, private, error)) from None
    return context


def names_in(certificate: Path) -> frozenset[str]:
    """The DNS names of the first certificate of a file, in small letters: RFC 3261 §26.3.1.

    Raises LocalError naming the file.  Own design: Python's ssl tells them of a peer alone.
    """
    try:
        text = certificate.read_text("ascii", "replace")
        start, end = text.index(ssl.PEM_HEADER), text.index(ssl.PEM_FOOTER)
        body, *_ = _sequence(ssl.PEM_cert_to_DER_cert(text[start:end] + ssl.PEM_FOOTER))
        *_, extensions = _sequence(body)
        return frozenset(_alternative_names(extensions))
    except (OSError, ValueError, IndexError, TypeError) as error:
        raise LocalError(f"{certificate}: no usable certificate: {error}") from None


def _alternative_names(extensions: bytes) -> Iterator[str]:
    if extensions[:1] != _EXTENSIONS:
        return  # a certificate of the first version
    for extension in _sequence(extensions, explicit=3):
        kind, *_, value = _sequence(extension)
        if DerObjectId().decode(kind).value == _ALTERNATIVE_NAMES:
            for name in _sequence(DerOctetString().decode(value).payload):
                if name[:1] == _DNS_NAME:
                    yield DerObject().decode(name).payload.decode("ascii", "replace").lower()


def _sequence(der: bytes, explicit: int | None = None) -> list[Any]:
    """The items of a sequence, as octets unless they are numbers."""
    found = DerSequence(explicit=explicit).decode(der)
    return [found[at] for at in range(len(found))]


def _note_name(tls: Any, name: str | None, context: ssl.SSLContext) -> None:
    tls.called = (name or "").lower().rstrip(".")


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else error.strerror
        raise LocalError(f"{path}: {reason}") from None


def _complaint(
    certificate: Path, key: Path | None, chain: bytes, private: bytes, error: Exception
) -> str:
    """Say in which file what is wrong; OpenSSL's "PEM lib" stands for nearly everything."""
    if b"CERTIFICATE-----" not in chain:
        return f"{certificate}: no usable certificate: nothing in it begins with BEGIN CERTIFICATE"
    if b"PRIVATE KEY-----" not in private:
        where = "in a file of its own, or nowhere" if key is None else "not here"
        return f"{key or certificate}: no usable key: what begins with BEGIN PRIVATE KEY is {where}"
    if b"ENCRYPTED" in private:
        return f"{key or certificate}: no usable key: a passphrase protects it"
    reason = str(getattr(error, "reason", None) or error)
    if reason == "KEY_VALUES_MISMATCH":
        return f"{key or certificate}: no usable key: it is not that of the certificate"
    which = f"{certificate} and {key}" if key is not None else str(certificate)
    return f"{which}: no usable certificate and key, cut short or damaged: {reason}"


def client_context(ca: Path | None = None, *, insecure: bool = False) -> ssl.SSLContext:
    """Settings of a client, which checks certificates by `ca` unless `insecure`.  LocalError."""
    try:
        context = ssl.create_default_context(cafile=ca)  # §26.3.1 [validates-with-roots]
    except (OSError, ValueError) as error:
        raise LocalError(f"{ca}: no usable certificates: {error}") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = False  # it knows no SIP URIs: `Tls` compares the names itself
    if insecure:
        context.verify_mode = ssl.CERT_NONE
    return context


def is_good_for(certificate: Mapping[str, Any], domain: str) -> bool:
    """Whether a certificate, as `getpeercert` gives it, is that of a SIP domain.

    The SIP URIs among its subjectAltNames count, where there are some; else its DNS names.  A
    wildcard stands for nothing: a SIP domain is one name, and its hosts are others.  An address
    is compared with the addresses in it.
    """
    names = list(certificate.get("subjectAltName", ()))[:MAX_CERTIFICATE]
    if wanted := _address(domain):
        return any(kind == "IP Address" and _address(name) == wanted for kind, name in names)
    uris = [found for kind, name in names if kind == "URI" and (found := _sip_domain(name))]
    dns: Iterable[str] = (name.lower() for kind, name in names if kind == "DNS")
    return domain.lower().rstrip(".") in (uris or dns)


def in_words(error: ssl.SSLError) -> str:
    """The reason of an error, without OpenSSL's file names and line numbers."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not trusted: {error.verify_message}"
    return (error.reason or str(error)).replace("_", " ").lower()


def _check_name(certificate: Mapping[str, Any], domain: str) -> None:
    if not is_good_for(certificate, domain):
        error = ssl.SSLCertVerificationError()
        error.verify_message = f"it is not good for {domain}"
        raise error


def _sip_domain(text: str) -> str:
    """The domain that a SIP URI in a certificate names; empty for a URI with a user, or another."""
    try:
        uri = Uri.parse(text)
    except RemoteError:
        return ""
    return uri.host if uri.scheme == "sip" and uri.user is None else ""


def _address(host: str) -> str:
    """The address in its one spelling; empty for a name."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return ""

"""DTLS for the keys of SRTP, with OpenSSL between two buffers and no socket.

Implements RFC 5764 §4.1 and §4.2, at either end of the handshake, with RFC 6347 §4.2.4 for what is
lost.

Own design: this is at the edge because OpenSSL draws its own random numbers.  Datagrams come and go
as bytes and the time is an argument, so that one UDP port can serve any number of peers.  A peer is
let in when it has answered by ICE, so there are no cookies: a flood of hellos from forged addresses
never gets here.
"""

import hmac
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from OpenSSL import SSL

from p2psip.net.tap import Tapping
from p2psip.srtp.suites import AES_CM_128_HMAC_SHA1_80 as SUITE

MTU: Final = 1200  # octets of a datagram, which every way to a browser takes
MAX_DATAGRAM: Final = 1 << 16
RESEND: Final = 1.0  # s until a flight is sent again, doubled each time. Source: RFC 6347 §4.2.4
MAX_RESEND: Final = 60.0  # s. Source: RFC 6347 §4.2.4
PROFILE: Final = b"SRTP_AES128_CM_SHA1_80"  # which all peers have
LABEL: Final = b"EXTRACTOR-dtls_srtp"  # Source: RFC 5764 §4.2
# Those of RSA are for peers that shake hands as the server, as phones do with such certificates.
CIPHERS: Final = (
    b"ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:"
    b"ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-AES256-GCM-SHA384"
)
VALID: Final = timedelta(days=30)  # of a certificate, which nobody but its hash vouches for
_HEADER: Final = 13  # octets of a record of DTLS 1.2
_HANDSHAKE: Final = 22  # the content type of its records


class SrtpKeys(NamedTuple):
    """A master key and a salt for each direction: RFC 5764 §4.2."""

    ours: tuple[bytes, bytes]
    theirs: tuple[bytes, bytes]


class DtlsIdentity:
    """A certificate of our own, made at start; `fingerprint` is for SDP: RFC 8122 §5."""

    def __init__(self) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "webrtc")])
        today = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(today - timedelta(days=1))
            .not_valid_after(today + VALID)
            .sign(key, hashes.SHA256())
        )
        self.fingerprint = fingerprint_of(certificate)
        self.context = context = SSL.Context(SSL.DTLS_METHOD)
        context.use_certificate(certificate)
        context.use_privatekey(key)
        context.set_cipher_list(CIPHERS)
        context.set_tlsext_use_srtp(PROFILE)
        context.set_options(SSL.OP_NO_QUERY_MTU | getattr(SSL, "OP_NO_DTLSv1", 0x04000000))
        # the certificate is judged by its hash alone: RFC 5763 §5
        is_asked = SSL.VERIFY_PEER | SSL.VERIFY_FAIL_IF_NO_PEER_CERT
        context.set_verify(is_asked, lambda *found: True)
        # Own design: a capture is of use with the secrets alone
        context.set_keylog_callback(lambda connection, line: Tapping.current.secret(line))


def fingerprint_of(certificate: x509.Certificate) -> str:
    """Write the SHA-256 of a certificate as SDP has it: RFC 8122 §5."""
    return certificate.fingerprint(hashes.SHA256()).hex(":").upper()


class DtlsEnd:
    """One peer's handshake: `keys` are there when it is done, `failed` says why it never will be.

    `fingerprint` is that of the peer's certificate, from its description.  `received` and `tick`
    give the datagrams to send, as does `begin` for the end that begins, the client.
    """

    def __init__(
        self, identity: DtlsIdentity, fingerprint: str, *, is_client: bool = False
    ) -> None:
        self._connection = connection = SSL.Connection(identity.context, None)
        self._is_client = is_client
        if is_client:
            connection.set_connect_state()
        else:
            connection.set_accept_state()
        connection.set_ciphertext_mtu(MTU)
        self._expected = fingerprint.upper()
        self.keys: SrtpKeys | None = None
        self.failed, self.closed = "", False
        self.deadline: float | None = None
        self._flight: list[bytes] = []
        self._wait = RESEND

    def received(self, data: bytes, now: float) -> list[bytes]:
        """Take one datagram, and return the datagrams that answer it: RFC 6347 §4.2.4."""
        if self.failed or self.closed:
            return []
        self._connection.bio_write(data)
        if self.keys is not None:
            return self._after(data)
        return self._shake(now)

    def begin(self, now: float) -> list[bytes]:
        """Say hello, as the client: RFC 6347 §4.2.4."""
        return self._shake(now)

    def _shake(self, now: float) -> list[bytes]:
        try:
            self._connection.do_handshake()
        except SSL.WantReadError:
            pass
        except SSL.Error as error:
            self.failed = _reason(error)
        else:
            self._finish()
        flight = self._output()
        if flight:
            self._flight, self._wait = flight, RESEND
            self.deadline = now + RESEND
        if self.failed or self.keys is not None:
            self.deadline = None
        return flight

    def tick(self, now: float) -> list[bytes]:
        """Send the last flight again, if nothing has come since: RFC 6347 §4.2.4."""
        if self.deadline is None or now < self.deadline:
            return []
        self._wait = min(2 * self._wait, MAX_RESEND)
        self.deadline = now + self._wait
        return self._flight

    def close(self) -> list[bytes]:
        """Tell the peer that this is the end, by an alert."""
        self.deadline = None
        if self.keys is None or self.closed:
            return []
        self.closed = True
        try:
            self._connection.shutdown()
        except SSL.Error:
            return []
        return self._output()

    def _after(self, data: bytes) -> list[bytes]:
        """Take what comes after the handshake: its last flight again, or the end.

        Own design: all records are read and dropped, since what is not read stays in memory.
        """
        try:
            while self._connection.recv(MAX_DATAGRAM):
                pass
        except SSL.ZeroReturnError:
            self.closed = True
        except SSL.Error:  # nothing to read, or nonsense
            pass
        output = self._output()
        # RFC 6347 §4.2.4 [last-flight-again]
        return output or (self._flight if data[0] == _HANDSHAKE else [])

    def _finish(self) -> None:
        """Check who the peer is, and take the keys: RFC 5764 §4.2."""
        connection = self._connection
        certificate = connection.get_peer_certificate(as_cryptography=True)
        found = fingerprint_of(certificate) if certificate is not None else ""
        # RFC 5763 §5 [certificate-matches] [mismatch-ends-it]
        if not hmac.compare_digest(found.encode(), self._expected.encode()):
            self.failed = "the certificate is not the one of the description"
            return
        if connection.get_selected_srtp_profile() != PROFILE:
            self.failed = "the peer does not take SRTP"  # RFC 5764 §4.1
            return
        key, salt = SUITE.key_octets, SUITE.salt_octets
        secret = connection.export_keying_material(LABEL, 2 * (key + salt))
        client = secret[:key], secret[2 * key : 2 * key + salt]
        server = secret[key : 2 * key], secret[2 * key + salt :]
        # RFC 5764 §4.2 [client-keys-open]
        ours, theirs = (client, server) if self._is_client else (server, client)
        self.keys = SrtpKeys(ours, theirs)

    def _output(self) -> list[bytes]:
        """The records that OpenSSL has written, in datagrams that fit."""
        output = b""
        try:
            while True:
                output += self._connection.bio_read(MAX_DATAGRAM)
        except SSL.Error:  # nothing is left
            return list(in_datagrams(output))


def in_datagrams(records: bytes) -> Iterator[bytes]:
    """Cut a run of records between them, at `MTU` octets.

    Own design: OpenSSL writes them behind each other.

    >>> record = bytes(12) + b"\\x64" + bytes(100)
    >>> [len(each) for each in in_datagrams(record * 11)]
    [1130, 113]
    """
    start = at = 0
    while at + _HEADER <= len(records):
        end = at + _HEADER + int.from_bytes(records[at + 11 : at + 13], "big")
        if end - start > MTU and at > start:
            yield records[start:at]
            start = at
        at = end
    if start < len(records):
        yield records[start:]


def _reason(error: SSL.Error) -> str:
    found = error.args[0] if error.args and isinstance(error.args[0], list) else []
    return "; ".join(each[-1] for each in found if each) or "the handshake failed"

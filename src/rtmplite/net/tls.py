"""TLS that takes bytes and gives bytes, for sockets that other modules read and write.

Implements nothing of its own: OpenSSL does it all, fed and emptied through memory.  So one system
call still carries all that a connection has to send in one turn of the loop.
"""

import ssl
from contextlib import suppress
from pathlib import Path
from typing import Final

from rtmplite.errors import LocalError

ON_PLAIN_PORT: Final = "TLS on a port without it"
CLOSED_EARLY: Final = "closed by the peer before TLS had begun; it may not speak TLS here"
CLOSED_UNHEARD: Final = "closed by the peer before it said a word; perhaps it wants rtmps://"
TO_PLAIN_CLIENT: Final = "the server speaks TLS: try rtmps://"

_ALERT, _HELLO, _MAJOR = 21, 22, 3  # content types and major version of a record of TLS

READ_SIZE: Final = 65536  # bytes asked of OpenSSL at once; it gives a record, 16 KiB at most


class Tls:
    """One TLS connection to `name`, or as the server; `ended` when the peer says so."""

    def __init__(self, context: ssl.SSLContext, name: str | None = None) -> None:
        self._from_peer, self._to_peer = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._from_peer, self._to_peer, server_side=name is None, server_hostname=name
        )
        self._waiting: list[bytes] = []  # what cannot be encrypted before the handshake is over
        self._is_ready = self.ended = False
        self._shake()

    def receive(self, data: bytes) -> bytes:
        """Decrypt; ssl.SSLError for broken TLS.  `take_output` may have an answer."""
        self._from_peer.write(data)
        if not self._is_ready and not self._shake():
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
        if self._is_ready:
            self._tls.write(data)
        else:
            self._waiting.append(data)

    def close(self) -> None:
        """Tell the peer that nothing more will come."""
        with suppress(ssl.SSLError):  # the peer has not said so yet, or there was no handshake
            self._tls.unwrap()

    @property
    def end(self) -> str:
        """The reason to give when the connection ends and TLS has not said so."""
        return "closed by the peer" if self._is_ready else CLOSED_EARLY

    @property
    def pending(self) -> int:
        """The number of bytes that `take_output` would give."""
        return self._to_peer.pending

    def take_output(self) -> bytes:
        """Return the bytes that are to be sent, once."""
        return self._to_peer.read()

    def _shake(self) -> bool:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        self._is_ready = True
        waiting, self._waiting = self._waiting, []
        for data in waiting:
            self._tls.write(data)
        return True


def server_context(certificate: Path, key: Path | None = None) -> ssl.SSLContext:
    """Settings of a listener; `certificate` is a PEM file with the chain, and the key without one.

    Raises LocalError naming the file that cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2  # whatever the system still allows
    chain, private = _content(certificate), _content(key or certificate)
    try:
        context.load_cert_chain(certificate, key, password="")  # lest a passphrase is asked for
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise LocalError(_complaint(certificate, key, chain, private, error)) from None
    return context


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
    """Settings of a client: certificates are checked unless `insecure`.

    `ca` is a PEM file of authorities to trust instead of the system's.  Raises LocalError naming
    it.
    """
    try:
        context = ssl.create_default_context(cafile=ca)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
    except (OSError, ValueError) as error:
        raise LocalError(f"{ca}: no usable certificates: {error}") from None
    if insecure:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def mistaken(first: bytes) -> str:
    """The mistake if a connection without TLS begins with these bytes; empty if they may be RTMP.

    Own design: RTMP 1.0 §5.2.2 begins with a version number, TLS on both sides with a record of
    major version 3: the client with a hello, a server that reads RTMP with an alert.
    """
    if len(first) < 2 or first[1] != _MAJOR:
        return ""
    return {_HELLO: ON_PLAIN_PORT, _ALERT: TO_PLAIN_CLIENT}.get(first[0], "")


def explain(error: ssl.SSLError) -> str:
    """The reason of an error, without OpenSSL's file names and line numbers."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the server's certificate is not trusted: {error.verify_message}"
    reason = (error.reason or str(error)).replace("_", " ").lower()
    hint = " (the other side speaks no TLS)" if reason == "wrong version number" else ""
    return f"TLS fails: {reason}{hint}"

"""A handshake of DTLS between our server and a client of OpenSSL."""

from contextlib import suppress
from typing import NamedTuple

import pytest

import p2psip.net.tap
from p2psip.net.dtls import DtlsEnd, DtlsIdentity, SrtpKeys

SSL = pytest.importorskip("OpenSSL.SSL")


class DtlsHandshake(NamedTuple):
    """What both ends have, and the datagrams as (whether they are the client's, octets)."""

    server: DtlsIdentity
    client: DtlsIdentity
    keys: SrtpKeys
    sent: list[tuple[bool, bytes]]


class _Listening(p2psip.net.tap.SocketTap):
    def __init__(self, told):
        self._told = told

    def secret(self, line):
        self._told(line)


def dtls_handshake(told=lambda line: None):
    """Shake hands; `told` is given the lines of the server's key log."""
    ours, theirs = DtlsIdentity(), DtlsIdentity()
    theirs.context.set_keylog_callback(lambda *said: None)  # which would say the same
    server = DtlsEnd(ours, theirs.fingerprint)
    client = SSL.Connection(theirs.context, None)
    client.set_connect_state()
    client.set_ciphertext_mtu(1200)
    sent = []
    before = p2psip.net.tap.Tapping.current
    p2psip.net.tap.Tapping.current = _Listening(told)
    try:
        for _ in range(4):
            with suppress(SSL.WantReadError):
                client.do_handshake()
            try:
                said = client.bio_read(1 << 16)
            except SSL.WantReadError:
                break
            answers = server.received(said, 0.0)
            sent += [(True, said), *((False, each) for each in answers)]
            for each in answers:
                client.bio_write(each)
    finally:
        p2psip.net.tap.Tapping.current = before
    assert server.keys is not None
    return DtlsHandshake(ours, theirs, server.keys, sent)

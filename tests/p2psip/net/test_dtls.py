"""The DTLS handshake of a browser's transport, with OpenSSL at the other end."""

import pytest
from OpenSSL import SSL

from p2psip.net.dtls import MTU, RESEND, DtlsEnd, DtlsIdentity, in_datagrams
from p2psip.srtp.srtp import SrtpReceiver, SrtpSender

PACKET = bytes.fromhex("80000001000000a00000cafe") + b"sound"
OURS, THEIRS = DtlsIdentity(), DtlsIdentity()


class Browser:
    """A client of the handshake, driven by hand."""

    def __init__(self, identity=THEIRS, mtu=1200):
        self.connection = SSL.Connection(identity.context, None)
        self.connection.set_connect_state()
        self.connection.set_ciphertext_mtu(mtu)
        self.done = False

    def step(self, *datagrams):
        """Take datagrams, and give those to send."""
        for data in datagrams or (b"",):
            if data:
                self.connection.bio_write(data)
            try:
                self.connection.do_handshake()
                self.done = True
            except SSL.WantReadError:
                pass
        return self.output()

    def output(self):
        written = b""
        try:
            while True:
                written += self.connection.bio_read(65536)
        except SSL.Error:
            return list(in_datagrams(written))

    def secret(self):
        return self.connection.export_keying_material(b"EXTRACTOR-dtls_srtp", 60)


def shaken(server, browser, now=0.0):
    """Carry datagrams until neither has more to say."""
    flight = browser.step()
    while flight:
        answers = [answer for data in flight for answer in server.received(data, now)]
        flight = browser.step(*answers) if answers else []


def test_both_ends_have_the_same_keys_each_for_its_direction():
    """Covers RFC 5764 §4.2 [client-keys-open]."""
    server, browser = DtlsEnd(OURS, THEIRS.fingerprint), Browser()
    shaken(server, browser)
    assert browser.done and not server.failed and server.deadline is None
    secret = browser.secret()
    theirs, ours = (secret[:16], secret[32:46]), (secret[16:32], secret[46:])
    assert server.keys == (ours, theirs)
    protected = SrtpSender(*theirs).protect_rtp(PACKET)
    assert SrtpReceiver(*server.keys.theirs).open_rtp(protected) == PACKET


def in_fragments(record, size):
    """The record of one handshake message as several, each with a part of it: RFC 6347 §4.2.4."""
    kind, body = record[13:14], record[25:]
    for number, at in enumerate(range(0, len(body), size)):
        part = body[at : at + size]
        message = kind + len(body).to_bytes(3, "big") + record[17:19]
        message += at.to_bytes(3, "big") + len(part).to_bytes(3, "big") + part
        head = record[:5] + (40 + number).to_bytes(6, "big")  # none that the peer will use
        yield head + len(message).to_bytes(2, "big") + message


def test_a_hello_in_fragments_is_understood():
    """Firefox and those with long key shares send one that no datagram takes."""
    server, browser = DtlsEnd(OURS, THEIRS.fingerprint), Browser()
    (hello,) = browser.step()
    *first, last = in_fragments(hello, 50)
    assert len(first) == 2 and all(server.received(data, 0.0) == [] for data in first)
    answers = server.received(last, 0.0)
    flight = browser.step(*answers)
    assert [server.received(data, 0.0) for data in flight] and server.keys is not None


def test_datagrams_fit_into_the_mtu():
    server, browser = DtlsEnd(OURS, THEIRS.fingerprint), Browser()
    sent = [len(answer) for data in browser.step() for answer in server.received(data, 0.0)]
    assert sent and max(sent) <= MTU


def test_another_certificate_than_the_description_has_is_refused():
    """Covers RFC 5763 §5 [certificate-matches] [mismatch-ends-it]."""
    server, browser = DtlsEnd(OURS, OURS.fingerprint), Browser()
    shaken(server, browser)
    assert server.keys is None and "certificate" in server.failed
    assert server.received(b"\x16" + bytes(20), 1.0) == [] and server.deadline is None


def test_a_client_without_a_certificate_is_refused():
    """RFC 5763 §5: OpenSSL asks for one, and ends the handshake without."""
    nobody = type("Nobody", (), {"context": SSL.Context(SSL.DTLS_METHOD)})
    nobody.context.set_tlsext_use_srtp(b"SRTP_AES128_CM_SHA1_80")
    server, browser = DtlsEnd(OURS, THEIRS.fingerprint), Browser(nobody)
    with pytest.raises(SSL.Error):
        shaken(server, browser)
    assert server.failed and server.keys is None


def test_a_flight_that_nobody_answers_is_sent_again_more_and_more_seldom():
    """RFC 6347 §4.2.4."""
    server, browser = DtlsEnd(OURS, THEIRS.fingerprint), Browser()
    (hello,) = browser.step()
    flight = server.received(hello, 10.0)
    assert server.deadline == 10.0 + RESEND and server.tick(10.5) == []
    assert server.tick(11.0) == flight and server.deadline == 13.0
    assert server.tick(13.0) == flight and server.deadline == 17.0
    browser.step(*flight)


def test_the_last_flight_is_sent_again_to_a_peer_that_repeats_its_own():
    """Covers RFC 6347 §4.2.4 [last-flight-again]."""
    server, browser = DtlsEnd(OURS, THEIRS.fingerprint), Browser()
    (hello,) = browser.step()
    second = browser.step(*server.received(hello, 0.0))
    lost = [answer for data in second for answer in server.received(data, 0.1)]
    assert server.keys is not None and lost and not browser.done
    again = [answer for data in second for answer in server.received(data, 1.1)]
    browser.step(*again)
    assert browser.done


def test_the_end_is_told_both_ways():
    server, browser = DtlsEnd(OURS, THEIRS.fingerprint), Browser()
    shaken(server, browser)
    for data in server.close():
        browser.connection.bio_write(data)
    with pytest.raises(SSL.ZeroReturnError):
        browser.connection.recv(100)
    assert server.close() == [] and server.received(b"\x17" + bytes(20), 1.0) == []
    server, browser = DtlsEnd(OURS, THEIRS.fingerprint), Browser()
    shaken(server, browser)
    browser.connection.shutdown()
    for data in browser.output():
        server.received(data, 1.0)
    assert server.closed


@pytest.mark.parametrize("data", [b"\x16", b"\x16" + bytes(12), b"\x16\xfe\xfd" + b"\xff" * 40])
def test_nonsense_is_passed_over(data):
    server, browser = DtlsEnd(OURS, THEIRS.fingerprint), Browser()
    assert server.received(data, 0.0) == []
    shaken(server, browser)
    assert server.keys is not None


def test_all_that_comes_after_the_handshake_is_read_and_dropped():
    """Own design: a peer that sends data in plenty would fill our memory."""
    server, browser = DtlsEnd(OURS, THEIRS.fingerprint), Browser()
    shaken(server, browser)
    for _ in range(3):
        browser.connection.send(b"data")
    browser.connection.shutdown()
    server.received(b"".join(browser.output()), 1.0)
    assert server.closed


# -- as the client ----------------------------------------------------------------------


def met(client, server, now=0.0):
    """Carry the datagrams of two ends of ours until neither has more to say."""
    flight, to, back = client.begin(now), server, client
    while flight:
        flight = [answer for data in flight for answer in to.received(data, now)]
        to, back = back, to


def test_an_end_may_begin_and_has_the_same_keys_turned_round():
    client = DtlsEnd(THEIRS, OURS.fingerprint, is_client=True)
    server = DtlsEnd(OURS, THEIRS.fingerprint)
    met(client, server)
    assert client.keys is not None and server.keys is not None
    assert (client.keys.ours, client.keys.theirs) == (server.keys.theirs, server.keys.ours)
    for data in client.close():
        server.received(data, 1.0)
    assert server.closed


def test_a_hello_that_is_lost_is_said_again():
    """RFC 6347 §4.2.4."""
    client = DtlsEnd(THEIRS, OURS.fingerprint, is_client=True)
    server = DtlsEnd(OURS, THEIRS.fingerprint)
    (hello,) = client.begin(0.0)
    assert client.deadline == RESEND and client.tick(RESEND) == [hello]
    assert server.received(hello, RESEND)


def test_a_server_with_another_certificate_is_not_believed():
    client = DtlsEnd(THEIRS, THEIRS.fingerprint, is_client=True)
    met(client, DtlsEnd(OURS, THEIRS.fingerprint))
    assert client.keys is None and "certificate" in client.failed

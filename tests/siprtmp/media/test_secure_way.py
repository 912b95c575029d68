"""The way of a stream with keys: what it tells the port of each datagram that came."""

from types import SimpleNamespace

from p2psip.srtp.srtp import SrtpSender
from p2psip.srtp.stream import SrtpStream
from p2psip.srtp.suites import AES_CM_128_HMAC_SHA1_80
from siprtmp.media.secure_way import SecureWay

RTP, RTCP = bytes.fromhex("80000001 00000000 00000007") + b"x", bytes.fromhex("80c90001 00000007")
OURS, THEIRS = (bytes(16), bytes(14)), (b"k" * 16, b"s" * 14)


def test_the_port_is_told_what_is_authentic():
    """Covers RFC 7362 §5: a port follows a source only if its packets are the peer's."""
    heard = []
    port = SimpleNamespace(
        on_rtp=lambda data, now: heard.append(data), on_rtcp=lambda data, now: heard.append(data)
    )
    way = SecureWay(port, lambda why: None, 64)
    keys = SimpleNamespace(
        suite=AES_CM_128_HMAC_SHA1_80,
        ours=SimpleNamespace(keys=[SimpleNamespace(secrets=OURS)]),
        theirs=SimpleNamespace(keys=[SimpleNamespace(secrets=THEIRS)]),
    )
    way.use(keys)
    peer = SrtpSender(*THEIRS)
    packet, report = peer.protect_rtp(RTP), peer.protect_rtcp(RTCP)
    forged = SrtpStream()
    forged.use(AES_CM_128_HMAC_SHA1_80, OURS, OURS)
    assert [port.on_rtp(each, 0.0) for each in (forged.protect_rtp(RTP), RTP, b"\0", packet)] == [
        False, False, False, True
    ]  # fmt: skip
    assert [port.on_rtcp(each, 0.0) for each in (forged.protect_rtcp(RTCP), RTCP, report)] == [
        False, False, True
    ]  # fmt: skip
    assert heard == [RTP, RTCP]

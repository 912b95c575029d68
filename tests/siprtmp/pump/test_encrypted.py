"""A stream with keys goes by Python, packet by packet; until then the pump has it."""

import pytest
from support.gateway.audio_rig import AUDIO
from support.pump.side import Pumps, Side

from p2psip.rtp.packet import RtpPacket
from p2psip.sdp.crypto import AgreedKeys, CryptoAttribute, SrtpKey
from p2psip.srtp.srtp import SrtpReceiver, SrtpSender
from p2psip.srtp.suites import AES_CM_128_HMAC_SHA1_80
from siprtmp.media.translate.audio_formats import PCMU

pytestmark = pytest.mark.needs("gcc")

OURS, THEIRS = SrtpKey(bytes([1]) * 16, bytes(14)), SrtpKey(bytes([2]) * 16, bytes(14))
COUNT = 40


def attribute(key):
    return CryptoAttribute(1, AES_CM_128_HMAC_SHA1_80.name, (key,))


def talk(side, first, protect):
    """The phone and the publisher say something, each packet at its time."""
    for at in range(first, first + COUNT):
        side.now += 0.02
        side.take(protect(bytes(RtpPacket(0, at, 160 * at, 7, b"u" * 160))))
        side.publish(AUDIO, 20 * at, b"\x82" + b"s" * 160)


def test_the_pump_has_a_stream_until_there_are_keys():
    """Covers RFC 3711 §3.3 [opens] [protects]: nothing leaves in clear beside it."""
    pumps = Pumps()
    side = Side(PCMU, pump=pumps)
    side.on_refused = side.told.append
    talk(side, 1, bytes)
    (outlet,) = pumps.outlets
    before = pumps.passed, outlet.passed
    assert min(before) > COUNT / 2  # the usual way of a plain call
    side.port.sent.clear()
    side.stream.secure(AgreedKeys(attribute(OURS), attribute(THEIRS), "RTP/SAVP"))
    talk(side, COUNT + 1, SrtpSender(*THEIRS.secrets).protect_rtp)
    assert (pumps.passed, outlet.passed) == before and side.stream._sending.outlet is None
    assert side.stream.received == 2 * COUNT and side.stream.refused == 0
    receiver = SrtpReceiver(*OURS.secrets)
    opened = [RtpPacket.parse(receiver.open_rtp(data)) for data in side.port.sent]
    assert [each.payload for each in opened] == [b"s" * 160] * COUNT
    assert len({each.sequence for each in opened}) == COUNT

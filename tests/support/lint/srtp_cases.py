"""SRTP of a call whose descriptions have the keys: (rule, scene, number of the packet)."""

import base64

from support.lint.media_cases import CALL, FROM_A, TO_B, rtp, sound, up
from support.lint.sip_cases import sdp

from p2psip.rtp.rtcp import ReceiverReport
from p2psip.srtp.srtp import SrtpSender
from p2psip.srtp.suites import AES_CM_128_HMAC_SHA1_80, SUITES

OURS, THEIRS = bytes(range(64)), bytes(range(100, 164))


def parts(suite, secret):
    """A key and its salt for a suite."""
    end = suite.key_octets + suite.salt_octets
    return secret[: suite.key_octets], secret[suite.key_octets : end]


def encoded(suite, secret):
    return base64.b64encode(b"".join(parts(suite, secret))).decode()


def crypto(suite, secret):
    return f"a=crypto:1 {suite.name} inline:{encoded(suite, secret)}|2^20\r\n".encode()


def agreed(suite=AES_CM_128_HMAC_SHA1_80, protocol=b"RTP/SAVP"):
    """A call whose ends have keys for each other."""
    bodies = [
        sdp(host, formats=formats, more=crypto(suite, secret)).replace(b"RTP/AVP", protocol)
        for host, formats, secret in ((1, "0 8", OURS), (2, "0", THEIRS))
    ]
    return up(invite={"body": bodies[0]}, ok={"body": bodies[1]})


def sealed(packets, suite=AES_CM_128_HMAC_SHA1_80, secret=OURS):
    sender = SrtpSender(*parts(suite, secret), suite)
    return [sender.protect_rtp(each) for each in packets]


def secure_call(suite=AES_CM_128_HMAC_SHA1_80, protocol=b"RTP/SAVP", count=20):
    """Sound from A to B, every 20 ms."""
    packets = sealed(sound(count), suite)
    return agreed(suite, protocol).udp(FROM_A, TO_B, *packets, step=0.02)


def forged(packet):
    """The same with another tag."""
    return packet[:-1] + bytes((packet[-1] ^ 1,))


def wrong_times():
    """Sound whose timestamps grow by too little, which only the key shows: RFC 3551 §4.5.14."""
    made = sealed([rtp(number, ticks=80 * number) for number in range(1, 20)])
    return agreed().udp(FROM_A, TO_B, *made, step=0.02)


REPORT = SrtpSender(*parts(AES_CM_128_HMAC_SHA1_80, OURS)).protect_rtcp(
    bytes(ReceiverReport(0xCAFE))
)
FORGED = [forged(each) for each in sealed(sound(21))]

CASES = [
    ("srtp-tag", agreed().udp(FROM_A, TO_B, *FORGED[:3]), CALL + 1),  # the keys are A's
    ("srtp-tag", secure_call(protocol=b"RTP/AVP").udp(FROM_A, TO_B, FORGED[20]), CALL + 21),
    ("srtcp-replayed", secure_call().udp(FROM_A, TO_B, REPORT, REPORT), CALL + 22),
    ("rtp-timestamp", wrong_times(), CALL + 2),
    ("rtp-duplicate", secure_call().udp(FROM_A, TO_B, sealed(sound(1))[0]), CALL + 21),
]
GOOD = {name: secure_call(suite) for name, suite in SUITES.items()}

"""Our readers of attributes refuse each fault of the strategies, and say what is wrong."""

import pytest
from hypothesis import given
from support.faults import refused

from p2psip.errors import RemoteError
from p2psip.sdp.attributes import Fmtp, RtpMap
from p2psip.sdp.crypto import CryptoAttribute
from p2psip.sdp.h264_parameters import H264Parameters, negotiate
from p2psip.strategies import faults, format_faults, formats

MAPPING, NUMBER = "Bad rtpmap", "Bad number"
RTPMAPS = {
    "one word": MAPPING,
    "three words": MAPPING,
    "no clock rate": ".",
    "clock rate of 0": MAPPING,
    "no name": MAPPING,
    "clock rate of letters": NUMBER,
    "four parts": MAPPING,
    "payload type beyond 127": "Bad payload type",
    "payload type of letters": NUMBER,
}
FMTPS = {"no payload type": NUMBER, "payload type beyond 127": "Bad payload type"}
SIX = "not of six digits"
H264 = {
    "mode beyond 2": "packetization-mode",
    "profile of five digits": SIX,
    "profile of seven digits": SIX,
    "profile of letters": "not hexadecimal",
}
MANY = "a parameter too many"
CRYPTOS = {
    "two words": "Bad crypto attribute",
    "tag of ten digits": "Bad crypto attribute",
    "tag of letters": NUMBER,
    "another key method": "Key method other than inline",
    "key that is not base64": "not base64",
    "short key": "SRTP key and salt of",
    "long key": "SRTP key and salt of",
    "lifetime of letters": NUMBER,
    "lifetime with a zero before": "leading zero",
    "lifetime beyond the suite": NUMBER,
    "two lifetimes": MANY,
    "two MKIs": MANY,
    "MKI without a length": NUMBER,
    "MKI of 129 octets": NUMBER,
}


@pytest.mark.parametrize(
    ("broken", "parse", "reasons"),
    [
        (faults.broken(format_faults.RTPMAP_FAULTS), RtpMap.parse, RTPMAPS),
        (faults.broken(format_faults.FMTP_FAULTS), Fmtp.parse, FMTPS),
        (faults.broken(format_faults.H264_FMTP_FAULTS), H264Parameters.parse, H264),
        (faults.broken(format_faults.CRYPTO_FAULTS), CryptoAttribute.parse, CRYPTOS),
    ],
    ids=["rtpmap", "fmtp", "H.264", "crypto"],
)
def test_each_fault_is_refused(broken, parse, reasons):
    """Covers RFC 8866 §6.6 and §6.15, RFC 6184 §8.1, and RFC 4568 §6.1 and §9.1."""
    refused(broken, lambda data: parse(data.decode()), RemoteError, reasons)


@given(formats.odd_cryptos())
def test_a_lifetime_may_be_a_power_of_two(text):
    """Covers RFC 4568 §6.1."""
    (key,) = CryptoAttribute.parse(text).keys
    assert key.lifetime == 1 << int(text.rpartition("^")[2])


@given(formats.h264_pairs())
def test_two_ends_of_one_profile_agree(two):
    """Covers RFC 6184 §8.2.2 [common-level-is-lower]."""
    ours, theirs = (H264Parameters.parse(each) for each in two)
    answer, sends = (H264Parameters.parse(each) for each in negotiate(*two))
    assert answer.profile_level.sub_profile == theirs.profile_level.sub_profile
    if not (ours.level_asymmetry and theirs.level_asymmetry):
        level = min(ours.profile_level.level, theirs.profile_level.level)
        assert answer.profile_level.level == sends.profile_level.level == level

"""Our readers of SRTP and of TURN's channels refuse each fault of the strategies."""

import pytest
from support.faults import drawn_until_all, refused

from p2psip.errors import RemoteError
from p2psip.nat.turn import read_channel_data, read_lifetime
from p2psip.srtp.srtp import SrtpReceiver
from p2psip.strategies import faults, srtp, stun_faults

FORM, TAG = "no SRTP packet", "not authentic"
SRTP = {
    "packet cut": FORM,
    "another version": FORM,
    "another tag": TAG,
    "sources beyond the end": FORM,
}
SRTCP = {"packet cut": "no SRTCP packet", "another tag": TAG}
CHANNELS = {"header cut", "number of no channel", "data beyond the end"}


def receiver():
    return SrtpReceiver(srtp.KEY, srtp.SALT)


@pytest.mark.parametrize(
    ("broken", "read", "reasons"),
    [
        (faults.broken(srtp.SRTP_FAULTS), lambda data: receiver().open_rtp(data), SRTP),
        (faults.broken(srtp.SRTCP_FAULTS), lambda data: receiver().open_rtcp(data), SRTCP),
        (faults.broken(stun_faults.LIFETIME_FAULTS), read_lifetime, {"no 32 bits": "no LIFETIME"}),
    ],
    ids=["SRTP", "SRTCP", "LIFETIME"],
)
def test_each_fault_is_refused(broken, read, reasons):
    """Covers RFC 3711 §3.3, §3.4 and §4.2.1, and RFC 8656 §18.2."""
    refused(broken, read, RemoteError, reasons)


def test_what_is_no_channel_data_is_not_taken_for_it():
    """Covers RFC 8656 §12.4 and §12.6."""
    for _, data in drawn_until_all(faults.broken(stun_faults.CHANNEL_FAULTS), CHANNELS):
        assert read_channel_data(data) is None

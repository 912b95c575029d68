"""RTP and RTCP through one port, over real sockets on loopback."""

import pytest
from support.sip.phones import wait_for

from p2psip.net.media.port_pool import PortPool
from p2psip.net.media.rtp_ports import MediaPort
from p2psip.rtp.packet import RtpPacket
from p2psip.rtp.rtcp import ReceiverReport

LOOPBACK = "127.0.0.1"
RTCP = bytes(ReceiverReport(1))


def rtp(number):
    return bytes(RtpPacket(0, number, 0, 1, b"sound", marker=True))


@pytest.fixture
def phone():
    """The sockets of a phone, which wait for what is on its way."""
    pair = PortPool().bind(LOOPBACK)
    for each in pair:
        each.settimeout(20)
    yield pair
    for each in pair:
        each.close()


@pytest.fixture
def heard():
    return {"rtp": [], "rtcp": []}


@pytest.fixture
def port(heard):
    port = MediaPort(
        LOOPBACK,
        PortPool(),
        lambda data, now: heard["rtp"].append(data),
        lambda data, now: heard["rtcp"].append(data),
    )
    yield port
    port.close()


def test_rtcp_goes_through_the_port_of_rtp_where_that_is_agreed(port, phone, heard):
    """Covers RFC 5761 §4 [told-by-the-second-octet], and §5.1 both ways."""
    at_rtp, _ = phone
    port.rtcp_mux = True
    port.remote = at_rtp.getsockname()
    port.send_rtp(b"to you")
    port.send_rtcp(b"about you")
    assert {at_rtp.recv(100), at_rtp.recv(100)} == {b"to you", b"about you"}
    for data in (rtp(1), RTCP, rtp(2)):
        at_rtp.sendto(data, (LOOPBACK, port.rtp_port))
    wait_for(lambda: len(heard["rtp"]) == 2 and heard["rtcp"])
    assert heard == {"rtp": [rtp(1), rtp(2)], "rtcp": [RTCP]}
    later = []
    port.on_rtp = lambda data, now: later.append(data)  # as SRTP does
    for data in (rtp(3), RTCP):
        at_rtp.sendto(data, (LOOPBACK, port.rtp_port))
    wait_for(lambda: len(heard["rtcp"]) == 2)
    assert later == [rtp(3)]


def test_the_ports_part_again_when_that_is_agreed(port, phone, heard):
    """Covers RFC 5761 §5.1: the next answer may have them apart."""
    _, at_rtcp = phone
    port.rtcp_mux = True
    port.remote = phone[0].getsockname()
    port.rtcp_mux = False
    port.send_rtcp(b"apart again")
    assert at_rtcp.recv(100) == b"apart again"
    at_rtcp.sendto(RTCP, (LOOPBACK, port.rtcp_port))
    wait_for(lambda: heard["rtcp"])
    phone[0].sendto(RTCP, (LOOPBACK, port.rtp_port))  # and nobody takes it for a report here
    wait_for(lambda: heard["rtp"])
    assert heard == {"rtp": [RTCP], "rtcp": [RTCP]}

"""SRTP and SRTCP by one key: what arrives in and out of order, twice, and what is forged.

Implements RFC 3711 §3 in reverse.

Own design: one key is enough, since no rule looks into it.
"""

import hmac
from struct import pack
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from p2psip.rtp.packet import RtpPacket
from p2psip.srtp.srtp import (
    AUTH_OCTETS,
    AUTHENTICATION,
    RTCP_LABELS,
    SrtpSender,
    derive,
    rtcp_octets,
)
from p2psip.srtp.suites import AES_CM_128_HMAC_SHA1_80
from p2psip.strategies.faults import Octets, by_clause
from p2psip.strategies.rtp import compounds, rtp_packets

KEY: Final = bytes(range(16))
SALT: Final = bytes(range(100, 114))
TAG_OCTETS: Final = 10
_RTCP_LEAST: Final = 8 + rtcp_octets(AES_CM_128_HMAC_SHA1_80)

_FIRST: Final = st.sampled_from([0, 7, 32760, 65500, 65535])
_STEPS: Final = st.sampled_from([1, 1, 1, 2, 30, 64, 100, 33000])
_SOURCES: Final = st.sampled_from([1, 1, 1, 2])


@st.composite
def streams(draw: DrawFn) -> list[bytes]:
    """Packets of one or two sources, late, doubled or lost: RFC 3711 §3.3.1, §3.3.2."""
    sender, sequence = SrtpSender(KEY, SALT), draw(_FIRST)
    sent = []
    for step, source in draw(st.lists(st.tuples(_STEPS, _SOURCES), min_size=1, max_size=8)):
        packet = RtpPacket(0, sequence & 0xFFFF, 0, source, b"sound")
        sent.append(sender.protect_rtp(bytes(packet)))
        sequence += step
    return draw(st.lists(st.sampled_from(sent), max_size=4)) + sent + draw(st.permutations(sent))


def many_sources() -> SearchStrategy[list[bytes]]:
    """Packets of more sources than are usual, each once: RFC 3711 §3.2.3."""
    sender = SrtpSender(KEY, SALT)
    return st.integers(1, 40).map(
        lambda count: [
            sender.protect_rtp(bytes(RtpPacket(0, 1, 0, source, b""))) for source in range(count)
        ]
    )


def _protected() -> Octets:
    return rtp_packets().map(lambda each: SrtpSender(KEY, SALT).protect_rtp(bytes(each)))


def _compounds() -> Octets:
    return compounds().map(lambda each: b"".join(map(bytes, each)))


def srtcp() -> SearchStrategy[bytes]:
    """Compounds, encrypted or in clear: RFC 3711 §3.4."""
    closed = _compounds().map(lambda data: SrtpSender(KEY, SALT).protect_rtcp(data))
    clear = _compounds().map(lambda data: data + pack("!I", 7))
    return closed | clear.map(lambda data: data + _tag(RTCP_LABELS, data))


def _tag(first_label: int, data: bytes) -> bytes:
    """Authenticate octets of any kind: RFC 3711 §4.2.1."""
    key = derive(KEY, SALT, first_label + AUTHENTICATION, AUTH_OCTETS)
    return hmac.digest(key, data, "sha1")[:TAG_OCTETS]


def _authentic(packets: Octets) -> Octets:
    return packets.map(lambda data: data + _tag(0, data + bytes(4)))


def _changed(whole: Octets) -> Octets:
    """Turn a bit of the tag around."""
    return st.builds(
        lambda data, bit: (
            data[:-TAG_OCTETS]
            + (int.from_bytes(data[-TAG_OCTETS:]) ^ 1 << bit).to_bytes(TAG_OCTETS)
        ),
        whole,
        st.integers(0, 8 * TAG_OCTETS - 1),
    )


SRTP_FAULTS: Final = by_clause(
    {
        "RFC 3711 §3.1": {"packet cut": st.binary(max_size=11 + TAG_OCTETS)},
        "RFC 3550 §5.1": {
            "another version": _authentic(
                rtp_packets().map(lambda each: bytes((bytes(each)[0] ^ 0x40,)) + bytes(each)[1:])
            ),
            "sources beyond the end": _authentic(
                st.integers(1, 15).map(lambda count: pack("!BBHII", 0x80 | count, 0, 1, 0, 1))
            ),
        },
        "RFC 3711 §4.2.1": {"another tag": _changed(_protected())},
    }
)
"""Every fault of one SRTP packet: RFC 3711 §3.1, §4.2.1, RFC 3550 §5.1."""

SRTCP_FAULTS: Final = by_clause(
    {
        "RFC 3711 §3.4": {"packet cut": st.binary(max_size=_RTCP_LEAST - 1)},
        "RFC 3711 §4.2.1": {"another tag": _changed(srtcp())},
    }
)
"""Every fault of one SRTCP packet: RFC 3711 §3.4, §4.2.1."""

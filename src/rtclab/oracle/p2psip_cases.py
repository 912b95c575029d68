"""Cases of the SIP family's codecs, drawn by the strategies of `p2psip.strategies`.

Own design: needs Hypothesis, so `catalogue` imports it late.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from struct import pack
from typing import Final, TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from p2psip.nat.stun import StunAttribute, StunMessage
from p2psip.rtp.packet import RtpPacket
from p2psip.rtp.rtcp import RtcpPacket
from p2psip.strategies import (
    faults,
    ice,
    large,
    rtp,
    rtp_faults,
    sdp,
    sdp_faults,
    sip,
    stun,
    stun_faults,
)
from rtclab.oracle.cases import Cases, broken, excessive, odd, rarely, valid
from rtclab.oracle.codec import Case, Codec
from rtclab.oracle.p2psip_codecs import Stun

MAX_METHOD: Final = 0xFF  # Source: RFC 8489 §18.2
_Maker: TypeAlias = Callable[[Codec], Cases]

_SIP_FAULTS: Final = st.sampled_from(
    [sip.HEADER_FAULTS, sip.ADDRESS_FAULTS, sip.VALUE_FAULTS, sip.LINE_FAULTS]
).flatmap(st.sampled_from)
BY_LEAVE: Final = ("Via of another protocol", "status below 100", "status above 699")
"""Faults of who sends them: the grammar has such octets, so that a reader may take them.

Source: RFC 3261 §8.1.1.7, §7.2 and §25.1 (sent-protocol, extension-code).
"""
_MALFORMED: Final = 400  # any other status is the answer of an element that has read the request
_REQUESTS, _RESPONSES = 5, 1  # of six broken messages: there are fewer faults of responses


def _optional(cases: SearchStrategy[Case]) -> SearchStrategy[Case]:
    """Cases that a reader may refuse, since its limits are its own."""
    return cases.map(lambda case: replace(case, allowed=("error",)))


def _as_in_a_datagram(case: Case) -> Case:
    """Line breaks before the start line are for streams: in a datagram a reader may refuse them."""
    if not case.octets.startswith(b"\r\n"):
        return case
    return replace(case, clause="RFC 3261 §7.5", allowed=("error",))


def for_a_reader(case: Case) -> Case:
    """What only an element refuses, or nobody has to, a reader may read: RFC 3261 §8.2, §25.1."""
    is_open = case.fault in BY_LEAVE or case.status not in (None, _MALFORMED)
    return replace(case, allowed=("value",)) if is_open else case


def _sip(codec: Codec) -> Cases:
    """RFC 3261 §7.3.1 for other spellings."""
    messages = sip.messages()
    spelt = messages.flatmap(lambda each: sip.spellings(each).map(lambda data: (data, each)))
    forgiven = sip.separators().map(bytes).map(lambda data: (data, codec.decode(data)))
    faulty = st.tuples(_SIP_FAULTS, sip.requests()).map(lambda two: (two[0], two[0].spoil(two[1])))
    broken_ones = st.sampled_from(
        [broken(faulty)] * _REQUESTS + [broken(sip.broken_responses())] * _RESPONSES
    ).flatmap(lambda drawn: drawn.map(for_a_reader))
    return {
        "valid": rarely(_optional(valid(codec, large.messages())), valid(codec, messages)),
        "odd": rarely(
            odd(codec, forgiven, 'Field §"Separators too many"', "error"),
            odd(codec, spelt, "RFC 3261 §7.3.1").map(_as_in_a_datagram),
        ),
        "broken": rarely(excessive(large.excessive_requests()), broken_ones),
    }


def _sdp(codec: Codec) -> Cases:
    """RFC 8866 §5 for lines that are lost, or end otherwise: a reader may refuse them."""
    forgiven = sdp.odd_sessions().map(lambda data: (data, codec.decode(data)))
    faulty = st.one_of(
        faults.broken(sdp_faults.SECTION_FAULTS),
        faults.broken(sdp_faults.KIND_FAULTS),
        faults.broken(sdp_faults.PLACE_FAULTS),
        faults.broken(sdp_faults.VALUE_FAULTS),
    )
    widest = _optional(valid(codec, large.sessions()))
    return {
        "valid": rarely(widest, valid(codec, sdp.sessions())),
        "odd": odd(codec, forgiven, "RFC 8866 §5", "error"),
        "broken": rarely(excessive(faults.broken(large.SDP_EXCESSES)), broken(faulty)),
    }


def _padded_rtp(packet: RtpPacket, filling: bytes) -> tuple[bytes, RtpPacket]:
    """A packet whose padding is not of zeros, of which RFC 3550 §5.1 says nothing."""
    padded = bytes(packet) + filling + bytes((len(filling) + 1,))
    read = RtpPacket.parse(bytes((padded[0] | 0x20,)) + padded[1:])
    return bytes((padded[0] | 0x20,)) + padded[1:], read


def _rtp(codec: Codec) -> Cases:
    whole = rtp.rtp_packets().filter(lambda packet: not packet.padding)
    filled = st.builds(_padded_rtp, whole, st.binary(min_size=1, max_size=9))
    return {
        "valid": valid(codec, rtp.rtp_packets()),
        "odd": odd(codec, filled, "RFC 3550 §5.1"),
        "broken": broken(faults.broken(rtp_faults.RTP_FAULTS)),
    }


def _padded_rtcp(
    packets: list[RtcpPacket], words: int, filler: int
) -> tuple[bytes, list[RtcpPacket]]:
    """A compound with padding in its last packet: RFC 3550 §6.4.1."""
    *others, last = map(bytes, packets)
    first, kind, length = last[0] | 0x20, last[1], len(last) // 4 - 1 + words
    padding = bytes((filler,)) * (4 * words - 1) + bytes((4 * words,))
    padded = bytes((first, kind)) + pack("!H", length) + last[4:] + padding
    return b"".join((*others, padded)), packets


def _rtcp(codec: Codec) -> Cases:
    """Compounds without a report in front are for ends that have agreed on it: RFC 3550 §6.1."""
    bare = st.lists(rtp.rtcp_packets(), min_size=1, max_size=3).map(
        lambda packets: (b"".join(map(bytes, packets)), packets)
    )
    faulty = st.one_of(
        faults.broken(rtp_faults.COMPOUND_FAULTS),
        faults.broken(rtp_faults.RTCP_FAULTS),
        faults.broken(rtp_faults.FEEDBACK_FAULTS),
    )
    padded = st.builds(_padded_rtcp, rtp.compounds(), st.integers(1, 5), st.integers(0, 255))
    return {
        "valid": valid(codec, rtp.compounds()),
        "odd": odd(codec, bare, "RFC 3550 §6.1", "error") | odd(codec, padded, "RFC 3550 §6.4.1"),
        "broken": rarely(excessive(faults.broken(large.RTCP_EXCESSES)), broken(faulty)),
    }


def _filled_stun(kind: int, value: bytes, filler: int, plain: Stun) -> tuple[bytes, Stun]:
    """An attribute whose padding is not of zeros: RFC 8489 §14."""
    added = pack("!HH", kind, len(value)) + value + bytes((filler,)) * (-len(value) % 4)
    head = StunMessage.write(plain.kind, plain.method, plain.transaction_id).data
    data = head[:2] + pack("!H", len(added)) + head[4:] + added
    attributes = (StunAttribute(kind, value),)
    return data, Stun(plain.kind, plain.method, plain.transaction_id, attributes)


def _left_open(case: Case) -> Case:
    """Methods above the registry's may be refused: RFC 8489 §18.2."""
    return replace(case, allowed=("error",)) if case.value["method"] > MAX_METHOD else case


def _without_octets(message: StunMessage) -> Stun:
    return Stun(message.kind, message.method, message.transaction_id, message.attributes)


def _stun(codec: Codec) -> Cases:
    plain = stun.messages().map(_without_octets)
    trailed = stun.trailed().map(lambda pair: (pair[0], _without_octets(pair[1])))
    signed = stun.messages(st.just(b"key"))
    filled = st.builds(
        _filled_stun, st.just(0x8022), st.binary(max_size=9), st.integers(1, 255), plain
    )
    return {
        "valid": valid(codec, plain).map(_left_open),
        "odd": st.one_of(
            odd(
                codec, signed.map(lambda each: (each.data, codec.decode(each.data))), codec.citation
            ),
            odd(codec, filled, "RFC 8489 §14"),
            odd(codec, trailed, "RFC 8489 §14.5"),
        ).map(_left_open),
        "broken": broken(faults.broken(stun_faults.STUN_FAULTS)),
    }


def _candidate(codec: Codec) -> Cases:
    """Names and values that nobody knows are kept: RFC 8839 §5.1."""
    spaced = ice.candidates().map(lambda each: (f" {each}  ".encode(), each))
    return {
        "valid": valid(codec, ice.candidates()),
        "odd": odd(codec, spaced, "RFC 8839 §5.1", "error"),
        "broken": broken(faults.broken(ice.CANDIDATE_FAULTS)),
    }


CASES: Final[Mapping[str, _Maker]] = {
    "sip": _sip,
    "sdp": _sdp,
    "rtp": _rtp,
    "rtcp": _rtcp,
    "stun": _stun,
    "ice-candidate": _candidate,
}

"""Attributes of streams that make no sense: mappings, parameters of formats, keys of SRTP.

Own design: `p2psip.strategies.faults` says why faults are drawn one at a time.
The clauses are of RFC 8866 §6, RFC 6184 §8.1 and RFC 4568 §6.1 and §9.1.

A reader of a whole description passes such an attribute over, and `odd_media()` has them.
"""

from dataclasses import replace
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from p2psip.sdp.line import Attribute
from p2psip.sdp.session import Connection, MediaDescription
from p2psip.strategies.faults import Drawn, broken, written
from p2psip.strategies.formats import crypto_attributes
from p2psip.strategies.sdp import media
from p2psip.strategies.sdp_parts import rtpmaps

_RTPMAP: Final = "RFC 8866 §6.6"
RTPMAP_FAULTS: Final = (
    written("one word", _RTPMAP, "", "96", "PCMU/8000"),
    written("three words", _RTPMAP, "96 PCMU 8000", "96 PCMU/8000 /1"),
    written("no clock rate", _RTPMAP, "96 PCMU", "96 PCMU/", "96 PCMU//1"),
    written("clock rate of 0", _RTPMAP, "96 PCMU/0", "96 PCMU/0/2"),
    written("no name", _RTPMAP, "96 /8000", "96 /8000/1"),
    written("clock rate of letters", _RTPMAP, "96 PCMU/x", "96 PCMU/8k/1"),
    written("four parts", _RTPMAP, "96 PCMU/8000/1/1"),
    written("payload type beyond 127", _RTPMAP, "128 PCMU/8000", "1000 L16/8000/2"),
    written("payload type of letters", _RTPMAP, "x PCMU/8000", "-1 L16/8000/2"),
)
"""Every fault of a mapping: RFC 8866 §6.6."""

_FMTP: Final = "RFC 8866 §6.15"
FMTP_FAULTS: Final = (
    written("no payload type", _FMTP, "", " ", "x=1", "mode=20; x"),
    written("payload type beyond 127", _FMTP, "128 x=1", "999 x"),
)
"""Every fault of parameters of an RTP format, whatever it is: RFC 8866 §6.15."""

_H264: Final = "RFC 6184 §8.1"
H264_FMTP_FAULTS: Final = (
    written("mode beyond 2", _H264, "packetization-mode=3", "packetization-mode=x;max-fs=99"),
    written("profile of five digits", _H264, "profile-level-id=42e01", "profile-level-id="),
    written("profile of seven digits", _H264, "profile-level-id=42e01f0"),
    written("profile of letters", _H264, "profile-level-id=42e01g", "profile-level-id=xxxxxx"),
)
"""Every fault of parameters of H.264: RFC 6184 §8.1."""

_KEY: Final = "A" * 40  # 30 octets
_SUITE: Final = "AES_CM_128_HMAC_SHA1_80"
_FORM, _INLINE = "RFC 4568 §9.1", "RFC 4568 §6.1"
_OPTIONS: Final = f"1 {_SUITE} inline:{_KEY}|"
CRYPTO_FAULTS: Final = (
    written("two words", _FORM, "", "1", f"1 {_SUITE}", f"{_SUITE} inline:{_KEY}"),
    written("tag of ten digits", _FORM, f"1234567890 {_SUITE} inline:{_KEY}"),
    written("tag of letters", _FORM, f"x {_SUITE} inline:{_KEY}", f"-1 {_SUITE} inline:{_KEY}"),
    written("another key method", _FORM, f"1 {_SUITE} uri:{_KEY}", f"1 {_SUITE} {_KEY}"),
    written("key that is not base64", _INLINE, f"1 {_SUITE} inline:{'*' * 40}"),
    written("short key", _INLINE, f"1 {_SUITE} inline:AAAA", f"1 {_SUITE} inline:"),
    written("long key", _INLINE, f"1 {_SUITE} inline:{_KEY}AAAA"),
    written("lifetime of letters", _INLINE, f"{_OPTIONS}x", f"{_OPTIONS}2^x", f"{_OPTIONS}-1"),
    written("lifetime with a zero before", _INLINE, f"{_OPTIONS}01", f"{_OPTIONS}2^020"),
    written("lifetime beyond the suite", _INLINE, f"{_OPTIONS}2^49", f"{_OPTIONS}{1 + (1 << 48)}"),
    written("two lifetimes", _INLINE, f"{_OPTIONS}2^20|2^20", f"{_OPTIONS}1:4|2^20"),
    written("two MKIs", _INLINE, f"{_OPTIONS}1:4|1:4"),
    written("MKI without a length", _INLINE, f"{_OPTIONS}1:", f"{_OPTIONS}1:x"),
    written("MKI of 129 octets", _INLINE, f"{_OPTIONS}1:129"),
)
"""Every fault of a key of SRTP in the signalling: RFC 4568 §6.1, §9.1."""


def _named(name: str, drawn: SearchStrategy[Drawn]) -> SearchStrategy[Attribute]:
    return drawn.map(lambda pair: Attribute(name, pair[1].decode()))


_PACKET_TIMES: Final = st.sampled_from(["20", "22.5", "0", "x", "", ".5", "9999999999"])
_RTCP: Final = st.sampled_from(
    ["5005", "5005 IN IP4 192.0.2.1", "5005 IN IP4 0.0.0.0", "5005 ATM NSAP x", "x", "1 2", "99999"]
)
_ATTRIBUTES: Final = st.lists(
    st.one_of(
        rtpmaps().map(lambda each: Attribute("rtpmap", str(each))),
        crypto_attributes().map(lambda each: Attribute("crypto", str(each))),
        st.sampled_from(["0 x=1", "96 y"]).map(lambda text: Attribute("fmtp", text)),
        _named("rtpmap", broken(RTPMAP_FAULTS)),
        _named("fmtp", broken(FMTP_FAULTS)),
        _named("crypto", broken(CRYPTO_FAULTS)),
        st.builds(Attribute, st.sampled_from(["ptime", "maxptime"]), _PACKET_TIMES),
        _RTCP.map(lambda text: Attribute("rtcp", text)),
        st.sampled_from([Attribute(each) for each in ("sendonly", "rtcp-mux", "mid", "inactive")]),
    ),
    max_size=6,
).map(tuple)
_PLACES: Final = st.sampled_from(
    [
        *(None, Connection.to("192.0.2.1"), Connection.to("2001:db8::1"), Connection.to("0.0.0.0")),
        *(Connection("ATM", "NSAP", "47.0091"), Connection("IN", "IP7", "x")),
    ]
)


def odd_media() -> SearchStrategy[MediaDescription]:
    """Streams of which a reader cannot use every attribute or the address: RFC 8866 §5.7, §5.13."""
    return st.builds(
        lambda line, attributes, place: replace(
            line, attributes=(*line.attributes, *attributes), connection=place
        ),
        media(),
        _ATTRIBUTES,
        _PLACES,
    )

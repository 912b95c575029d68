"""Parameters of formats, and keys of streams, as session descriptions have them.

Own design: the oracle's grammar of RFC 6184 §8.1, RFC 7587 §6.1 and RFC 4568 §9.
"""

from functools import cache

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from p2psip.sdp.crypto import CryptoAttribute, SrtpKey


@cache
def h264_fmtps() -> SearchStrategy[str]:
    """Parameters of H.264 of every profile, in a spelling of every kind: RFC 6184 §8.1."""
    octets = st.integers(0, 255)
    profiles = st.sampled_from(
        ["42e0", "42c0", "4d80", "4200", "4d00", "6400", "640c", "6e10", "42f0"]
    ) | st.builds("{:02x}{:02X}".format, octets, octets)
    levels = st.sampled_from(["09", "0a", "0b", "0d", "15", "1E", "1f", "28", "33"])
    optional: dict[str, SearchStrategy[str]] = {
        "level-asymmetry-allowed": st.sampled_from("01"),
        "max-recv-level": st.builds(str.__add__, st.sampled_from(["e0", "f0"]), levels),
        "max-fs": st.integers(1, 99999).map(str),
        "in-band-parameter-sets": st.sampled_from("01"),
        "sprop-parameter-sets": st.just("Z0LAH9oBQBbsBEAAAAMAQAAADIPGDKg=,aM48gA=="),
    }
    named = st.fixed_dictionaries(
        {"profile-level-id": st.builds(str.__add__, profiles, levels)},
        optional={"packetization-mode": st.sampled_from("01"), **optional},
    )
    return st.builds(_written, named, st.sampled_from([";", "; ", " ; "]))


@cache
def opus_fmtps() -> SearchStrategy[str]:
    """Parameters of Opus, known and unknown, in and out of range: RFC 7587 §6.1."""
    rates = st.sampled_from([8000, 12000, 16000, 24000, 44100, 48000, 0, 7999, 96000]).map(str)
    flags = st.sampled_from(["0", "1", "2", ""])
    named = st.fixed_dictionaries(
        {},
        optional={
            "maxplaybackrate": rates,
            "sprop-maxcapturerate": rates,
            "maxaveragebitrate": st.integers(0, 600000).map(str),
            "minptime": st.just("10"),
            **dict.fromkeys(("stereo", "sprop-stereo", "cbr", "useinbandfec", "usedtx"), flags),
        },
    )
    return st.builds(_written, named, st.sampled_from([";", "; "]))


@cache
def crypto_attributes() -> SearchStrategy[CryptoAttribute]:
    """Keys for SRTP, with and without what may follow them: RFC 4568 §9.2."""
    keys = st.builds(
        SrtpKey,
        st.binary(min_size=16, max_size=16),
        st.binary(min_size=14, max_size=14),
        st.none() | st.integers(1, 1 << 48),
        st.none() | st.tuples(st.integers(1, 1 << 32), st.integers(1, 128)),
    )
    suites = ["AES_CM_128_HMAC_SHA1_80", "AES_CM_128_HMAC_SHA1_32", "F8_128_HMAC_SHA1_80"]
    session = st.sampled_from(["KDR=1", "UNENCRYPTED_SRTP", "WSH=64", "-X", "FEC_ORDER=FEC_SRTP"])
    return st.builds(
        CryptoAttribute,
        st.integers(0, 10**9 - 1),
        st.sampled_from(suites),
        st.lists(keys, min_size=1, max_size=3).map(tuple),
        st.lists(session, max_size=2).map(tuple),
    )


def _written(named: dict[str, str], between: str) -> str:
    return between.join(f"{name}={value}" for name, value in named.items())

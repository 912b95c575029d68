"""Parameters of formats, and keys of streams, as session descriptions have them.

Own design: the oracle's grammar of RFC 6184 §8.1, RFC 7798 §7, RFC 3640 §4.1, RFC 7587 §6.1,
RFC 4733 §2.4.1 and RFC 4568 §9.
"""

from functools import cache

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from p2psip.sdp.crypto import CryptoAttribute, SrtpKey
from p2psip.srtp.suites import AES_CM_128_HMAC_SHA1_80, SUITES


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
def h264_pairs() -> SearchStrategy[tuple[str, str]]:
    """Parameters of two ends that have one profile and one packetization mode: RFC 6184 §8.2.2.

    Without a `profile-level-id` an end means the default.
    """
    profiles = st.sampled_from(["42e0", "42c0", "4d80", "6400", "4200"])
    modes = st.sampled_from(["", ";packetization-mode=1"])
    levels = st.sampled_from(["09", "0a", "0b", "1f", "28"])
    asymmetric = ";level-asymmetry-allowed=1"
    options = st.sampled_from(
        [
            *("", asymmetric, f"{asymmetric};max-recv-level=e033", ";max-fs=99"),
            *(";in-band-parameter-sets=1", ";sprop-parameter-sets=Z0LAH9oB,aM48gA=="),
        ]
    )
    ends = st.tuples(levels, options)
    alike = st.builds(
        lambda profile, mode, ours, theirs: (
            f"profile-level-id={profile}{ours[0]}{mode}{ours[1]}",
            f"profile-level-id={profile}{theirs[0]}{mode}{theirs[1]}",
        ),
        profiles,
        modes,
        ends,
        ends,
    )
    default = st.tuples(options.map(lambda each: each[1:]), st.just("profile-level-id=42000a"))
    level_1b = st.permutations(["profile-level-id=42f00b", "profile-level-id=42e01f"]).map(
        lambda two: (two[0], two[1])
    )
    return alike | default | level_1b


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
def h265_fmtps() -> SearchStrategy[str]:
    """Parameters of H.265, of one stream or of several: RFC 7798 §7."""
    sets = st.sampled_from(["QgEB", "RAHA,RAHB", "QgEB,", "not base64"])
    named = st.fixed_dictionaries(
        {},
        optional={
            "profile-space": st.sampled_from("03"),
            "profile-id": st.sampled_from(["1", "2", "31"]),
            "tier-flag": st.sampled_from("01"),
            "level-id": st.sampled_from(["93", "120"]),
            "interop-constraints": st.sampled_from(["B00000000000", "b00000000000"]),
            "profile-compatibility-indicator": st.just("60000000"),
            "tx-mode": st.sampled_from(["SRST", "srst", "MRST", "MRMT"]),
            "sprop-max-don-diff": st.sampled_from(["0", "0", "2"]),
            **dict.fromkeys(("sprop-vps", "sprop-sps", "sprop-pps"), sets),
        },
    )
    return st.builds(_written, named, st.sampled_from([";", "; "]))


@cache
def aac_fmtps() -> SearchStrategy[str]:
    """Parameters of AAC, in the mode that all have and in others: RFC 3640 §4.1."""
    named = st.fixed_dictionaries(
        {"streamtype": st.just("5"), "mode": st.sampled_from(["AAC-hbr", "aac-hbr", "AAC-lbr"])},
        optional={
            "sizelength": st.sampled_from(["13", "6"]),
            "indexlength": st.just("3"),
            "indexdeltalength": st.just("3"),
            "config": st.just("1210"),
            "maxdisplacement": st.sampled_from(["0", "0", "2048"]),
        },
    )
    return st.builds(_written, named, st.sampled_from([";", "; "]))


@cache
def odd_fmtps() -> SearchStrategy[str]:
    """Parameters with empty ones among them, or repeated: RFC 8866 §6.15 leaves it to readers."""
    some = h264_fmtps() | h265_fmtps() | aac_fmtps() | opus_fmtps()
    between = st.sampled_from([";;", "; ;", ";=x;", ";x;"])
    return st.builds("{}{}{}".format, some, between, some)


@cache
def event_lists() -> SearchStrategy[str]:
    """Lists of telephone events, up to all of them, with parts that are none: RFC 4733 §2.4.1."""
    codes = st.integers(0, 255)
    pairs = st.tuples(codes, codes).map(sorted).map(lambda two: f"{two[0]}-{two[1]}")
    odd = st.sampled_from(["", "x", "-", "5-", "-5", "0-99999", "7-3"])
    parts = codes.map(str) | pairs | st.sampled_from(["0-15", "0-255"]) | odd
    return st.lists(parts, max_size=6).map(",".join)


@cache
def odd_cryptos() -> SearchStrategy[str]:
    """Keys with a lifetime that is written as a power of two: RFC 4568 §6.1."""
    return st.builds(
        "1 AES_CM_128_HMAC_SHA1_80 inline:{}|2^{}".format, st.just("A" * 40), st.integers(1, 48)
    )


@cache
def crypto_attributes() -> SearchStrategy[CryptoAttribute]:
    """Keys for SRTP, with and without what may follow them: RFC 4568 §9.2."""
    session = st.sampled_from(["KDR=1", "UNENCRYPTED_SRTP", "WSH=64", "-X", "FEC_ORDER=FEC_SRTP"])
    return st.sampled_from([*SUITES, "F8_128_HMAC_SHA1_80"]).flatmap(
        lambda name: st.builds(
            CryptoAttribute,
            st.integers(0, 10**9 - 1),
            st.just(name),
            st.lists(_srtp_keys(name), min_size=1, max_size=3).map(tuple),
            st.lists(session, max_size=2).map(tuple),
        )
    )


def _srtp_keys(name: str) -> SearchStrategy[SrtpKey]:
    """Keys of the length that a suite has, or the first suite if it is unknown: RFC 4568 §6.1."""
    suite = SUITES.get(name, AES_CM_128_HMAC_SHA1_80)
    return st.builds(
        SrtpKey,
        st.binary(min_size=suite.key_octets, max_size=suite.key_octets),
        st.binary(min_size=suite.salt_octets, max_size=suite.salt_octets),
        st.none() | st.integers(1, 1 << 48),
        st.none() | st.tuples(st.integers(1, 1 << 32), st.integers(1, 128)),
    )


def _written(named: dict[str, str], between: str) -> str:
    return between.join(f"{name}={value}" for name, value in named.items())

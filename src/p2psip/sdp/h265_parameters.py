"""The parameters of H.265 in SDP: which profile, which way of sending, which parameter sets.

Implements RFC 7798 §7, for unicast and one stream.
Not done: RFC 7798 §4.3 [all-three-ways]: no phone sends one picture by several streams.
Not done: RFC 7798 §7.2.2 [all-parameters-are-understood]: most are limits of an encoder, and there
is none here.

    >>> negotiate("", "profile-id=2;level-id=93;sprop-pps=RAHA")
    ('profile-id=2;level-id=93', 'profile-id=2;level-id=93;sprop-pps=RAHA')
    >>> negotiate("profile-id=1", "profile-id=2") is negotiate("", "tx-mode=MRST") is None
    True
    >>> parameter_sets("sprop-sps=QgEB;sprop-pps=RAHA,RAHB")
    (b'B\\x01\\x01', b'D\\x01\\xc0', b'D\\x01\\xc1')
"""

import binascii
from base64 import b64decode
from typing import Final

from p2psip.sdp.attributes import parameters

# Source: §7, what identifies a configuration beside the level, and what is meant without them
_IDENTITY: Final = (
    ("profile-space", "0"),  # §7.1 [no-space-is-0]
    ("profile-id", "1"),  # §7.1 [no-profile-is-1]
    ("tier-flag", "0"),  # §7.1 [no-tier-is-0]
    ("profile-compatibility-indicator", ""),
    ("interop-constraints", "B00000000000"),  # §7.1 [no-constraints-are-progressive-frames]
)
_LEVEL: Final = "level-id"
_SETS: Final = ("sprop-vps", "sprop-sps", "sprop-pps")  # in the order in which they depend
MAX_SETS: Final = 64  # of one description, Own design: memory must be bounded


def negotiate(ours: str, theirs: str) -> tuple[str, str] | None:
    """The parameters that we answer with, and those that we heed, None if they do not fit: §7.

    One stream in the order of decoding is what `H265Unpacker` reads.  Own design: an end that names
    no profile, as a gateway that looks into nothing, takes each.
    """
    mine, other = parameters(ours), parameters(theirs)  # §7.1 [unknown-is-ignored]
    # §4.3 [one-stream-for-unicast] [single-stream-if-it-says-so]
    is_single = other.get("tx-mode", "SRST").upper() == "SRST"
    if not is_single or other.get("sprop-max-don-diff", "0") != "0":
        return None
    names = [name for name, _ in _IDENTITY]
    # §7.1 [same-in-offer-and-answer], §7.2.2 [used-symmetrically]
    if any(name in mine for name in names) and any(
        mine.get(name, default).lower() != other.get(name, default).lower()
        for name, default in _IDENTITY
    ):
        return None
    kept = (f"{name}={other[name]}" for name in (*names, _LEVEL) if name in other)
    return ";".join(kept), theirs  # §7.2.1 [parameters-in-fmtp]


def parameter_sets(fmtp: str) -> tuple[bytes, ...]:
    """The parameter sets of a description, those that cannot be read left out: §7."""
    said, sets = parameters(fmtp), list[bytes]()
    for name in _SETS:
        for text in said.get(name, "").split(",")[:MAX_SETS]:
            try:
                sets.append(b64decode(text, validate=True))  # §7.2.2 [sets-of-the-description]
            except binascii.Error:
                continue
    return tuple(filter(None, sets))

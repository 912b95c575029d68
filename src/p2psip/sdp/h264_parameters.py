"""The parameters of H.264 in SDP: which profile, which level, which way of packing.

Implements RFC 6184 §8.1 and §8.2.2, for unicast.

Profile and packetization mode are the format's identity: both ends use the same ones, or not
this format.  The level is a limit, and so it is computed: the lower one of both, or each way the
receiver's own where both ends allow that (`level-asymmetry-allowed`).

    >>> ours, theirs = (H264Parameters.parse(f"profile-level-id={each}") for each in
    ...     ("42e01f", "4de014"))
    >>> ours.profile_level.sub_profile, theirs.profile_level.sub_profile
    ('CB', 'CB')
    >>> answer, sending = ours.negotiate(theirs)
    >>> str(answer), str(sending)
    ('profile-level-id=4de014', 'profile-level-id=4de014')
"""

from dataclasses import dataclass, replace
from typing import Final, Self

from p2psip.errors import RemoteError
from p2psip.sdp.attributes import parameters

LEVEL_1B: Final = 1.05  # Own design: a number between those of its neighbours, 1 and 1.1
AD_HOC_1B: Final = (66, 77, 88)  # Source: §8.1, profiles where a flag tells level 1b from 1.1
_CONSTRAINT_SET_3: Final = 0x10
_LEVEL_IDC_1B: Final = 9  # Source: §8.1, of the profiles that came later

# Source: §8.1 Table 5.  profile_idc, the bits of profile-iop that count, their values, the name.
_SUB_PROFILES: Final = (
    (0x42, 0x4F, 0x40, "CB"),
    (0x4D, 0x8F, 0x80, "CB"),
    (0x58, 0xCF, 0xC0, "CB"),
    (0x42, 0x4F, 0x00, "B"),
    (0x58, 0xCF, 0x80, "B"),
    (0x4D, 0xAF, 0x00, "M"),
    (0x58, 0xCF, 0x00, "E"),
    (0x64, 0xFF, 0x00, "H"),
    (0x6E, 0xFF, 0x00, "H10"),
    (0x7A, 0xFF, 0x00, "H42"),
    (0xF4, 0xFF, 0x00, "H44"),
    (0x6E, 0xFF, 0x10, "H10I"),
    (0x7A, 0xFF, 0x10, "H42I"),
    (0xF4, 0xFF, 0x10, "H44I"),
    (0x2C, 0xFF, 0x10, "C44I"),
)
# What a level extends, and what holds for one level only: without meaning at a lower level.
_OF_THE_LEVEL: Final = frozenset(
    f"max-{what}" for what in ("recv-level", "br", "cpb", "dpb", "fs", "mbps", "smbps")
)
_LEVEL_SETS: Final = "sprop-level-parameter-sets"
_PARAMETER_SETS: Final = frozenset({"sprop-parameter-sets", _LEVEL_SETS})


@dataclass(frozen=True, slots=True)
class ProfileLevel:
    """The three octets of `profile-level-id`, as a sequence parameter set begins: §8.1."""

    profile_idc: int = 66
    profile_iop: int = 0
    level_idc: int = 10  # the defaults are Baseline at level 1

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read six hexadecimal digits, or raise RemoteError: §8.1."""
        if len(text) != 6 or not text.isascii() or not text.isalnum():
            raise RemoteError("profile-level-id is not of six digits")
        try:
            return cls(*bytes.fromhex(text))
        except ValueError:
            raise RemoteError("profile-level-id is not hexadecimal") from None

    def __str__(self) -> str:
        """Write six hexadecimal digits: §8.1."""
        return bytes((self.profile_idc, self.profile_iop, self.level_idc)).hex()

    @property
    def sub_profile(self) -> str:
        """The name of the coding tools, by digits if the table has none: §8.1 Table 5."""
        for profile_idc, counting, value, name in _SUB_PROFILES:
            # §8.1 [sub-profile-table]
            if self.profile_idc == profile_idc and self.profile_iop & counting == value:
                return name
        ad_hoc = _CONSTRAINT_SET_3 if self.profile_idc in AD_HOC_1B else 0
        return bytes((self.profile_idc, self.profile_iop & ~ad_hoc)).hex()

    @property
    def level(self) -> float:
        """The level, 3.1 for one; `LEVEL_1B` for level 1b, however it is written: §8.1."""
        if self.profile_idc in AD_HOC_1B:
            if self.level_idc == 11 and self.profile_iop & _CONSTRAINT_SET_3:
                return LEVEL_1B  # §8.1 [level-1b-by-flag]
        elif self.level_idc == _LEVEL_IDC_1B:
            return LEVEL_1B
        return self.level_idc / 10

    def at(self, level: float) -> Self:
        """Give the same profile at another level: §8.2.2."""
        if self.level == level:
            return self
        iop = self.profile_iop
        if self.profile_idc in AD_HOC_1B:
            if level == LEVEL_1B:
                return replace(self, profile_iop=iop | _CONSTRAINT_SET_3, level_idc=11)
            iop &= ~_CONSTRAINT_SET_3
        elif level == LEVEL_1B:
            return replace(self, level_idc=_LEVEL_IDC_1B)
        return replace(self, profile_iop=iop, level_idc=round(level * 10))


@dataclass(frozen=True, slots=True)
class H264Parameters:
    """The value of an `a=fmtp` of H.264: §8.1.

    `others` holds the parameters that have no field here, as written.
    Not done: RFC 6184 §8.2.2 [all-understood]: the others are hints for encoders and terms of the
    interleaved mode, which nothing here has.
    """

    profile_level: ProfileLevel = ProfileLevel()
    packetization_mode: int = 0
    level_asymmetry: bool = False
    others: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, fmtp: str) -> Self:
        """Read the value of an `a=fmtp` attribute, or raise RemoteError: §8.1, §8.2.1."""
        found = parameters(fmtp)
        profile_level = found.pop("profile-level-id", None)
        mode = found.pop("packetization-mode", "0")  # §8.1 [mode-default]
        if mode not in ("0", "1", "2"):  # §8.1 [mode-range]
            raise RemoteError(f"packetization-mode {mode[:20]}")
        given = ProfileLevel()  # §8.1 [profile-default]
        if profile_level is not None:
            given = ProfileLevel.parse(profile_level)
        return cls(
            given,
            int(mode),
            found.pop("level-asymmetry-allowed", None) == "1",  # §8.1 [asymmetry-default]
            tuple(found.items()),  # §8.2 [unknown-parameters-ignored], §8.2.2 [unusable-ignored]
        )

    def __str__(self) -> str:
        """Write the value of an `a=fmtp` attribute, defaults left out: §8.2.1."""
        named = [("profile-level-id", str(self.profile_level))]
        if self.level_asymmetry:
            named.append(("level-asymmetry-allowed", "1"))
        if self.packetization_mode:
            named.append(("packetization-mode", str(self.packetization_mode)))
        # §8.2.1 [parameters-in-fmtp]
        return ";".join(f"{name}={value}" for name, value in (*named, *self.others))

    @property
    def receives_level(self) -> float:
        """The highest level that its author receives: §8.2.2."""
        level = self.profile_level.level
        most = dict(self.others).get("max-recv-level", "")
        try:
            iop, level_idc = bytes.fromhex(most)
        except ValueError:  # none, or no two octets
            return level
        # §8.2.2 [max-recv-level]
        return max(level, replace(self.profile_level, profile_iop=iop, level_idc=level_idc).level)

    def negotiate(self, theirs: Self) -> tuple[Self, Self] | None:
        """Compute (what our end answers, how our end sends), or None: §8.2.2.

        None if it is another configuration.  The first is also what arrives; `others` of the
        second are the peer's.
        Not done: §8.2.2 [meaning-by-direction]: the direction is not known here, so a line that
        only sends is answered with the lower level as well, and sends what it has announced.
        """
        if (
            self.packetization_mode != theirs.packetization_mode
            or self.profile_level.sub_profile != theirs.profile_level.sub_profile
        ):
            return None  # §8.2.2 [configuration-symmetric] [number-means-the-same]
        ours = self.profile_level.level
        if self.level_asymmetry and theirs.level_asymmetry:
            receives, sends = ours, theirs.receives_level  # §8.2.2 [asymmetric-levels]
        else:
            # §8.2.2 [common-level-is-lower] [no-upgrade]
            receives = sends = min(ours, theirs.profile_level.level)
        # Written with the peer's own octets for the profile: it may compare them.
        profile = theirs.profile_level
        left_out = frozenset({_LEVEL_SETS})  # §8.2.2 [one-kind-of-sets]
        if receives < ours:
            left_out |= _OF_THE_LEVEL
        if sends != ours or ("in-band-parameter-sets", "1") in theirs.others:
            left_out |= _PARAMETER_SETS  # §8.2.2 [answer-in-band]
        others = tuple((name, value) for name, value in self.others if name not in left_out)
        answer = replace(self, profile_level=profile.at(receives), others=others)
        return answer, replace(theirs, profile_level=profile.at(sends))


def configuration(fmtp: str) -> str:
    """What makes two H.264 formats the same: profile and packetization mode: §8.2.2."""
    try:
        read = H264Parameters.parse(fmtp)
    except RemoteError:
        return fmtp
    return f"{read.profile_level.sub_profile}/{read.packetization_mode}"


def negotiate(ours: str, theirs: str) -> tuple[str, str] | None:
    """Do as `H264Parameters.negotiate` with the text of two attributes: §8.2.2."""
    try:
        pair = H264Parameters.parse(ours).negotiate(H264Parameters.parse(theirs))
    except RemoteError:
        return None
    return pair and (str(pair[0]), str(pair[1]))

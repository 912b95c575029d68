"""The parameters of Opus in SDP: what its receiver can use, and what its sender will make.

Implements RFC 7587 §6.1 and §7.

All are optional, and none is agreed on: each end says its own, and heeds the other's when it
sends.  So the answer holds ours, and `OpusParameters` of the peer are the limits of our encoder.

    >>> theirs = OpusParameters.parse("maxplaybackrate=16000; stereo=1; maxaveragebitrate=99")
    >>> theirs.maxplaybackrate, theirs.stereo, theirs.maxaveragebitrate
    (16000, True, None)
    >>> str(theirs)
    'maxplaybackrate=16000;stereo=1'
"""

from dataclasses import dataclass
from typing import Final, Self

from p2psip.errors import RemoteError
from p2psip.sdp.attributes import parameters
from p2psip.sdp.line import number

CLOCK_RATE: Final = 48000  # Source: §4.1, whatever the bandwidth of the audio
FULL_RATE: Final = 48000  # Source: §6.1, Hz, when no rate is said
RATES: Final = range(8000, 48001)  # Source: §6.1
BITRATES: Final = range(6000, 510001)  # Source: §6.1
# Source: §3 Table 1, the audio bandwidths by the sampling rate that they need (Hz)
BANDWIDTHS: Final = (("NB", 8000), ("MB", 12000), ("WB", 16000), ("SWB", 24000), ("FB", 48000))


@dataclass(frozen=True, slots=True)
class OpusParameters:
    """The value of an `a=fmtp` of Opus, defaults filled in: §6.1.  Rates are in Hz and bit/s."""

    maxplaybackrate: int = FULL_RATE
    sprop_maxcapturerate: int = FULL_RATE
    maxaveragebitrate: int | None = None
    stereo: bool = False
    sprop_stereo: bool = False
    cbr: bool = False
    useinbandfec: bool = False
    usedtx: bool = False

    @classmethod
    def parse(cls, fmtp: str) -> Self:
        """Read the value of an `a=fmtp` attribute; ignore parameters that make no sense: §6.1."""
        found = parameters(fmtp)  # §7 [fmtp-counts]
        bitrate = _number(found, "maxaveragebitrate", 0)
        return cls(
            maxplaybackrate=_rate(found, "maxplaybackrate"),
            sprop_maxcapturerate=_rate(found, "sprop-maxcapturerate"),
            # §6.1 [odd-bitrate-ignored]
            maxaveragebitrate=bitrate if bitrate in BITRATES else None,
            stereo=found.get("stereo") == "1",
            sprop_stereo=found.get("sprop-stereo") == "1",
            cbr=found.get("cbr") == "1",
            useinbandfec=found.get("useinbandfec") == "1",
            usedtx=found.get("usedtx") == "1",
        )

    def __str__(self) -> str:
        """Write the value of an `a=fmtp` attribute, defaults left out: §7."""
        rates = {
            "maxplaybackrate": self.maxplaybackrate,
            "sprop-maxcapturerate": self.sprop_maxcapturerate,
        }
        flags = {
            "stereo": self.stereo,
            "sprop-stereo": self.sprop_stereo,
            "cbr": self.cbr,
            "useinbandfec": self.useinbandfec,
            "usedtx": self.usedtx,
        }
        named = [f"{name}={rate}" for name, rate in rates.items() if rate != FULL_RATE]
        if self.maxaveragebitrate is not None:
            named.append(f"maxaveragebitrate={self.maxaveragebitrate}")
        # §7 [parameters-in-fmtp]
        return ";".join([*named, *(f"{name}=1" for name, flag in flags.items() if flag)])

    @property
    def bandwidth(self) -> str:
        """The widest audio bandwidth of use to this receiver, "NB" to "FB": §7.1."""
        needed = (name for name, rate in BANDWIDTHS if rate >= self.maxplaybackrate)
        return next(needed)  # §7.1 [no-more-bandwidth-than-played]


def negotiate(ours: str, theirs: str) -> tuple[str, str]:
    """(What we answer, how we send): ours as it is, and what we know of theirs: §7.1."""
    return ours, str(OpusParameters.parse(theirs))  # §7.1 [unknown-parameters-removed]


def _rate(found: dict[str, str], name: str) -> int:
    rate = _number(found, name, FULL_RATE)
    return rate if rate in RATES else FULL_RATE


def _number(found: dict[str, str], name: str, default: int) -> int:
    try:
        return number(found[name])
    except (KeyError, RemoteError):
        return default

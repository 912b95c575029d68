"""All codecs of the oracle by name, and their cases.

Own design: the order is that of the layers, from signalling to media.
"""

from typing import TYPE_CHECKING, Final

from rtclab.command_line.arguments import ConfigError, did_you_mean
from rtclab.oracle import p2psip_codecs, rtmplite_codecs
from rtclab.oracle.codec import Codec

if TYPE_CHECKING:
    from rtclab.oracle.cases import Cases

CODECS: Final = {codec.name: codec for codec in (*p2psip_codecs.CODECS, *rtmplite_codecs.CODECS)}


def find(name: str) -> Codec:
    """The codec of this name.  Raises ConfigError."""
    if name not in CODECS:
        like = did_you_mean(name, CODECS) or "; oracle list names them"
        raise ConfigError(f"there is no codec {name}{like}")
    return CODECS[name]


def cases_of(codec: Codec) -> "Cases":
    """The cases of a codec by class.  Raises ConfigError where Hypothesis is missing."""
    try:
        from rtclab.oracle import p2psip_cases, rtmplite_cases
    except ModuleNotFoundError as error:
        raise ConfigError(f"{error.name} is missing: pip install 'siprtmp[oracle]'") from None
    return {**p2psip_cases.CASES, **rtmplite_cases.CASES}[codec.name](codec)

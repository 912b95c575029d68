"""Records and sequence parameter sets of H.265 that every reader must refuse.

Own design, over E-RTMP v2 §"Enhanced Video" and the syntax of ITU-T H.265, which is not in the
catalogue.
"""

from typing import Final

from hypothesis import strategies as st

from rtmplite.flv.hevc import SPS, kind_of
from rtmplite.strategies.avc import BitWriter
from rtmplite.strategies.faults import Fault, cut
from rtmplite.strategies.hevc import hevc_configs, hevc_parameter_sets, hevc_units

_RECORD: Final = 'E-RTMP v2 §"Enhanced Video"'
_SET: Final = "H.265 7.4.3.2.1"


_WHOLE: Final = hevc_configs().map(bytes)
_HEAD: Final = _WHOLE.map(lambda data: data[:22])

CONFIG_FAULTS: Final = (
    Fault("record cut", _RECORD, cut(_WHOLE)),
    Fault(
        "another version",
        _RECORD,
        st.builds(lambda data, n: bytes((n,)) + data[1:], _WHOLE, st.integers(2, 255)),
    ),
    Fault("empty set", _RECORD, _HEAD.map(lambda head: head + b"\1\xa1\0\1\0\0")),
)
"""Every fault of a record: E-RTMP v2 §"Enhanced Video"."""


def _written(
    layers: int = 1,
    set_id: int = 0,
    chroma: int = 1,
    size: tuple[int, int] = (320, 240),
    crops: tuple[int, ...] = (),
    depths: tuple[int, int] = (8, 8),
    reorder: int = 0,
) -> bytes:
    """A set with these fields, and no profile or level of any layer but the whole."""
    bits = BitWriter()
    bits.put(12, 0x010)
    bits.put(3, layers - 1)
    bits.put(97, 1 << 96)
    for _ in range(8 if layers > 1 else 0):
        bits.put(2, 0)
    bits.exp_golomb(set_id, chroma)
    if chroma == 3:
        bits.put(1, 0)
    bits.exp_golomb(*size)
    bits.put(1, bool(crops))
    bits.exp_golomb(*crops)
    bits.exp_golomb(depths[0] - 8, depths[1] - 8, 0)
    bits.put(1, 0)
    bits.exp_golomb(4, reorder, 0)
    return bits.unit(SPS << 1)


_SIDE: Final = st.integers(1, 99)

SPS_FAULTS: Final = (
    Fault("no parameter set", "H.265 7.4.2.2", hevc_units().filter(lambda u: kind_of(u) != SPS)),
    Fault("set cut", _SET, cut(hevc_parameter_sets().map(lambda drawn: drawn[0][:15]), 2)),
    Fault("eight layers", _SET, st.just(_written(layers=8))),
    Fault("id of the set", _SET, st.integers(16, 99).map(lambda n: _written(set_id=n))),
    Fault("chroma format", _SET, st.integers(4, 99).map(lambda n: _written(chroma=n))),
    Fault("depth of luma", _SET, st.integers(16, 99).map(lambda n: _written(depths=(n, 8)))),
    Fault("depth of chroma", _SET, st.integers(16, 99).map(lambda n: _written(depths=(8, n)))),
    Fault("too many to reorder", _SET, st.integers(16, 99).map(lambda n: _written(reorder=n))),
    Fault("no width", _SET, _SIDE.map(lambda n: _written(size=(0, n)))),
    Fault(
        "cropped to no lines",
        _SET,
        _SIDE.map(lambda n: _written(size=(9, 2 * n), crops=(0, 0, n, 1))),
    ),
)
"""Every fault of a sequence parameter set: H.265, clause 7.4.3.2.1."""

"""Speex by the system's libspeex, for encoding, which PyAV's ffmpeg cannot do.

Implements RFC 5574 §3.3: a frame of 20 ms is one payload, padded to whole octets.

Own design: bound by ctypes, since it takes six functions of a library that has not changed for ten
years.  Where it is absent, Speex is not made.
"""

import ctypes
import weakref
from array import array
from collections.abc import Callable
from functools import cache
from typing import Final

NAME: Final = "libspeex.so.1"
QUALITY: Final = 8  # of 0 to 10: 28 kbit/s at 16 kHz, 15 at 8 kHz
MAX_OCTETS: Final = 200  # more than any frame
_SET_QUALITY: Final = 4  # of speex.h, SPEEX_SET_QUALITY
_MODES: Final = {8000: 0, 16000: 1}  # of speex.h, SPEEX_MODEID_NB and SPEEX_MODEID_WB


class _Bits(ctypes.Structure):
    """The SpeexBits of speex_bits.h."""

    _fields_ = (
        ("chars", ctypes.c_void_p),
        *((name, ctypes.c_int) for name in ("bits", "at", "bit", "owner", "overflow", "size")),
        ("reserved1", ctypes.c_int),
        ("reserved2", ctypes.c_void_p),
    )


@cache
def _library() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL(NAME)
    except OSError:
        return None
    library.speex_lib_get_mode.restype = ctypes.c_void_p
    library.speex_encoder_init.restype = ctypes.c_void_p
    library.speex_encoder_init.argtypes = (ctypes.c_void_p,)
    library.speex_encoder_ctl.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
    library.speex_encoder_destroy.argtypes = (ctypes.c_void_p,)
    library.speex_encode_int.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    return library


def is_available() -> bool:
    """Whether Speex can be made on this machine."""
    return _library() is not None


def encoder(rate: int) -> Callable[["array[int]"], bytes]:
    """Make a function that encodes the samples of one frame, 20 ms at 8000 or 16000 Hz."""
    library = _library()
    assert library is not None
    state = library.speex_encoder_init(library.speex_lib_get_mode(_MODES[rate]))
    library.speex_encoder_ctl(state, _SET_QUALITY, ctypes.byref(ctypes.c_int(QUALITY)))
    bits, room = _Bits(), ctypes.create_string_buffer(MAX_OCTETS)
    library.speex_bits_init(ctypes.byref(bits))

    def encode(samples: "array[int]") -> bytes:
        address, _ = samples.buffer_info()
        library.speex_bits_reset(ctypes.byref(bits))
        library.speex_encode_int(state, address, ctypes.byref(bits))
        # RFC 5574 §3.3 [frames-whole]
        size = library.speex_bits_write(ctypes.byref(bits), room, MAX_OCTETS)
        return room.raw[:size]

    weakref.finalize(encode, _free, library, state, bits)
    return encode


def _free(library: ctypes.CDLL, state: int, bits: _Bits) -> None:
    library.speex_encoder_destroy(state)
    library.speex_bits_destroy(ctypes.byref(bits))

"""Answers the oracle's questions by PyAV: oracle compare h264-sps -- python pyav_reader.py

FFmpeg looks into a sequence parameter set when a slice needs it, so the set is followed by a
picture parameter set and an empty slice.  What PyAV shows of it is the size of the picture.
"""

import io
import json
import sys

import av


def golomb(number):
    digits = f"{number + 1:b}"
    return digits.zfill(2 * len(digits) - 1)


def first_golomb(bits):
    zeros = bits.index("1")
    return int(bits[zeros : 2 * zeros + 1], 2) - 1


def unit(head, bits):
    bits += "1" + "0" * (-len(bits) % 8 or 8)
    return bytes([head]) + int(bits[: len(bits) // 8 * 8], 2).to_bytes(len(bits) // 8)


def decode(data):
    plain = data.replace(b"\0\0\3", b"\0\0")
    set_id = first_golomb("".join(f"{octet:08b}" for octet in plain[4:]))
    picture = unit(
        0x68, golomb(0) + golomb(set_id) + "00" + golomb(0) * 3 + "000" + golomb(0) * 3 + "000"
    )
    slice_ = unit(0x65, golomb(0) + golomb(7) + golomb(0) + "01" * 100)
    stream = b"".join(b"\0\0\0\1" + each for each in (data, picture, slice_) * 2)
    with av.open(io.BytesIO(stream), format="h264") as file:
        context = file.streams.video[0].codec_context
        if not context.width:
            raise NotImplementedError("a format that FFmpeg does not decode")
        return {"width": context.width, "height": context.height}


av.logging.set_level(None)
for line in sys.stdin:
    try:
        print("value", json.dumps(decode(bytes.fromhex(line[len("decode ") :]))), flush=True)
    except NotImplementedError as reason:
        print("skip", reason, flush=True)
    except (ValueError, av.error.FFmpegError) as error:
        print("error", repr(error), flush=True)

"""Answers the oracle's questions about RTP: oracle compare rtp -- python3 rtp.py"""

import json
import struct
import sys


def decode(data):
    first, second, sequence, timestamp, ssrc = struct.unpack_from("!BBHII", data)
    start = 12 + 4 * (first & 15)
    value = {"payload_type": second & 127, "sequence": sequence, "timestamp": timestamp}
    value |= {"ssrc": ssrc, "marker": second > 127, "extension": None, "padding": 0}
    value["csrcs"] = list(struct.unpack_from(f"!{first & 15}I", data, 12))
    if first & 16:
        profile, words = struct.unpack_from("!HH", data, start)
        start += 4 + 4 * words
        value["extension"] = {"profile": profile, "data": data[start - 4 * words : start].hex()}
    if first & 32:
        value["padding"] = data[-1]
    if first >> 6 != 2 or start + value["padding"] > len(data) or (first & 32 and not data[-1]):
        raise ValueError("no RTP packet")
    return value | {"payload": data[start : len(data) - value["padding"]].hex()}


for line in sys.stdin:
    try:
        print("value", json.dumps(decode(bytes.fromhex(line[len("decode ") :]))), flush=True)
    except (ValueError, struct.error) as error:
        print("error", error, flush=True)

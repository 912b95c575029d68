"""Answers the oracle's questions by dpkt: oracle compare rtp -- python dpkt_readers.py rtp

What dpkt does not look into is left out: the extension and the padding of RTP.
"""

import json
import struct
import sys

import dpkt


def rtp(data):
    read = dpkt.rtp.RTP(data)
    if read.version != 2:
        raise dpkt.UnpackError(f"version {read.version}")
    value = {"payload_type": read.pt, "marker": bool(read.m), "payload": read.data.hex()}
    value["csrcs"] = list(struct.unpack(f"!{len(read.csrc) // 4}I", read.csrc))
    return value | {"sequence": read.seq, "timestamp": read.ts, "ssrc": read.ssrc}


def stun(data):
    read = dpkt.stun.STUN(data)
    attributes = [
        {"type": kind, "value": value.hex()} for kind, value in dpkt.stun.parse_attrs(read.data)
    ]
    return {"transaction_id": read.xid[4:].hex(), "attributes": attributes}


decode = {"rtp": rtp, "stun": stun}[sys.argv[1]]
for line in sys.stdin:
    try:
        print("value", json.dumps(decode(bytes.fromhex(line[len("decode ") :]))), flush=True)
    except (dpkt.UnpackError, struct.error) as error:
        print("error", repr(error), flush=True)

"""Answers the oracle's questions by tshark: oracle compare rtp -- python3 tshark_reader.py rtp

It reads rtp, sip and stun.  One tshark reads a capture from its standard input for all questions,
and gives the fields of each datagram when it has it.  What its expert calls an error is one.
"""

import json
import struct
import subprocess
import sys

PORTS = {"rtp": 5004, "sip": 5060, "stun": 3478}
FILE = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 0xFFFF, 101)  # raw IP
ERROR = 0x800000
HERE, THERE = bytes((192, 0, 2, 1)), bytes((192, 0, 2, 2))


def frame(data, port):
    udp = struct.pack("!4H", port, port, 8 + len(data), 0) + data
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0) + HERE + THERE + udp
    return struct.pack("<4I", 0, 0, len(ip), len(ip)) + ip


def every(fields, name):
    """All values of a field; tshark has a list only where there are several."""
    found = fields.get(name, [])
    return found if isinstance(found, list) else [found]


def octets(fields, name):
    return "".join(every(fields, name)).replace(":", "")


def rtp(fields):
    number = {name: int(fields[f"rtp_rtp_{name}"], 0) for name in ("seq", "timestamp", "ssrc")}
    value = {"payload_type": int(fields["rtp_rtp_p_type"]), "marker": fields["rtp_rtp_marker"]}
    value |= {"sequence": number["seq"], "timestamp": number["timestamp"], "ssrc": number["ssrc"]}
    value["csrcs"] = [int(each, 0) for each in every(fields, "rtp_rtp_csrc_item")]
    value["payload"] = octets(fields, "rtp_rtp_payload")
    return value | {"padding": int(fields.get("rtp_rtp_padding_count", 0))}


def sip(fields):
    cseq = {"number": int(fields["sip_sip_CSeq_seq"]), "method": fields["sip_sip_CSeq_method"]}
    value = {"call_id": fields["sip_sip_Call-ID"], "cseq": cseq}
    hosts = every(fields, "sip_sip_Via_sent-by_address")
    transports = every(fields, "sip_sip_Via_transport")
    value["via"] = [
        {"transport": transport, "host": host.strip("[]")}
        for transport, host in zip(transports, hosts, strict=True)
    ]
    if "sip_sip_Method" in fields:
        return {"type": "request", "method": fields["sip_sip_Method"]} | value
    return {"type": "response", "status": int(fields["sip_sip_Status-Code"])} | value


def stun(fields):
    """The class and the method stand in each other's gaps (RFC 8489 §5), and tshark leaves them."""
    kind, method = (int(fields[f"stun_stun_type_{name}"], 0) for name in ("class", "method"))
    value = {"kind": kind >> 3 & 2 | kind & 1, "transaction_id": octets(fields, "stun_stun_id")}
    return value | {"method": method & 15 | method >> 1 & 0x70 | method >> 2 & 0xF80}


def complaint(layers):
    """What tshark's expert calls an error in any layer, None if there is nothing."""
    waiting = [layers]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            severities = every(each, "_ws_expert__ws_expert_severity")
            if any(int(severity) >= ERROR for severity in severities):
                return each["_ws_expert__ws_expert_message"]
        if isinstance(each, dict | list):
            waiting += each.values() if isinstance(each, dict) else each
    return None


name = sys.argv[1]
words = ["tshark", "-n", "-l", "-r", "-", "-T", "ek", "-d", f"udp.port=={PORTS[name]},{name}"]
words += ["--disable-protocol", "rtp.events", "--disable-protocol", "rtpevent"]
tshark = subprocess.Popen(
    words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
)
tshark.stdin.write(FILE)
for line in sys.stdin:
    data = bytes.fromhex(line[len("decode ") :])
    if len(data) > 0xFF00:
        print("skip too long for a datagram", flush=True)
        continue
    tshark.stdin.write(frame(data, PORTS[name]))
    tshark.stdin.flush()
    while "layers" not in (read := json.loads(tshark.stdout.readline())):
        pass
    layers = read["layers"]
    if error := complaint(layers):
        print("error", " ".join(str(error).split()), flush=True)
    elif name not in layers:
        print("error it is no", name, flush=True)
    else:
        fields = layers[name][0] if isinstance(layers[name], list) else layers[name]
        try:
            answer = {"rtp": rtp, "sip": sip, "stun": stun}[name](fields)
        except (KeyError, TypeError, ValueError) as error:  # what it found no field of
            print("error", repr(error), flush=True)
        else:
            print("value", json.dumps(answer), flush=True)

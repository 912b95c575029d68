"""Answers the oracle's questions by aiortc: oracle compare rtp -- python aiortc_codecs.py rtp

It reads and writes rtp and rtcp, and reads sdp.  The extension of RTP is left out, and so is what
a description has beside the origin, the name and the lines of its streams.
"""

import json
import struct
import sys

from aiortc import rtp, sdp


def read_rtp(data):
    read = rtp.RtpPacket.parse(data)
    value = {"payload_type": read.payload_type, "marker": bool(read.marker), "csrcs": read.csrc}
    value |= {"sequence": read.sequence_number, "timestamp": read.timestamp, "ssrc": read.ssrc}
    return value | {"payload": read.payload.hex(), "padding": read.padding_size}


def write_rtp(value):
    if value["extension"]:
        raise NotImplementedError("an extension that is none of WebRTC's")
    names = ("payload_type", "marker", "sequence", "timestamp", "ssrc")
    packet = rtp.RtpPacket(*map(value.get, names), bytes.fromhex(value["payload"]))
    packet.csrc, packet.padding_size = value["csrcs"], value["padding"]
    return packet.serialize()


REPORT = {"ssrc": "ssrc", "fraction_lost": "fraction_lost", "lost": "packets_lost"}
REPORT |= {"highest_sequence": "highest_sequence", "jitter": "jitter"}
REPORT |= {"last_sr": "lsr", "delay": "dlsr"}
SENDER = {"ntp": "ntp_timestamp", "timestamp": "rtp_timestamp"}
SENDER |= {"packets": "packet_count", "octets": "octet_count"}


def written(packet):
    match packet:
        case rtp.RtcpSrPacket() | rtp.RtcpRrPacket():
            reports = [
                {ours: getattr(each, its) for ours, its in REPORT.items()}
                for each in packet.reports
            ]
            value = {"ssrc": packet.ssrc, "reports": reports}
            if isinstance(packet, rtp.RtcpRrPacket):
                return {"type": "receiver-report"} | value
            sender = {ours: getattr(packet.sender_info, its) for ours, its in SENDER.items()}
            return {"type": "sender-report"} | value | sender
        case rtp.RtcpSdesPacket():
            chunks = [
                {"ssrc": each.ssrc, "items": [[kind, text.hex()] for kind, text in each.items]}
                for each in packet.chunks
            ]
            return {"type": "source-description", "chunks": chunks}
        case rtp.RtcpByePacket():
            return {"type": "bye", "ssrcs": packet.sources}
    ssrcs = {"sender_ssrc": packet.ssrc, "media_ssrc": packet.media_ssrc}
    kind = {rtp.RtcpRtpfbPacket: 205, rtp.RtcpPsfbPacket: 206}[type(packet)], packet.fmt
    if kind == (205, 1):
        return {"type": "nack"} | ssrcs
    if kind == (206, 1):
        return {"type": "pli"} | ssrcs
    if kind in ((205, 3), (205, 4), (206, 4)):
        raise NotImplementedError("requests of RFC 5104")
    fci = {"fci": packet.fci.hex()} if kind[0] == 206 else {}
    return {"type": "other-feedback", "packet_type": kind[0], "message_type": kind[1]} | ssrcs | fci


def read_rtcp(data):
    at = 0
    while at + 4 <= len(data):
        if data[at + 1] not in (200, 201, 202, 203, 205, 206):
            raise NotImplementedError(f"packets of type {data[at + 1]}, which it leaves out")
        at += 4 + 4 * int.from_bytes(data[at + 2 : at + 4])
    return [written(packet) for packet in rtp.RtcpPacket.parse(data)]


def packet_of(value):
    match value["type"]:
        case "source-description":
            chunks = [
                rtp.RtcpSourceInfo(
                    each["ssrc"], [(kind, bytes.fromhex(text)) for kind, text in each["items"]]
                )
                for each in value["chunks"]
            ]
            return rtp.RtcpSdesPacket(chunks)
        case "sender-report" | "receiver-report" if not value["extension"]:
            reports = [rtp.RtcpReceiverInfo(*map(each.get, REPORT)) for each in value["reports"]]
            if value["type"] == "receiver-report":
                return rtp.RtcpRrPacket(value["ssrc"], reports)
            sender = rtp.RtcpSenderInfo(*(int(value[name]) for name in SENDER))
            return rtp.RtcpSrPacket(value["ssrc"], sender, reports)
        case "bye" if not value["reason"]:
            return rtp.RtcpByePacket(value["ssrcs"])
        case "pli":
            return rtp.RtcpPsfbPacket(1, value["sender_ssrc"], value["media_ssrc"])
    raise NotImplementedError(value["type"])


def write_rtcp(value):
    return b"".join(bytes(packet_of(each)) for each in value)


def read_sdp(data):
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise NotImplementedError("another encoding than UTF-8") from None
    read = sdp.SessionDescription.parse(text)
    user, number, version, *address = read.origin.split(" ")
    origin = {"username": user, "session_id": int(number), "version": int(version)}
    origin |= dict(zip(("network_type", "address_type", "address"), address, strict=True))
    media = [
        {
            "kind": each.kind,
            "port": each.port,
            "protocol": each.profile,
            "formats": list(map(str, each.fmt)),
        }
        for each in read.media
    ]
    return {"version": read.version, "origin": origin, "name": read.name, "media": media}


codecs = {"rtp": (read_rtp, write_rtp), "rtcp": (read_rtcp, write_rtcp), "sdp": (read_sdp, None)}
read, write = codecs[sys.argv[1]]
for line in sys.stdin:
    word, _, content = line.rstrip("\n").partition(" ")
    try:
        if word == "encode":
            print("octets", write(json.loads(content)).hex(), flush=True)
        else:
            print("value", json.dumps(read(bytes.fromhex(content))), flush=True)
    except NotImplementedError as reason:
        print("skip", reason, flush=True)
    except (
        ValueError,
        AssertionError,
        AttributeError,
        StopIteration,
        TypeError,
        struct.error,
    ) as error:
        print("error", repr(error), flush=True)

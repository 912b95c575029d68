"""Packets of real peers: read, described field by field, and written again byte for byte."""

import json
import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations, peak

from rtmplite.errors import RemoteError
from rtmplite.rtmfp.crypto.blocks import checksum
from rtmplite.rtmfp.wire.chunks import encode_chunk, expand_next_user_data
from rtmplite.rtmfp.wire.packet import Mode, Packet, unscramble
from rtmplite.rtmfp.wire.vlu import decode_vlu

FOLDER = Path(os.environ.get("TEST_CORPUS") or Path(__file__).parents[5] / "shared/corpus")
CAPTURES = [
    "connect_play_nobody",
    "p2p_introduction",
    "publish_play_h264_speex",
    "publish_play_nohmac_nosseq",
]
NAMES = {  # as the corpus calls them
    "IHello": "InitiatorHello",
    "RHello": "ResponderHello",
    "IIKeying": "InitiatorInitialKeying",
    "RIKeying": "ResponderInitialKeying",
    "FIHello": "ForwardedInitiatorHello",
    "Responder Redirect": "ResponderRedirect",
    "User Data": "UserData",
    "Next User Data": "NextUserData",
    "Data Ack Ranges": "DataAckRanges",
    "Flow Exception Report": "FlowException",
    "Session Close Acknowledgement": "SessionCloseAck",
    "ECN Report (zenomt extension)": "UnknownChunk",
}


def lines(folder, name):
    with (folder / "rtmfp" / f"{name}.decrypted.jsonl").open() as file:
        yield from map(json.loads, file)


def packet_of(line):
    """Remove the fields of the Cryptography Profile before a packet: RFC 7425 §4.7.2."""
    plain, at = bytes.fromhex(line["plain"]), 0
    if "sseq" in line:
        _, at = decode_vlu(plain)
    if not line.get("hmac_len"):
        assert checksum(plain[at + 2 :]) == int.from_bytes(plain[at : at + 2], "big")
        at += 2
    return plain[at:]


def described(packet):
    """Describe a packet in the terms of the corpus."""
    told = {"mode": packet.mode}
    if packet.timestamp is not None:
        told["timestamp"] = packet.timestamp
    if packet.timestamp_echo is not None:
        told["timestamp_echo"] = packet.timestamp_echo
    chunks = [(type(chunk).__name__, encode_chunk(chunk)) for chunk in packet.chunks]
    return told | {"chunks": chunks}


def expected(line):
    told = {key: line[key] for key in ("mode", "timestamp", "timestamp_echo") if key in line}
    chunks = []
    for chunk in line["chunks"]:
        payload = bytes.fromhex(chunk["payload"])
        head = bytes((chunk["type"], len(payload) >> 8, len(payload) & 255))
        chunks.append((NAMES[chunk["name"]], head + payload))
    return told | {"chunks": chunks}


@pytest.mark.parametrize("name", CAPTURES)
def test_every_captured_packet_is_read_and_written_again(corpus, name):
    """Covers RFC 7016 §2.2.4 [packet-layout] [modes] [padding-told], §2.3 [chunk-layout].

    And §2.3 [chunk-types] [unknown-ignored], §2.3.2 [ihello-layout], §2.3.4 [rhello-layout],
    §2.3.7 [iikeying-layout], §2.3.8 [rikeying-layout], §2.3.11 [user-data-layout],
    §2.3.14 [range-ack-layout].
    """
    count = Counter()
    for line in lines(corpus, name):
        data = packet_of(line)
        packet = Packet.parse(data)
        written = packet.encode()
        assert described(packet) == expected(line), line["n"]
        assert data == written + b"\xff" * (len(data) - len(written)), line["n"]
        assert (packet.mode is Mode.STARTUP) == (line["key"] == "default")
        count.update(type(chunk).__name__ for chunk in packet.chunks)
    manifest = json.loads((corpus / "rtmfp" / "manifest.json").read_text())
    (entry,) = [entry for entry in manifest if entry["file"] == name]
    if entry["in_jsonl"] == entry["packets"]:
        assert count == Counter({NAMES[kind]: number for kind, number in entry["chunks"].items()})


def test_the_handshake_of_a_real_flash_player(corpus):
    """Covers RFC 7016 §2.2.2 [multiplex-layout] [scrambled], §2.3.2 [ihello-layout].

    And §2.3.4 [rhello-layout], §2.3.7 [iikeying-layout], §2.3.8 [rikeying-layout].
    """
    recorded = json.loads((corpus / "rtmfp" / "flash_player_handshake.json").read_text())
    seen = []
    for line in recorded["packets"]:
        session_id, encrypted = unscramble(bytes.fromhex(line["wire"]))
        assert session_id == line["ssid"] and len(encrypted) == len(line["plain"]) // 2
        data = packet_of(line)
        packet = Packet.parse(data)
        assert described(packet) == expected(line)
        written = packet.encode()
        assert data == written + b"\xff" * (len(data) - len(written))
        seen += packet.chunks
    ihello, rhello, iikeying, rikeying = seen
    assert ihello.endpoint_discriminator[2:].startswith(b"rtmfp://")
    assert rhello.tag_echo == ihello.tag and len(ihello.tag) == 16
    assert iikeying.cookie_echo == rhello.cookie and len(rhello.cookie) == 64
    assert iikeying.signature == rikeying.signature == b"X"


def test_an_introduction_names_both_sides(corpus):
    """Covers RFC 7016 §2.3.3 [fihello-layout], §2.3.5 [redirect-layout], §2.1.5 [origins].

    And §2.3.16 [flow-exception-layout], §2.3.18 [close-ack-layout].
    """
    found = {}
    for line in lines(corpus, "p2p_introduction"):
        for chunk in Packet.parse(packet_of(line)).chunks:
            found.setdefault(type(chunk).__name__, []).append((line, chunk))
    ((_, redirect),) = found["ResponderRedirect"]
    ((_, forwarded),) = found["ForwardedInitiatorHello"]
    asked = [hello for _, hello in found["InitiatorHello"] if hello.tag == redirect.tag_echo]
    assert asked and not redirect.is_implied
    assert forwarded.tag == redirect.tag_echo
    assert forwarded.endpoint_discriminator == asked[0].endpoint_discriminator
    asker = next(line["src"] for line, hello in found["InitiatorHello"] if hello is asked[0])
    assert f"{forwarded.reply_address.ip}:{forwarded.reply_address.port}" == asker
    ((_, exception),) = found["FlowException"]
    assert exception.exception == 0


@pytest.mark.parametrize("name", ["publish_play_h264_speex", "connect_play_nobody"])
def test_the_flows_of_a_capture_count_without_a_gap(corpus, name):
    """Covers RFC 7016 §2.3.12 [next-number], §2.3.11 [user-data-layout]."""
    last = {}
    for line in lines(corpus, name):
        for chunk in expand_next_user_data(Packet.parse(packet_of(line)).chunks):
            if type(chunk).__name__ == "UserData":
                flow = line["src"], line["dst"], line["ssid"], chunk.flow_id
                before = last.get(flow, 0)
                assert chunk.sequence_number <= before + 1
                last[flow] = max(before, chunk.sequence_number)
    assert last and min(last.values()) >= 1


def captured():
    if not (FOLDER / "rtmfp").is_dir():
        return [b"\x01\x01\x00\x00"]
    return [packet_of(line) for line in lines(FOLDER, "p2p_introduction")]


@given(mutations(st.sampled_from(captured())))
def test_spoiled_captures_are_read_or_refused(data):
    """Covers RFC 7016 §2 [truncation-noticed]."""

    def attempt():
        try:
            event("read" if Packet.parse(data).chunks else "nothing within")
        except RemoteError:
            event("refused")

    assert peak(attempt) <= 32 * len(data) + 65536

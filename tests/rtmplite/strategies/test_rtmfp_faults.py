"""Our readers of RTMFP refuse each fault of the strategies, and say what is wrong."""

import pytest
from support.faults import refused

from rtmplite.errors import RemoteError
from rtmplite.rtmfp.crypto.certificate import Certificate
from rtmplite.rtmfp.crypto.epd import Epd
from rtmplite.rtmfp.crypto.keying import Component
from rtmplite.rtmfp.netconnection.messages import FlowMetadata, parse_control, parse_message
from rtmplite.rtmfp.wire.chunks import PARSERS, parse_chunks
from rtmplite.rtmfp.wire.fast_path import read_header, read_next_user_data, read_user_data
from rtmplite.rtmfp.wire.flow_chunks import read_flow_options
from rtmplite.rtmfp.wire.packet import Packet
from rtmplite.strategies import rtmfp_faults
from rtmplite.strategies.faults import broken

VLU, FIELD, ADDRESS = "VLU is cut off", "bytes announced|VLU is cut off", "address is cut off"
PACKETS = {
    "no flags": "without flags",
    "mode 0": "forbidden mode",
    "timestamp cut": "in its timestamps",
    "echo cut": "in its timestamps",
    "echo after timestamp cut": "in its timestamps",
}
STARTUP = {
    "discriminator cut": FIELD,
    "number not ended": VLU,
    "number of more than 64 bits": "more than 64 bits",
    "tag cut": FIELD,
    "cookie cut": FIELD,
    "tag of a redirect cut": FIELD,
    "address of a redirect cut": ADDRESS,
    "old cookie cut": FIELD,
    "session id of the initiator cut": "session ID is cut off",
    "echoed cookie cut": FIELD,
    "certificate cut": FIELD,
    "component cut": FIELD,
    "session id of the responder cut": "session ID is cut off",
    "component of the responder cut": FIELD,
}
SESSION = {
    "numbers of a fragment cut": VLU,
    "fragment of nothing": "fragment of nothing",
    "forwarded discriminator cut": FIELD,
    "reply address cut": ADDRESS,
    "no flags of user data": f"{VLU}|without flags",
    "numbers of user data cut": VLU,
    "offset beyond the number": "forward sequence number below 0",
    "offset of 0": "never sent",
    "option cut": FIELD,
    "options not ended": VLU,
    "no flags": "without flags",
    "options of next data not ended": VLU,
    "bitmap acknowledgement cut": VLU,
    "range acknowledgement cut": VLU,
    "probe of no flow": VLU,
    "exception cut": VLU,
}
OPENINGS = {
    "unknown option": "unknown option",
    "no metadata": "without metadata",
    "answer to two flows": "answers two flows",
    "flow id cut": VLU,
}
TWICE = "must not occur more than once"
CERTIFICATES = {
    "option cut": FIELD,
    "two hostnames": TWICE,
    "static and ephemeral keys": "static and ephemeral",
    "group cut": VLU,
    "group of a key cut": VLU,
}
EPDS = {
    "option cut": FIELD,
    "two hostnames": TWICE,
    "two URIs": TWICE,
    "fingerprint of another size": "fingerprint of [0-9]+ bytes",
    "two fingerprints": TWICE,
}
COMPONENTS = {
    "option cut": FIELD,
    "two keys": TWICE,
    "group of the key cut": VLU,
    "two groups selected": TWICE,
    "no HMAC flags": "without flags",
    "HMAC length": "HMACs of [0-9]+ bytes",
    "no sequence number flags": "without flags",
}
METADATA = {
    "another signature": "of another kind",
    "no flags": "of another kind|without a stream id",
    "no stream id": "without a stream id",
    "stream id cut": VLU,
    "stream id of more than 24 bits": "flow for stream",
}

MESSAGES = {
    "header cut": "message of [0-4] bytes in a flow",
    "synchronization cut": "event [0-9]+ of [0-7] bytes",
    "timers cut": "event [0-9]+ of [0-7] bytes",
}


def read_chunk(chunk):
    """Read one chunk by every reader there is; all of them leave out a broken one."""
    kind, payload = chunk
    assert parse_chunks(bytes((kind,)) + len(payload).to_bytes(2, "big") + payload) == []
    for packet in (payload, payload + b"\x05\x05\x05\x05"):  # in the middle of a packet as well
        fast = {0x10: read_user_data, 0x11: read_next_user_data}.get(kind)
        if fast is not None:
            with pytest.raises(RemoteError):
                fast(packet, 0, len(payload))
    PARSERS[kind](payload)


@pytest.mark.parametrize(
    ("broken", "read", "reasons"),
    [
        (broken(rtmfp_faults.PACKET_FAULTS), Packet.parse, PACKETS),
        (broken(rtmfp_faults.STARTUP_FAULTS), read_chunk, STARTUP),
        (broken(rtmfp_faults.SESSION_FAULTS), read_chunk, SESSION),
        (broken(rtmfp_faults.OPENING_FAULTS), read_flow_options, OPENINGS),
        (broken(rtmfp_faults.CERTIFICATE_FAULTS), Certificate.parse, CERTIFICATES),
        (broken(rtmfp_faults.EPD_FAULTS), Epd.parse, EPDS),
        (broken(rtmfp_faults.COMPONENT_FAULTS), Component.parse, COMPONENTS),
        (broken(rtmfp_faults.METADATA_FAULTS), FlowMetadata.parse, METADATA),
        (
            broken(rtmfp_faults.MESSAGE_FAULTS),
            lambda data: parse_control(parse_message(data, 1)),
            MESSAGES,
        ),
    ],
    ids=[
        *("packet", "startup", "session", "opening", "certificate", "epd", "component", "metadata"),
        "message",
    ],
)
def test_each_fault_is_refused(broken, read, reasons):
    """Covers RFC 7016 §2.2.4 and §2.3, RFC 7425 §4.3, §4.4, §4.5 and §5.1.1."""
    refused(broken, read, RemoteError, reasons)


def test_the_quick_reader_refuses_a_packet_that_is_cut():
    """Covers RFC 7016 §2.2.4: mode 0 is for its caller to see."""
    reasons = {name: "cut off" for name in PACKETS if name != "mode 0"}
    others = broken(rtmfp_faults.PACKET_FAULTS).filter(lambda drawn: drawn[0].name != "mode 0")
    refused(others, read_header, RemoteError, reasons)

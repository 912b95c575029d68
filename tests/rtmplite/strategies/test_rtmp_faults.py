"""Our readers of RTMP refuse each fault of the strategies, and say what is wrong."""

import pytest
from support.faults import refused

from rtmplite.errors import RemoteError
from rtmplite.rtmp.wire.aggregate import aggregated
from rtmplite.rtmp.wire.chunk_reader import ChunkReader
from rtmplite.rtmp.wire.command import Command
from rtmplite.rtmp.wire.control import parse_control
from rtmplite.rtmp.wire.shared_object import SharedObject
from rtmplite.strategies import rtmp_faults
from rtmplite.strategies.faults import broken

SHORT = "control message of [0-9]+ bytes"
CHUNKS = {
    "type 2 first": "begins with type 2",
    "type 3 first": "begins with type 3",
    "chunk size of 0": "chunk size of 0",
    "chunk size with its first bit": "chunk size of [0-9]+",
    "chunk size cut": SHORT,
    "abort cut": SHORT,
}
CONTROLS = {
    "chunk size cut": SHORT,
    "chunk size out of range": "chunk size of [0-9]+",
    "abort cut": SHORT,
    "acknowledgement cut": SHORT,
    "window cut": SHORT,
    "bandwidth cut": SHORT,
    "unknown limit type": "limit of type",
    "event without type": SHORT,
    "event cut": SHORT,
    "buffer length cut": SHORT,
}
COMMANDS = {
    "empty command": "begins with its name",
    "no name": "begins with its name",
    "no transaction id": "begins with its name and its number",
    "broken argument": "AMF",
    "format without a byte": "unknown format",
    "unknown format": "unknown format",
    "another type": "is no command",
}
SHARED_OBJECTS = {
    "name cut": "within a name",
    "header cut": "within its header",
    "event header cut": "broken event",
    "event cut": "shorter than its events",
    "slot name cut": "within a name",
    "slot value broken": "AMF",
    "another type": "is no shared object",
    "unknown format": "unknown format",
}
AGGREGATES = {"part header cut": "within a header", "part cut": "shorter than its parts"}


def read_chunks(data):
    """Read chunks in pieces, as TCP may deliver them, and all at once."""
    with pytest.raises(RemoteError):
        ChunkReader().feed(data)
    reader = ChunkReader()
    for at in range(0, len(data), 7):
        reader.feed(data[at : at + 7])


@pytest.mark.parametrize(
    ("broken", "read", "reasons"),
    [
        (broken(rtmp_faults.CHUNK_FAULTS), read_chunks, CHUNKS),
        (broken(rtmp_faults.CONTROL_FAULTS), parse_control, CONTROLS),
        (broken(rtmp_faults.COMMAND_FAULTS), Command.parse, COMMANDS),
        (broken(rtmp_faults.SHARED_OBJECT_FAULTS), SharedObject.parse, SHARED_OBJECTS),
        (
            broken(rtmp_faults.AGGREGATE_FAULTS),
            lambda message: list(aggregated(message)),
            AGGREGATES,
        ),
    ],
    ids=["chunks", "control", "command", "shared object", "aggregate"],
)
def test_each_fault_is_refused(broken, read, reasons):
    """Covers RTMP 1.0 §5.3, §5.4, §6.2, §7.1.1, §7.1.3 and §7.1.6."""
    refused(broken, read, RemoteError, reasons)

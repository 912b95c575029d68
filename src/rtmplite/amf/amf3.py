"""AMF3, the format since Flash Player 9, which writes a repeated value as a reference.

Implements AMF3 §2 to §4.  Reading gives Python values (`rtmplite.amf.values` has the ones Python
lacks), and writing them gives what was read:

    >>> from rtmplite.amf.values import Vector, VectorKind
    >>> encode({"id": 4, "path": Vector(VectorKind.DOUBLE, [1.5])}).hex(" ", -4)
    '0a0b0105 69640404 09706174 680f0300 3ff80000 00000000 01'
    >>> decode(encode({"id": 4}, [True, b"raw"]))
    [{'id': 4}, [True, b'raw']]

In RTMP, AMF3 only occurs behind the switch that `rtmplite.amf.amf0` knows (RTMP Errata §7.2); alone
it is what a ByteArray or a shared object holds.
"""

from collections.abc import Mapping
from typing import Final, Protocol, TypeAlias

from rtmplite.amf.amf3_reader import Amf3Reader, ExternalReader, UnknownExternalError
from rtmplite.amf.amf3_writer import Amf3Writer, ExternalWriter
from rtmplite.amf.cursor import Cursor
from rtmplite.amf.values import Opaque, Value


class External(ExternalReader, ExternalWriter, Protocol):
    """Reads and writes the body of one class, which becomes `Externalizable.content`: §3.12.

    Own design: a registry maps the name of a class to such a pair of hooks.  An instance of any
    other class makes the outermost value that holds it an `Opaque`.
    """


class OneValue:
    """A class whose body is one AMF3 value.  Own design: §3.12 leaves the body to the two ends."""

    def read(self, reader: Amf3Reader) -> Value:
        """Read that value."""
        return reader.value()

    def write(self, writer: Amf3Writer, content: Value) -> None:
        """Write that value."""
        writer.value(content)


Externals: TypeAlias = Mapping[str, External]

# The wrappers that Flex puts around every array and object which it sends.
FLEX: Final[Externals] = dict.fromkeys(
    (
        "flex.messaging.io.ArrayCollection",
        "flex.messaging.io.ArrayList",
        "flex.messaging.io.ObjectProxy",
    ),
    OneValue(),
)


def decode(data: bytes | memoryview, externals: Externals = FLEX) -> list[Value]:
    """Read every value of `data`, sharing one set of tables: §4.1.

    The last may be `Opaque`.  Raises RemoteError if `data` ends within a value, holds a marker that
    is none, refers to what is not there, or asks for too much depth or memory.
    """
    reader, values = Amf3Reader(Cursor(data), externals), []  # §4.1 [tables-are-reset]
    while reader.cursor.left:
        values.append(_outermost(reader))
    return values


def decode_one(
    data: bytes | memoryview, offset: int = 0, externals: Externals = FLEX
) -> tuple[Value, int]:
    """Read one value with tables of its own, and tell where it ends, like readObject: §4.2."""
    reader = Amf3Reader(Cursor(data, offset), externals)  # §4.2 [tables-for-each-object]
    return _outermost(reader), reader.cursor.at  # §4.2 [tables-for-each-object]


def encode(*values: Value, externals: Externals = FLEX) -> bytes:
    """Write values with one set of tables: §4.1.  LocalError for a value that AMF3 lacks."""
    writer = Amf3Writer(externals)  # §4.1 [tables-are-reset]
    for index, value in enumerate(values):
        if isinstance(value, Opaque) and value.version == 3 and index == len(values) - 1:
            writer.parts.append(value.data)
        else:
            writer.value(value)
    return b"".join(writer.parts)


def _outermost(reader: Amf3Reader) -> Value:
    """Keep the rest as bytes for an unknown class (§3.12)."""
    start = reader.cursor.at
    try:
        return reader.value()
    except UnknownExternalError as unknown:
        reader.cursor.at = len(reader.cursor.data)
        # §3.12 [externalizable-is-agreed]
        return Opaque(unknown.class_name, reader.cursor.data[start:], 3)

"""Readers and writers of classes that have a format of their own.

Own design: AMF3 §3.12 leaves the body of an externalizable instance to the two ends.  A registry
maps a class name to a pair of hooks; `FLEX` is the default.  An instance of any other class makes
the outermost value that holds it an `Opaque`.
"""

from collections.abc import Mapping
from typing import Final, Protocol, TypeAlias

from rtmplite.amf.amf3_reader import Amf3Reader, ExternalReader
from rtmplite.amf.amf3_writer import Amf3Writer, ExternalWriter
from rtmplite.amf.values import Value


class External(ExternalReader, ExternalWriter, Protocol):
    """Reads and writes the body of one class, which becomes `Externalizable.content`."""


class OneValue:
    """A class whose body is one AMF3 value."""

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

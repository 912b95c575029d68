"""Classes that write themselves: told how, they are read; otherwise they stay what they were."""

import pytest
from hypothesis import given

from rtmplite.amf import amf0, amf3
from rtmplite.amf.values import Externalizable, Opaque
from rtmplite.errors import LocalError
from rtmplite.strategies import amf as amf0_values
from rtmplite.strategies import amf3 as amf3_values


@given(amf0_values.unagreed(), amf3_values.unagreed())
def test_a_class_that_nobody_has_agreed_on_stays_octets(one, other):
    """Covers AMF3 §3.12 [externalizable-is-agreed]: also with whole values in front of it."""
    for module, (octets, opaque) in ((amf0, one), (amf3, other)):
        assert module.decode(module.encode(1.5) + octets) == [1.5, opaque]
        assert module.encode(opaque) == octets


def test_a_class_that_writes_itself_stays_bytes():
    """Covers AMF3 §3.12 [externalizable-is-agreed]."""
    raw = amf3.encode("ab") + bytes.fromhex("09 05 01 06 00 0a 07 03 50 c0 ff ee 04 01")
    first, rest = amf3.decode(raw)
    assert first == "ab" and rest == Opaque("P", raw[4:], 3)
    assert amf3.encode(first, rest) == raw
    assert amf3.decode_one(raw, 9) == (Opaque("P", raw[9:], 3), len(raw))
    with pytest.raises(LocalError, match="last"):
        amf3.encode(rest, first)


class Short:
    """Two raw bytes, and a value."""

    def read(self, reader):
        return [reader.cursor.take(2), reader.value()]

    def write(self, writer, content):
        writer.parts.append(content[0])
        writer.value(content[1])


def test_a_class_can_be_told_how_to_read():
    """Covers AMF3 §3.12 [externalizable-is-agreed] [traits-by-reference]."""
    externals = {"P": Short()}
    raw = bytes.fromhex("09 05 01 0a 07 03 50 0102 06 00 0a 01 0304 09 00")
    ((one, other),) = back = amf3.decode(raw, externals)
    assert one == Externalizable("P", [b"\x01\x02", "P"])
    assert other.content[0] == b"\x03\x04" and other.content[1] is back[0]
    assert amf3.encode(*back, externals=externals) == raw

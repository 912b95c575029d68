"""Frames that a WebSocket server refuses, each with the code of its Close: RFC 6455 §7.4.1."""

WRONG = [
    (b"\x81\x02hi", 1002),  # not masked
    (b"\xc1\x80\0\0\0\0", 1002),  # a reserved bit
    (b"\x83\x80\0\0\0\0", 1002),  # unknown opcodes
    (b"\x8b\x80\0\0\0\0", 1002),
    (b"\x81\xfe\0\x02\0\0\0\0hi", 1002),  # lengths
    (b"\x82\xff" + b"\xff" * 8 + bytes(4), 1002),
    (b"\x81\x81\0\0\0\0\xff", 1007),  # no UTF-8
    (b"\x88\x82\0\0\0\0\x03\xed", 1002),  # codes that nobody sends
    (b"\x88\x82\0\0\0\0\x03\xee", 1002),
    (b"\x88\x82\0\0\0\0\x03\xf7", 1002),
    (b"\x88\x80\0\0\0\0", None),  # a close that says nothing
]

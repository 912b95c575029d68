"""A packet byte by byte: each field with its meaning, its class and its section.

Every byte of a packet is in exactly one line; `Dump` notices if one is left over.
"""

from rtmplite.amf import amf0
from rtmplite.rtmfp.wire.address import parse_address
from rtmplite.rtmfp.wire.chunks import PARSERS
from rtmplite.rtmfp.wire.vlu import decode_vlu

SHOWN = 8  # bytes of a field; of longer ones its first five and last two
BYTES, WHAT = 24, 36  # widths of the first two columns
TICK = 4  # ms

CERTIFICATE = {
    0x0A: ("for ancillary data", "Certificate.accepts_ancillary_data 7425 §4.3.3.2"),
    0x0E: ("extra randomness", "Certificate.extra_randomness 7425 §4.3.3.3"),
    0x15: ("ephemeral group", "Certificate.ephemeral_groups 7425 §4.3.3.4"),
    0x1D: ("static key", "Certificate.static_keys 7425 §4.3.3.5"),
}
COMPONENT = {
    0x0D: ("ephemeral key", "Component.ephemeral_key 7425 §4.5.2.1"),
    0x0E: ("extra randomness", "Component.extra_randomness 7425 §4.5.2.2"),
    0x1A: ("HMAC", "Component.hmac 7425 §4.5.2.4"),
    0x1D: ("static key to use", "Component.group_select 7425 §4.5.2.3"),
    0x1E: ("sequence numbers", "Component.sequence_numbers 7425 §4.5.2.5"),
}
DISCRIMINATOR = {
    0x0A: ("ancillary data", "Epd.ancillary_data 7425 §4.4.2.2"),
    0x0F: ("fingerprint", "Epd.fingerprint 7425 §4.4.2.3"),
}
FLOW = {
    0x00: ("metadata", "flow_options 7016 §2.3.11.1.1"),
    0x0A: ("answers a flow", "flow_options 7016 §2.3.11.1.2"),
}
WITH_GROUP = {0x0D, 0x15, 0x1D}  # option types whose value begins with the number of a group
FLAGS = ((0x80, "TC"), (0x40, "TCR"), (0x08, "TS"), (0x04, "TSE"))
MODES = ("0", "initiator", "responder", "startup")
FRAGMENTS = ("whole message", "first part", "last part", "middle part")
MESSAGES = {4: "user control", 8: "audio", 9: "video", 18: "data", 20: "command"}


class Dump:
    """Takes fields from a packet's front and writes a line about each."""

    def __init__(self, data, at=0):
        self.data, self.at = data, at
        self.lines, self.places = [], []
        self.within = ""  # the class that the fields belong to

    def take(self, size, what, where="", depth=0):
        """Take this many bytes; `what`, their meaning, may be a function of them."""
        end = self.at + size
        assert end <= len(self.data)
        field, self.at = self.data[self.at : end], end
        text = what(field) if callable(what) else what
        self.line(hexed(field), text, where, depth)
        return field

    def line(self, shown, text, where="", depth=0):
        """Write a line; a place that begins with a dot is a field of the chunk's class."""
        self.lines.append(f"{shown:<{BYTES}}{'  ' * depth + text:<{WHAT}}{where}".rstrip())
        if where:
            self.places.append(self.within + where if where[0] == "." else where)

    def number(self, what, where="", depth=0):
        """Take a VLU, and give its value."""
        value, end = decode_vlu(self.data, self.at)
        self.take(end - self.at, f"{what}{value}", where, depth)
        return value

    def rest(self, end, what, where="", depth=0):
        """Take the bytes left before `end`, if there are any."""
        if end > self.at:
            size = end - self.at
            self.take(size, what if callable(what) else f"{what}, {size} bytes", where, depth)

    def options(self, end, known, depth):
        """Take options up to `end`, or to the marker that ends a list."""
        while self.at < end:
            size, start = decode_vlu(self.data, self.at)
            if not size:
                self.take(start - self.at, "end of the options", "MARKER 7016 §2.1.3", depth)
                return
            type_id, value_at = decode_vlu(self.data, start)
            what, where = known[type_id]
            self.take(
                value_at - self.at,
                f"option of {size}: {what}",
                where,
                depth,
            )
            self.value(known, type_id, start + size, depth + 1)

    def value(self, known, type_id, end, depth):
        """Take an option's value."""
        if known is not DISCRIMINATOR and type_id in WITH_GROUP:
            self.number("group ", "", depth)
            self.rest(end, "the key", "", depth)
        elif known is COMPONENT and type_id in (0x1A, 0x1E):
            self.take(1, says, "Negotiation.parse", depth)
            if type_id == 0x1A:
                self.number("their length: ", "Component.hmac_length", depth)
        elif known is DISCRIMINATOR and type_id == 0x0A:
            self.rest(end, lambda field: f'"{field.decode()}"', "", depth)
        elif known is FLOW and type_id == 0x0A:
            self.number("flow ", "", depth)
        elif known is FLOW:
            self.metadata(end, depth)
        else:
            self.rest(end, "its value", "", depth)

    def metadata(self, end, depth):
        """Take the metadata that mark a flow as one of RTMP messages, and name its stream."""
        self.take(2, lambda field: f'"{field.decode()}"', "SIGNATURE 7425 §5.1.1", depth)
        self.take(1, "flags: a stream id follows", "FlowMetadata.intent", depth)
        self.number("message stream ", "FlowMetadata.stream_id", depth)
        assert self.at == end

    def counted(self, what, where, known=None, depth=1):
        """Take a length and as many bytes, which are options if it is `known` of which kind."""
        size = self.number(f"length of the {what}: ", where, depth)
        if known:
            self.options(self.at + size, known, depth + 1)
        else:
            self.rest(self.at + size, f"the {what}", "", depth)


def hexed(field):
    """Bytes as they are printed, long fields without their middle."""
    if len(field) > SHOWN:
        return f"{field[:5].hex(' ')} .. {field[-2:].hex(' ')}"
    return field.hex(" ")


def says(field):
    """The flags of a negotiation."""
    sends = "always" if field[0] & 4 else "if asked" if field[0] & 2 else "never"
    return f"sends: {sends}; asks: {'yes' if field[0] & 1 else 'no'}"


def packet(seen):
    """The lines about a datagram that the sniffer has seen, and the places that they name."""
    dump = Dump(seen.plain)
    identity = f"session ID, scrambled: {seen.session_id:08x}"
    dump.line(hexed(seen.datagram[:4]), identity, "unscramble 7016 §2.2.2")
    key = (
        "the session's key"
        if seen.session_id and seen.protection.hmac_length
        else "everybody's key"
    )
    dump.line("", f"-- {len(seen.plain)} bytes encrypted with {key}:")
    if seen.protection.numbered:
        dump.number("session sequence number ", "Sealer.seal 7425 §4.7.3.3")
    if not seen.protection.hmac_length:
        dump.take(2, "checksum of what follows", "checksum 7425 §4.7.3.1")
    flags = dump.take(1, flags_of, "Packet.mode 7016 §2.2.4")[0]
    for bit, what in ((8, "timestamp"), (4, "timestamp echo")):
        if flags & bit:
            where = f"Packet.{what.replace(' ', '_')}"
            dump.take(2, lambda field, what=what: f"{what}: {time(field)}", where)
    while len(seen.plain) - dump.at >= 3 and seen.plain[dump.at] != 0xFF:
        chunk(dump)
    dump.within = ""
    dump.rest(len(seen.plain), "padding", "PADDING 7425 §4.7.2")
    assert dump.at == len(seen.plain)
    if length := seen.protection.hmac_length:
        dump.line("", "-- and not encrypted:")
        dump.line(
            hexed(seen.datagram[-length:]), f"HMAC, {length} bytes", "Opener.open 7425 §4.7.3.2"
        )
    return dump.lines, dump.places


def flags_of(field):
    """The first byte of a packet in words."""
    words = [name for bit, name in FLAGS if field[0] & bit]
    return f"flags: {' '.join(words)}, MOD {field[0] & 3} ({MODES[field[0] & 3]})"


def time(field):
    """A timestamp, which ticks every 4 ms, in ms."""
    return f"{int.from_bytes(field)} x {TICK} ms"


def chunk(dump):
    """One chunk: its type, its length and its fields."""
    type_id = dump.data[dump.at]
    dump.within = name = PARSERS[type_id].__self__.__name__
    title, section, fields = CHUNKS[type_id]
    dump.take(1, f"chunk: {title}", f"{name} 7016 §{section}")
    size = int.from_bytes(dump.take(2, lambda field: f"  its length: {int.from_bytes(field)}"))
    end = dump.at + size
    fields(dump, end, name)
    assert dump.at == end, name


def ihello(dump, end, name):
    dump.counted("EPD", ".endpoint_discriminator", DISCRIMINATOR)
    dump.rest(end, "the tag", ".tag", 1)


def fihello(dump, end, name):
    dump.counted("EPD", ".endpoint_discriminator", DISCRIMINATOR)
    address(dump, ".reply_address")
    dump.rest(end, "the tag of the IHello", ".tag", 1)


def address(dump, where):
    """Take a socket address."""
    found, end = parse_address(dump.data, dump.at)
    origin = f"address, origin {found.origin.value} ({found.origin.name.lower()})"
    dump.take(1, origin, f"{where} 7016 §2.1.5", 1)
    dump.take(end - dump.at - 2, found.ip, "SocketAddress.ip", 2)
    dump.take(2, f"port {found.port}", "SocketAddress.port", 2)


def rhello(dump, end, name):
    dump.counted("tag echo", ".tag_echo")
    dump.counted("cookie", ".cookie")
    dump.line("", "the certificate: all the rest", ".responder_certificate", 1)
    dump.options(end, CERTIFICATE, 2)


def redirect(dump, end, name):
    dump.counted("tag echo", ".tag_echo")
    while dump.at < end:
        address(dump, ".redirect_destinations")


def iikeying(dump, end, name):
    dump.take(4, "to us use this session ID", ".initiator_session_id", 1)
    dump.counted("cookie echo", ".cookie_echo")
    dump.counted("certificate", ".initiator_certificate", CERTIFICATE)
    dump.counted("SKIC", ".session_key_initiator_component", COMPONENT)
    dump.rest(end, lambda field: f'signature: "{field.decode()}", so none', ".signature", 1)


def rikeying(dump, end, name):
    dump.take(4, "to us use this session ID", ".responder_session_id", 1)
    dump.counted("SKRC", ".session_key_responder_component", COMPONENT)
    dump.rest(end, lambda field: f'signature: "{field.decode()}", so none', ".signature", 1)


def ping(dump, end, name):
    where = ".message_echo" if name == "PingReply" else ".message"
    dump.rest(end, "message", where, 1)


def user_data(dump, end, name):
    flags = dump.take(1, fragment, ".fragment_control", 1)[0]
    if name == "UserData":
        dump.number("flow ", ".flow_id", 1)
        dump.number("sequence number ", ".sequence_number", 1)
        dump.number("FSN offset: ", ".fsn_offset", 1)
    if flags & 0x80:
        dump.options(end, FLOW, 1)
    if not flags & 0x20 and end > dump.at:  # the beginning of a message
        type_id = dump.data[dump.at]
        dump.take(1, f"message type {type_id}: {MESSAGES[type_id]}", "parse_message 7425 §5.1.2", 1)
        dump.take(4, lambda field: f"time: {int.from_bytes(field)} ms", "Message.timestamp", 1)
        message(dump, type_id, end, ".data")


def message(dump, type_id, end, where):
    if type_id == 20:
        name, transaction, *_ = amf0.decode(dump.data[dump.at : end])
        dump.rest(end, f"{name} {transaction:g} ...", where, 1)
    elif type_id == 4:
        event = int.from_bytes(dump.data[dump.at : dump.at + 2])
        dump.rest(end, f"event {event}", where, 1)
    else:
        dump.rest(end, "the tag's body", where, 1)


def fragment(field):
    words = [FRAGMENTS[field[0] >> 4 & 3]]
    words += [text for bit, text in ((0x80, "options"), (2, "ABN"), (1, "FIN")) if field[0] & bit]
    return f"flags: {', '.join(words)}"


def ack(dump, end, name):
    dump.number("flow ", ".flow_id", 1)
    dump.number("room for KiB: ", ".buffer_blocks_available", 1)
    dump.number("all received up to ", ".cumulative_ack", 1)
    if name == "DataAckBitmap":
        dump.rest(end, lambda field: f"and by bits: {field.hex()}", ".bitmap", 1)
    while dump.at < end:
        dump.number("missing, less one: ", ".runs", 1)
        dump.number("received, less one: ", ".runs", 1)


def nothing(dump, end, name):
    """A chunk that says all by its type."""


CHUNKS = {
    0x30: ("IHello", "2.3.2", ihello),
    0x0F: ("FIHello", "2.3.3", fihello),
    0x70: ("RHello", "2.3.4", rhello),
    0x71: ("Responder Redirect", "2.3.5", redirect),
    0x38: ("IIKeying", "2.3.7", iikeying),
    0x78: ("RIKeying", "2.3.8", rikeying),
    0x01: ("Ping", "2.3.9", ping),
    0x41: ("Ping Reply", "2.3.10", ping),
    0x10: ("User Data", "2.3.11", user_data),
    0x11: ("Next User Data", "2.3.12", user_data),
    0x50: ("Data Ack Bitmap", "2.3.13", ack),
    0x51: ("Data Ack Ranges", "2.3.14", ack),
    0x0C: ("Session Close Request", "2.3.17", nothing),
    0x4C: ("Session Close Acknowledgement", "2.3.18", nothing),
}

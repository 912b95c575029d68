"""Packets and chunks: what is read, what is passed over, and what is dropped.

Implements RFC 7016 §2.2, §2.3 and §3.4, from the initiator's side.
"""

import os
from functools import partial

from rtclab.conform.case import Cases, Unmet
from rtclab.conform.checks import expect_equal
from rtclab.conform.rtmfp.peer import RtmfpPeer, ticks
from rtclab.conform.rtmfp.session import open_session
from rtmplite.rtmfp.crypto.epd import Epd
from rtmplite.rtmfp.wire.chunks import UnknownChunk, encode_chunk
from rtmplite.rtmfp.wire.control_chunks import Fragment, Ping, PingReply
from rtmplite.rtmfp.wire.option import Option, encode_option
from rtmplite.rtmfp.wire.packet import Mode, Packet
from rtmplite.rtmfp.wire.startup_chunks import InitiatorHello, ResponderHello
from rtmplite.rtmfp.wire.vlu import encode_vlu

cases: Cases[RtmfpPeer] = Cases()
must = partial(cases.case, role="responder")
should = partial(cases.case, role="responder", level="SHOULD")

UNKNOWN = UnknownChunk(0x66, b"what is this?")
_RESERVED_FLAGS = 0x30
_HAS_TIME, _HAS_ECHO = 0x08, 0x04


@must("RFC 7016 §2.2.2", "scrambled")
def startup_has_session_id_0(peer: RtmfpPeer) -> None:
    """The session ID before an RHello is 0, scrambled with the two words behind it (§2.2.2)."""
    hello = peer.hello_chunk()
    peer.say(hello)
    for session_id, packet in peer.replies():
        if any(isinstance(chunk, ResponderHello) for chunk in packet.chunks):
            expect_equal("session ID", 0, session_id)
            return


@must("RFC 7016 §2", "truncation-noticed")
def short_datagrams_are_dropped(peer: RtmfpPeer) -> None:
    """A datagram too short for a session ID or for a block harms nobody (§2, §2.2.2)."""
    for size in (1, 3, 4, 7, 19):
        peer.send(os.urandom(size))
    peer.expect_no_answer("no answer to a piece of a packet")


@must("RFC 7016 §2.2.4", "mode-0-discarded")
def mode_0_is_discarded(peer: RtmfpPeer) -> None:
    """A packet of the forbidden mode is dropped with all that is in it (§2.2.4)."""
    hello = peer.hello_chunk()
    peer.say_plain(bytes((Mode.FORBIDDEN,)) + encode_chunk(hello))
    peer.expect_no_answer("no answer to a packet of mode 0", hello)


@must("RFC 7016 §2.3", "inappropriate-ignored")
def hello_in_a_packet_of_a_session_is_ignored(peer: RtmfpPeer) -> None:
    """A hello goes with the mode of startups alone (§2.2.4, §2.3)."""
    hello = peer.hello_chunk()
    peer.say_plain(bytes((Mode.INITIATOR,)) + encode_chunk(hello))
    peer.expect_no_answer("no answer to a hello in a packet of mode 1", hello)


@must("RFC 7016 §2", "reserved-ignored")
def reserved_flags_mean_nothing(peer: RtmfpPeer) -> None:
    """A packet is read whatever its reserved flags are (§2)."""
    hello = peer.hello_chunk()
    packet = peer.startup(hello)
    peer.say_plain(bytes((packet[0] | _RESERVED_FLAGS,)) + packet[1:])
    _expect_answer(peer, hello)


@must("RFC 7016 §2.2.4", "packet-layout")
def packet_without_a_time_is_read(peer: RtmfpPeer) -> None:
    """Both times are there only if the flags say so (§2.2.4)."""
    hello = peer.hello_chunk()
    peer.say_plain(Packet(Mode.STARTUP, (hello,)).encode())
    _expect_answer(peer, hello)


@must("RFC 7016 §2.2.4", "packet-layout")
def packet_with_both_times_is_read(peer: RtmfpPeer) -> None:
    """The chunks stand behind the times (§2.2.4)."""
    hello = peer.hello_chunk()
    peer.say_plain(Packet(Mode.STARTUP, (hello,), ticks(), 0xFFFF).encode())
    _expect_answer(peer, hello)


@must("RFC 7016 §2", "truncation-noticed")
def packet_cut_off_in_its_times_is_dropped(peer: RtmfpPeer) -> None:
    """Flags that promise times which are not there harm nobody (§2)."""
    peer.say_plain(bytes((Mode.STARTUP | _HAS_TIME | _HAS_ECHO, 0)))
    peer.expect_no_answer("no answer to half a time")


@must("RFC 7016 §2.2.4", "padding-told")
def padding_of_ff_ends_the_chunks(peer: RtmfpPeer) -> None:
    """Bytes of 0xff, more than a block of them, are padding (§2.2.4)."""
    hello = peer.hello_chunk()
    peer.say_plain(peer.startup(hello) + b"\xff" * 40)
    _expect_answer(peer, hello)


@must("RFC 7016 §2.2.4", "padding-told")
def padding_of_zeros_ends_the_chunks(peer: RtmfpPeer) -> None:
    """Zeros are padding as well (§2.2.4, §2.3)."""
    hello = peer.hello_chunk()
    peer.say_plain(peer.startup(hello) + bytes(40))
    _expect_answer(peer, hello)


@must("RFC 7016 §2.3", "unknown-ignored")
def unknown_chunk_is_passed_by(peer: RtmfpPeer) -> None:
    """A hello behind a chunk of an unknown type is answered (§2.3)."""
    hello = peer.hello_chunk()
    peer.say(UNKNOWN, hello)
    _expect_answer(peer, hello)


@must("RFC 7016 §2.3", "damaged-ignored")
def damaged_chunk_is_passed_by(peer: RtmfpPeer) -> None:
    """A hello behind one whose discriminator is cut off is answered (§2.3)."""
    hello = peer.hello_chunk()
    peer.say(UnknownChunk(InitiatorHello.type_id, b"\x7fshort"), hello)
    _expect_answer(peer, hello)


@must("RFC 7016 §2.3", "inappropriate-ignored")
def ping_in_a_startup_packet_is_passed_by(peer: RtmfpPeer) -> None:
    """A Ping in a packet of startup has no reply; the hello behind it has (§2.2.4, §2.3)."""
    hello = peer.hello_chunk()
    peer.say_plain(peer.startup() + encode_chunk(Ping(b"here?")) + encode_chunk(hello))
    answers = peer.answers_within()
    if any(isinstance(each, PingReply) for each in answers):
        raise Unmet("no Ping Reply outside of sessions", "one")
    if not any(isinstance(each, ResponderHello) for each in answers):
        raise Unmet("an RHello for the hello behind the Ping", f"{len(answers)} other chunks")


@must("RFC 7016 §2.1.2", "vlu-layout")
def length_in_more_bytes_than_needed_is_read(peer: RtmfpPeer) -> None:
    """Zeros at the head of a VLU change nothing (§2.1.2)."""
    hello = peer.hello_chunk()
    epd = hello.endpoint_discriminator
    length = b"\x80" * (3 - len(encode_vlu(len(epd)))) + encode_vlu(len(epd))
    peer.say(UnknownChunk(InitiatorHello.type_id, length + epd + hello.tag))
    _expect_answer(peer, hello)


@must("RFC 7425 §4.4.2", "unknown-ignored")
def unknown_option_of_a_discriminator_is_passed_by(peer: RtmfpPeer) -> None:
    """A discriminator may have options that nobody knows (RFC 7425 §4.4.2)."""
    epd = encode_option(Option(0x3B, b"?")) + Epd(ancillary_data=peer.uri).encode()
    hello = peer.hello_chunk(epd)
    peer.say(hello)
    _expect_answer(peer, hello)


@must("RFC 7016 §3.4", "fragments-concatenated")
def fragments_make_a_packet(peer: RtmfpPeer) -> None:
    """A packet that comes in fragments is read when all are there (§3.4)."""
    hello, fragments = _cut_hello(peer)
    for fragment in fragments:
        peer.say(fragment)
    _expect_answer(peer, hello)


@must("RFC 7016 §3.4", "fragments-concatenated")
def fragments_may_come_in_any_order(peer: RtmfpPeer) -> None:
    """The numbers tell how fragments belong together (§3.4)."""
    hello, fragments = _cut_hello(peer)
    for at in (2, 0, 1):
        peer.say(fragments[at])
    _expect_answer(peer, hello)


@must("RFC 7016 §3.4", "empty-discarded")
def empty_fragment_is_discarded(peer: RtmfpPeer) -> None:
    """A fragment of nothing does not take the place of the true one (§3.4)."""
    hello, (first, second, third) = _cut_hello(peer)
    empty = encode_vlu(second.packet_id) + encode_vlu(second.fragment_number)
    peer.say(first)
    peer.say(UnknownChunk(Fragment.type_id, b"\x80" + empty))
    peer.say(third)
    peer.say(second)
    _expect_answer(peer, hello)


@must("RFC 7016 §2.2.4", "responder-marks")
def packets_of_a_responder_have_mode_2(peer: RtmfpPeer) -> None:
    """The end that was asked for a session marks its packets as the responder's (§2.2.4)."""
    expect_equal("mode", Mode.RESPONDER, open_session(peer).ping().mode)


@should("RFC 7016 §2.2.4", "responder-ignores-2")
def packet_with_the_responders_mark_is_ignored(peer: RtmfpPeer) -> None:
    """A responder takes no packet that is marked as a responder's (§2.2.4)."""
    session = open_session(peer)
    peer.send(session.seal(session.packet(Ping(b"echo"), mode=Mode.RESPONDER)))
    session.expect_no(PingReply, "no reply to a Ping of mode 2", PingReply(b"echo"))


@must("RFC 7016 §2.3", "unknown-ignored")
def unknown_chunk_in_a_session_is_passed_by(peer: RtmfpPeer) -> None:
    """A Ping behind a chunk of an unknown type has its reply (§2.3)."""
    session = open_session(peer)
    session.send(UNKNOWN, Ping(b"behind it"))
    session.pong(b"behind it")


@must("RFC 7016 §2.3", "inappropriate-ignored")
def hello_in_a_session_is_passed_by(peer: RtmfpPeer) -> None:
    """A hello in a session's packet has no answer; the Ping behind it has (§2.2.4, §2.3)."""
    session = open_session(peer)
    packet = session.packet() + encode_chunk(peer.hello_chunk())
    peer.send(session.seal(packet + encode_chunk(Ping(b"behind it"))))
    if any(isinstance(each, ResponderHello) for each in session.pong(b"behind it").chunks):
        raise Unmet("no RHello in a session", "one")
    session.expect_no(ResponderHello, "no RHello in a session")


def _expect_answer(peer: RtmfpPeer, hello: InitiatorHello) -> None:
    """Wait for the RHello of a hello."""
    next(answer for answer in peer.chunks(ResponderHello) if answer.tag_echo == hello.tag)


def _cut_hello(peer: RtmfpPeer) -> tuple[InitiatorHello, list[Fragment]]:
    """A hello in three fragments: §3.4."""
    hello = peer.hello_chunk()
    packet, number = peer.startup(hello), int.from_bytes(os.urandom(2))
    parts = packet[:10], packet[10:25], packet[25:]
    return hello, [Fragment(number, at, part, at < 2) for at, part in enumerate(parts)]

"""An open session: Pings, times, a changed address, and the end.

Implements RFC 7016 §3.5.2 to §3.5.5, from the far end's side.
"""

import os
import time
from functools import partial

from rtclab.conform.case import Cases, NotApplicable, Unmet
from rtclab.conform.checks import at_most, expect_equal
from rtclab.conform.rtmfp.peer import QUIET, RtmfpPeer, ticks
from rtclab.conform.rtmfp.session import RtmfpSession, open_session
from rtmplite.rtmfp.wire.control_chunks import Ping, PingReply, SessionClose, SessionCloseAck
from rtmplite.rtmfp.wire.packet import Mode, Packet

cases: Cases[RtmfpPeer] = Cases()
must = partial(cases.case, role="responder")
should = partial(cases.case, role="responder", level="SHOULD")

_WAIT = 0.4  # s between two looks at a clock
_SLACK = 25  # ticks of 4 ms that a path and a busy host may take
_GUESSED = 8  # bytes of a message that somebody could guess, if it had fewer
_PATIENCE = 2.0  # s for a check of an address, which nobody has to make


@should("RFC 7016 §3.5.4", "ping-reply")
def ping_has_a_reply(peer: RtmfpPeer) -> None:
    """A Ping is answered (§3.5.4)."""
    open_session(peer).ping()


@must("RFC 7016 §2.3.10", "echo-unaltered")
def reply_has_the_message_of_the_ping(peer: RtmfpPeer) -> None:
    """Whatever the message is, it comes back as it was (§2.3.10)."""
    session, message = open_session(peer), bytes(range(256))
    session.send(Ping(message))
    expect_equal("message", message, session.wait(PingReply).message_echo)


@must("RFC 7016 §2.3.10", "echo-unaltered")
def empty_ping_has_an_empty_reply(peer: RtmfpPeer) -> None:
    """A Ping without a message, as those that keep a session alive, is answered (§3.5.4.1)."""
    open_session(peer).ping(b"")


@should("RFC 7016 §3.5.4", "ping-reply")
def ping_of_a_thousand_bytes_has_a_reply(peer: RtmfpPeer) -> None:
    """A long message is no reason to be silent (§3.5.4)."""
    open_session(peer).ping(os.urandom(1000))


@should("RFC 7016 §3.5.4", "ping-reply")
def each_ping_of_a_packet_has_a_reply(peer: RtmfpPeer) -> None:
    """Several Pings in a packet are as many questions (§3.5.4)."""
    session = open_session(peer)
    session.send(Ping(b"one"), Ping(b"two"), Ping(b"three"))
    wanted = {b"one", b"two", b"three"}
    for chunk in session.chunks(PingReply):
        wanted.discard(chunk.message_echo)
        if not wanted:
            return


@must("RFC 7016 §3.5.4", "only-in-response")
def reply_without_a_ping_is_passed_by(peer: RtmfpPeer) -> None:
    """A Ping Reply that nobody asked for is answered by nothing (§3.5.4)."""
    session = open_session(peer)
    session.ping()
    session.send(PingReply(b"unasked"))
    session.expect_no(PingReply, "no Ping Reply without a Ping")


@must("RFC 7016 §3.5.2.2", "echo-ticks")
def timestamp_comes_back(peer: RtmfpPeer) -> None:
    """The echo is our timestamp, and 1 more for each 4 ms that passed (§3.5.2.2)."""
    session = open_session(peer)
    sent = (ticks() + 20000) & 0xFFFF  # so that no other clock is mistaken for ours
    peer.send(session.seal(Packet(Mode.INITIATOR, (Ping(b"time?"),), sent).encode()))
    echo = session.pong(b"time?").timestamp_echo
    _expect_near("echo", sent, echo)


@must("RFC 7016 §3.5.2.2", "echo-ticks")
def echo_goes_on_while_time_passes(peer: RtmfpPeer) -> None:
    """An echo later is larger by the time since the timestamp came (§3.5.2.2)."""
    session = open_session(peer)
    sent = (ticks() + 20000) & 0xFFFF
    peer.send(session.seal(Packet(Mode.INITIATOR, (Ping(b"time?"),), sent).encode()))
    session.pong(b"time?")
    started = time.monotonic()
    session.within(_WAIT)
    peer.send(session.seal(Packet(Mode.INITIATOR, (Ping(b"and now?"),)).encode()))
    echo = session.pong(b"and now?").timestamp_echo
    passed = int((time.monotonic() - started) * 250)
    _expect_near("echo", sent + passed - _SLACK // 2, echo)


@must("RFC 7016 §3.5.2.2", "echo-initial")
def nothing_is_echoed_before_a_timestamp(peer: RtmfpPeer) -> None:
    """A session in which no timestamp came has no echo (§3.5.2.2)."""
    session = open_session(peer)
    peer.send(session.seal(Packet(Mode.INITIATOR, (Ping(b"no time"),)).encode()))
    expect_equal("echo", None, session.pong(b"no time").timestamp_echo)


@must("RFC 7016 §2.2.4", "clock-250-hz")
def clock_ticks_every_4_ms(peer: RtmfpPeer) -> None:
    """The timestamps of two packets differ by the time between them (§2.2.4)."""
    session = open_session(peer)
    first, started = session.ping().timestamp, time.monotonic()
    session.within(_WAIT)
    second, passed = session.ping().timestamp, time.monotonic() - started
    if first is None or second is None:
        raise NotApplicable("the target sends no timestamps")
    _expect_near("timestamp", first + int(passed * 250) - _SLACK // 2, second)


@must("RFC 7016 §3.5.5", "close-acknowledged")
def close_is_acknowledged(peer: RtmfpPeer) -> None:
    """A Session Close Request has its Acknowledgement (§3.5.5)."""
    _close(open_session(peer))


@must("RFC 7016 §3.5.5", "close-acknowledged")
def repeated_close_is_acknowledged_again(peer: RtmfpPeer) -> None:
    """A session that was closed from here answers when the Request comes again (§3.5.5)."""
    session = open_session(peer)
    for _ in range(3):
        _close(session)


@must("RFC 7016 §3.5.5", "flows-end")
def closed_session_has_no_flows(peer: RtmfpPeer) -> None:
    """After a close no data are acknowledged: flows are for open sessions (§3.5.5)."""
    session = open_session(peer)
    session.ping()
    _close(session)
    session.expect_no_flows()


@must("RFC 7016 §3.5.5", "close-ack-closes")
def close_ack_closes_at_once(peer: RtmfpPeer) -> None:
    """A Session Close Acknowledgement that nobody asked for ends the session (§3.5.5)."""
    session = open_session(peer)
    session.ping()
    session.send(SessionCloseAck())
    session.ended = True
    session.expect_dead("no reply in a session that is closed")


@must("RFC 7016 §3.5.5", "abrupt-close")
def address_is_free_after_a_close(peer: RtmfpPeer) -> None:
    """Another identity gets a session where one was closed (§3.5.1.1.2, §3.5.5)."""
    session = open_session(peer)
    session.send(SessionCloseAck())
    session.ended = True
    keying = peer.keying(peer.hello(), profile=peer.another().profile)
    open_session(peer, keying).ping()


@must("RFC 7016 §3.5.4.2", "check-new-address")
def new_address_is_checked_by_ping(peer: RtmfpPeer) -> None:
    """A packet from elsewhere brings a Ping there, whose message is no empty one (§3.5.4.2)."""
    _, _, question = _moved(peer)
    if len(question.message) < _GUESSED:
        raise Unmet("a message that nobody can guess", f"{len(question.message)} bytes")


@should("RFC 7016 §3.5.3", "verify-before-moving")
def unproved_address_gets_nothing_but_a_check(peer: RtmfpPeer) -> None:
    """Until the far end is proved to be there, replies go to the former address (§3.5.3)."""
    session, other, _ = _moved(peer)
    other.send(session.seal(session.packet(Ping(b"where to?"))))
    session.pong(b"where to?")
    for packet in session.within(QUIET, other):
        if any(not isinstance(chunk, Ping) for chunk in packet.chunks):
            raise Unmet("Pings alone at an address that is not proved", str(packet.chunks))


@must("RFC 7016 §3.5.4.2", "answer-moves")
def right_reply_moves_the_session(peer: RtmfpPeer) -> None:
    """After a reply to the check the target sends to the new address (§3.5.4.2)."""
    session, other, question = _moved(peer)
    session.peer = other
    session.send(PingReply(question.message))
    session.ping(b"here now")


@should("RFC 7016 §3.5.3", "verify-before-moving")
def wrong_reply_does_not_move_the_session(peer: RtmfpPeer) -> None:
    """A reply with another message than the check's proves nothing (§3.5.4.2)."""
    session, other, question = _moved(peer)
    wrong = question.message[:-1] + bytes((question.message[-1] ^ 1,))
    other.send(session.seal(session.packet(PingReply(wrong))))
    session.ping()


@should("RFC 7016 §3.5.3", "verify-before-moving")
def reply_from_a_third_address_does_not_move_the_session(peer: RtmfpPeer) -> None:
    """The check holds for the address that it went to (§3.5.4.2)."""
    session, _, question = _moved(peer)
    third = peer.another(peer.profile)
    third.send(session.seal(session.packet(PingReply(question.message))))
    session.ping()


def _close(session: RtmfpSession) -> None:
    session.send(SessionClose())
    session.wait_for_close_ack()


def _expect_near(what: str, wanted: int, got: int | None) -> None:
    """Unmet unless a time is the one that is wanted, or a little later."""
    if got is None or (got - wanted) & 0xFFFF > _SLACK:
        raise Unmet(f"{what} {wanted & 0xFFFF}, or a little more", str(got))


def _moved(peer: RtmfpPeer) -> tuple[RtmfpSession, RtmfpPeer, Ping]:
    """A session with packets from another address, that address, and the check that went there."""
    session, other = open_session(peer), peer.another(peer.profile)
    session.ping()
    session.answers = False
    other.send(session.seal(session.packet(Ping(b"moving"))))
    with at_most(_PATIENCE):
        for packet in session.packets(other):
            for chunk in packet.chunks:
                if isinstance(chunk, Ping):
                    return session, other, chunk
    raise NotApplicable("the target checks no new address, which RFC 7016 §3.5.4.2 leaves to it")

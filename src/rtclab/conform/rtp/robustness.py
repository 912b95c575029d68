"""Packets that are no sound, or unusual: the call and its sound go on.

Implements RFC 3550 §5.1, §5.3.1 and §A.1, and RFC 4733, from the sender's side.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from p2psip.rtp.packet import Extension, RtpPacket
from p2psip.rtp.payload.dtmf import TelephoneEvent
from p2psip.rtp.rtcp import ReceiverReport
from rtclab.conform.case import Cases, NotApplicable, Unmet
from rtclab.conform.checks import expect_equal
from rtclab.conform.rtp.peer import PACKET, RtpPeer, blocks
from rtclab.conform.rtp.talk import TICKS, Talk

cases: Cases[RtpPeer] = Cases()
must = partial(cases.case, role="phone", alone=True)
should = partial(cases.case, role="phone", level="SHOULD", alone=True)
SECONDS: Final = 0.6  # of a stream in which every second packet is odd
BEHIND: Final = 5  # packets of the target that must follow: it still talks
REPORT: Final = 7.0  # s in which a report comes
EVENTS: Final = 101  # payload type of telephone-event in our offer
GARBAGE: Final = (
    *(b"", b"\x80", bytes(11), bytes(200), b"\xff" * 300, b"INVITE sip:x SIP/2.0\r\n\r\n"),
    bytes.fromhex("8f000001000000a00000cafe"),  # fifteen CSRCs, and none there
    bytes.fromhex("90000001000000a00000cafebede ffff"),  # an extension beyond the end
    bytes.fromhex("a0000001000000a00000cafe00ff"),  # more padding than payload
)


@must("RFC 3550 §A.1", "header-checks")
def garbage_does_no_harm(peer: RtpPeer) -> None:
    """Datagrams that are no RTP, or lie about their lengths, change nothing (§A.1)."""
    _goes_on(peer, lambda number: GARBAGE[number % len(GARBAGE)])


@must("RFC 3550 §A.2", "compound-checks")
def garbage_as_control_does_no_harm(peer: RtpPeer) -> None:
    """RTCP that lies about its lengths changes nothing (§A.2)."""
    good = bytes(ReceiverReport(1))
    bad = (good[:-1], good[:2] + b"\xff\xff" + good[4:], b"\x9f\xc8\0\1" + good[4:], b"\x81\xcb")
    talk = peer.call()

    def plan(number: int) -> tuple[float, RtpPacket]:
        peer.control(bad[number % len(bad)])
        return peer.even(number)

    peer.stream(SECONDS, lambda: False, plan)
    _expect_more(peer, talk)


@must("RFC 3550 §5.1", "unknown-types-ignored")
def unknown_payload_type_is_ignored(peer: RtpPeer) -> None:
    """Packets of a payload type that was not agreed change nothing (§5.1)."""
    _goes_on(peer, lambda number: peer.packet(number, payload_type=77, payload=b"?" * 33))


@should("RFC 3550 §8.2", "no-flip-flop")
def other_ssrc_does_no_harm(peer: RtpPeer) -> None:
    """A second source in between does not end the first (§8.2)."""
    _goes_on(peer, lambda number: peer.packet(number, ssrc=0xCAFE, sequence=7 * number & 0xFFFF))


@must("RFC 3550 §A.1", "header-checks")
def empty_packets_do_no_harm(peer: RtpPeer) -> None:
    """Packets without a payload change nothing (§5.1)."""
    _goes_on(peer, lambda number: peer.packet(number, payload=b""))


@must("RFC 3550 §5.1", "sequence-by-one")
def repeated_packets_do_no_harm(peer: RtpPeer) -> None:
    """Packets that the network doubles change nothing (§A.1)."""
    _goes_on(peer, peer.packet)


@must("RFC 3550 §5.1", "padding-counts-itself")
def padding_is_taken_off(peer: RtpPeer) -> None:
    """Packets with padding are received: none is lost (§5.1)."""
    _is_received(peer, padding=7)


@must("RFC 3550 §5.3.1", "extension-behind-csrcs")
def extension_is_passed_over(peer: RtpPeer) -> None:
    """Packets with a header extension are received: none is lost (§5.3.1)."""
    _is_received(peer, extension=Extension(0xABAC, b"what is this"))


@must("RFC 3550 §5.1", "csrc-count")
def contributors_are_passed_over(peer: RtpPeer) -> None:
    """Packets with CSRCs are received: none is lost (§5.1)."""
    _is_received(peer, csrcs=(1, 2, 3))


@should("RFC 4733 §2.5.2.1", "events-listed")
def events_are_agreed_to(peer: RtpPeer) -> None:
    """An offer with telephone-event is answered with it (RFC 4733 §2.4.1)."""
    _with_events(peer)


@must("RFC 4733 §2.5.2.2", "ended-is-not-restarted")
def events_do_no_harm(peer: RtpPeer) -> None:
    """A key that is pressed is taken where it was agreed, and the sound goes on (RFC 4733 §2.5.2).

    It has three packets with the end, as RFC 4733 §2.5.1.4 wants it.
    """
    talk = _with_events(peer)
    begun = 10

    def plan(number: int) -> tuple[float, RtpPacket]:
        if not begun <= number < begun + 8:
            return peer.even(number)
        length = min(number - begun + 1, 6) * TICKS
        report = TelephoneEvent.of("5", length, end=number - begun >= 5)
        first = {"payload_type": EVENTS, "timestamp": begun * TICKS, "marker": number == begun}
        return number * PACKET, peer.packet(number, payload=bytes(report), **first)

    peer.stream(SECONDS, lambda: False, plan)
    _expect_more(peer, talk)


def _with_events(peer: RtpPeer) -> Talk:
    lines = "a=rtpmap:0 PCMU/8000", f"a=rtpmap:{EVENTS} telephone-event/8000", "a=fmtp:101 0-15"
    talk = peer.call(*lines, formats=f"0 {EVENTS}")
    if str(EVENTS) not in talk.media.formats:
        raise NotApplicable("the target has no telephone-event")
    return talk


def _goes_on(peer: RtpPeer, odd: Callable[[int], RtpPacket | bytes]) -> None:
    """Send a stream with something odd between its packets; then the target still talks."""
    talk = peer.call()
    good = round(SECONDS / PACKET)
    peer.send(
        each
        for number in range(good)
        for each in (peer.even(number), ((number + 0.5) * PACKET, bytes(odd(number))))
    )
    _expect_more(peer, talk)


def _expect_more(peer: RtpPeer, talk: Talk) -> None:
    """Unmet unless packets of the target follow, and its call is still there."""
    before, first = len(talk.rtp), len(talk.sent)
    later = range(first, first + 50)
    peer.send(
        ((number - first) * PACKET, peer.packet(number))
        for number in later
        if len(talk.rtp) < before + BEHIND
    )
    if len(talk.rtp) < before + BEHIND:
        raise Unmet("more sound of the target", f"{len(talk.rtp) - before} packets")
    bye = peer.sip.within(talk.invite, talk.answer, "BYE", 2)
    peer.sip.forget()
    expect_equal("answer to BYE", 200, peer.sip.ask(bye).status)


def _is_received(peer: RtpPeer, **odd: object) -> None:
    """Send packets with something more in their headers; a report counts none as lost."""
    talk = peer.call()

    def plan(number: int) -> tuple[float, RtpPacket]:
        return number * PACKET, peer.packet(number, **(odd if number % 2 else {}))

    peer.stream(REPORT, lambda: bool(blocks(talk)), plan)
    if not (found := blocks(talk)):
        raise NotApplicable(f"no report about our packets within {REPORT:g} s")
    expect_equal("lost", 0, found[-1][1].lost)
    if found[-1][1].highest_sequence < 2:
        raise Unmet("a count of our packets", f"{found[-1][1].highest_sequence}")

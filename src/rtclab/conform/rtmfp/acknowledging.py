"""Flows to the target: what it acknowledges, and when.

Implements RFC 7016 §3.6.3.4 to §3.6.3.6, from the sender's side.
"""

import time
from dataclasses import replace
from functools import partial
from typing import Final

from rtclab.conform.case import Cases, Unmet
from rtclab.conform.checks import expect_equal
from rtclab.conform.rtmfp.client import CONTROL, NOTHING, RtmfpClient, connected
from rtclab.conform.rtmfp.peer import RtmfpPeer
from rtclab.conform.rtmfp.session import ACKS, RtmfpSession
from rtmplite.rtmfp.wire.acks import DataAck
from rtmplite.rtmfp.wire.chunks import Chunk
from rtmplite.rtmfp.wire.control_chunks import Ping, PingReply
from rtmplite.rtmfp.wire.flow_chunks import BufferProbe

cases: Cases[RtmfpPeer] = Cases()
must = partial(cases.case, role="server")
should = partial(cases.case, role="server", level="SHOULD")

DELAY: Final = 0.2  # s: §3.6.3.4.1
_SLACK: Final = 0.3  # s that a path and a busy host may take
_PING, _PONG = Ping(b"behind it"), PingReply(b"behind it")


@should("RFC 7016 §3.6.3.4", "all-acknowledged")
def user_data_are_acknowledged(peer: RtmfpPeer) -> None:
    """Each fragment that came is in an acknowledgement (§3.6.3.4)."""
    client = connected(peer)
    for _ in range(3):
        client.session.send(client.control.chunk(NOTHING))
    _wait_for(client.session, client.control.number)


@must("RFC 7016 §3.6.3.5", "one-block")
def acknowledgement_offers_a_block(peer: RtmfpPeer) -> None:
    """A receiver that waits for more offers room for it (§3.6.3.5)."""
    client = connected(peer)
    client.session.send(client.control.chunk(NOTHING))
    ack = _wait_for(client.session, client.control.number)
    if ack.buffer_blocks_available < 1:
        raise Unmet("a window of one block or more", "none")


@should("RFC 7016 §3.6.3.4.1", "acknowledge-soon")
def acknowledgement_waits_200_ms_at_most(peer: RtmfpPeer) -> None:
    """A single packet is acknowledged within 200 ms (§3.6.3.4.1)."""
    client = connected(peer)
    client.session.within()
    client.session.send(client.control.chunk(NOTHING))
    started = time.monotonic()
    _wait_for(client.session, client.control.number)
    _expect_soon(started, DELAY)


@should("RFC 7016 §3.6.3.4.1", "acknowledge-soon")
def second_packet_is_acknowledged_at_once(peer: RtmfpPeer) -> None:
    """Of two packets with data the second brings an acknowledgement (§3.6.3.4.1)."""
    client = connected(peer)
    client.session.within()
    for _ in range(2):
        client.session.send(client.control.chunk(NOTHING))
    _expect_ack_before_pong(client)


@should("RFC 7016 §3.6.3.4.1", "acknowledge-soon")
def gap_is_acknowledged_at_once(peer: RtmfpPeer) -> None:
    """A fragment whose predecessor is missing brings an acknowledgement at once (§3.6.3.4.1)."""
    client = connected(peer)
    client.session.within()
    client.control.chunk(NOTHING)
    client.session.send(client.control.chunk(NOTHING))
    _expect_ack_before_pong(client)


@should("RFC 7016 §3.6.3.4.1", "acknowledge-soon")
def duplicate_is_acknowledged_at_once(peer: RtmfpPeer) -> None:
    """A fragment that came before brings an acknowledgement at once (§3.6.3.4.1)."""
    client = connected(peer)
    chunk = client.control.chunk(NOTHING)
    client.session.send(chunk)
    _wait_for(client.session, chunk.sequence_number)
    client.session.send(chunk)
    _expect_ack_before_pong(client)


@must("RFC 7016 §3.6.1.3", "acknowledge-truth")
def missing_fragment_is_not_acknowledged(peer: RtmfpPeer) -> None:
    """What has not come is in no acknowledgement, and what came behind it is (§3.6.1.3)."""
    client = connected(peer)
    missing = client.control.chunk(NOTHING).sequence_number
    client.session.send(client.control.chunk(NOTHING))
    ack = _wait_for(client.session, client.control.number)
    if has(ack, missing):
        raise Unmet(f"an acknowledgement without {missing}", str(list(ack.ranges())))
    expect_equal("cumulative acknowledgement", missing - 1, ack.cumulative_ack)


@must("RFC 7016 §3.6.1.3", "acknowledge-truth")
def two_gaps_are_told_apart(peer: RtmfpPeer) -> None:
    """An acknowledgement says for each number whether it was received (§2.3.13, §2.3.14)."""
    client = connected(peer)
    chunks = [client.control.chunk(NOTHING) for _ in range(6)]
    first = chunks[0].sequence_number
    client.session.send(chunks[1], chunks[2], chunks[4])
    ack = _wait_for(client.session, chunks[4].sequence_number)
    expect_equal(
        "ranges", [(0, first - 1), (first + 1, first + 2), (first + 4, first + 4)], [*ack.ranges()]
    )


@should("RFC 7016 §3.6.3.4", "all-acknowledged")
def late_fragment_closes_the_gap(peer: RtmfpPeer) -> None:
    """When the one that is missing comes, the cumulative acknowledgement goes on (§3.6.3.4)."""
    client = connected(peer)
    late, early = (client.control.chunk(NOTHING) for _ in range(2))
    client.session.send(early)
    _wait_for(client.session, early.sequence_number)
    client.session.send(late)
    last = early.sequence_number
    client.session.wait_ack(CONTROL, lambda ack: ack.cumulative_ack == last)


@must("RFC 7016 §2.3.14", "not-below-fsn")
def forward_sequence_number_closes_gaps(peer: RtmfpPeer) -> None:
    """What the sender gave up is acknowledged as if it had come (§2.3.13, §2.3.14)."""
    client = connected(peer)
    for _ in range(4):
        client.control.chunk(NOTHING)
    last = client.control.chunk(NOTHING)
    client.session.send(replace(last, fsn_offset=1))
    ack = _wait_for(client.session, last.sequence_number)
    expect_equal("cumulative acknowledgement", last.sequence_number, ack.cumulative_ack)


@should("RFC 7016 §2.3.15", "probe-answered")
def buffer_probe_is_acknowledged(peer: RtmfpPeer) -> None:
    """A Buffer Probe brings an acknowledgement with the window (§2.3.15)."""
    client = connected(peer)
    client.session.within()
    client.session.send(BufferProbe(CONTROL))
    client.session.ack(CONTROL)


@should("RFC 7016 §3.6.3.8", "receiver-lingers")
def fragment_of_a_finished_flow_is_acknowledged(peer: RtmfpPeer) -> None:
    """A flow that has ended acknowledges what is sent again (§3.6.3.8)."""
    client = connected(peer)
    flow = client.flow(client.create_stream())
    last = replace(flow.chunk(NOTHING), final=True)
    for _ in range(2):
        client.session.send(last)
        client.session.wait_ack(flow.flow_id, lambda ack: ack.cumulative_ack == 1)


def has(ack: DataAck, number: int) -> bool:
    """Tell whether an acknowledgement has a number (§2.3.13, §2.3.14)."""
    return any(first <= number <= last for first, last in ack.ranges())


def _wait_for(session: RtmfpSession, number: int) -> DataAck:
    """Wait for an acknowledgement of a fragment of the control flow."""
    return session.wait_ack(CONTROL, lambda ack: has(ack, number))


def _expect_soon(started: float, limit: float) -> None:
    passed = time.monotonic() - started
    if passed > limit + _SLACK:
        raise Unmet(f"an acknowledgement within {limit:g} s", f"{passed:.2f} s")


def _expect_ack_before_pong(client: RtmfpClient) -> None:
    """Unmet unless the latest fragment is acknowledged before a Ping behind it is answered."""
    number, session = client.control.number, client.session
    session.send(_PING)
    seen: list[Chunk] = []
    for packet in session.packets():
        seen += packet.chunks
        if _PONG in packet.chunks:
            break
    seen += [chunk for packet in session.within(0.05) for chunk in packet.chunks]
    if not any(isinstance(e, ACKS) and e.flow_id == CONTROL and has(e, number) for e in seen):
        raise Unmet(f"an acknowledgement of {number} at once", "none beside the Ping's reply")

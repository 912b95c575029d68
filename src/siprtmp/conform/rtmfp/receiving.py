"""Flows to the target: what it puts together, what it acknowledges, and what it rejects.

Implements RFC 7016 §3.6.3, from the sender's side.  Calls on a connection show what was delivered.
"""

import time
from dataclasses import replace
from functools import partial
from typing import Final

from rtmplite.rtmfp.netconnection.messages import FlowMetadata
from rtmplite.rtmfp.wire.acks import DataAck
from rtmplite.rtmfp.wire.chunks import Chunk, UnknownChunk
from rtmplite.rtmfp.wire.control_chunks import Ping, PingReply
from rtmplite.rtmfp.wire.flow_chunks import (
    BufferProbe,
    FlowException,
    FragmentControl,
    NextUserData,
    UserData,
)
from rtmplite.rtmfp.wire.option import Option
from siprtmp.conform.case import Cases, Unmet
from siprtmp.conform.rtmfp.client import CONTROL, NOTHING, RtmfpClient, connected
from siprtmp.conform.rtmfp.flows import FlowWriter
from siprtmp.conform.rtmfp.peer import RtmfpPeer, expect_equal
from siprtmp.conform.rtmfp.session import ACKS, RtmfpSession, open_session

cases: Cases[RtmfpPeer] = Cases()
must = partial(cases.case, role="server")
should = partial(cases.case, role="server", level="SHOULD")

NEW: Final = 77  # the identifier of one more flow
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
    """A fragment that leaves one out brings an acknowledgement at once (§3.6.3.4.1)."""
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
    """An acknowledgement says of every number whether it came (§2.3.13, §2.3.14)."""
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


@must("RFC 7016 §3.6.3.3", "in-order")
def message_waits_for_the_one_before(peer: RtmfpPeer) -> None:
    """A message whose forerunner is missing is not delivered in an ordered flow (§3.6.3.3)."""
    client = connected(peer)
    missing = client.control.chunk(NOTHING)
    client.session.send(client.control.chunk(client.command("createStream")))
    if client.is_answered():
        raise Unmet("no answer to a call before its turn", "one")
    client.session.send(missing)
    client.answer()


@must("RFC 7016 §3.6.3.3", "in-order")
def duplicate_is_delivered_once(peer: RtmfpPeer) -> None:
    """A call that comes twice under the same number is one call (§3.6.3.2)."""
    client = connected(peer)
    chunk = client.control.chunk(client.command("createStream"))
    client.session.send(chunk)
    client.session.send(chunk)
    client.answer()
    if client.is_answered():
        raise Unmet("one answer to a call that came twice", "two")
    client.create_stream()


@must("RFC 7016 §3.6.3.3", "whole-only")
def fragments_make_a_message(peer: RtmfpPeer) -> None:
    """A call that comes in pieces is answered when it is whole (§3.6.3.3)."""
    client = connected(peer)
    first, second, third = client.control.cut(client.command("createStream"), 3)
    client.session.send(first)
    client.session.send(second)
    if client.is_answered():
        raise Unmet("no answer to a part of a call", "one")
    client.session.send(third)
    client.answer()


@must("RFC 7016 §3.6.3.3", "whole-only")
def fragments_of_a_message_may_come_in_any_order(peer: RtmfpPeer) -> None:
    """Their numbers put fragments in order (§3.6.3.3)."""
    client = connected(peer)
    first, second, third = client.control.cut(client.command("createStream"), 3)
    for chunk in (third, first, second):
        client.session.send(chunk)
    client.answer()


@must("RFC 7016 §2.3.12", "next-number")
def next_user_data_have_the_next_number(peer: RtmfpPeer) -> None:
    """Next User Data go on with the flow of the chunk before, one number on (§2.3.12)."""
    client = connected(peer)
    first, second, third = client.control.cut(client.command("createStream"), 3)
    client.session.send(first, *(NextUserData(e.data, e.fragment_control) for e in (second, third)))
    client.answer()
    _wait_for(client.session, third.sequence_number, client)


@must("RFC 7016 §2.3.11", "abandoned-ignored")
def data_of_an_abandoned_fragment_are_not_used(peer: RtmfpPeer) -> None:
    """A chunk that says that its message is given up delivers nothing (§2.3.11)."""
    client = connected(peer)
    chunk = replace(client.control.chunk(client.command("createStream")), abandon=True)
    client.session.send(chunk)
    if client.is_answered():
        raise Unmet("no answer to a call that was given up", "one")
    client.create_stream()


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


@should("RFC 7016 §3.6.3.3", "abandoned-go")
def half_a_message_that_is_given_up_holds_up_nothing(peer: RtmfpPeer) -> None:
    """A message behind one that the sender gave up is delivered (§3.6.3.3)."""
    client = connected(peer)
    begun, *_ = client.control.cut(client.command("createStream"), 3)
    client.session.send(begun)
    whole = client.control.chunk(client.command("createStream"))
    client.session.send(replace(whole, fsn_offset=1))
    client.answer()


@must("RFC 7016 §3.6.3.3", "whole-only")
def end_without_a_beginning_is_no_message(peer: RtmfpPeer) -> None:
    """The last part of a message whose first was given up is dropped (§3.6.3.3)."""
    client = connected(peer)
    client.control.chunk(NOTHING)
    tail = client.control.chunk(client.command("createStream"), FragmentControl.END)
    client.session.send(replace(tail, fsn_offset=1))
    if client.is_answered():
        raise Unmet("no answer to the end of a message alone", "one")
    client.create_stream()


@must("RFC 7016 §3.6.1.1", "no-meaning-in-ids")
def flow_may_have_any_identifier(peer: RtmfpPeer) -> None:
    """A flow is known by its metadata, whatever its identifier (§3.6.1.1)."""
    client = RtmfpClient(open_session(peer), flow_id=(1 << 40) + 5)
    expect_equal("answer to connect", "_result", client.connect().name)


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


@must("RFC 7016 §3.6.3.1", "no-metadata-rejects")
def flow_without_metadata_is_rejected(peer: RtmfpPeer) -> None:
    """A flow whose first chunk has no metadata is rejected (§3.6.3.1)."""
    _expect_rejected(connected(peer).session, FlowWriter(NEW, b"", options=()))


@must("RFC 7016 §3.6.3.1", "unknown-association-rejects")
def answer_to_an_unknown_flow_is_rejected(peer: RtmfpPeer) -> None:
    """A flow that says it answers a flow which the target does not have is rejected (§3.6.3.1)."""
    session = connected(peer).session
    _expect_rejected(session, FlowWriter(NEW, bytes(FlowMetadata(0)), associated=987654))


@must("RFC 7016 §3.6.3.1", "unknown-option-rejects")
def flow_with_an_unknown_option_is_rejected(peer: RtmfpPeer) -> None:
    """An option below 8192 that the target does not know binds, so it rejects (§2.3.11.1)."""
    client = connected(peer)
    options = (*client.flow(0).options, Option(0x1FFF, b"?"))
    _expect_rejected(client.session, FlowWriter(NEW, b"", options=options))


@must("RFC 7016 §2.3.11.1", "unknown-passed-by")
def ignorable_option_of_a_flow_is_passed_by(peer: RtmfpPeer) -> None:
    """An unknown option from 8192 on changes nothing (§2.3.11.1)."""
    client = connected(peer)
    options = (*client.flow(0).options, Option(0x2000, b"?"))
    flow = FlowWriter(NEW, b"", options=options)
    client.session.send(flow.chunk(client.command("createStream")))
    client.answer()


@must("RFC 7016 §3.6.3.2", "unknown-option-rejects")
def unknown_option_later_rejects_the_flow(peer: RtmfpPeer) -> None:
    """A binding option that nobody knows rejects a flow that is open, too (§3.6.3.2)."""
    client = connected(peer)
    flow = client.flow(client.create_stream())
    client.session.send(flow.chunk(NOTHING))
    client.session.ack(flow.flow_id)
    chunk = replace(flow.chunk(NOTHING), options=(Option(0x1FFF, b"?"),))
    client.session.send(chunk)
    client.session.wait(FlowException, lambda report: report.flow_id == flow.flow_id)


@should("RFC 7425 §5.1.1", "rejects-unknown")
def flow_of_another_kind_is_rejected(peer: RtmfpPeer) -> None:
    """Metadata with another signature than TC are not those of RTMP (RFC 7425 §5.1.1)."""
    session = connected(peer).session
    _expect_rejected(session, FlowWriter(NEW, b"??\x04\x00"))


@should("RFC 7425 §5.1.1", "rejects-without-stream")
def flow_without_a_stream_is_rejected(peer: RtmfpPeer) -> None:
    """Metadata have to say which stream the flow is of (RFC 7425 §5.1.1)."""
    _expect_rejected(connected(peer).session, FlowWriter(NEW, b"TC\x00"))


@must("RFC 7016 §2.3.16", "automatic-is-0")
def automatic_rejection_has_code_0(peer: RtmfpPeer) -> None:
    """A rejection that no application decided has the code 0 (§2.3.16)."""
    report = _expect_rejected(connected(peer).session, FlowWriter(NEW, b"", options=()))
    expect_equal("exception code", 0, report.exception)


@should("RFC 7016 §2.3.16", "before-every-ack")
def exception_comes_before_every_acknowledgement(peer: RtmfpPeer) -> None:
    """What is sent in a rejected flow brings the exception again, then the ack (§2.3.16)."""
    session = connected(peer).session
    flow = FlowWriter(NEW, b"", options=())
    for _ in range(2):
        session.send(flow.chunk(b"unwanted"))
        _expect_report_and_ack(session)


@must("RFC 7016 §3.6.3.7")
def rejected_flow_leaves_the_others_alone(peer: RtmfpPeer) -> None:
    """The connection goes on beside a flow that was rejected (§3.6.3.7)."""
    client = connected(peer)
    _expect_rejected(client.session, FlowWriter(NEW, b"", options=()))
    client.create_stream()


@must("RFC 7016 §2.3", "damaged-ignored")
def data_behind_damaged_data_are_taken(peer: RtmfpPeer) -> None:
    """A User Data chunk whose number would be below 0 is passed by, and the next taken (§2.3)."""
    client = connected(peer)
    number = client.control.number + 1
    damaged = UnknownChunk(UserData.type_id, bytes((0, CONTROL, number, number + 1)) + NOTHING)
    client.session.send(damaged, client.control.chunk(client.command("createStream")))
    client.answer()


def has(ack: DataAck, number: int) -> bool:
    """Tell whether an acknowledgement has a number (§2.3.13, §2.3.14)."""
    return any(first <= number <= last for first, last in ack.ranges())


def _wait_for(session: RtmfpSession, number: int, client: RtmfpClient | None = None) -> DataAck:
    """Wait for an acknowledgement of a fragment of the control flow."""
    if client is not None:  # it may have come with an answer: ask for another
        session.send(BufferProbe(CONTROL))
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


def _expect_rejected(session: RtmfpSession, flow: FlowWriter) -> FlowException:
    """Send something in a flow, and wait for the exception."""
    session.send(flow.chunk(NOTHING))
    return session.wait(FlowException, lambda report: report.flow_id == flow.flow_id)


def _expect_report_and_ack(session: RtmfpSession) -> None:
    """Unmet if the acknowledgement of the rejected flow has no exception before it."""
    reported = False
    for packet in session.packets():
        for chunk in packet.chunks:
            if isinstance(chunk, FlowException) and chunk.flow_id == NEW:
                reported = True
            elif isinstance(chunk, ACKS) and chunk.flow_id == NEW:
                if not reported:
                    raise Unmet("an exception before the acknowledgement", "the latter alone")
                return

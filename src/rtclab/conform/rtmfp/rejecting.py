"""Flows to the target that it has to reject, and how.

Implements RFC 7016 §3.6.3.1 and §3.6.3.7, from the sender's side.
"""

from dataclasses import replace
from functools import partial
from typing import Final

from rtclab.conform.case import Cases, Unmet
from rtclab.conform.checks import expect_equal
from rtclab.conform.rtmfp.client import NOTHING, connected
from rtclab.conform.rtmfp.flows import FlowWriter
from rtclab.conform.rtmfp.peer import RtmfpPeer
from rtclab.conform.rtmfp.session import ACKS, RtmfpSession
from rtmplite.rtmfp.netconnection.messages import FlowMetadata
from rtmplite.rtmfp.wire.flow_chunks import FlowException
from rtmplite.rtmfp.wire.option import Option

cases: Cases[RtmfpPeer] = Cases()
must = partial(cases.case, role="server")
should = partial(cases.case, role="server", level="SHOULD")

NEW: Final = 77  # the identifier of one more flow


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


@must("RFC 7016 §3.6.3.1", "no-metadata-rejects")
def rejected_flow_leaves_the_others_alone(peer: RtmfpPeer) -> None:
    """The connection goes on beside a flow that was rejected (§3.6.3.7)."""
    client = connected(peer)
    _expect_rejected(client.session, FlowWriter(NEW, b"", options=()))
    client.create_stream()


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

"""The NetConnection of a Flash server: commands in flows, and the end of it.

Implements RFC 7425 §5.1 to §5.3, from the client's side.
"""

from functools import partial
from typing import Final

from rtclab.conform.case import Cases, NotApplicable, Unmet
from rtclab.conform.checks import at_most, expect_equal
from rtclab.conform.rtmfp.client import (
    CONTROL,
    NOTHING,
    RtmfpClient,
    connected,
    in_flow,
    stream_of,
)
from rtclab.conform.rtmfp.flows import FlowWriter
from rtclab.conform.rtmfp.peer import RtmfpPeer
from rtclab.conform.rtmfp.session import RtmfpSession, open_session
from rtmplite.errors import RemoteError
from rtmplite.rtmfp.netconnection.messages import (
    FlowSynchronization,
    SetKeepaliveTimers,
    encode_message,
    parse_control,
    peer_info,
)
from rtmplite.rtmfp.wire.control_chunks import SessionClose
from rtmplite.rtmfp.wire.flow_chunks import FlowException
from rtmplite.rtmp.wire.message import MessageType

cases: Cases[RtmfpPeer] = Cases()
must = partial(cases.case, role="server")
should = partial(cases.case, role="server", level="SHOULD")

_CHUNK_CONTROL: Final = (1, 2, 3, 5, 6)
_FORMAT: Final = b"\x00"  # what a message of type 17 begins with: §5.3.3
_PATIENCE: Final = 2.0  # s for what a server may do or not


@must("RFC 7425 §5.3.1", "connect-on-control")
def connect_is_answered(peer: RtmfpPeer) -> None:
    """The command connect in a flow for stream 0 has a _result (§5.3.1)."""
    answer = RtmfpClient(open_session(peer)).connect()
    about = answer.args[0] if answer.args else None
    code = about.get("code") if isinstance(about, dict) else None
    if (answer.name, code) != ("_result", "NetConnection.Connect.Success"):
        raise Unmet("_result with NetConnection.Connect.Success", f"{answer.name}: {code!r}")


@must("RFC 7425 §5.3.2", "server-returns")
def answer_returns_to_our_control_flow(peer: RtmfpPeer) -> None:
    """The server's control flow is associated to the client's (§5.3.2)."""
    expect_equal("flow that it is associated to", CONTROL, connected(peer).returning.associated)


@must("RFC 7425 §5.1.1", "signature")
def metadata_begin_with_the_signature(peer: RtmfpPeer) -> None:
    """All flows of the server have metadata that begin with TC and name a stream (§5.1.1)."""
    client = connected(peer)
    client.create_stream()
    for reader in client.session.readers.values():
        if stream_of(reader) is None:
            raise Unmet("metadata of a flow of RTMP messages", repr(reader.metadata))


@should("RFC 7425 §5.1", "no-chunk-control")
def server_sends_nothing_about_chunks(peer: RtmfpPeer) -> None:
    """Messages of the types 1, 2, 3, 5 and 6 have no place in flows (§5.1)."""
    client = RtmfpClient(open_session(peer))
    client.write(client.control, client.connect_message())
    client.session.within()
    found = {message[0] for _, message in client.session.messages if message}
    expect_equal("types", set(), found & set(_CHUNK_CONTROL))


@must("RFC 7425 §5.1", "ignores-chunk-control")
def messages_about_chunks_are_passed_by(peer: RtmfpPeer) -> None:
    """Messages of the types 1, 2, 3, 5 and 6 change nothing (§5.1)."""
    client = connected(peer)
    for type_id in _CHUNK_CONTROL:
        client.write(client.control, encode_message(type_id, 0, b"\0\0\0\1"))
    client.create_stream()


@must("RFC 7425 §5.1.2", "header")
def answer_has_a_type_and_a_time(peer: RtmfpPeer) -> None:
    """A message is its type, four bytes of time, and the payload (§5.1.2)."""
    client = connected(peer)
    client.write(client.control, client.command("createStream"))
    _, message = next(each for each in client.messages() if each[1].type_id != MessageType(4))
    if message.type_id not in (MessageType.COMMAND, MessageType.COMMAND_AMF3):
        raise Unmet("a message of type 20 or 17", f"type {message.type_id}")


@must("RTMP 1.0 §7.2.1.3", "gives-the-stream")
def streams_have_numbers_of_their_own(peer: RtmfpPeer) -> None:
    """Each createStream has a _result with another number above 0 (§5.3.7)."""
    client = connected(peer)
    expect_equal("number of streams", 3, len({client.create_stream() for _ in range(3)}))


@must("RFC 7425 §5.3.3", "format-zero")
def command_of_type_17_is_read(peer: RtmfpPeer) -> None:
    """A command may have type 17 and the format 0 before it (§5.3.3)."""
    client = connected(peer)
    plain = client.command("createStream")
    client.write(client.control, encode_message(MessageType.COMMAND_AMF3, 0, _FORMAT + plain[5:]))
    expect_equal("answer", "_result", client.answer().name)


@must("RFC 7425 §5.3.3", "layout")
def peer_info_is_taken(peer: RtmfpPeer) -> None:
    """The command setPeerInfo has no answer and does no harm (§5.3.3)."""
    client = connected(peer)
    client.write(client.control, in_flow(peer_info([("192.0.2.1", 50001)]).message()))
    client.create_stream()


@must("RFC 7425 §5.3.4", "timer-layout")
def keepalive_timers_have_two_periods(peer: RtmfpPeer) -> None:
    """Set Keepalive Timers, which a server may send, has two periods in ms (§5.3.4)."""
    client = connected(peer)
    client.write(client.control, in_flow(peer_info([]).message()))
    with at_most(_PATIENCE):
        for _, message in client.messages():
            if message.type_id != MessageType.USER_CONTROL or message.payload[:2] != b"\0\x29":
                continue
            try:
                timers = parse_control(message)
            except RemoteError as error:
                raise Unmet("two periods", str(error)) from None
            if isinstance(timers, SetKeepaliveTimers):
                return
    raise NotApplicable("the server sets no timers, which RFC 7425 §5.3.4 leaves to it")


@must("RFC 7425 §5.3.2", "more-control-flows")
def second_control_flow_is_heard(peer: RtmfpPeer) -> None:
    """A client may call in another flow for stream 0 (§5.3.2)."""
    client = connected(peer)
    client.write(client.flow(0), client.command("createStream"))
    client.answer()


@must("RFC 7425 §5.3.5.1", "as-many")
def stream_may_have_many_flows(peer: RtmfpPeer) -> None:
    """A client opens as many flows for a stream as it likes (§5.3.5.1)."""
    client = connected(peer)
    stream_id = client.create_stream()
    for flow in [client.flow(stream_id) for _ in range(4)]:
        client.session.send(flow.chunk(NOTHING))
        client.session.ack(flow.flow_id)
    client.create_stream()


@should("RFC 7425 §5.2", "suspends")
def flow_waits_at_a_barrier(peer: RtmfpPeer) -> None:
    """What stands behind a barrier waits until the other flow is at it (§5.2)."""
    client, other = _at_barrier(peer)
    if client.is_answered():
        raise Unmet("no answer before both flows are at the barrier", "one")
    client.write(other, _barrier())
    client.answer()


@must("RFC 7425 §5.2", "sync-layout")
def flow_goes_on_behind_a_barrier(peer: RtmfpPeer) -> None:
    """Once all flows have met the barrier they go on (§5.2)."""
    client, other = _at_barrier(peer)
    client.write(other, _barrier())
    client.answer()


@must("RFC 7425 §5.3.5.3", "closing-says-nothing")
def end_of_a_flow_is_not_the_end_of_its_stream(peer: RtmfpPeer) -> None:
    """A flow of a stream may be closed, and the connection goes on (§5.3.5.3)."""
    client = connected(peer)
    client.close_flow(client.flow(client.create_stream()))
    client.create_stream()


@must("RFC 7425 §5.3.6", "complete-answered")
def end_of_the_control_flow_is_answered(peer: RtmfpPeer) -> None:
    """When the client's control flow has ended, the server closes its flows (§5.3.6)."""
    client = connected(peer)
    session, returning = client.session, client.returning
    client.close_flow(client.control)
    for _ in session.packets():
        if session.ended or returning.final:
            return


@must("RFC 7016 §3.5.5", "close-acknowledged")
def closes_may_cross(peer: RtmfpPeer) -> None:
    """A target that asks for a close acknowledges that of the other end, too (RFC 7016 §3.5.5)."""
    session = _near_close(peer)
    session.send(SessionClose())
    session.wait_for_close_ack()


@must("RFC 7016 §3.5.5", "flows-end")
def closing_session_has_no_flows(peer: RtmfpPeer) -> None:
    """A target that has asked for a close acknowledges no data any more (RFC 7016 §3.5.5)."""
    session = _near_close(peer)
    session.expect_no_flows()


@must("RFC 7425 §5.3", "exception-ends")
def exception_on_its_control_flow_ends_the_connection(peer: RtmfpPeer) -> None:
    """A server whose control flow is rejected answers no call any more (§5.3, §5.3.6)."""
    client = connected(peer)
    session = client.session
    session.send(FlowException(client.returning.flow_id))
    session.ping_unless_ended()
    if session.ended:
        return
    client.write(client.control, client.command("createStream"))
    if client.is_answered():
        raise Unmet("no answer after the exception", "one")


@must("RFC 7425 §5.3.6", "abrupt")
def close_of_the_session_ends_the_connection(peer: RtmfpPeer) -> None:
    """A client that has closed its session may connect anew from there (§5.3.6)."""
    client = connected(peer)
    client.session.leave()
    client.session.ended = True
    connected(peer).create_stream()


def _near_close(peer: RtmfpPeer) -> RtmfpSession:
    """A session that the target closes, since the connection is over; it has no answer yet."""
    client = connected(peer)
    session = client.session
    client.close_flow(client.control)
    session.answers = False
    with at_most(_PATIENCE):
        for packet in session.packets():
            if SessionClose() in packet.chunks:
                return session
            if session.ended:
                break
    raise NotApplicable("the target asks for no close")


def _barrier() -> bytes:
    """A barrier of two flows: §5.2."""
    return in_flow(FlowSynchronization(7, 2).message())


def _at_barrier(peer: RtmfpPeer) -> tuple[RtmfpClient, FlowWriter]:
    """A connection with a call behind a barrier, and the flow that the barrier waits for."""
    client = connected(peer)
    other = client.flow(client.create_stream())
    client.write(other, NOTHING)
    client.session.ack(other.flow_id)
    client.write(client.control, _barrier())
    client.write(client.control, client.command("createStream"))
    return client, other

"""Flows from the target: numbers, repetitions, and the window of the receiver.

Implements RFC 7016 §3.6.2, from the receiver's side.  The target sends answers to calls.
"""

from functools import partial
from typing import Final

from rtclab.conform.case import Cases, Unmet
from rtclab.conform.checks import at_most, expect_equal
from rtclab.conform.rtmfp.client import RtmfpClient, accepted, connected, user_data
from rtclab.conform.rtmfp.flows import FlowReader
from rtclab.conform.rtmfp.peer import RtmfpPeer
from rtclab.conform.rtmfp.session import open_session
from rtmplite.rtmfp.wire.acks import range_ack
from rtmplite.rtmfp.wire.flow_chunks import BufferProbe, UserData

cases: Cases[RtmfpPeer] = Cases()
must = partial(cases.case, role="server")
should = partial(cases.case, role="server", level="SHOULD")

ERTO_LEAST: Final = 0.25  # s: §3.5.2.2
_PROBED: Final = 1.0  # s: §3.6.2.9.1
_SLACK: Final = 0.5  # s that a path and a busy host may take
_TICKS: Final = 250  # of the clock, a second: §2.2.4
_EARLY: Final = 1.0  # s, which is before a time-out without a measurement: §3.5.2.2
_SETTLED: Final = 0.8  # s without a repetition: nothing is outstanding


@should("RFC 7016 §2.3.11", "first-is-1")
def first_number_of_a_flow_is_1(peer: RtmfpPeer) -> None:
    """The target's control flow begins with the number 1 (§2.3.11)."""
    expect_equal("sequence number", 1, _first(peer).sequence_number)


@must("RFC 7016 §2.3.11.1.1", "has-metadata")
def first_chunk_has_metadata(peer: RtmfpPeer) -> None:
    """The first chunk of a flow has the flow's metadata (§2.3.11.1.1)."""
    reader = connected(peer).returning
    if reader.metadata is None:
        raise Unmet("metadata in the first chunk", "none")


@must("RFC 7016 §2.3.11", "fsn-offset-not-zero")
def forward_sequence_number_is_below(peer: RtmfpPeer) -> None:
    """The Forward Sequence Number is below the number of what is sent (§2.3.11)."""
    first = _first(peer)
    if first.forward_sequence_number >= first.sequence_number:
        raise Unmet(f"a number below {first.sequence_number}", str(first.forward_sequence_number))


@must("RFC 7016 §3.6.2.6", "lost-after-erto")
def unacknowledged_data_are_sent_again(peer: RtmfpPeer) -> None:
    """What is not acknowledged comes again, under the same number (§3.6.2.6)."""
    first, second = _repeated(peer, 2)
    expect_equal("data", first[0].data, second[0].data)


@should("RFC 7016 §3.5.2.2", "erto-least")
def repetition_waits_250_ms(peer: RtmfpPeer) -> None:
    """Nothing is sent again before 250 ms (§3.5.2.2)."""
    (_, first), (_, second) = _repeated(peer, 2)
    if second - first < ERTO_LEAST * 0.95:
        raise Unmet("a gap of 0.25 s or more", f"{second - first:.3f} s")


@should("RFC 7016 §3.5.2.2", "erto-backoff")
def repetitions_slow_down(peer: RtmfpPeer) -> None:
    """Each time-out is longer than the one before, by 1.4142 as proposed there (§3.5.2.2)."""
    times = [when for _, when in _repeated(peer, 4)]
    first, last = times[1] - times[0], times[3] - times[2]
    if last < 1.5 * first:
        raise Unmet("a third gap twice as long as the first", f"{first:.2f} s, {last:.2f} s")


@must("RFC 7016 §3.6.2.6", "lost-after-erto")
def acknowledged_data_are_not_sent_again(peer: RtmfpPeer) -> None:
    """After the acknowledgement a fragment does not come again (§3.6.2.4)."""
    client = connected(peer)
    client.create_stream()
    client.session.within(ERTO_LEAST)
    numbers = {reader.flow_id: reader.seen.csn for reader in client.session.readers.values()}
    for packet in client.session.within(_SETTLED):
        for flow_id, last in numbers.items():
            if any(each.sequence_number <= last for each in user_data(packet.chunks, flow_id)):
                raise Unmet("no repetition of what was acknowledged", f"one of flow {flow_id}")


@must("RFC 7016 §2.3.11.1.1", "until-acknowledged")
def metadata_come_until_acknowledged(peer: RtmfpPeer) -> None:
    """The metadata go with every packet until something is acknowledged (§2.3.11.1.1)."""
    if any(chunk.options is None for chunk, _ in _repeated(peer, 2)):
        raise Unmet("metadata in the repetition, too", "none")


@should("RFC 7016 §2.3.11.1.1", "then-never-again")
def metadata_do_not_come_after_that(peer: RtmfpPeer) -> None:
    """An acknowledged flow has no metadata in its chunks (§2.3.11.1.1)."""
    client, reader = _settled(peer)
    client.session.send(client.control.chunk(client.command("createStream")))
    if _next(client, reader).options is not None:
        raise Unmet("a chunk without options", "one with them")


@must("RFC 7016 §3.6.1.2", "numbers-grow")
def numbers_grow_by_one(peer: RtmfpPeer) -> None:
    """Messages of a flow have one number after the other (§3.6.1.2)."""
    client, reader = _settled(peer)
    for _ in range(3):
        last = reader.seen.csn
        client.session.send(client.control.chunk(client.command("createStream")))
        expect_equal("sequence number", last + 1, _next(client, reader).sequence_number)


@must("RFC 7016 §3.6.2.9", "window-obeyed")
def window_of_0_stops_the_flow(peer: RtmfpPeer) -> None:
    """A flow whose receiver has no room sends nothing new (§3.6.2.9)."""
    client, reader = _shut(peer)
    for packet in client.session.within():
        if user_data(packet.chunks, reader.flow_id):
            raise Unmet("no data for a window of 0", "some")
    client.session.ping()


@must("RFC 7016 §3.6.2.9", "window-obeyed")
def open_window_lets_the_flow_go_on(peer: RtmfpPeer) -> None:
    """What waited for the window comes when there is one (§3.6.2.9)."""
    client, reader = _shut(peer)
    client.session.within()
    client.session.acknowledge(reader.flow_id, window=8)
    client.answer()


@should("RFC 7016 §3.6.2.9.1", "probe-soon")
def shut_window_is_probed(peer: RtmfpPeer) -> None:
    """A sender that has to wait asks for the window within a second (§3.6.2.9.1)."""
    client, reader = _shut(peer)
    client.session.acknowledges = False
    with at_most(_PROBED + _SLACK):
        client.session.wait(BufferProbe, lambda probe: probe.flow_id == reader.flow_id)
        return
    raise Unmet("a Buffer Probe within a second", "none")


@should("RFC 7016 §3.6.2.9.1", "probes-end")
def probes_end_with_the_window(peer: RtmfpPeer) -> None:
    """A sender that may go on asks no more (§3.6.2.9.1)."""
    client, reader = _shut(peer)
    client.session.within()
    client.session.acknowledge(reader.flow_id, window=8)
    client.answer()
    for packet in client.session.within(_PROBED + _SLACK):
        if BufferProbe(reader.flow_id) in packet.chunks:
            raise Unmet("no Buffer Probe for an open window", "one")


@should("RFC 7016 §3.6.2.5", "three-naks")
def fragment_that_acks_pass_by_is_sent_again(peer: RtmfpPeer) -> None:
    """What three later acknowledgements lack comes again before its time is out (§3.6.2.5).

    The target measures no round trip, so that its time-out is that of §3.5.2.2 for the beginning.
    """
    session = open_session(peer)
    session.echoes = False
    client = accepted(RtmfpClient(session))
    client.create_stream()
    reader = client.returning
    session.acknowledges, lost = False, reader.seen.csn + 1
    for number in range(lost, lost + 4):
        session.send(client.control.chunk(client.command("createStream")))
        _wait_number(client, reader, number)
        if number > lost:
            ranges = [(0, lost - 1), (lost + 1, number)]
            session.send(range_ack(reader.flow_id, session.window, ranges))
    with at_most(_EARLY):
        _wait_number(client, reader, lost)
        return
    raise Unmet(f"the fragment {lost} again within {_EARLY:g} s", "none")


def _first(peer: RtmfpPeer) -> UserData:
    """The first chunk of the target's control flow."""
    return connected(peer).returning.first


def _settled(peer: RtmfpPeer) -> tuple[RtmfpClient, FlowReader]:
    """A connection whose control flows are acknowledged, and the target's one."""
    client = connected(peer)
    client.create_stream()
    client.session.within(0.05)
    return client, client.returning


def _shut(peer: RtmfpPeer) -> tuple[RtmfpClient, FlowReader]:
    """A connection with a window of 0, and a call whose answer waits for it."""
    client, reader = _settled(peer)
    client.session.acknowledge(reader.flow_id, window=0)
    client.session.ping()
    client.session.send(client.control.chunk(client.command("createStream")))
    return client, reader


def _next(client: RtmfpClient, reader: FlowReader) -> UserData:
    """Wait for the next fragment of a flow, which is new."""
    last = reader.seen.csn
    return _wait_number(client, reader, last + 1)


def _wait_number(client: RtmfpClient, reader: FlowReader, number: int) -> UserData:
    return client.session.wait(
        UserData,
        lambda chunk: chunk.flow_id == reader.flow_id and chunk.sequence_number == number,
    )


def _repeated(peer: RtmfpPeer, count: int) -> list[tuple[UserData, float]]:
    """The answer to connect as often as it comes, and when by the target's clock, in s.

    It is never acknowledged.  A Ping before lets the target measure the round trip.
    """
    session = open_session(peer)
    session.ping()
    session.acknowledges = False
    client = RtmfpClient(session)
    client.write(client.control, client.connect_message())
    started = session.far_clock
    found: list[tuple[UserData, float]] = []
    for chunk in session.chunks(UserData):
        if chunk.sequence_number == 1:
            found.append((chunk, ((session.far_clock - started) & 0xFFFF) / _TICKS))
        if len(found) == count:
            break
    return found

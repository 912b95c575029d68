"""Flows to the target: what it puts together, and what it delivers.

Implements RFC 7016 §3.6.3.2 and §3.6.3.3, from the sender's side.  Calls on a connection show what
was delivered.
"""

from dataclasses import replace
from functools import partial

from rtclab.conform.case import Cases, Unmet
from rtclab.conform.rtmfp.acknowledging import has
from rtclab.conform.rtmfp.client import CONTROL, NOTHING, RtmfpClient, accepted, connected
from rtclab.conform.rtmfp.peer import RtmfpPeer
from rtclab.conform.rtmfp.session import open_session
from rtmplite.rtmfp.wire.chunks import UnknownChunk
from rtmplite.rtmfp.wire.flow_chunks import BufferProbe, FragmentControl, NextUserData, UserData

cases: Cases[RtmfpPeer] = Cases()
must = partial(cases.case, role="server")
should = partial(cases.case, role="server", level="SHOULD")


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
    client.session.send(BufferProbe(CONTROL))
    client.session.wait_ack(CONTROL, lambda ack: has(ack, third.sequence_number))


@must("RFC 7016 §2.3.11", "abandoned-ignored")
def data_of_an_abandoned_fragment_are_not_used(peer: RtmfpPeer) -> None:
    """A chunk that says that its message is given up delivers nothing (§2.3.11)."""
    client = connected(peer)
    chunk = replace(client.control.chunk(client.command("createStream")), abandon=True)
    client.session.send(chunk)
    if client.is_answered():
        raise Unmet("no answer to a call that was given up", "one")
    client.create_stream()


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
    accepted(RtmfpClient(open_session(peer), flow_id=(1 << 40) + 5)).create_stream()


@must("RFC 7016 §2.3", "damaged-ignored")
def data_behind_damaged_data_are_taken(peer: RtmfpPeer) -> None:
    """A User Data chunk whose number would be below 0 is passed by, and the next taken (§2.3)."""
    client = connected(peer)
    number = client.control.number + 1
    damaged = UnknownChunk(UserData.type_id, bytes((0, CONTROL, number, number + 1)) + NOTHING)
    client.session.send(damaged, client.control.chunk(client.command("createStream")))
    client.answer()

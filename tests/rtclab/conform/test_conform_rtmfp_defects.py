"""Cases of RTMFP fail where our server is broken on purpose, and say so.

Each defect is found by the cases named above it.
"""

import hmac
import os
from contextlib import contextmanager

import pytest

from rtclab.conform.rtmfp import SUITE
from rtclab.conform.runner import Outcome, run
from rtmplite.live.streams import Registry
from rtmplite.net.clock import now
from rtmplite.net.server.rtmfp_listener import RtmfpListener
from rtmplite.rtmfp.crypto import cipher, dh, flash_profile
from rtmplite.rtmfp.endpoint import cookie, responder, startup_packets
from rtmplite.rtmfp.netconnection import connection, incoming, media_flows, output
from rtmplite.rtmfp.netconnection.messages import FlowMetadata
from rtmplite.rtmfp.netconnection.server import RtmfpServerConnection
from rtmplite.rtmfp.session import (
    closing,
    mobility,
    packet_assembler,
    recv_flow,
    rtt,
    send_flow,
    send_side,
    session,
)
from rtmplite.rtmfp.wire import packet
from rtmplite.rtmfp.wire.acks import DataAckRanges
from rtmplite.rtmfp.wire.control_chunks import PingReply
from rtmplite.rtmfp.wire.flow_chunks import FragmentControl
from rtmplite.rtmfp.wire.packet import Mode
from rtmplite.rtmp.application import LiveApplication

PATIENCE, SILENCE = 15, 0.4  # s for a case that ends by itself, and for one that waits in vain
BY_NAME = {case.name: case for case in SUITE.cases}
DEFECTS = {}
SILENT = "nothing more within"


@contextmanager
def serving():
    """A server with the application `live`, in this process."""
    registry, applications = Registry(), {"live": LiveApplication()}.get
    server = RtmfpListener(
        "127.0.0.1", 0, lambda _: RtmfpServerConnection(applications, registry, os.urandom, now())
    )
    server.start()
    yield "rtmfp://{}:{}/live".format(*server.address)
    server.stop()


def defect(**found):
    """The function below breaks the server; cases by their names, and what each has to say."""

    def keep(breaking):
        DEFECTS[breaking.__name__] = breaking, found
        return breaking

    return keep


@defect(mode_0_is_discarded="an RHello")
def takes_mode_0(patch):
    patch.setattr(packet, "_MODES", (Mode.STARTUP, *tuple(Mode)[1:]))


@defect(wrong_checksum_is_dropped="an RHello")
def reads_no_checksum(patch):
    def open_without(self, encrypted):
        return self._cbc.decrypt(bytes(encrypted))[2:]

    patch.setattr(cipher.Opener, "open", open_without)


@defect(
    wrong_hmac_is_dropped="a chunk PingReply",
    cookie_from_elsewhere_opens_nothing="an RIKeying",
    changed_cookie_is_ignored="a chunk ResponderInitialKeying",
)
def compares_no_digest(patch):
    for each in (hmac, cipher):
        patch.setattr(each, "compare_digest", lambda *_: True)


@defect(packet_that_comes_twice_is_dropped="a chunk PingReply")
def forgets_numbers(patch):
    patch.setattr(cipher.ReplayWindow, "is_new", lambda *_: True)


@defect(numbers_may_be_out_of_order=SILENT)
def takes_numbers_in_order_only(patch):
    patch.setattr(cipher.ReplayWindow, "is_new", lambda self, number: number > self._highest)


@defect(
    empty_discriminator_selects_nobody="an RHello",
    foreign_fingerprint_selects_nobody="an RHello",
    foreign_hostname_selects_nobody="an RHello",
    damaged_discriminator_selects_nobody="an RHello",
)
def is_selected_by_all(patch):
    patch.setattr(flash_profile.FlashProfile, "selects", lambda *_: True)


@defect(
    public_key_of_1_has_no_session="a chunk ResponderInitialKeying",
    public_key_of_few_bits_has_no_session="a chunk ResponderInitialKeying",
)
def takes_any_key(patch):
    patch.setattr(dh.Group, "is_acceptable", lambda *_: True)


@defect(hello_has_an_rhello_with_its_tag="b")
def returns_another_tag(patch):
    hello = responder.ResponderHello
    patch.setattr(responder, "ResponderHello", lambda tag, *more: hello(tag[::-1], *more))


@defect(cookies_differ_by_address="1", cookie_from_elsewhere_opens_nothing="an RIKeying")
def has_one_cookie_for_all(patch):
    issue, check = cookie.CookieJar.issue, cookie.CookieJar.check
    here = "192.0.2.1", 1
    patch.setattr(cookie.CookieJar, "issue", lambda self, _, now: issue(self, here, 1.0))
    patch.setattr(
        cookie.CookieJar, "check", lambda self, data, _, now: check(self, data, here, 1.0)
    )


@defect(
    forged_cookie_is_ignored="a chunk ResponderInitialKeying",
    keying_without_a_cookie_is_ignored="a chunk ResponderInitialKeying",
)
def takes_any_cookie(patch):
    known = cookie.Cookie(0.0, True)
    patch.setattr(cookie.CookieJar, "check", lambda *_: known)


@defect(repeated_keying_has_the_same_answer="'", repeated_keying_leaves_the_session_open=SILENT)
def knows_no_repetition(patch):
    patch.setattr(responder.Keying, "is_that_of", lambda *_: False)


@defect(keying_of_another_identity_is_ignored="a chunk ResponderInitialKeying")
def lets_anybody_override(patch):
    patch.setattr(flash_profile.FlashProfile, "overrides", lambda *_: True)


@defect(new_keying_of_the_same_identity_replaces_the_session=SILENT)
def lets_nobody_override(patch):
    patch.setattr(flash_profile.FlashProfile, "overrides", lambda *_: False)


@defect(fragments_make_a_packet=SILENT)
def puts_no_fragments_together(patch):
    patch.setattr(startup_packets.Reassembler, "add", lambda *_: None)


@defect(reply_has_the_message_of_the_ping="b'?'")
def changes_pings(patch):
    queue = session.Session.queue_chunk

    def change(self, chunk):
        queue(self, PingReply(b"?") if isinstance(chunk, PingReply) else chunk)

    patch.setattr(session.Session, "queue_chunk", change)


@defect(packets_of_a_responder_have_mode_2="<Mode.INITIATOR: 1>")
def marks_as_initiator(patch):
    header = packet_assembler.encode_header
    patch.setattr(packet_assembler, "encode_header", lambda flags, *more: header(flags ^ 3, *more))


@defect(timestamp_comes_back="None", echo_goes_on_while_time_passes="None")
def echoes_nothing(patch):
    header = packet_assembler.encode_header
    patch.setattr(packet_assembler, "encode_header", lambda flags, at, _: header(flags, at, None))


@defect(nothing_is_echoed_before_a_timestamp="7", timestamp_comes_back="7")
def echoes_anything(patch):
    header = packet_assembler.encode_header
    patch.setattr(packet_assembler, "encode_header", lambda flags, at, _: header(flags, at, 7))


@defect(clock_ticks_every_4_ms="")
def has_a_slow_clock(patch):
    header = packet_assembler.encode_header

    def slow(flags, at, echo):
        return header(flags, at and at // 4, echo)

    patch.setattr(packet_assembler, "encode_header", slow)


@defect(repeated_close_is_acknowledged_again=SILENT)
def closes_once(patch):
    lingering = dict(closing.FIGURE_8[closing.State.FARCLOSE_LINGER])
    del lingering[closing.Event.CLOSE_REQUEST]
    patch.setitem(closing.FIGURE_8, closing.State.FARCLOSE_LINGER, lingering)


@defect(close_ack_closes_at_once="a Ping Reply", close_is_acknowledged=SILENT)
def never_closes(patch):
    patch.setitem(closing.FIGURE_8, closing.State.OPEN, {})


@defect(
    wrong_reply_does_not_move_the_session=SILENT,
    reply_from_a_third_address_does_not_move_the_session=SILENT,
)
def moves_without_proof(patch):
    patch.setattr(mobility.Mobility, "is_answer", lambda *_: True)


@defect(right_reply_moves_the_session=SILENT)
def never_moves(patch):
    patch.setattr(mobility.Mobility, "is_answer", lambda *_: False)


@defect(missing_fragment_is_not_acknowledged="[(0, ", two_gaps_are_told_apart="[(0, ")
def acknowledges_what_is_missing(patch):
    def claim(flow_id, blocks, ranges, room):
        return DataAckRanges(flow_id, blocks, max(last for _, last in ranges))

    patch.setattr(recv_flow, "range_ack", claim)


@defect(acknowledgement_offers_a_block="none")
def offers_no_room(patch):
    patch.setattr(recv_flow.RecvFlow, "blocks_available", 0)


@defect(
    acknowledgement_waits_200_ms_at_most=SILENT,
    second_packet_is_acknowledged_at_once="none beside the Ping's reply",
)
def acknowledges_late(patch):
    patch.setattr(recv_flow, "DELACK_SECONDS", 1.0)
    patch.setattr(recv_flow, "RX_DATA_PACKETS", 99)


@defect(flow_without_metadata_is_rejected=SILENT)
def accepts_all_flows(patch):
    patch.setattr(recv_flow.RecvSide, "_is_acceptable", lambda *_: True)
    patch.setattr(incoming.FlowMetadata, "parse", lambda _: FlowMetadata(0))


@defect(unknown_option_later_rejects_the_flow=SILENT)
def reads_no_later_option(patch):
    patch.setattr(recv_flow, "has_unknown_option", lambda _: False)


@defect(data_of_an_abandoned_fragment_are_not_used="one")
def uses_abandoned_data(patch):
    take = recv_flow.RecvFlow.take

    def use(self, *fields, abandon, final):
        return take(self, *fields, final=final)

    patch.setattr(recv_flow.RecvFlow, "take", use)


@defect(message_waits_for_the_one_before="one")
def delivers_in_any_order(patch):
    init = recv_flow.RecvFlow.__init__

    def unordered(self, *args):
        init(self, *args)
        self.ordered = False

    patch.setattr(recv_flow.RecvFlow, "__init__", unordered)
    patch.setattr(
        incoming.Receiver,
        "on_message",
        lambda self, flow, data, now: self._take(flow, data, self.stream_id, now),
    )


@defect(repetition_waits_250_ms="0.0")
def repeats_too_soon(patch):
    patch.setattr(rtt, "ERTO_LEAST_SECONDS", 0.02)
    patch.setattr(rtt, "ACK_DELAY_SECONDS", 0.0)


@defect(repetitions_slow_down="0.0")
def never_slows_down(patch):
    patch.setattr(rtt.RoundTrip, "back_off", lambda _: None)
    patch.setattr(rtt, "ERTO_LEAST_SECONDS", 0.05)
    patch.setattr(rtt, "ACK_DELAY_SECONDS", 0.0)


@defect(unacknowledged_data_are_sent_again=SILENT)
def repeats_nothing(patch):
    patch.setattr(send_side.SendSide, "_lose", lambda *_: None)


@defect(window_of_0_stops_the_flow="some")
def minds_no_window(patch):
    always = property(lambda _: 1 << 20, lambda *_: None)
    patch.setattr(send_flow.SendFlow, "rx_buffer_size", always, raising=False)


@defect(flow_waits_at_a_barrier="one")
def waits_at_no_barrier(patch):
    patch.setattr(incoming.FlowSynchronizer, "meet", lambda *_: [])


@defect(end_of_the_control_flow_is_answered=SILENT)
def hears_no_end(patch):
    patch.setattr(connection.FlowTransport, "flow_completed", lambda *_: None)


@defect(exception_on_its_control_flow_ends_the_connection="one")
def minds_no_exception(patch):
    patch.setattr(media_flows.MediaFlow, "on_exception", lambda *_: None)
    patch.setattr(send_flow.SendFlow, "excepted", lambda *_: None)


@defect(answer_returns_to_our_control_flow="None")
def returns_to_no_flow(patch):
    patch.setattr(connection.FlowTransport, "far_control", None)


@defect(sound_is_passed_on_unchanged="'b2", large_picture_is_passed_on_unchanged="20001 others")
def changes_media(patch):
    put = output.FlowOutlet.put

    def changed(data):
        return data[:-1] + bytes((data[-1] ^ 1,))

    patch.setattr(output.FlowOutlet, "put", lambda self, data: put(self, changed(data)))


@defect(packet_with_the_responders_mark_is_ignored="a chunk PingReply")
def minds_no_mark(patch):
    read = packet_assembler.read_header

    def as_initiator(data):
        flags, *more = read(data)
        return flags & ~3 | Mode.INITIATOR, *more

    patch.setattr(packet_assembler, "read_header", as_initiator)


@defect(duplicate_is_delivered_once="two")
def delivers_twice(patch):
    take = incoming.Receiver.on_message

    def twice(self, *message):
        take(self, *message)
        take(self, *message)

    patch.setattr(incoming.Receiver, "on_message", twice)


@defect(end_without_a_beginning_is_no_message="one")
def takes_ends_for_messages(patch):
    consume = recv_flow.RecvFlow._consume
    whole = FragmentControl.WHOLE
    patch.setattr(
        recv_flow.RecvFlow, "_consume", lambda self, at, _, *more: consume(self, at, whole, *more)
    )


@defect(
    acknowledged_data_are_not_sent_again="one of flow",
    metadata_do_not_come_after_that="one with them",
)
def hears_no_acknowledgement(patch):
    patch.setattr(send_side.SendSide, "on_ack", lambda *_: None)


@defect(closed_session_has_no_flows="FlowException")
def takes_data_after_the_close(patch):
    patch.setattr(recv_flow.RecvSide, "end", lambda *_: None)


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_is_found(name, monkeypatch):
    breaking, found = DEFECTS[name]
    breaking(monkeypatch)
    with serving() as url:
        for each, said in found.items():
            timeout = SILENCE if said is SILENT else PATIENCE
            (result,) = run(SUITE, url, [BY_NAME[each]], timeout)
            assert result.outcome is Outcome.UNMET, result
            assert said in result.got

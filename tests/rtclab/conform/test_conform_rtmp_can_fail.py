"""Each kind of RTMP case finds a server that is wrong in just that: ours, with one thing broken.

The cases use the codecs of the server, so what is broken here is above those.
"""

import os
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace

import pytest

from rtclab.conform import runner
from rtclab.conform.rtmp import SUITE
from rtclab.conform.runner import Outcome, run
from rtmplite.amf import amf0
from rtmplite.errors import RemoteError
from rtmplite.live.streams import Registry
from rtmplite.live.tracks import Tracks
from rtmplite.net.clock import now
from rtmplite.net.server.rtmp_listener import RtmpListener
from rtmplite.rtmp import connection, handshake, message_transport, netconnection, netstream
from rtmplite.rtmp.application import LiveApplication, OpenApplication
from rtmplite.rtmp.handshake import ServerHandshake
from rtmplite.rtmp.netconnection import NetConnection
from rtmplite.rtmp.netstream import ServerStream
from rtmplite.rtmp.server import ServerChunkTransport, ServerConnection
from rtmplite.rtmp.wire import chunk_reader, control, digest
from rtmplite.rtmp.wire.chunk_reader import ChunkReader
from rtmplite.rtmp.wire.command import result

CASES = {each.name: each for each in SUITE.cases}


class Server(RtmpListener):
    """A server in this process, whose parts can be replaced."""

    def __init__(self):
        live, registry = LiveApplication(), Registry()
        super().__init__(
            "127.0.0.1",
            0,
            lambda address: ServerConnection(lambda name: live, registry, os.urandom, now()),
        )
        self.start()

    close = RtmpListener.stop


def nothing(*_, **__):
    """Do nothing."""


class DeafToAborts(ChunkReader):
    def _obey(self, message):
        if message.type_id == 1:
            super()._obey(message)


class DeafToSizes(ChunkReader):
    def _obey(self, message):
        if message.type_id == 2:
            super()._obey(message)


class WithoutExtendedRepeats(ChunkReader):
    def _repeated(self, stream, data, at):
        stream.extended = False
        return super()._repeated(stream, data, at)


class OfOneChunkStream(ChunkReader):
    """It forgets what has come of a message when another chunk stream speaks."""

    def _begin_chunk(self, stream):
        for other in self._streams.values():
            if other is not stream:
                self._drop(other)
        super()._begin_chunk(stream)


def big_endian(data, at):
    fmt, low = data[at] >> 6, data[at] & 0x3F
    if low >= 2:
        return fmt, low, at + 1
    if low == 0:
        return fmt, data[at + 1] + 64, at + 2
    return fmt, (data[at + 1] << 8) + data[at + 2] + 64, at + 3


def only_version_3(version):
    if version != 3:
        raise RemoteError("another version")


def one_stream(self, command, now):
    self.add_stream(1)
    self.result(command.transaction_id, 1.0)


def answering_delete(self, command, now):
    self.send_command(result(command.transaction_id))


def wrong_number(self, transaction_id, *values):
    self.send_command(result(transaction_id + 1, None, *values))


def eager_error(self, transaction_id, reason):
    self.send_command(netconnection.error(transaction_id, reason))


def no_reset(self):
    self.status("NetStream.Play.Start", "")


def always_reset(self):
    self.status("NetStream.Play.Reset", "")
    self.status("NetStream.Play.Start", "")


def pause_in_words_only(self, command, now):
    self.status("NetStream.Pause.Notify", "")


def louder(self, message, now):
    """Change a bit of each message of media, and make it late."""
    if self._sink is not None:
        payload = message.payload[:-1] + bytes((message.payload[-1] ^ 1,))
        self._sink.write(message.type_id, message.timestamp, payload, now)


def hurried(self, message, now):
    """Halve all times."""
    if self._sink is not None:
        self._sink.write(message.type_id, message.timestamp // 2, message.payload, now)


def only_old_codecs(self, message, now):
    if self._sink is not None and not message.payload[:1] >= b"\x90":
        self._sink.write(message.type_id, message.timestamp, message.payload, now)


def metadata_as_sent(self, message, now):
    """Take @setDataFrame for the name of a data message."""
    if self._sink is not None:
        payload = message.payload
        if payload.startswith(amf0.encode("@setDataFrame")):
            payload = amf0.encode("onData") + payload
        self._sink.write(message.type_id, message.timestamp, payload, now)


def unmoved(message):
    """The parts of an aggregate with the times that stand there."""
    at = 0
    while at < len(message.payload):
        length = int.from_bytes(message.payload[at + 1 : at + 4], "big")
        body = message.payload[at + 11 : at + 11 + length]
        time = int.from_bytes(message.payload[at + 4 : at + 7], "big")
        yield message._replace(type_id=message.payload[at], timestamp=time, payload=body)
        at += 15 + length


def own_streams(message):
    """The parts of an aggregate on the streams that they name."""
    if message.payload[8:11] == bytes(3):
        return list(aggregated(message))
    return []


def without_pongs(self, message, now):
    if not isinstance(message, control.PingRequest):
        on_control(self, message, now)


def acknowledging_once(self):
    if not self._acknowledged:
        acknowledge(self)
    self._acknowledged = self._reader.bytes_received


def acknowledging_nonsense(self):
    acknowledge(self)
    self.send_control(control.Acknowledgement(7))


def falls(self, data, now):
    """A peer that breaks the rules takes the whole server with it."""
    if not type(self).fallen:
        receive(self, data, now)
        type(self).fallen = self.aborted and "closed by" not in self.reason


def forgetful_of_names(self, now):
    """The stream ends for its client only."""
    self._sink = None


def of_any_number(self, message, now):
    """Whoever sends media publishes."""
    for stream in self.streams.values():
        stream.on_media(message, now)


on_control, acknowledge = ServerChunkTransport._on_control, ServerChunkTransport._acknowledge
receive, aggregated = ServerChunkTransport.receive, message_transport.aggregated
SILENT = SimpleNamespace(properties=dict)
BROKEN_DIGEST = SimpleNamespace(
    **{**vars(digest), "answer": lambda filler, theirs, key: filler + bytes(32)}
)

WRONG = {
    "an S2 of zeros": (
        *(ServerHandshake, "_echo", lambda self, packet, now: bytes(1536)),
        "s2_has_the_time_of_c1 s2_echoes_the_random_bytes any_time_of_c1_will_do",
    ),
    "an S2 that is C1": (
        *(ServerHandshake, "_echo", lambda self, packet, now: packet[:4] + b"\x77" + packet[5:]),
        "s2_has_the_time_of_reading",
    ),
    "an S1 with a version": (
        *(ServerHandshake, "_packet_1", lambda self, now, version=b"": b"\0\0\0\0\4\5\0\1" * 192),
        "second_field_of_s1_is_zero s1_tells_one_from_another",
    ),
    "one version only": (
        *(ServerHandshake, "_check_version", staticmethod(only_version_3)),
        "later_version_is_answered_by_3",
    ),
    "any first byte": (
        *(ServerHandshake, "_check_version", staticmethod(nothing)),
        "text_is_no_handshake",
    ),
    "a wrong signature": (
        handshake,
        "digest",
        BROKEN_DIGEST,
        "signed_packets_are_answered_in_kind",
    ),
    "no aborts": (connection, "ChunkReader", DeafToAborts, "abort_discards_what_has_come"),
    "no chunk sizes": (
        *(connection, "ChunkReader", DeafToSizes),
        "chunk_size_counts_until_the_next chunks_may_have_one_byte chunk_size_is_per_direction "
        "chunks_may_be_as_large_as_31_bits_say chunk_size_changes_within_a_message",
    ),
    "no repeated times": (
        *(connection, "ChunkReader", WithoutExtendedRepeats),
        "extended_time_is_on_every_type_3 extended_time_begins_messages_too",
    ),
    "one chunk stream": (
        *(connection, "ChunkReader", OfOneChunkStream),
        "chunks_of_two_messages_take_turns control_comes_between_chunks",
    ),
    "the high byte first": (
        *(chunk_reader, "read_basic_header", big_endian),
        "three_bytes_have_the_low_byte_first",
    ),
    "no pongs": (
        *(ServerChunkTransport, "_on_control", without_pongs),
        "ping_has_a_response",
    ),
    "one acknowledgement": (
        *(ServerChunkTransport, "_acknowledge", acknowledging_once),
        "acknowledgement_comes_after_each_window",
    ),
    "a wrong count": (
        *(ServerChunkTransport, "_acknowledge", acknowledging_nonsense),
        "acknowledgement_comes_after_each_window",
    ),
    "no bandwidth": (
        *(ServerChunkTransport, "_limit", nothing),
        "bandwidth_is_answered_by_a_window hard_limit_holds_back",
    ),
    "control on 3": (
        *(connection, "CONTROL_CHUNKS", 3),
        "control_has_chunk_stream_2 user_control_has_chunk_stream_2",
    ),
    "no word before the result": (
        *(ServerChunkTransport, "welcome", nothing),
        "connect_is_answered_by_a_window_first bandwidth_comes_before_the_result "
        "stream_0_begins_before_the_result",
    ),
    "wrong numbers": (
        *(NetConnection, "result", wrong_number),
        "create_stream_gives_a_number answers_have_the_numbers_of_calls",
    ),
    "no answer to the unknown": (
        *(OpenApplication, "on_command", nothing),
        "unknown_call_is_answered",
    ),
    "an error for 0": (NetConnection, "error", eager_error, "call_with_number_0_has_no_answer"),
    "courtesy": (
        *(netconnection._COMMANDS, "deleteStream", answering_delete),
        "delete_stream_has_no_answer deleted_stream_frees_its_name",
    ),
    "no courtesy": (netconnection._COMMANDS, "FCPublish", nothing, "calls_of_obs_are_answered"),
    "one stream": (
        *(netconnection._COMMANDS, "createStream", one_stream),
        "each_stream_has_its_number connection_publishes_and_plays",
    ),
    "no statuses": (
        *(ServerStream, "status", nothing),
        "pause_has_a_status publish_has_a_status play_has_a_status",
    ),
    "no reset": (ServerStream, "_say_start", no_reset, "reset_is_told_if_asked"),
    "a reset": (ServerStream, "_say_start", always_reset, "reset_is_not_told_unasked"),
    "pause in words": (
        *(netstream._COMMANDS, "pause", pause_in_words_only),
        "going_on_has_a_status paused_player_gets_nothing",
    ),
    "no seek": (netstream._COMMANDS, "seek", nothing, "seek_has_an_answer"),
    "no choice of media": (
        *(netstream._COMMANDS, "receiveAudio", nothing),
        "receive_audio_switches_sound_off receive_audio_has_two_statuses",
    ),
    "endless streams": (
        *(ServerStream, "stop", forgetful_of_names),
        "deleted_stream_frees_its_name closed_stream_frees_its_name lost_publisher_frees_its_name",
    ),
    "no farewell": (ServerStream, "unpublished", nothing, "end_of_the_publisher_is_told"),
    "other media": (
        *(ServerStream, "on_media", louder),
        "sound_comes_unchanged pictures_come_unchanged length_is_that_of_the_message "
        "two_players_get_the_same hevc_comes_through opus_comes_through",
    ),
    "other times": (
        *(ServerStream, "on_media", hurried),
        "type_0_has_an_absolute_time type_1_has_a_delta type_2_keeps_the_length times_wrap "
        "type_3_begins_a_message time_of_32_bits_is_extended time_of_an_aborted_message_counts",
    ),
    "old media": (
        *(ServerStream, "on_media", only_old_codecs),
        "hevc_comes_through av1_comes_through opus_comes_through second_video_track_comes_through "
        "modified_packet_comes_through late_player_gets_the_enhanced_header",
    ),
    "metadata as they came": (
        *(ServerStream, "on_media", metadata_as_sent),
        "metadata_come_without_their_order late_player_gets_the_metadata",
    ),
    "no headers": (
        *(Tracks, "opening", lambda self: []),
        "late_player_gets_the_headers late_player_gets_the_metadata",
    ),
    "unmoved times": (
        *(message_transport, "aggregated", unmoved),
        "times_within_an_aggregate_are_moved",
    ),
    "streams of parts": (
        *(message_transport, "aggregated", own_streams),
        "aggregate_has_one_stream",
    ),
    "no enhancement": (netconnection, "RELAY", SILENT, "answer_states_support"),
}
DEADLY = (
    *("string_longer_than_its_message", "objects_within_objects", "chunk_size_of_nothing"),
    *("chunk_stream_that_begins_with_type_3", "broken_aggregate", "nonsense_after_the_handshake"),
)


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_server_is_found(wrong, monkeypatch):
    where, name, instead, cases = WRONG[wrong]
    if isinstance(where, dict):
        monkeypatch.setitem(where, name, instead)
    else:
        monkeypatch.setattr(where, name, instead)
    chosen = [CASES[each] for each in cases.split()]
    with closing(Server()) as server:
        target = "rtmp://{}:{}/live".format(*server.address)
        results = run(replace(SUITE, at_once=4), target, chosen, 0.3)
    found = {each.case.name: (each.outcome, each.got) for each in results}
    assert {name: each for name, each in found.items() if each[0] is not Outcome.UNMET} == {}


def test_a_server_without_pongs_fails_in_nothing_else(monkeypatch):
    """It does all the rest, so that other cases pass, or have nothing to look at."""
    monkeypatch.setattr(ServerChunkTransport, "_on_control", without_pongs)
    with closing(Server()) as server:
        target = "rtmp://{}:{}/live".format(*server.address)
        results = run(SUITE, target, SUITE.cases, 30)
    found = {outcome: {r.case.name for r in results if r.outcome is outcome} for outcome in Outcome}
    passed, nothing_to_see = found.pop(Outcome.PASSED), found.pop(Outcome.SKIPPED)
    assert {outcome: names for outcome, names in found.items() if names} == {
        Outcome.UNMET: {"ping_has_a_response"}
    }
    pings = {"ping_response_has_the_time", "control_comes_between_chunks"}
    assert nothing_to_see == pings | {"unknown_application_is_refused"}
    assert len(passed) == len(CASES) - 4


@pytest.mark.parametrize("name", DEADLY)
def test_a_server_that_falls_is_said_to_have_died(name, monkeypatch):
    """Two harmless cases beside it: one before, which is judged, and one behind, which is not."""
    monkeypatch.setattr(runner, "PAUSE", 0)
    monkeypatch.setattr(ServerChunkTransport, "receive", falls)
    monkeypatch.setattr(ServerChunkTransport, "fallen", False, raising=False)
    chosen = [CASES[each] for each in ("version_is_3", name, "packets_have_1536_bytes")]
    with closing(Server()) as server:
        target = "rtmp://{}:{}/live".format(*server.address)
        results = run(SUITE, target, chosen, 2, at_once=1)
    outcomes = [each.outcome for each in results]
    assert outcomes == [Outcome.PASSED, Outcome.DIED, Outcome.UNDECIDED]

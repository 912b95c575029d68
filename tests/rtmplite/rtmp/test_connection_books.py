"""What a connection counts: bytes held, waiting, unread and acknowledged, each to the byte."""

import pytest

from rtmplite.limits.memory_budget import Account, MemoryBudget
from rtmplite.rtmp.connection import ChunkTransport
from rtmplite.rtmp.message_transport import ConnectionEnd, ConnectionLimits
from rtmplite.rtmp.wire import control
from rtmplite.rtmp.wire.chunk_reader import ChunkReader
from rtmplite.rtmp.wire.chunk_writer import ChunkWriter
from rtmplite.rtmp.wire.control import (
    Acknowledgement,
    LimitType,
    PingRequest,
    PingResponse,
    SetPeerBandwidth,
    WindowAcknowledgementSize,
)
from rtmplite.rtmp.wire.message import Message


class NoHandshake:
    """A handshake that is over before it began."""

    done, rest = True, b""

    def receive(self, data, now):
        self.rest = data
        return b""


class End:
    """One end that heard and said nothing yet, and the words of its peer."""

    def __init__(self, budget=None, **limits):
        self.account = Account(budget or MemoryBudget())
        limits = ConnectionLimits(**limits)
        self.transport = ChunkTransport(NoHandshake(), 0.0, limits, self.account)
        ConnectionEnd(self.transport)
        self.writer, self.reader = ChunkWriter(), ChunkReader()

    def words(self, *messages):
        return b"".join(self.writer.write(each.message(), 2) for each in messages)

    def hears(self, *messages):
        self.transport.receive(self.words(*messages), 0.0)

    def says(self):
        read = self.reader.feed(b"".join(self.transport.take_output()))
        return [control.parse_control(message) for message in read]


def test_nobody_asked_for_acknowledgements():
    """RTMP 1.0 §5.4.3: before a window is told there are none."""
    end = End()
    end.transport.receive(end.writer.write(Message(8, 0, 1, bytes(5000)), 4), 0.0)
    assert end.says() == []


@pytest.mark.parametrize(("window", "answer"), [(16, [Acknowledgement(16)]), (17, [])])
def test_a_window_is_full_to_the_byte(window, answer):
    """Covers RTMP 1.0 §5.4.3 [ack-every-window]: the message that told it counts as well."""
    end = End()
    end.hears(WindowAcknowledgementSize(window))
    assert end.says() == answer


def test_any_limit_is_answered_before_we_told_a_window():
    """Covers RTMP 1.0 §5.4.5 [answer-with-window]."""
    end = End()
    end.hears(SetPeerBandwidth(1, LimitType.HARD))
    assert end.says() == [WindowAcknowledgementSize(1)]


def test_control_messages_are_of_no_stream_and_no_time():
    """Covers RTMP 1.0 §5.4: message stream 0, chunk stream 2."""
    end = End()
    end.transport.send_control(Acknowledgement(5))
    assert end.transport.take_output() == [bytes.fromhex("02 000000 000004 03 00000000 00000005")]


def test_who_reads_too_little_is_cut_off():
    """Covers RTMP Errata §2 [errors-abort]: at its next word, beyond the limit."""
    end = End(unread=100)
    end.transport.output_size = 100
    end.hears(PingRequest(1))
    assert not end.transport.closed
    end.transport.output_size = 101
    end.hears(PingRequest(2))
    assert end.transport.aborted and "101 bytes" in end.transport.reason
    end.transport.take_output()
    end.hears(PingRequest(3))
    assert end.says() == []


def test_what_is_held_is_paid_for_until_it_is_used():
    """Own design: and exactly as much may be held as the limit says."""
    budget = MemoryBudget()
    end = End(budget, held=1000)
    end.hears(PingRequest(0))
    end.says()
    before = budget.used
    end.transport.pause_reading()
    pings = end.words(*(PingRequest(number) for number in range(1, 10)))
    end.transport.receive(pings, 0.0)
    assert budget.used == before + len(pings)
    end.transport.resume_reading()
    end.transport.proceed(0.0)
    assert end.says() == [PingResponse(number) for number in range(1, 10)]
    assert budget.used == before
    end.hears(PingRequest(10))
    assert end.says() == [PingResponse(10)]
    end.transport.pause_reading()
    end.transport.receive(bytes(1000), 0.0)
    assert not end.transport.closed
    end.transport.receive(b"\0", 0.0)
    assert end.transport.aborted and budget.used == 0


def test_what_is_heard_meanwhile_waits_its_turn():
    """Own design: whoever is told of output may hand in more input, and order is kept."""
    end = End()
    first, later = end.words(PingRequest(1)), end.words(PingRequest(2))
    end.transport.on_output = lambda transport: transport.receive(later, 0.0)
    end.transport.receive(first, 0.0)
    end.transport.on_output = None
    end.transport.proceed(0.0)
    assert end.says() == [PingResponse(1), PingResponse(2)]


def test_all_that_waits_is_queued():
    """Own design: what the socket has left, what a limit keeps back, and what is of this turn."""
    end = End()
    transport = end.transport
    transport.unsent(0)
    transport.put(bytes(10))
    assert (transport.queued, transport.output_size) == (10, 0)
    transport.take_output()
    transport.unsent(7)
    transport.put(bytes(10))
    assert transport.output_size == 17
    transport.take_output()
    transport.unsent(0)
    assert transport.queued == transport.output_size == 0
    transport.send_window(1000)
    transport.take_output()
    end.hears(SetPeerBandwidth(1000, LimitType.HARD))
    for _ in range(3):
        transport.put(bytes(600))
    assert [len(data) for data in transport.take_output()] == [600, 600]
    assert transport.output_size == 600
    transport.unsent(1)
    assert transport.output_size == 601
    transport.send_control(Acknowledgement(1))
    assert len(transport.take_output()) == 1 and transport.output_size == 617
    end.hears(Acknowledgement(216))
    assert transport.take_output() == []
    end.hears(Acknowledgement(217))
    assert [len(data) for data in transport.take_output()] == [600]
    assert transport.output_size == 617


def test_what_is_free_again_is_announced():
    """Covers RTMP 1.0 §5.4.5 [window-limits] [hard-limit]: by a wider limit, or by arrival.

    What arrived before there was a limit does not count: RTMP 1.0 §5.4.3.
    """
    end, said = End(), []
    transport = end.transport
    end.hears(Acknowledgement(1000), SetPeerBandwidth(100, LimitType.HARD))
    transport.take_output()
    transport.on_output = said.append
    for _ in range(3):
        transport.put(bytes(160))
    assert [len(data) for data in transport.take_output()] == [160] and said == [transport]
    end.hears(Acknowledgement(1050))
    assert transport.take_output() == [] and said == [transport]
    end.hears(Acknowledgement(1061))
    assert [len(data) for data in transport.take_output()] == [160] and said == [transport] * 2
    end.hears(SetPeerBandwidth(400, LimitType.HARD))
    assert [len(data) for data in transport.take_output()] == [160] and said == [transport] * 3


def test_control_messages_work_at_once_whatever_their_time():
    """Covers RTMP 1.0 §6.2 [at-once]: a window, a limit, an Acknowledgement."""
    end = End()

    def hears(*messages):
        later = [each.message()._replace(timestamp=10_000_000) for each in messages]
        end.transport.receive(b"".join(end.writer.write(each, 2) for each in later), 0.0)

    hears(WindowAcknowledgementSize(16))
    assert end.says() == [Acknowledgement(16)]
    hears(WindowAcknowledgementSize(1 << 30), Acknowledgement(1000))
    end.transport.take_output()
    hears(SetPeerBandwidth(100, LimitType.HARD))
    end.transport.take_output()
    end.transport.put(bytes(160))
    end.transport.put(bytes(160))
    assert [len(data) for data in end.transport.take_output()] == [160]
    hears(Acknowledgement(1060))
    assert end.transport.take_output() == []
    hears(Acknowledgement(1061))
    assert [len(data) for data in end.transport.take_output()] == [160]

"""What a sender does between the cases that its other tests show."""

from support.rtmfp.wire import Sending, send

from rtmplite.rtmfp.wire.flow_chunks import UserData


def test_options_go_once_even_where_the_numbers_jump():
    """Covers RFC 7016 §2.3.11.1.1 [until-acknowledged] [once-in-a-packet].

    And §2.3.11.1.2 [until-acknowledged] [once-in-a-packet].  The long form of a chunk is needed
    behind a message that was given up, and that is not the first of the packet.
    """
    wire = Sending()
    flow = wire.flow()
    flow.send(b"one", 0.0)
    flow.abandon(flow.send(b"two", 0.0), 0.0)
    flow.send(b"three", 0.0)
    (packet,) = wire.take()
    first, second = packet.chunks
    assert isinstance(first, UserData) and isinstance(second, UserData)
    assert [option.value for option in first.options] == [b"meta"]
    assert second.options is None and (second.data, second.sequence_number) == (b"three", 3)


def test_a_window_that_opens_for_a_moment_ends_the_probes():
    """Covers RFC 7016 §3.6.2.9.1 [probes-end] [probe-soon]: the next ones begin anew, at once."""
    wire = Sending()
    flow = wire.flow()
    send(flow, 20, 0.0)
    wire.take()
    wire.ack(5, blocks=0)
    wire.wait(1.0)
    assert wire.probes() == 1
    wire.ack(5, blocks=1)
    wire.ack(wire.numbers()[-1], blocks=0)
    wire.wait(0.9)
    assert wire.probes() == 0
    wire.wait(0.1)
    assert wire.probes() == 1

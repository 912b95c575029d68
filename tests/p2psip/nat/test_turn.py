"""ChannelData and TURN's attributes survive the round trip, and no octets break their readers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.mutations import mutations

from p2psip.errors import LocalError, RemoteError
from p2psip.nat import turn
from p2psip.nat.stun import StunMessage, is_stun
from p2psip.nat.turn import CHANNELS, TurnType, channel_data, read_channel_data
from p2psip.strategies.stun import channel_messages, turn_messages


@given(channel_messages, st.binary(max_size=3))
def test_channel_data_is_read_as_it_was_written_padded_or_not(message, padding):
    """Covers RFC 8656 §12.4, §12.5 [no-padding-by-udp]."""
    channel, data = message
    written = channel_data(channel, data)
    assert len(written) == len(data) + turn.OVERHEAD
    assert read_channel_data(written) == read_channel_data(written + padding) == (channel, data)
    assert not is_stun(written)


@given(mutations(channel_messages.map(lambda message: channel_data(*message))))
def test_any_octets_are_channel_data_or_not(datagram):
    found = read_channel_data(datagram)
    assert found is None or (found[0] in CHANNELS and len(found[1]) <= len(datagram) - 4)


@given(turn_messages())
def test_messages_of_turn_survive_the_round_trip(message):
    assert StunMessage.parse(message.data) == message


@given(mutations(turn_messages().map(lambda message: message.data)))
def test_a_lifetime_is_read_or_refused(datagram):
    try:
        value = StunMessage.parse(datagram).get(TurnType.LIFETIME)
        assert turn.write_lifetime(turn.read_lifetime(value)) == value
    except RemoteError:
        return


def test_what_is_reserved_is_zero():
    """Covers RFC 8656 §18.1 [rest-is-zero], §18.6 [rest-is-zero], §18.8 [rest-is-zero]."""
    assert turn.write_channel(0x4001) == b"\x40\x01\0\0"
    assert turn.write_family(False) == b"\x01\0\0\0" and turn.write_family(True) == b"\x02\0\0\0"
    assert turn.write_transport() == b"\x11\0\0\0"


@pytest.mark.parametrize(("channel", "size"), [(0x3FFF, 1), (0x5000, 1), (0x4000, 0x10000)])
def test_wrong_channels_are_the_callers_fault(channel, size):
    with pytest.raises(LocalError):
        channel_data(channel, bytes(size))

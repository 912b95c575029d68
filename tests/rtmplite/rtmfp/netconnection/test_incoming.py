"""Receiving flows of message streams: in which order their messages are taken."""

import pytest
from support.rtmfp.flash_world import FlashWorld

from rtmplite.rtmfp.netconnection.incoming import Receiver
from rtmplite.rtmfp.netconnection.media_flows import Lifetimes
from rtmplite.rtmfp.netconnection.messages import FlowMetadata, Intent, encode_message
from rtmplite.rtmp.wire.message import MessageType

AUDIO, VIDEO, DATA = MessageType.AUDIO, MessageType.VIDEO, MessageType.DATA
SPEEX, AAC_HEADER = b"\xb2sound", b"\xaf\x00header"
EARLY = Lifetimes(audio_intent=Intent.NETWORK_ORDER)


class Flow:
    """A flow as far as it concerns its receiver."""

    ordered = True


class Taker:
    """Writes down what is taken."""

    def __init__(self):
        self.taken = []

    def take(self, flow, data, stream_id, now):
        self.taken.append(data)


def take(intent, *messages):
    """What of these is taken, and whether the flow was to be in order."""
    taker, flow = Taker(), Flow()
    receiver = Receiver(taker, 1, intent)
    for message in messages:
        receiver.on_message(flow, message, 0.0)
    return taker.taken, flow.ordered


def sounds(*times):
    """Messages of sound at these times."""
    return [encode_message(AUDIO, time, SPEEX) for time in times]


def test_sound_that_was_overtaken_is_not_taken():
    """Covers RFC 7425 §5.1.1 [out-of-order], §5.1 [time-range]: also where times wrap around."""
    messages = sounds(20, 60, 40, 60, 80)
    assert take(Intent.NETWORK_ORDER, *messages) == (sounds(20, 60, 60, 80), False)
    messages = sounds(0xFFFFFFF0, 4, 0xFFFFFFFF, 5)
    assert take(Intent.NETWORK_ORDER, *messages) == (sounds(0xFFFFFFF0, 4, 5), False)
    assert take(Intent.NETWORK_ORDER, *sounds(0, 1 << 31)) == (sounds(0), False)


def test_a_header_is_taken_whenever_it_comes():
    """Covers RFC 7425 §5.1.1 [out-of-order]: without it none of the sound is of use."""
    messages = [*sounds(20), encode_message(AUDIO, 0, AAC_HEADER), *sounds(10, 40)]
    assert take(Intent.NETWORK_ORDER, *messages)[0] == [*messages[:2], *sounds(40)]


@pytest.mark.parametrize("kind", [VIDEO, DATA, MessageType.COMMAND, MessageType.USER_CONTROL])
def test_what_depends_on_its_order_keeps_it(kind):
    """Covers RFC 7425 §5.1.1 [intent]: the hint is no more than that."""
    messages = [encode_message(kind, time, b"\x27\x01") for time in (40, 20)]
    assert take(Intent.NETWORK_ORDER, *messages) == (messages, True)


def test_without_the_hint_everything_is_in_order():
    """Covers RFC 7425 §5.1.1 [intent]."""
    assert take(Intent.QUEUING_ORDER, *sounds(40, 20)) == (sounds(40, 20), True)


def test_what_is_no_message_is_for_others_to_refuse():
    """Covers RFC 7425 §5.1.2 [header]."""
    for broken in (b"", b"\x08", b"\x08\0\0\0", b"\x08\0\0\0\2"):
        messages = [*sounds(1), broken]
        assert take(Intent.NETWORK_ORDER, *messages)[0] == messages
        assert take(Intent.NETWORK_ORDER, broken)[0] == [broken]


@pytest.mark.parametrize(
    ("lifetimes", "first", "then"),
    [(Lifetimes(), [0], [20, 40, 60]), (EARLY, [0, 40, 60], [])],
)
def test_a_lost_sound_holds_up_no_other(lifetimes, first, then):
    """Covers RFC 7425 §5.1.1 [intent] [out-of-order], from end to end."""
    lost = {"next": False}

    def weather(data, source, destination):
        if lost["next"]:
            lost["next"] = False
            return ()
        return (0.02,)

    world = FlashWorld(weather=weather)
    player, publisher = world.client(), world.client()
    publisher.client.transport.lifetimes = lifetimes
    player.play("demo")
    stream = publisher.publish("demo")
    for time in (0, 20, 40, 60):
        lost["next"] = time == 20
        publisher.client.transport.send_live(AUDIO, time, stream, SPEEX)
        world.run(0.02)
    flows = publisher.server_session.recv_flows.values()
    assert FlowMetadata(stream, lifetimes.audio_intent) in [
        FlowMetadata.parse(flow.metadata) for flow in flows
    ]
    world.run(0.045)
    assert [time for _, time, _ in player.media()] == first
    world.run(1)
    assert [time for _, time, _ in player.media()] == first + then

"""A sender, such as rtmfp-cpp, that understands acknowledgements by ranges only: Field.

It sends to us over a link with 5% loss and 100 ms there and back, in virtual time.
"""

from random import Random

from support.rtmfp.link import storm
from support.rtmfp.pair import Pair, PlainCipher

from rtmplite.rtmfp.wire.acks import DataAckBitmap
from rtmplite.rtmfp.wire.packet import Packet

PICTURES, EVERY, SIZE = 539, 0.04, 1400
LIFETIME = 1.0  # s that a picture is worth sending


class RangesAlone(PlainCipher):
    """Removes the chunks that such a sender does not understand, and counts them."""

    def __init__(self):
        self.unknown = 0

    def open(self, encrypted):
        packet = Packet.parse(super().open(encrypted))
        known = [chunk for chunk in packet.chunks if not isinstance(chunk, DataAckBitmap)]
        self.unknown += len(packet.chunks) - len(known)
        return Packet(
            packet.mode,
            tuple(known),
            packet.timestamp,
            packet.timestamp_echo,
            packet.time_critical,
            packet.time_critical_reverse,
        ).encode()


def published(lifetime):
    """Send a film; return the numbers of frames that arrived, the worst delay, and `unknown`."""
    cipher = RangesAlone()
    weather = storm(Random(5), loss=0.05, duplicates=0.0, delay=0.05, spread=0.002)
    pair = Pair(weather, ciphers=(cipher, PlainCipher()))
    flow = pair.flow()
    for number in range(PICTURES):
        flow.send(number.to_bytes(4) + bytes(SIZE), pair.now, lifetime=lifetime)
        pair.run(EVERY)
    flow.close(pair.now)
    pair.run(10.0)
    heard = pair.heard()
    assert heard.complete == 1
    numbers = [int.from_bytes(message[:4]) for message in heard.messages]
    latest = max(at - number * EVERY for number, at in zip(numbers, heard.times, strict=True))
    return numbers, latest, cipher.unknown


def test_all_that_is_reliable_arrives_and_soon():
    """Field §"RTMFP bitmap acks": the sender takes for lost what it sees no acknowledgement of."""
    numbers, latest, unknown = published(None)
    assert unknown == 0
    assert numbers == list(range(PICTURES))
    assert latest < 2.0


def test_nothing_grows_too_old_on_the_way():
    """Field §"RTMFP bitmap acks": live pictures would not be late, but abandoned."""
    numbers, _, unknown = published(LIFETIME)
    assert unknown == 0
    assert len(numbers) > PICTURES * 0.99

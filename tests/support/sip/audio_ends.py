"""Two phones' audio in one process: an offer and its answer, and frames both ways."""

import gevent
from support.sip.phones import FRAMES, wait_for

from p2psip.net.media.port_pool import PortPool
from p2psip.net.phone.audio import AudioStream
from p2psip.net.phone.audio_codecs import audio_codec

LOOPBACK = "127.0.0.1"


class AudioEnd:
    """One phone's audio: what it hears, and why it was lost."""

    def __init__(self, pool=None, **transport):
        """`transport` is how an `AudioStream` reaches the other one."""
        self.heard, self.lost = [], []
        self.stream = AudioStream(
            LOOPBACK,
            [audio_codec("PCMU")],
            pool or PortPool(),
            lambda payload, timestamp: self.heard.append(payload),
            lambda event, rate: None,
            lambda: None,
            **transport,
        )
        self.stream.when_lost(self.lost.append)


def closed(kind):
    """What makes ends of a kind, for a fixture, and closes them."""
    made = []

    def make(**options):
        made.append(kind(**options))
        return made[-1]

    yield make
    for each in made:
        each.stream.close()


def exchange(ours, theirs, *, in_offer=bytes, in_answer=bytes, **options):
    """An offer and its answer, as they arrive; what has been said."""
    offer = in_offer(ours.stream.offer(**options))
    answer = in_answer(theirs.stream.answer(offer))
    theirs.stream.connect()
    ours.stream.conclude(answer)
    return offer.decode(), answer.decode()


def converse(ours, theirs):
    """Audio goes both ways."""
    wait_for(lambda: ours.stream.is_ready and theirs.stream.is_ready)
    for sender, hearer in ((ours, theirs), (theirs, ours)):
        hearer.heard.clear()
        for frame in FRAMES:
            assert sender.stream.send(frame)
            gevent.sleep(0.002)
        wait_for(lambda hearer=hearer: len(hearer.heard) == len(FRAMES))
        assert hearer.heard == FRAMES

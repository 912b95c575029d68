"""The sound of a call at the command line, without a network."""

import argparse
from array import array

import pytest
from gevent.event import Event

from p2psip.call_audio import CallAudio
from p2psip.net.phone.wav import write_wav
from p2psip.sdp.codec import Codec
from p2psip.sip.address import Address


class Line:
    """A call that is over after so many packets, and waits for nobody."""

    codec, remote, reason = Codec("PCMU", 8000), Address.parse("<sip:bob@home>"), "BYE"
    statistics, is_over = None, False

    def __init__(self, packets, ptime):
        self.left, self.ptime, self.sent = packets, ptime, []

    def send_audio(self, payload):
        self.sent.append(payload)
        self.left -= 1
        self.is_over = not self.left
        return True

    def wait_ended(self, timeout):
        return self.is_over

    def hangup(self):
        self.is_over = True


def talk(line, **options):
    given = {"play": None, "tone": None, "record": None, "seconds": None, **options}
    CallAudio(argparse.Namespace(**given), Event()).run(line)
    return line.sent


@pytest.mark.parametrize(("ptime", "samples"), [(20, 160), (30, 240), (200, 1600), (1, 80)])
@pytest.mark.parametrize("tone", [None, 440])
def test_a_packet_is_as_long_as_the_other_side_wants(ptime, samples, tone):
    """Covers RFC 3264 §7: also where a second is no multiple of it."""
    sent = talk(Line(60, ptime), tone=tone)
    assert [len(each) for each in sent] == [samples] * 60


def test_a_tone_goes_on_from_packet_to_packet():
    """Own design: no click where packets of 30 ms meet the end of a second."""
    assert b"".join(talk(Line(60, 30), tone=440)) == b"".join(talk(Line(90, 20), tone=440))


def test_a_file_is_played_to_its_end_and_a_new_agreement_holds_at_once(tmp_path):
    """Own design: the last packet is what is left."""
    write_wav(tmp_path / "a.wav", array("h", range(1000)))
    line = Line(99, 20)
    send = line.send_audio

    def changing(payload):
        line.ptime = 40
        return send(payload)

    line.send_audio = changing
    assert [len(each) for each in talk(line, play=tmp_path / "a.wav")] == [160, 320, 320, 200]

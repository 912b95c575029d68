"""How much later sound is heard on the other side of a call than it has come: beeps are timed.

The networks are steady but for some milliseconds, so this is what the gateway adds.
"""

import math
from array import array
from random import Random

import numpy as np
import pytest

pytest.importorskip("av")

from support.gateway.audio_rig import AUDIO, Rig
from support.gateway.audio_world import tags

from p2psip.rtp.payload import g711
from siprtmp.media.transcode.audio_decoder import AudioDecoder
from siprtmp.media.transcode.to_rtp import encoder
from siprtmp.media.transcode.to_samples import payload_decoder
from siprtmp.media.translate.audio_formats import G722, L16, OPUS, PCMA, PCMU

BEEPS, EVERY, LONG, HZ = 20, 0.3, 0.1, 900
JITTER = 0.01  # s
PASSING, MADE = 0.06, 0.12  # s, of 99 in 100 beeps
RATE = 48_000  # of the decoders of tags


def beeps(rate):
    """A beep every now and then, in silence."""
    times = (n / rate for n in range(int(BEEPS * EVERY * rate)))
    return array("h", (_level(at % EVERY, at) for at in times))


def _level(since, at):
    return int(9000 * math.sin(math.tau * HZ * at)) if EVERY - since <= LONG else 0


class Ear:
    """Notes when beeps begin, of sound that is heard from the moment on at which it comes."""

    def __init__(self, rate):
        self._rate, self.began, self._loud_at = rate, [], -1.0

    def hear(self, samples, now):
        for place in np.flatnonzero(np.abs(np.array(samples, float)) > 3000):
            at = now + place / self._rate
            if at - self._loud_at > EVERY / 3:
                self.began.append(at)
            self._loud_at = at


def call(codec):
    return Rig(codec, transcode=True)


def added(before, after):
    """The 99th percentile of what lies between, in seconds."""
    assert len(before) == len(after) >= BEEPS - 1
    return float(np.percentile(np.array(after) - np.array(before), 99))


@pytest.mark.parametrize(
    ("kind", "codec", "most"),
    [
        ("ulaw", PCMU, PASSING),
        ("ulaw", OPUS, MADE),
        ("aac", OPUS, MADE),
        ("aac", G722, MADE),
        ("aac", PCMA, MADE),
        ("enhanced opus", L16, MADE),
    ],
)
def test_a_phone_hears_a_publisher_soon(kind, codec, most):
    """Own design: less than a tenth of a second is added where sound is made, hardly any else."""
    rig, draw = call(codec), Random(3)
    reference, said = AudioDecoder(RATE), Ear(RATE)
    for at, body in tags(kind, beeps):
        at = 0 if at > 1 << 31 else at
        rig.wait(max(rig.now, at / 1000 + JITTER * draw.random()))
        said.hear(reference.decode(body), rig.now)
        rig.stream.publish(AUDIO, at, body, rig.now)
    rig.wait(rig.now + 1)
    decode, heard = payload_decoder(codec), Ear(codec.sample_rate)
    for sent_at, *_, payload in rig.sent:
        heard.hear(decode(payload), sent_at)
    assert added(said.began, heard.began) < most


@pytest.mark.parametrize("codec", [PCMU, OPUS])
@pytest.mark.parametrize(("rate", "channels"), [(44_100, 1), (44_100, 2), (48_000, 2), (16_000, 1)])
def test_a_phone_hears_g711_of_another_rate_as_soon(codec, rate, channels):
    """Own design: as ffmpeg publishes it; nothing is read later while the rate is found out."""
    rig, draw, said, size = call(codec), Random(5), Ear(rate), 1024
    wave, due = beeps(rate), 0.0
    for start in range(0, len(wave) - size, size):
        piece, at = wave[start : start + size], start / rate
        due = max(due, at + JITTER * draw.random())
        said.hear(piece, due)
        rig.wait(max(rig.now, due))
        while rig.holding:  # what is not read waits in the network
            rig.wait(rig.now + JITTER)
        both = array("h", (each for each in piece for _ in range(channels)))
        rig.stream.publish(AUDIO, round(1000 * at), b"\x82" + g711.encode_ulaw(both), rig.now)
    rig.wait(rig.now + 1)
    decode, heard = payload_decoder(codec), Ear(codec.sample_rate)
    for sent_at, *_, payload in rig.sent:
        heard.hear(decode(payload), sent_at)
    assert rig.now - due < 1.1  # nothing has waited
    assert added(said.began[1:], heard.began[-len(said.began) + 1 :]) < MADE


@pytest.mark.parametrize(
    ("codec", "most"), [(PCMU, PASSING), (OPUS, MADE), (G722, MADE), (L16, MADE)]
)
def test_players_hear_a_phone_soon(codec, most):
    """Own design: as in the other direction."""
    rig, draw, came = call(codec), Random(4), []
    rig.stream.on_tag = lambda type_id, timestamp, payload, now: came.append((now, payload))
    decode, said = payload_decoder(codec), Ear(codec.sample_rate)
    made, wave = encoder(codec, 20, ""), beeps(codec.sample_rate)
    ticks, number = made.samples * codec.clock_rate // codec.sample_rate, 0
    for start in range(0, len(wave) - made.samples, made.samples):
        for payload in made.encode(wave[start : start + made.samples]):
            rig.wait(max(rig.now, start / codec.sample_rate + JITTER * draw.random()))
            said.hear(decode(payload), rig.now)
            rig.hear(number, payload, payload_type=codec.payload_type, ticks=ticks)
            number += 1
    rig.wait(rig.now + 1)
    reference, heard = AudioDecoder(RATE), Ear(RATE)
    for at, body in came:
        heard.hear(reference.decode(body), at)
    assert added(said.began, heard.began) < most

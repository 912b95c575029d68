"""A tone through a call, from each codec of publishers to each of phones, and back to players."""

from itertools import pairwise

import pytest

pytest.importorskip("av")
pytest.importorskip("numpy")

from support.gateway.leg_rig import AUDIO, Rig
from support.gateway.sound_world import HZ, KINDS, SECONDS, snr, tags, tone

from siprtmp.media.transcode.decoder import AudioDecoder
from siprtmp.media.transcode.encoder import encoder
from siprtmp.media.transcode.payload_decoder import payload_decoder
from siprtmp.media.transcode.transcoding import AvTranscoding
from siprtmp.media.translate.audio_formats import (
    G722,
    L16,
    L16_44,
    OPUS,
    PCMA,
    PCMU,
)

PHONES = {codec.name: codec for codec in (OPUS, G722, PCMU, PCMA, L16, L16_44)}
# each kind of publisher, each kind of phone, and what is sent most
PAIRS = sorted(
    {("aac", name) for name in PHONES}
    | {("ulaw", name) for name in ("opus", "g722", "l16")}
    | {(kind, list(PHONES)[at % len(PHONES)]) for at, kind in enumerate(KINDS) if kind != "ulaw"}
)


def call(codec, **options):
    """A call with a phone of this codec, on a gateway that transcodes."""
    return Rig(codec, transcode=AvTranscoding(), **options)


def publish(rig, kind):
    """The publisher's tags, each at its time."""
    for at, body in tags(kind):
        at = 0 if at > 1 << 31 else at  # before the beginning: the encoder's delay
        rig.wait(at / 1000)
        rig.leg.publish(AUDIO, at, body, rig.now)
    rig.leg.publish_ended(rig.now)
    rig.wait(SECONDS + 1)


@pytest.mark.parametrize(("kind", "name"), PAIRS)
def test_a_tone_reaches_the_phone(kind, name):
    """Covers RFC 3551 §4.2 and §4.5.2 [g722-clock], and RFC 3550 §5.1: it is in time, and pure.

    Covers RFC 3551 §4.1 [else-no-marker] and §4.5.11 [network-order].
    Covers RFC 3550 §5.1 [clock-is-even].
    """
    codec = PHONES[name]
    rig = call(codec)
    publish(rig, kind)
    decode, heard = payload_decoder(codec), []
    for *_, payload in rig.sent:
        heard += decode(payload)
    decibels, hz = snr(heard, codec.sample_rate)
    assert abs(hz - HZ) <= 1
    assert decibels > 20
    assert abs(len(heard) / codec.sample_rate - SECONDS) < 0.1
    ticks = codec.clock_rate // (100 if codec is L16_44 else 50)
    stamps = [(stamp - rig.stamps[0]) & 0xFFFFFFFF for stamp in rig.stamps]
    assert stamps == list(range(0, ticks * len(stamps), ticks))
    assert [marker for _, _, marker, *_ in rig.sent] == [True] + [False] * (len(stamps) - 1)
    steps = [after[0] - before[0] for before, after in pairwise(rig.sent)]
    assert all(0.4 * ticks / codec.clock_rate < step < 0.06 for step in steps)
    assert rig.made == [(tags(kind)[0][1][0] >> 4, name)] and not rig.unsuitable


@pytest.mark.parametrize("name", ["opus", "g722", "l16", "l16-44"])
def test_a_tone_reaches_the_players(name):
    """Covers FLV 10.1 §E.4.2.1 [aac-packet-type]: the configuration first, in the phone's time."""
    codec = PHONES[name]
    rig, made = call(codec), encoder(codec, 20, "")
    wave, number = tone(codec.sample_rate), 0
    ticks = made.samples * codec.clock_rate // codec.sample_rate
    for start in range(0, len(wave) - made.samples, made.samples):
        rig.now = start / codec.sample_rate
        for payload in made.encode(wave[start : start + made.samples]):
            rig.hear(number, payload, payload_type=codec.payload_type, ticks=ticks)
            number += 1
    (_, header), *frames = rig.tags
    assert header[:2] == b"\xaf\x00" and all(tag[:2] == b"\xaf\x01" for _, tag in frames)
    assert rig.leg.sound == (10, 48000) and rig.made == [(name, "aac")]
    decoder, heard = AudioDecoder(48000), []
    for _, tag in rig.tags:
        heard += decoder.decode(tag)
    decibels, hz = snr(heard, 48000)
    assert abs(hz - HZ) <= 1
    assert decibels > 20
    times = [at for at, _ in frames]
    assert all(20 <= after - before <= 23 for before, after in pairwise(times[3:]))
    assert abs(times[-1] - times[0] - 1000 * (len(frames) - 1) * 1024 / 48000) < 30

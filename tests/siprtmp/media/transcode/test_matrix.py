"""A tone through a call, from each codec of publishers to each of phones, and back to players."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("av")
pytest.importorskip("numpy")

from support.gateway.audio_rig import AUDIO, Rig
from support.gateway.audio_world import HZ, KINDS, SECONDS, snr, tags, tone

from p2psip.rtp.payload import g711
from siprtmp.media.session_log import sound_format_name
from siprtmp.media.transcode import libspeex
from siprtmp.media.transcode.audio_decoder import AudioDecoder
from siprtmp.media.transcode.to_rtp import encoder
from siprtmp.media.transcode.to_samples import payload_decoder
from siprtmp.media.translate.audio_formats import (
    G722,
    L16,
    L16_44,
    NARROWBAND,
    OPUS,
    PCMA,
    PCMU,
    WIDEBAND,
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
    return Rig(codec, transcode=True, **options)


def publish(rig, kind):
    """The publisher's tags, each at its time."""
    for at, body in tags(kind):
        at = 0 if at > 1 << 31 else at  # before the beginning: the encoder's delay
        rig.wait(at / 1000)
        rig.stream.publish(AUDIO, at, body, rig.now)
    rig.transcodes = rig.stream.codec_selection.transcodes
    rig.stream.publish_ended(rig.now)
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
    assert (
        rig.made == [f"{sound_format_name(tags(kind)[0][1][0] >> 4)} > {name}"]
        and not rig.unsuitable
    )
    assert rig.transcodes[0].endswith(f" > {name}") and not rig.stream.codec_selection.transcodes


@pytest.mark.parametrize("name", ["opus", "g722", "l16", "l16-44"])
def test_a_tone_reaches_the_players(name):
    """Covers FLV 10.1 §E.4.2.1 [aac-packet-type] [aac-says-stereo].

    And FLV 10.1 §E.4.2.2 [audio-specific-config] [raw-frames]; all in the phone's time.
    """
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
    assert rig.stream.audio_format == (10, 48000) and rig.made == [f"{name} > aac"]
    assert rig.stream.codec_selection.transcodes == [f"{name} > aac"]
    decoder, heard = AudioDecoder(48000), []
    for _, tag in rig.tags:
        heard += decoder.decode(tag)
    decibels, hz = snr(heard, 48000)
    assert abs(hz - HZ) <= 1
    assert decibels > 20
    times = [at for at, _ in frames]
    assert all(20 <= after - before <= 23 for before, after in pairwise(times[3:]))
    assert abs(times[-1] - times[0] - 1000 * (len(frames) - 1) * 1024 / 48000) < 30


@pytest.mark.skipif(not libspeex.is_available(), reason="apt install libspeex1")
@pytest.mark.parametrize("codec", [WIDEBAND, NARROWBAND], ids=["wideband", "narrowband"])
def test_a_tone_reaches_a_phone_of_speex_and_that_of_the_phone_the_players(codec):
    """Covers RFC 5574 §3.3: its frequency, as the codec is made for voices."""
    rig = call(codec)
    publish(rig, "aac")
    assert abs(snr(heard_of(rig, codec), codec.sample_rate)[1] - HZ) <= 2
    assert rig.made == [f"aac > {codec.name}"]
    for number, (*_, payload) in enumerate(rig.sent[:20]):
        rig.hear(number, payload, payload_type=codec.payload_type, ticks=codec.clock_rate // 50)
    assert [tag for _, tag in rig.tags] == [b"\xb2" + payload for *_, payload in rig.sent[:20]]


def test_a_file_is_made_as_fast_as_it_is_heard():
    """Own design: a publisher that is faster than time is held back, as when nothing is made."""
    rig, waiting = call(OPUS), list(tags("aac"))
    while waiting or rig.holding:
        if waiting and not rig.holding:
            at, body = waiting.pop(0)
            rig.stream.publish(AUDIO, 0 if at > 1 << 31 else at, body, rig.now)
        else:
            rig.wait(rig.stream.deadline)
    assert SECONDS - 0.7 < rig.now < SECONDS
    rig.stream.publish_ended(rig.now)
    rig.wait(SECONDS + 1)
    assert rig.drained == 1 and abs(len(rig.sent) - 50 * SECONDS) <= 4
    assert abs(rig.sent[-1][0] - SECONDS) < 0.1


def g711_tags(rate, channels, cut):
    """The tone as u-law of any rate in tags of `cut` octets, as ffmpeg marks it: always 0x82."""
    frames = [sample for sample in tone(rate) for _ in range(channels)]
    octets = g711.encode_ulaw(frames)
    for start in range(0, len(octets), cut):
        at = start * 1000 // (rate * channels)
        yield at, b"\x82" + octets[start : start + cut]


def heard_of(rig, codec):
    decode, heard = payload_decoder(codec), []
    for *_, payload in rig.sent:
        heard += decode(payload)
    return heard


@pytest.mark.parametrize("codec", [PCMU, OPUS], ids=["pcmu", "opus"])
@pytest.mark.parametrize(
    ("rate", "channels", "cut"),
    [(44100, 2, 2048), (44100, 1, 1024), (16000, 1, 320), (22050, 2, 882), (11025, 1, 2048)],
)
def test_g711_of_another_rate_is_heard_as_fast_as_it_was_said(codec, rate, channels, cut):
    """Covers FLV 10.1 §E.4.2.1: 8 kHz, whatever a publisher sends as G.711."""
    rig = call(codec)
    for at, body in g711_tags(rate, channels, cut):
        rig.wait(at / 1000)
        rig.stream.publish(AUDIO, at, body, rig.now)
    rig.stream.publish_ended(rig.now)
    rig.wait(2 * SECONDS)
    assert rig.sent[-1][0] < SECONDS + 0.3 and rig.drained == 1
    last = [0] * (codec.sample_rate // 2) + heard_of(rig, codec)[-codec.sample_rate :]
    decibels, hz = snr(last, codec.sample_rate)
    assert abs(hz - HZ) <= 1 and decibels > 10
    assert f"g711_mu_law > {codec.name}" in rig.made and rig.stream.codec_selection.g711_rate == 0
    for at in range(0, 400, 20):  # another publisher's is of 8 kHz again
        rig.stream.publish(AUDIO, at, b"\x82" + bytes(160), rig.now)
    assert codec is not PCMU or rig.made == ["g711_mu_law > pcmu"]


def test_without_the_extra_g711_of_another_rate_is_said_and_not_played():
    """Covers FLV 10.1 §E.4.2.1."""
    rig = Rig(PCMU)
    for at, body in g711_tags(44100, 2, 2048):
        rig.wait(at / 1000)
        rig.stream.publish(AUDIO, at, body, rig.now)
    assert rig.unsuitable == [8] and len(rig.sent) < 30
    rig.stream.publish_ended(rig.now)
    sent = len(rig.sent)
    for at in range(0, 400, 20):
        rig.now += 0.02
        rig.stream.publish(AUDIO, at, b"\x82" + bytes(160), rig.now)
    assert len(rig.sent) >= sent + 19


@pytest.mark.parametrize("codec", [PCMU, L16], ids=["pcmu", "l16"])
@pytest.mark.parametrize("fast", [-2000, 2000])
def test_a_publishers_clock_that_is_fast_or_slow_makes_nobody_late(codec, fast):
    """Own design: what 100 ppm do in half an hour, 180 ms, is absorbed on the way."""
    rig, late = call(codec, media_timeout=1000.0), []
    for number in range(4500):
        at = number * 0.02 / (1 + fast / 1_000_000)
        rig.wait(at)
        before = len(rig.sent)
        rig.stream.publish(AUDIO, 20 * number, b"\x82" + b"u" * 160, at)
        late.append(len(rig.sent) - before)
    sent = len(rig.sent)
    rig.wait(rig.now + 2)
    assert len(rig.sent) - sent <= 3  # what waited in the end: 60 ms at most
    assert abs(len(rig.sent) - 4500) <= 3
    steps = [after[0] - before[0] for before, after in pairwise(rig.sent)]
    assert max(steps) < 0.05 and len(rig.stream.codec_selection.transcodes) == (codec is L16)


@pytest.mark.parametrize("lost", [1, 3, 8, 30])
def test_what_the_network_lost_takes_its_time_and_fades(lost):
    """Covers RFC 6716 §4.4 [loss-concealment]: a short loss is filled up with the last packet,
    fainter; a long one is a gap.
    """
    rig, made = call(G722), encoder(G722, 20, "")
    wave = tone(16000)
    for number in range(80):
        payload = made.encode(wave[320 * number : 320 * number + 320])[0]
        rig.now = number / 50
        if not 40 <= number < 40 + lost:
            rig.hear(number, payload, payload_type=9, ticks=160)
        rig.wait(rig.now)
    rig.wait(rig.now + 1)
    times = [at for at, _ in rig.tags[1:]]
    assert 1450 < times[-1] - times[0] <= 1600
    assert all(before <= after for before, after in pairwise(times))
    decoder, heard = AudioDecoder(48000), []
    for _, tag in rig.tags:
        heard += decoder.decode(tag)
    seconds = len(heard) / 48000
    if lost <= 8:
        assert abs(seconds - 1.6) < 0.06
        hole = heard[int(0.83 * 48000) :][: 960 * lost]
        assert 2000 < max(hole[:480]) < 10_000
        assert lost < 8 or max(map(abs, hole[-2880:-960])) < 500
    else:
        assert abs(seconds - 1.0) < 0.06


@given(st.lists(st.tuples(st.sampled_from([9, 111, 112, 0]), st.binary(max_size=300))))
def test_any_payload_is_sound_or_nothing(payloads):
    """Never a crash, and half a second at most for a payload."""
    rig = Rig(OPUS, G722, L16, PCMU, transcode=True)
    for number, (payload_type, payload) in enumerate(payloads):
        rig.hear(number, payload, payload_type=payload_type)
    assert all(tag[0] in (0xAF, 0x82) for _, tag in rig.tags)
    assert len(rig.tags) <= 1 + 30 * len(payloads)

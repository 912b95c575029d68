"""Sound on its time line, and WAV files as other programs write them."""

import wave
from array import array

import pytest

from p2psip.errors import LocalError
from p2psip.net.phone.wav import LAWS, Recording, read_wav, write_wav

LOUD = b"\x00" * 160  # the loudest negative sample of mu-law


@pytest.fixture
def recording():
    return Recording()


def test_payloads_follow_each_other_whatever_the_first_timestamp(recording):
    places = [recording.add(LOUD, (2**32 - 160 + 160 * n) % 2**32) for n in range(3)]
    assert places == [0, 160, 320]
    assert len(recording.samples) == 480 and recording.missing == 0
    assert set(recording.samples) == {-32124}


def test_what_is_missing_is_silence(recording):
    """Covers RFC 3550 §5.1."""
    recording.add(LOUD, 1000)
    assert recording.add(LOUD, 1000 + 480) == 480
    assert recording.missing == 320
    assert set(recording.samples[160:480]) == {0}


def test_rounded_clocks_leave_no_seam(recording):
    for at in (0, 168, 312, 480):
        recording.add(LOUD, at)
    assert len(recording.samples) == 640 and recording.missing == 0


@pytest.mark.parametrize("at", [10_000_000, 2**32 - 10_000_000])
def test_another_stream_just_follows(recording, at):
    recording.add(LOUD, 0)
    assert recording.add(LOUD, at) == 160
    assert recording.missing == 0


@pytest.mark.parametrize("law", sorted(LAWS))
def test_both_laws_are_read_as_they_are_written(law):
    encode, _ = LAWS[law]
    recording = Recording(law)
    recording.add(encode([0, 8000, -8000]), 0)
    for sample, heard in zip([0, 8000, -8000], recording.samples, strict=True):
        assert abs(sample - heard) < 300


def test_a_wav_file_is_read_as_it_was_written(tmp_path):
    samples = array("h", [0, 1, -1, 32767, -32768])
    write_wav(tmp_path / "a.wav", samples)
    assert read_wav(tmp_path / "a.wav") == samples
    assert (tmp_path / "a.wav").read_bytes()[-10:-6] == b"\x00\x00\x01\x00"  # little-endian


def test_other_forms_are_refused_with_a_reason(tmp_path):
    path = tmp_path / "cd.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(2)
        file.setframerate(44100)
        file.writeframes(bytes(8))
    with pytest.raises(LocalError, match="44100 Hz, 2 channel"):
        read_wav(path)


@pytest.mark.parametrize("data", [None, b"", b"RIFF", b"no wave at all"])
def test_what_is_no_wav_file(tmp_path, data):
    path = tmp_path / "bad.wav"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(LocalError, match=r"bad\.wav: ."):
        read_wav(path)


def test_a_file_that_cannot_be_written(tmp_path):
    with pytest.raises(LocalError, match="No such file"):
        write_wav(tmp_path / "absent" / "a.wav", array("h"))

"""Recognising a tone: the right one, a neighbour, noise, silence, and one with a hole in it."""

import random
from array import array

import pytest

from p2psip.rtp.payload import g711
from siprtmp.demo.tones import FRAME, WINDOW, Tone, judge, loudest


def sound(hz, frames=50):
    samples = array("h")
    for number in range(frames):
        samples.extend(g711.decode_ulaw(Tone(hz).frame(number)))
    return samples


@pytest.mark.parametrize("hz", [300, 440, 660, 1000, 3300])
def test_a_tone_is_recognised_in_every_window(hz):
    heard = judge(sound(hz), hz)
    assert (heard.windows, heard.right, heard.loudest) == (10, 10, hz)


@pytest.mark.parametrize("off", [-20, -5, 5, 20, 220])
def test_a_neighbour_is_another_tone(off):
    assert judge(sound(660 + off), 660).right == 0


def test_the_loudest_tells_what_was_heard_instead():
    assert judge(sound(440), 660).loudest == 440


def test_silence_and_noise_are_no_tone():
    dice = random.Random(1)
    noise = array("h", (dice.randrange(-8000, 8000) for _ in range(8 * WINDOW)))
    assert judge(noise, 660).right == 0
    quiet = array("h", bytes(2 * WINDOW))
    assert judge(quiet, 660).right == 0 == loudest(quiet)


def test_a_frame_lost_spoils_its_window():
    samples = sound(660)
    del samples[WINDOW + 100 : WINDOW + 100 + FRAME // 3]
    assert judge(samples, 660).right == len(samples) // WINDOW - 1


def test_a_hole_spoils_its_window():
    samples = sound(660)
    samples[2 * WINDOW : 2 * WINDOW + 2 * FRAME] = array("h", bytes(4 * FRAME))
    assert judge(samples, 660).right == 9


def test_nothing_has_no_windows():
    assert judge(array("h"), 660).windows == 0

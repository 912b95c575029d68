"""A video sender that heeds requests: packets again, and key frames as often as is good."""

from random import Random

from p2psip.rtp.feedback import Fir, Nack, OtherFeedback, Pli, RateLimit, Tmmb
from p2psip.rtp.rtcp import Bye
from p2psip.rtp.video_sender import KEY_FRAME_SECONDS, MAX_COMMANDERS, VideoSender

OURS, THEIRS = 7, 9


def filming():
    wanted = []
    sender = VideoSender(OURS, 90000, Random(1).randbytes, lambda: wanted.append(True))
    return sender, wanted


def number_of(packet):
    return int.from_bytes(packet[2:4], "big")


def test_packets_are_sent_again_as_they_were():
    """Covers RFC 4585 §6.2.1: of this stream alone.

    Covers RFC 4585 §4.2 [reacts-to-what-is-agreed] [other-feedback-discarded].
    """
    sender, wanted = filming()
    packets = [sender.send(96, bytes([each]) * 50, each, True, 0.1) for each in range(4)]
    lost = [number_of(packets[1]), number_of(packets[3])]
    assert sender.on_feedback(Nack.of(THEIRS, OURS, lost), 0.2) == [packets[1], packets[3]]
    assert sender.packets_sent == 4 and sender.resends.repeated == 2
    others = [Nack.of(THEIRS, 8, lost), Pli(THEIRS, 8), Fir(THEIRS, ((8, 1),)), Bye((THEIRS,))]
    unknown = Tmmb(THEIRS, (RateLimit.of(OURS, 64000),)), OtherFeedback(206, 15, THEIRS, OURS)
    assert [sender.on_feedback(each, 1.0) for each in (*others, *unknown)] == [
        []
    ] * 6 and not wanted


def test_a_new_source_sends_no_packet_of_the_old():
    """Covers RFC 3550 §8.2."""
    sender, _ = filming()
    packet = sender.send(96, b"x", 0, True, 0.0)
    sender.take_ssrc()
    assert sender.on_feedback(Nack.of(THEIRS, sender.ssrc, [number_of(packet)]), 0.1) == []


def test_a_key_frame_is_wanted_at_once_and_then_not_too_often():
    """Covers RFC 4585 §4.2 [reacts-to-what-is-agreed], §6.3.1.

    Covers RFC 4585 §6.3.1.1 [pli-heeds-congestion], RFC 5104 §4.3.1.2 [refresh-heeds-congestion].
    """
    sender, wanted = filming()
    for _ in range(3):
        sender.on_feedback(Pli(THEIRS, OURS), 1.0)
    assert len(wanted) == 1 and sender.deadline == 1.0 + KEY_FRAME_SECONDS
    sender.tick(1.5)
    assert len(wanted) == 1
    sender.tick(sender.deadline)
    assert len(wanted) == 2 and sender.deadline is None
    sender.tick(9.0)
    sender.on_feedback(Pli(THEIRS, OURS), 10.0)
    assert len(wanted) == 3


def test_a_command_that_is_repeated_is_one_command():
    """Covers RFC 5104 §4.3.1.1 [repetition-keeps-its-number] and §4.3.1.2 [refresh-on-fir]."""
    sender, wanted = filming()
    for now, number in ((1.0, 255), (5.0, 255), (9.0, 0), (13.0, 0)):
        sender.on_feedback(Fir(THEIRS, ((OURS, number),)), now)
    assert len(wanted) == 2
    sender.on_feedback(Fir(THEIRS + 1, ((8, 4), (OURS, 0))), 17.0)  # of another viewer
    assert len(wanted) == 3


def test_commanders_are_bounded():
    """Own design: who invents sources takes no memory."""
    sender, wanted = filming()
    for each in range(10 * MAX_COMMANDERS):
        sender.on_feedback(Fir(each, ((OURS, 0),)), each * 5.0)
        assert len(sender._commands) <= MAX_COMMANDERS
    assert len(wanted) == 10 * MAX_COMMANDERS

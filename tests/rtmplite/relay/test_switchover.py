"""What two servers that play the same have in common, and where one leaves off."""

from rtmplite.relay.switchover import PlayedPosition, StandbyBuffer
from rtmplite.rtmp.wire.message import MessageType

AUDIO, VIDEO = MessageType.AUDIO, MessageType.VIDEO
HEADER, KEY, FRAME, SOUND = b"\x17\0", b"\x17\1", b"\x27\1", b"\xb2"


def gone_over(*messages):
    """What was passed on, and now another server plays."""
    passed = PlayedPosition()
    for message in messages:
        passed.note(*message, 0.0)
    passed.go_over()
    return passed


def repeated(passed, *messages):
    return [passed.is_repeated(*message, 0.0) for message in messages]


def test_the_next_server_repeats_up_to_where_the_one_before_came():
    """Covers E-RTMP v2 §"Message Flow When Handling NetConnection.Connect.ReconnectRequest"
    [leave-at-boundary]: each medium by itself, but for the headers that its decoder needs.
    """
    passed = gone_over((VIDEO, 20, KEY), (VIDEO, 60, FRAME), (AUDIO, 45, SOUND))
    assert repeated(passed, (VIDEO, 20, HEADER), (VIDEO, 20, KEY), (AUDIO, 45, SOUND)) == [
        *(False, True, True)
    ]
    assert repeated(passed, (AUDIO, 61, SOUND), (VIDEO, 60, FRAME)) == [False, True]
    assert repeated(passed, (VIDEO, 80, FRAME), (VIDEO, 60, FRAME)) == [False, False]


def test_another_time_line_repeats_nothing():
    """Own design: what is far before is no repetition."""
    passed = gone_over((VIDEO, 100_000, KEY))
    assert repeated(passed, (VIDEO, 20, KEY), (AUDIO, 20, SOUND)) == [False, False]


def test_the_old_server_is_left_where_its_pictures_come_to_the_beginning():
    """Covers E-RTMP v2 §"Message Flow When Handling NetConnection.Connect.ReconnectRequest"
    [leave-at-boundary]: sound that runs ahead of them is no reason to miss the last of them.
    """
    ahead, passed = StandbyBuffer(), PlayedPosition()
    ahead.take(VIDEO, 60, KEY, passed, 0.0)
    assert ahead.begin == (VIDEO, 60)
    assert not ahead.meets(AUDIO, 75, SOUND, 0.0) and not ahead.meets(VIDEO, 20, KEY, 0.0)
    assert not ahead.meets(VIDEO, 40, FRAME, 0.0)
    assert ahead.meets(VIDEO, 60, KEY, 0.0)

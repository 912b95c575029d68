"""The end of a run: what was left out."""

from support.skips import summary


def test_nothing_left_out_is_not_worth_a_line():
    assert list(summary({})) == []


def test_a_program_more_is_no_line_more():
    reasons = {
        "sipp is not installed: apt-get install sip-tester, or make peers": 30,
        "ffmpeg is not installed: apt-get install ffmpeg, or make peers": 12,
        "specs is absent; set RFC_SPECS to a copy": 7,
    }
    assert list(summary(reasons)) == [
        "49 tests are skipped; -rs says which:",
        "    42 for programs (make peers): ffmpeg, sipp",
        "     7 specs is absent; set RFC_SPECS to a copy",
    ]


def test_many_reasons_take_five_lines():
    lines = list(summary({f"reason {number}": 10 - number for number in range(9)}))
    assert len(lines) == 5
    assert lines[1] == "    10 reason 0" and lines[-1] == "    27 for 6 other reasons"

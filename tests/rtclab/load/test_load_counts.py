"""The usual packets of viewers, counted in Python and in C: the same of both."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.pump.built import built

from p2psip.rtp.fast import pack_fixed
from rtclab.load.clients.datagrams import AT_ONCE, Batch
from rtclab.load.clients.line_count import PlainLineCount, plain_pass_usual

VIDEO, AUDIO, SSRC = 102, 111, 7
PLAIN = SimpleNamespace(LineCount=PlainLineCount, pass_usual=plain_pass_usual)
FIGURES = ("ssrc", "next", "timestamp", "ticks", "run", "markers", "jitter", "last")


_MADE = []


def built_once():
    """The form in C, compiled once for all tests."""
    _MADE[:] = _MADE or [built("_usual", "rtclab.load.clients")]
    return _MADE[0]


@pytest.fixture(params=["in Python", pytest.param("in C", marks=pytest.mark.needs("gcc"))])
def form(request):
    return PLAIN if request.param == "in Python" else built_once()


def begun(form):
    """A line of video and one of audio, whose next packets are those with number 65533."""
    made = {}
    for number, rate in ((VIDEO, 90_000), (AUDIO, 48_000)):
        made[number] = line = form.LineCount(rate)
        line.ssrc, line.next, line.timestamp, line.last = SSRC, 65533, 0xFFFFFF00, 100.0
        line.is_new = False
    return made


def filled(packets):
    """A batch of packets, each with the time at which it came."""
    batch = Batch()
    for place, (data, at) in enumerate(packets):
        batch.keep(place, data, at)
        batch.count = place + 1
    return batch


def counted(form, packets, lines=None):
    """Have a batch counted; the lines, the places of what is not usual, and what was returned."""
    lines = lines or begun(form)
    by_second = [lines.get(second & 0x7F) for second in range(256)]
    batch, place, others, returned = filled(packets), 0, [], []
    buffers = batch._heads, batch._messages, batch._times
    while True:
        found = form.pass_usual(*buffers, place, batch.count, by_second, 0.5)
        returned.append(found)
        if found[0] >= batch.count:
            return lines, others, returned
        others.append(found[0])
        place = found[0] + 1


def packet(number, second=VIDEO, timestamp=0, ssrc=SSRC, first=0x80, size=100):
    return pack_fixed(first, second, number & 0xFFFF, timestamp & 0xFFFFFFFF, ssrc) + bytes(size)


def test_those_that_follow_each_other_are_counted_across_the_wraps(form):
    sent = [
        (packet(65533 + at, VIDEO | 128 * (at % 3 == 2), 0xFFFFFF00 + at // 3 * 3600), 10**9 * at)
        for at in range(9)
    ]
    lines, others, [(place, size, last)] = counted(form, sent)
    video = lines[VIDEO]
    assert not others and (place, size, last) == (9, 9 * 112, 8.5)
    assert (video.run, video.markers, video.next) == (9, 3, 6)
    assert (video.ticks, video.last) == (7200, 8.5) and lines[AUDIO].run == 0


@pytest.mark.parametrize(
    "odd",
    [
        packet(65534, ssrc=8),
        packet(65535),
        packet(65533),
        packet(65534, second=96),
        packet(65534, second=200),
        packet(65534, first=0x16),
        packet(65534)[:11],
        b"",
    ],
)
def test_what_is_not_usual_is_left_where_it_stands(form, odd):
    sent = [(packet(65533), 0), (odd, 0), (packet(65534), 0)]
    lines, others, _ = counted(form, sent)
    assert others == [1] and lines[VIDEO].run == 2


def test_a_line_that_has_shown_nothing_is_looked_at(form):
    lines = begun(form)
    lines[VIDEO].is_new = True
    assert counted(form, [(packet(65533), 0)], lines)[1] == [0]


@pytest.mark.needs("gcc")
@given(
    st.lists(
        st.tuples(
            st.sampled_from([0, 0, 0, 1, -1]),  # how far a number is from what is due
            st.sampled_from([VIDEO, VIDEO | 128, AUDIO, AUDIO | 128, 5]),
            st.integers(0, 0xFFFFFFFF),
            st.sampled_from([SSRC, SSRC, SSRC, 0xFFFFFFFF]),
            st.integers(0, 2 * 10**9),
        ),
        max_size=AT_ONCE,
    )
)
def test_both_forms_count_the_same(drawn):
    form, due, sent, at = built_once(), {VIDEO: 65533, AUDIO: 65533}, [], 0
    for off, second, timestamp, ssrc, gap in drawn:
        at += gap
        number = due.get(second & 0x7F, 0) + off
        due[second & 0x7F] = number + 1
        sent.append((packet(number, second, timestamp, ssrc), at))
    found = [counted(each, sent) for each in (PLAIN, form)]
    figures = [
        [[getattr(line, name) for name in FIGURES] for line in lines.values()]
        for lines, _, _ in found
    ]
    assert figures[0] == figures[1]
    assert found[0][1:] == found[1][1:]


@pytest.mark.needs("gcc")
def test_a_count_that_is_not_that_of_the_buffers_is_refused():
    form = built_once()
    for count, lines in ((AT_ONCE + 1, [None] * 256), (1, [None])):
        batch = Batch()
        with pytest.raises(ValueError, match="no batch"):
            form.pass_usual(batch._heads, bytes(64), batch._times, 0, count, lines, 0.0)

"""The RTMP cases themselves: their citations, their target, and how they see chunks."""

import tomllib
from pathlib import Path

import gevent
import pytest
from gevent import socket
from hypothesis import given
from hypothesis import strategies as st
from support.peers.process import free_port

from rtclab.conform import command
from rtclab.conform.case import Unreachable
from rtclab.conform.rtmp import SUITE
from rtclab.conform.rtmp.chunks_seen import chunk, chunks_seen
from rtclab.conform.rtmp.peer import connect, reach
from rtclab.conform.runner import Outcome, Result
from rtmplite.rtmp.wire.chunk_reader import ChunkReader
from rtmplite.rtmp.wire.chunk_writer import ChunkWriter
from rtmplite.rtmp.wire.message import Message

CATALOGUE = Path(__file__).resolve().parents[3] / "rfc_annotations" / "requirements"


def test_each_slug_is_in_the_catalogue():
    known = {
        (spec["spec"], each["section"], each["slug"])
        for spec in (tomllib.loads(path.read_text()) for path in CATALOGUE.glob("*.toml"))
        for each in spec.get("requirement", ())
    }
    named = {(each.spec, each.section, each.slug) for each in SUITE.cases if each.slug}
    assert named - known == set()
    assert len(named) > 60


def test_names_tell_cases_apart():
    names = [each.name for each in SUITE.cases]
    assert len(set(names)) == len(names) > 160
    assert SUITE.roles == ("server",)


def test_a_may_never_counts():
    case = next(each for each in SUITE.cases if each.level == "MAY")
    assert not Result(case, Outcome.UNMET).fails(strict=True)


def test_sections_without_a_number_are_chosen_by_their_heading():
    assert len(command.chosen(SUITE, None, "Enhanced Video")) > 5


@pytest.mark.parametrize(
    "wrong", ["sip:bob@127.0.0.1", "rtmp://127.0.0.1", "rtmp:///live", "rtmp://[::1/live", ""]
)
def test_what_is_no_target(wrong):
    with pytest.raises(ValueError, match=r"\w"):
        connect(wrong)


def test_nobody_there():
    with pytest.raises(Unreachable):
        reach(f"rtmp://127.0.0.1:{free_port()}/live")


def test_nobody_who_speaks_rtmp():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        deaf = gevent.spawn(lambda: server.accept()[0].close())
        with pytest.raises(Unreachable, match=r"no handshake"):
            reach(f"rtmp://127.0.0.1:{server.getsockname()[1]}/live")
        deaf.get()


messages = st.builds(
    Message,
    st.sampled_from([8, 9, 18, 20]),
    st.integers(0, 2**32 - 1),
    st.integers(0, 9),
    st.binary(max_size=700),
)


@given(st.lists(st.tuples(messages, st.sampled_from([2, 3, 64, 400])), max_size=9), st.data())
def test_chunks_are_seen_as_they_were_written(sent, data):
    """Each piece has the type and stream of its message; what is cut is seen up to there."""
    writer = ChunkWriter()
    raw, wanted = b"", []
    for message, chunk_stream in sent:
        if data.draw(st.booleans()):
            raw += writer.set_chunk_size(data.draw(st.integers(4, 500)))  # told in one chunk
            wanted.append((1, 0, 2, True))
        raw += writer.write(message, chunk_stream)
        starts = range(0, max(len(message.payload), 1), writer.chunk_size)
        wanted += [(message.type_id, message.stream_id, chunk_stream, at == 0) for at in starts]
    seen = list(chunks_seen(raw))
    assert [(each.type_id, each.stream_id, each.chunk_stream, each.starts) for each in seen] == (
        wanted
    )
    assert len({each.chunk_stream for each in seen}) == sum(each.is_new for each in seen)
    cut = raw[: data.draw(st.integers(0, len(raw)))]
    assert list(chunks_seen(cut)) == seen[: len(list(chunks_seen(cut)))]


def test_extended_times_are_seen():
    writer = ChunkWriter()
    raw = writer.write(Message(9, 0x1234567, 1, bytes(300)), 6)
    assert [each.extended.hex() for each in chunks_seen(raw)] == ["01234567"] * 3
    assert [each.limit for each in chunks_seen(raw)] == [128] * 3


@given(st.sampled_from([3, 64, 400]), st.binary(min_size=1, max_size=100))
def test_chunks_of_any_type_are_read(chunk_stream, body):
    """What `chunk` writes is what our reader reads."""
    raw = chunk(0, chunk_stream, body, time=1000, type_id=8, stream_id=7)
    raw += chunk(1, chunk_stream, body, time=20, type_id=8) + chunk(2, chunk_stream, body, time=20)
    raw += chunk(3, chunk_stream, body)
    raw += chunk(0, chunk_stream, body, time=0xFFFFFF, type_id=8, stream_id=7, extended=0x1000000)
    times = (1000, 1020, 1040, 1060, 0x1000000)
    assert ChunkReader().feed(raw) == [Message(8, time, 7, body) for time in times]

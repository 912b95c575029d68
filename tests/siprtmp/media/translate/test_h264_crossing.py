"""Pictures cross between FLV and RTP unchanged, or not at all."""

import subprocess

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.gateway.h264_world import (
    AUD,
    HEADER,
    SEI,
    SETS,
    read,
    slice_of,
    tag_of,
)
from support.mutations import mutations
from support.peers.peers import frame_hashes
from support.peers.process import require

from p2psip.rtp.payload.h264_access_units import AccessUnit, AccessUnitAssembler
from p2psip.rtp.payload.h264_unpacker import H264Unpacker
from rtmplite.flv.file import read_flv, write_flv
from rtmplite.flv.tag import Tag, TagType
from rtmplite.flv.video import FrameType, VideoTag, is_key_frame
from rtmplite.strategies.avc import avc_units
from siprtmp.media.translate.conversion import UnsuitableError
from siprtmp.media.translate.flv_to_video import FlvToH264
from siprtmp.media.translate.video_to_flv import H264ToFlv


def cross(bodies, mode=1, size=1200, lost=()):
    """What comes back of (time, tag body) that go to RTP and from there to FLV again."""
    there, back = FlvToH264(mode, size), H264ToFlv()
    unpacker, assembler = H264Unpacker(), AccessUnitAssembler()
    sequence, tags = 0, []
    for time, body in bodies:
        for packet in there.convert(body, time):
            sequence += 1
            if sequence in lost:
                continue
            ticks = packet.ticks & 0xFFFFFFFF
            for item in unpacker.push(sequence, ticks, packet.marker, packet.payload):
                for picture in assembler.push(item):
                    tags += back.convert(picture, time)
    return tags


@st.composite
def recordings(draw):
    """A publisher's tags; each slice has a number, and so each picture its own slices."""
    bodies, number, composition = [(0, HEADER)], 0, draw(st.sampled_from([0, 40]))
    for at in range(1, draw(st.integers(3, 12))):
        is_key = at == 1 or draw(st.integers(0, 3)) == 0
        slices = []
        for first in range(draw(st.integers(1, 4))):
            number += 1
            filling = b"\x55" * draw(st.sampled_from([0, 3, 60]))
            slices.append(slice_of(5 if is_key else 1, number, first=first, filling=filling))
        others = draw(st.lists(st.sampled_from([AUD, SEI]), max_size=2))
        kind = FrameType.KEY if is_key else FrameType.INTER
        bodies.append((40 * at, tag_of(kind, [*others, *slices], composition)))
    return bodies


def slices_in(tags):
    return [units for _, kind, units in read(tags) if kind != "sets"]


def sent_in(bodies):
    out = slices_in(bodies)
    return [tuple(u for u in units if u not in (AUD, SEI)) for units in out]


@given(recordings(), st.integers(12, 200))
def test_pictures_that_crossed_are_the_same(bodies, size):
    """Covers FLV 10.1 §E.4.3.2 [full-frames]: each with its slices, in their order."""
    assert slices_in(cross(bodies, size=size)) == sent_in(bodies)
    assert slices_in(cross(bodies, mode=0)) == sent_in(bodies)


@given(recordings(), st.integers(12, 60), st.sets(st.integers(0, 60), max_size=8))
def test_with_losses_only_pictures_pass_that_can_be_decoded(bodies, size, losses):
    """Own design: each is whole, and so is each one since its key frame."""
    sent = sent_in(bodies)
    came = slices_in(cross(bodies, size=size, lost=losses))
    event(f"{100 * len(came) // len(sent) // 25}/4 came")
    places = [sent.index(each) for each in came]  # whole, or this raises
    assert places == sorted(places)
    for before, at in zip([-1, *places], places, strict=False):
        assert at == before + 1 or sent[at][0][0] & 0x1F == 5


@given(
    st.lists(
        st.tuples(
            st.integers(0, 1 << 32),
            mutations(st.sampled_from([HEADER]) | recordings().map(lambda all_: all_[-1][1]))
            | st.binary(max_size=40),
        ),
        max_size=8,
    ),
    st.sampled_from([0, 1]),
)
def test_any_tags_make_packets_of_what_came(tags, mode):
    """Covers FLV 10.1 §E.4.3.1: nothing but UnsuitableError, and no more than sets and pictures."""
    machine, came = FlvToH264(mode, 60), 0
    for time, body in tags:
        came += len(body)
        try:
            packets = machine.convert(body, time)
        except UnsuitableError:
            event("unsuitable")
            continue
        assert sum(len(each.payload) for each in packets) <= 3 * came
        assert all(len(each.payload) <= 60 for each in packets)


@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from([*SETS, slice_of(5), slice_of(1)]) | avc_units(), max_size=5),
            st.integers(0, (1 << 32) - 1),
            st.booleans(),
        ),
        max_size=10,
    )
)
def test_any_pictures_make_tags_in_order(pictures):
    """Covers FLV 10.1 §E.4.3.1 [composition-time]: whatever the clock of the phone does."""
    machine = H264ToFlv()
    tags = []
    for at, (units, timestamp, damaged) in enumerate(pictures):
        tags += machine.convert(AccessUnit(tuple(units), timestamp, damaged), at)
    assert [at for at, _ in tags] == sorted(at for at, _ in tags)
    came = sum(len(unit) + 9 for units, _, _ in pictures for unit in units)
    assert sum(len(body) for _, body in tags) <= (len(tags) + 1) * (came + 40)
    event(f"{len(read(tags))} tags")


@pytest.mark.parametrize(
    "name",
    [
        *("seed_320x240_12fps_h264_speex16k_10s", "h264_slices4_speex16k", "red5_flashContent1"),
        *("h264_720p30_bf3_aac44k_30s", "red5_h264_speex", "mona_Video"),
    ],
)
def test_recorded_streams_cross(corpus, name):
    """Covers FLV 10.1 §E.4.3.2 [full-frames]: of OBS's encoder, of Flash Player, with B-frames."""
    _, tags = read_flv((corpus / f"flv/{name}.flv").read_bytes())
    bodies = [(each.timestamp, each.data) for each in tags if each.tag_type == TagType.VIDEO]
    begin = next(at for at, body in bodies if is_key_frame(body))
    pictures = [(at, body) for at, body in bodies if at >= begin and body[1] == 1]
    came = cross(bodies)
    expected = [tuple(u for u in units if u[0] & 0x1F in (1, 5)) for units in slices_in(pictures)]
    assert slices_in(came) == expected
    shown = [at + VideoTag.parse(body).composition_time for at, body in pictures]
    back = [at + VideoTag.parse(body).composition_time for at, body in came if body[1] == 1]
    assert {at - there for at, there in zip(back, shown, strict=True)} <= {
        back[0] - shown[0] + each for each in (-1, 0, 1)
    }


@pytest.fixture(scope="module")
def movie(tmp_path_factory):
    """Two seconds with B-frames, four slices a picture, and parameter sets in the header alone."""
    path = tmp_path_factory.mktemp("movie") / "source.flv"
    source = "testsrc=size=320x240:rate=25:duration=2,format=yuv420p"
    words = f"-nostdin -loglevel error -f lavfi -i {source} -c:v libx264 -preset veryfast"
    words = [*words.split(), *["-threads", "1", "-bf", "2", "-g", "20", "-slices", "4"], path]
    done = subprocess.run([require("ffmpeg", "ffmpeg"), *words], capture_output=True)
    assert done.returncode == 0, done.stderr
    return path


@pytest.mark.parametrize("mode", [0, 1])
def test_a_real_decoder_sees_every_picture(movie, tmp_path, mode):
    """Covers FLV 10.1 §E.4.3.2 [full-frames] [decoder-configuration]: as ffmpeg decodes it."""
    _, tags = read_flv(movie.read_bytes())
    bodies = [(each.timestamp, each.data) for each in tags if each.tag_type == TagType.VIDEO]
    came = cross(bodies, mode, 1200 if mode else 65000)
    path = tmp_path / "back.flv"
    path.write_bytes(write_flv([Tag(TagType.VIDEO, at, body) for at, body in came]))
    assert frame_hashes(path) == frame_hashes(movie)

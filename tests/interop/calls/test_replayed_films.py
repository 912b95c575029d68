"""Films that phones once sent, for a player that comes late: it decodes all from a key frame on.

The packets are shown again as a phone's, with sequence numbers and RTP times that wrap on the way.
"""

import struct
import subprocess
import time
import zlib
from itertools import accumulate, groupby, pairwise

import pytest
from support.peers import numbered_frames
from support.peers.peers import Ffmpeg
from support.peers.process import require
from support.peers.replay_phone import ReplayPhone, filmed, recorded, units

from rtmplite.flv.avc import SequenceParameters

SETS = (7, 8)
PROBED = 15  # pictures, more than ffmpeg reads before it begins
SIZE = 320 * 240  # octets of a picture in grey


def slices_in_fragments(corpus, folder):
    """ffmpeg, four slices a picture: FU-A, and STAP-A with the parameter sets."""
    return recorded(corpus / "pcap/rtp/h264_fua_stapa_4slices.pcap", 20000)


def sets_sent_once(corpus, folder):
    """GStreamer, each slice a packet; the parameter sets are sent before the first picture only."""
    packets = recorded(corpus / "pcap/rtp/h264_single_nal_multislice.pcap", 20004)
    kinds = [each.payload[0] & 31 for each in packets]
    begun = accumulate((kind == 5 for kind in kinds), max, initial=False)
    return [
        each
        for each, kind, late in zip(packets, kinds, begun, strict=False)
        if kind not in SETS or not late
    ]


def aggregates(corpus, folder):
    """GStreamer, two slices a picture in STAP-A, as in the call of the founding article."""
    return recorded(corpus / "pcap/sip/sip_call_av_speex16k_h264.pcap", 23202)


def b_frames(corpus, folder):
    """x264 with two B-frames and two slices: pictures are sent before those shown earlier."""
    options = ("-bf", "2", "-g", "25", "-slices", "2", "-x264-params", "scenecut=0:b-adapt=0")
    return filmed(folder / "film", *options)


def video_times(path):
    """The times of the pictures that an FLV file has so far, headers left out."""
    data, at, times = path.read_bytes() if path.exists() else b"", 13, []
    while at + 11 <= len(data):
        size = int.from_bytes(data[at + 1 : at + 4], "big")
        if data[at] == 9 and at + 11 + size <= len(data) and data[at + 12] == 1:
            low, high = struct.unpack_from("!3sB", data, at + 4)
            times.append(high << 24 | int.from_bytes(low, "big"))
        at += 15 + size
    return times


def pictures(path):
    """A checksum of each picture that ffmpeg decodes of a file, none dropped and none repeated."""
    words = ["-nostdin", "-loglevel", "error", "-i", path, "-map", "0:v", "-vsync", "passthrough"]
    words += ["-pix_fmt", "gray", "-f", "rawvideo", "-"]
    done = subprocess.run(
        [require("ffmpeg", "ffmpeg"), *words], capture_output=True, timeout=600, check=True
    )
    return [zlib.crc32(done.stdout[at : at + SIZE]) for at in range(0, len(done.stdout), SIZE)]


def play(folder, url, to):
    """ffmpeg, which stores each tag at once; it knows the streams from the first ones."""
    words = ("-analyzeduration", "1000", "-copyts", "-i", url, "-c", "copy", "-flush_packets", "1")
    return Ffmpeg(folder, *words, to)


class Showing:
    """A film as it is shown: a few pictures at a time, when a player has stored those before."""

    def __init__(self, phone, packets, player, file):
        self._phone, self._player, self._file, self._shown = phone, player, file, 0
        self._pictures = [list(group) for _, group in groupby(packets, lambda each: each[0])]

    def until(self, number):
        """Show the film up to this picture; the last one waits in the gateway for its end."""
        while self._shown < number:
            for picture in self._pictures[self._shown : self._shown + 5]:
                self._phone.show(picture)
                self._shown += 1
            if self._shown < PROBED:
                time.sleep(0.1)  # the player stores nothing before it knows the streams
                continue
            self._player.wait_until(
                lambda: len(video_times(self._file)) >= self._shown - 1, what="the pictures"
            )


@pytest.mark.needs("ffmpeg")
@pytest.mark.parametrize("film", [slices_in_fragments, sets_sent_once, aggregates, b_frames])
def test_a_late_player_decodes_every_picture_after_a_key_frame(
    start, gateway, tmp_path, corpus, film
):
    packets = film(corpus, tmp_path)
    source = tmp_path / "source.h264"
    # GStreamer repeats its parameter sets between the slices of a picture
    kept = [unit for unit in units(packets) if unit[0] & 31 not in SETS]
    sets = dict.fromkeys(unit for unit in units(packets) if unit[0] & 31 in SETS)
    source.write_bytes(b"".join(b"\0\0\0\1" + unit for unit in (*sets, *kept)))
    shown = pictures(source)
    assert len(shown) == len({packet.timestamp for packet in packets})
    server = gateway("--sip-t1", "200")
    url = server.url("call", "studio")
    files = [tmp_path / "early.flv", tmp_path / "late.flv"]
    early = start(play, url, files[0])
    server.wait_status({"players": 1})
    with ReplayPhone(server.sip) as phone:
        phone.call("studio")
        showing = Showing(phone, packets, early, files[0])
        showing.until(len(shown) * 2 // 3)
        late = start(play, url, files[1])
        server.wait_status({"players": 2})
        showing.until(len(shown))
        early.wait_until(lambda: len(video_times(files[0])) == len(shown), what="all pictures")
        end = video_times(files[0])[-1]
        late.wait_until(lambda: video_times(files[1])[-1:] == [end], what="the last picture")
        phone.hang_up()
        assert early.finish() == late.finish() == 0
    assert pictures(files[0]) == shown
    seen = pictures(files[1])
    assert len(shown) // 3 <= len(seen) < len(shown) and seen == shown[-len(seen) :]


@pytest.mark.needs("ffmpeg")
def test_a_phone_decodes_a_publisher_with_b_frames(start, gateway, tmp_path):
    """Covers RFC 6184 §5.1: in the order of decoding, at the times when they are shown."""
    server = gateway("--sip-t1", "200")
    words = ("-re", *numbered_frames.source(), "-t", "3", "-c:v", "libx264", "-bf", "2")
    words += ("-g", "15", "-preset", "veryfast", "-x264-params", "scenecut=0:b-adapt=0")
    words += ("-pix_fmt", "yuv420p", "-f", "flv", server.url("call", "studio"))
    publisher = start(Ffmpeg, *words)
    publisher.wait_until(lambda: "frame=" in publisher.output, what="the first picture")
    with ReplayPhone(server.sip) as phone:
        phone.call("studio")
        packets = phone.watch(publisher)
        phone.hang_up()
    film = tmp_path / "seen.h264"
    film.write_bytes(b"".join(b"\0\0\0\1" + unit for unit in units(packets)))
    seen = numbered_frames.numbers(film)
    # Where this machine stalls, the gateway leaves out what is late, up to a key frame.
    assert len(seen) > 15 and seen == sorted(set(seen))
    stamps = list(dict.fromkeys(each.timestamp for each in packets))
    assert len(stamps) == len(seen)
    since = [stamp - stamps[0] + (1 << 31) & 0xFFFFFFFF for stamp in stamps]
    assert since != sorted(since)  # there are B-frames
    for (at, number), (later, next_number) in pairwise(zip(sorted(since), seen, strict=True)):
        assert abs((later - at) / 6000 - (next_number - number)) < 0.02


@pytest.mark.needs("ffmpeg")
def test_a_phone_of_a_low_level_sees_a_large_publisher(start, gateway, tmp_path):
    """With --transcode-video: smaller, without B-frames, and each picture at its own time."""
    server = gateway("--sip-t1", "200", "--transcode-video", "@15,300")
    words = ("-re", *numbered_frames.source(), "-vf", "scale=1280:720", "-t", "3")
    words += ("-c:v", "libx264", "-bf", "2", "-g", "15", "-preset", "veryfast")
    words += ("-pix_fmt", "yuv420p", "-f", "flv", server.url("call", "studio"))
    publisher = start(Ffmpeg, *words)
    publisher.wait_until(lambda: "frame=" in publisher.output, what="the first picture")
    with ReplayPhone(server.sip) as phone:
        phone.call("studio", profile="42e00c")
        packets = phone.watch(publisher)
        phone.hang_up()
    found = list(units(packets))
    sets = [SequenceParameters.parse(unit) for unit in found if unit[0] & 31 == 7]
    assert {(each.profile, each.level) for each in sets} == {(66, 12)}
    assert {each.width * each.height <= 352 * 288 for each in sets} == {True}
    film = tmp_path / "seen.h264"
    film.write_bytes(b"".join(b"\0\0\0\1" + unit for unit in found))
    seen = numbered_frames.numbers(film)
    # Where this machine is busy, the gateway leaves pictures out, and keeps the times of others.
    assert len(seen) > 5 and seen == sorted(set(seen))
    stamps = list(dict.fromkeys(each.timestamp for each in packets))
    since = [stamp - stamps[0] & 0xFFFFFFFF for stamp in stamps]
    assert len(since) == len(seen) and since == sorted(since)
    for (at, number), (later, next_number) in pairwise(zip(since, seen, strict=True)):
        assert abs((later - at) / 6000 - (next_number - number)) < 0.02

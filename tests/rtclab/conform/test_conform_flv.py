"""The cases of FLV: what is damaged is found by the case that is about it, and by HTTP as well."""

import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from support.conform import skipped, unmet

from rtclab.__main__ import main
from rtclab.conform.case import Unreachable
from rtclab.conform.flv import SUITE
from rtclab.conform.runner import run
from rtmplite.flv import file
from rtmplite.flv.tag import Tag, TagType

SPS = bytes.fromhex("6742c00dd9018086")  # Baseline
CONFIG = bytes.fromhex("0142c00dffe10008") + SPS + bytes.fromhex("01000468ce3c80")
IDR, SLICE = b"\0\0\0\2\x65\x88", b"\0\0\0\2\x41\x9a"


def video(time, first, kind, data, composition=0):
    head = bytes((first, kind)) + composition.to_bytes(3, "big")
    return Tag(TagType.VIDEO, time, head + data)


def audio(time, kind, data, first=0xAF):
    return Tag(TagType.AUDIO, time, bytes((first, kind)) + data)


META = (
    bytes.fromhex("02000a6f6e4d65746144617461 08 00000002".replace(" ", ""))
    + b"".join(
        len(name).to_bytes(2, "big") + name + b"\0" + number
        for name, number in (
            (b"duration", b"\x3f\xf0" + bytes(6)),
            (b"videocodecid", b"\x40\x1c" + bytes(6)),
        )
    )
    + b"\0\0\x09"
)
GOOD = (
    Tag(TagType.SCRIPT, 0, META),
    video(0, 0x17, 0, CONFIG),
    audio(0, 0, b"\x12\x10"),
    video(0, 0x17, 1, IDR),
    audio(0, 1, b"\x21\x10"),
    video(40, 0x27, 1, SLICE),
    audio(1000, 1, b"\x21\x10"),
)


def judged(target):
    return run(SUITE, str(target), SUITE.cases, 20)


def written(tmp_path, data):
    path = tmp_path / "it.flv"
    path.write_bytes(data)
    return path


def with_tag(number, tag):
    """The good file with another tag at a place."""
    return file.write_flv([*GOOD[:number], tag, *GOOD[number + 1 :]])


def with_octets(at, octets):
    data = bytearray(file.write_flv(GOOD))
    data[at : at + len(octets)] = octets
    return bytes(data)


def test_a_good_file_meets_all(tmp_path):
    results = judged(written(tmp_path, file.write_flv(GOOD)))
    assert unmet(results) == {}
    assert len(results) - len(skipped(results)) > 25


WHOLE = file.write_flv(GOOD)
BROKEN = {
    "signature_is_flv": with_octets(0, b"FLX"),
    "version_is_1": with_octets(3, b"\2"),
    "reserved_flags_are_0": with_octets(4, b"\x07"),
    "data_offset_leads_to_the_body": with_octets(5, b"\0\0\0\xff"),
    "flags_tell_of_all_tags": with_octets(4, b"\1"),
    "flags_promise_nothing": file.start(True, True) + bytes(GOOD[1]) + b"\0\0\0\x2a",
    "first_back_pointer_is_0": with_octets(9, b"\0\0\0\1"),
    "back_pointers_count_their_tags": with_octets(len(WHOLE) - 4, b"\0\0\0\1"),
    "last_back_pointer_is_there": WHOLE[:-4],
    "file_ends_with_a_whole_tag": WHOLE + b"\x09\0\0",
    "types_are_known": with_tag(4, Tag(11, 0, b"?")),
    "reserved_bits_of_tags_are_0": with_octets(13, b"\x92"),
    "stream_id_is_0": with_tag(4, Tag(TagType.AUDIO, 0, b"\xaf\1\x21", stream_id=1)),
    "first_timestamp_is_0": with_tag(0, Tag(TagType.SCRIPT, 7, META)),
    "times_do_not_go_back": with_tag(3, video(900, 0x17, 1, IDR)),
    "sound_and_pictures_stand_together": with_tag(6, audio(5000, 1, b"\x21")),
    "script_data_are_a_name_and_values": with_tag(0, Tag(TagType.SCRIPT, 0, META[:-8])),
    "metadata_come_first": file.write_flv(GOOD[1:]),
    "pictures_are_as_described": with_tag(
        0, Tag(TagType.SCRIPT, 0, META.replace(b"@\x1c", b"@\0"))
    ),
    "duration_is_that_of_the_tags": with_tag(6, audio(2500, 1, b"\x21")),
    "sound_format_is_known": with_tag(6, audio(1000, 1, b"\x21", 0xCF)),
    "aac_says_44_khz_and_stereo": with_tag(6, audio(1000, 1, b"\x21", 0xA2)),
    "speex_says_16_bits_and_mono": with_tag(6, audio(1000, 1, b"\x21", 0xB6)),
    "aac_config_comes_before_frames": with_tag(2, audio(0, 1, b"\x21")),
    "aac_config_makes_sense": with_tag(2, audio(0, 0, b"\x16\x90")),
    "aac_frames_are_raw": with_tag(6, audio(1000, 1, b"\xff\xf1\x50")),
    "frame_type_and_codec_are_known": with_tag(5, video(40, 0x68, 1, SLICE)),
    "first_picture_is_a_key_frame": with_tag(3, video(0, 0x27, 1, SLICE)),
    "avc_config_comes_before_pictures": with_tag(1, video(0, 0x17, 1, IDR)),
    "avc_config_makes_sense": with_tag(1, video(0, 0x17, 0, CONFIG[:9])),
    "nal_units_fill_their_tag": with_tag(5, video(40, 0x27, 1, SLICE[:-1])),
    "idr_pictures_are_key_frames": with_tag(5, video(40, 0x27, 1, IDR)),
    "key_frames_are_idr_pictures": with_tag(5, video(40, 0x17, 1, SLICE)),
    "composition_time_is_for_pictures": with_tag(1, video(0, 0x17, 0, CONFIG, 40)),
    "pictures_have_times_of_their_own": with_tag(5, video(0, 0x27, 1, SLICE)),
    "enhanced_tags_are_whole": with_tag(5, Tag(TagType.VIDEO, 40, b"\x91hv")),
    "four_ccs_are_known": with_tag(5, Tag(TagType.VIDEO, 40, b"\xa1what?")),
    "enhanced_start_comes_before_frames": with_tag(5, Tag(TagType.VIDEO, 40, b"\xa1av01?")),
    "enhanced_sound_starts_before_frames": with_tag(6, Tag(TagType.AUDIO, 1000, b"\x91mp4a?")),
    "hevc_pictures_have_their_frame_type": with_tag(
        5, Tag(TagType.VIDEO, 40, b"\xa1hvc1\0\0\0" + b"\0\0\0\3\x26\1?")
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_each_fault_is_found_by_its_case(tmp_path, name):
    assert name in unmet(judged(written(tmp_path, BROKEN[name])))


@pytest.mark.parametrize("cut", [0, 1, 5, 9, 13, 20, 60, 100])
def test_any_octets_are_judged_and_no_case_breaks(tmp_path, cut):
    results = judged(written(tmp_path, WHOLE[:cut] or b"?"))
    assert not [each for each in results if each.outcome.value == "error"]


def test_a_server_that_is_not_there_is_unreachable():
    with pytest.raises(Unreachable, match=r"\AConnection refused\Z"):
        SUITE.reach("http://127.0.0.1:9/x.flv")


@pytest.mark.parametrize(
    ("data", "said"), [(b"# Some text\n" * 20, "this is no FLV"), (b"", "no FLV")]
)
def test_what_is_no_flv_is_the_only_thing_to_say(tmp_path, data, said):
    with pytest.raises(ValueError, match=said):
        SUITE.reach(str(written(tmp_path, data)))


def test_a_file_that_is_not_there_is_a_mistake(tmp_path, capsys):
    path = tmp_path / "none.flv"
    assert main(["conform", "flv", str(path)]) == 2
    assert capsys.readouterr().err == f"rtclab: {path}: No such file or directory\n"


def test_a_file_by_http(tmp_path):
    written(tmp_path, WHOLE)
    handler = partial(SimpleHTTPRequestHandler, directory=tmp_path)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        results = judged(f"http://127.0.0.1:{server.server_port}/it.flv")
        server.shutdown()
    assert unmet(results) == {}


def test_our_stream_and_our_recording_meet_all(tmp_path, corpus):
    python = [sys.executable, "-m"]
    words = ["rtmplite", "serve", "--rtmp", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    argv = [*python, *words, "--record", str(tmp_path)]
    source = corpus / "flv" / "h264_720p30_bf3_aac44k_30s.flv"
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as server:
        ready = dict(word.split("=") for word in server.stdout.readline().split()[1:])
        url = f"rtmp://{ready['rtmp']}/live/demo"
        publisher = subprocess.Popen([*python, "rtmplite", "publish", str(source), url])
        while "publishing demo" not in server.stdout.readline():
            pass
        assert unmet(judged(f"http://{ready['http']}/live/demo.flv")) == {}
        publisher.terminate()
        publisher.wait()
        server.terminate()
        server.communicate()
    results = judged(tmp_path / "live" / "demo.flv")
    assert unmet(results) == {}
    assert "duration_is_that_of_the_tags" not in skipped(results)

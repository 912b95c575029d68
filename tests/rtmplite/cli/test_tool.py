"""`python -m rtmplite`, as a user runs it."""

import re
import signal
import subprocess
import sys
from argparse import Namespace
from collections import Counter
from unittest.mock import Mock

import pytest
from support.peers.process import Process

from rtmplite.amf import amf0
from rtmplite.auth.credentials import user_lines
from rtmplite.cli import publish as publishing
from rtmplite.cli.tool import _from_zero, _messages, main
from rtmplite.errors import LocalError
from rtmplite.flv import file
from rtmplite.flv.tag import Tag
from rtmplite.rtmp.wire.message import Message


class Tool(Process):
    """One run of the command line."""

    def __init__(self, folder, *words):
        super().__init__(folder, [sys.executable, "-m", "rtmplite", *words])


class Serve(Tool):
    """The server, on a free port."""

    def __init__(self, folder, *words):
        super().__init__(folder, "serve", "--rtmp", "127.0.0.1:0", *words)

    def is_ready(self):
        return "ready rtmp=" in self.output

    def joined(self, count):
        """Wait until so many play."""
        self.wait_until(lambda: self.output.count(" playing ") >= count, what=f"{count} players")

    def url(self, name):
        """Where `name` is published and played."""
        address = self.output.split("rtmp=")[1].split()[0]
        return f"rtmp://{address}/live/{name}"


@pytest.fixture
def server(tmp_path):
    """A running server."""
    with Serve(tmp_path / "serve") as running:
        yield running


def media(path):
    """Type, time and body of all tags of a file."""
    return [(tag.tag_type, tag.timestamp, tag.data) for tag in file.read_flv(path.read_bytes())[1]]


def test_what_goes_in_comes_out(server, tmp_path, corpus):
    """Publish, play and dump at once; the same tags in both files."""
    source, url = corpus / "flv" / "ruffle_aac_mono_44100hz.flv", server.url("demo")
    played, dumped = tmp_path / "played.flv", tmp_path / "dumped.flv"
    play = Tool(tmp_path / "play", "play", url, "-o", played).start()
    dump = Tool(tmp_path / "dump", "dump", url, "-o", dumped, "--digest").start()
    server.joined(2)  # a late one would start later, which is another test
    publish = Tool(tmp_path / "publish", "publish", source, url).start()
    assert [each.finish() for each in (publish, play, dump)] == [0, 0, 0]
    assert media(played) == media(dumped) == media(source)
    assert len(dump.output.splitlines()) == len(media(source))
    assert "audio" in dump.output and "onMetaData" in dump.output
    assert f"{len(media(source))} messages" in publish.output


def test_what_goes_in_by_rtmfp_comes_out(tmp_path, corpus):
    """Published, played and looked at by rtmfp URLs, and by an rtmp one beside them."""
    source = corpus / "flv" / "ruffle_aac_mono_44100hz.flv"
    with Serve(tmp_path / "serve", "--rtmfp", "127.0.0.1:0") as server:
        address = server.output.split("rtmfp=")[1].split()[0]
        url = f"rtmfp://{address}/live/demo"
        files = [tmp_path / "played.flv", tmp_path / "dumped.flv", tmp_path / "old.flv"]
        play = Tool(tmp_path / "play", "play", url, "-o", files[0]).start()
        dump = Tool(tmp_path / "dump", "dump", url, "-o", files[1]).start()
        old = Tool(tmp_path / "old", "play", server.url("demo"), "-o", files[2]).start()
        probe = Tool(tmp_path / "probe", "probe", url, "--seconds", "15").start()
        server.joined(4)
        publish = Tool(tmp_path / "publish", "publish", source, url).start()
        done = (publish, play, dump, old, probe)
        assert [each.finish() for each in done] == [0] * len(done)
        assert [media(each) for each in files] == [media(source)] * 3
        assert "audio" in dump.output and "AAC" in probe.output.upper()


def test_fast_and_for_so_many_seconds(server, tmp_path, corpus):
    """`--seconds` does not wait for the end."""
    source, url = corpus / "flv" / "audio_speex16k.flv", server.url("demo")
    played = tmp_path / "played.flv"
    play = Tool(tmp_path / "play", "play", url, "-o", played, "--seconds", "3").start()
    server.joined(1)
    publish = Tool(tmp_path / "publish", "publish", "--fast", source, url).start()
    assert publish.finish() == play.finish() == 0
    assert media(played) == [each for each in media(source) if each[1] <= 3000]


@pytest.mark.parametrize(("fast", "waits"), [(False, [0.04, 0.08, 0.12]), (True, [])])
def test_a_file_is_sent_at_its_own_pace(fast, waits, monkeypatch):
    """Each message when it is due, counted from the first; `--fast` does not wait."""
    clock, slept, wrote = [100.0], [], []
    monkeypatch.setattr(publishing, "now", lambda: clock[0])

    def sleep(seconds):
        clock[0] += seconds
        slept.append(round(clock[0] - 100.0, 6))

    class Stream:
        def write(self, type_id, timestamp, payload):
            wrote.append((timestamp, clock[0]))

    monkeypatch.setattr(publishing.gevent, "sleep", sleep)
    tags = [Tag(8, at, b"x") for at in (0, 0, 40, 80, 120)]
    publishing.send(Namespace(fast=fast, loop=1), tags, Stream())
    assert slept == waits and [at for at, _ in wrote] == [0, 0, 40, 80, 120]


@pytest.mark.parametrize(
    ("words", "times"),
    [
        (["--loop", "FILE", "URL"], publishing.FOREVER),
        (["--loop", "2", "FILE", "URL"], 2),
        (["FILE", "URL", "--loop"], publishing.FOREVER),
        (["FILE", "--loop", "URL"], publishing.FOREVER),
        (["--loop=3", "FILE", "URL"], 3),
        (["FILE", "URL"], 1),
    ],
)
def test_a_file_is_no_number_of_times(words, times, monkeypatch):
    """`--loop` alone is for ever, wherever it stands."""
    seen = []
    monkeypatch.setattr(publishing, "load", lambda path: seen.append(str(path)) or [])

    def send(options, tags, publisher):
        seen.extend((options.loop, options.url))
        raise LocalError("enough")

    monkeypatch.setattr(publishing, "send", send)
    monkeypatch.setattr("rtmplite.cli.tool.Publisher", Mock())
    assert main(["publish", *words]) == 2
    assert seen == ["FILE", times, "URL"]


class Sent:
    """A stream that is over, with what has come of it."""

    ended = True

    def __init__(self, messages):
        self.messages = list(messages)

    @property
    def is_drained(self):
        return not self.messages

    def read(self, timeout):
        return self.messages.pop(0)

    def close(self):
        self.messages.clear()


def test_a_wrapper_that_a_server_leaves_is_taken_off():
    """Covers Field §"@setDataFrame": no player of files knows it."""
    metadata = amf0.encode("onMetaData", {"width": 2.0})
    sent = [
        Message(18, 0, 1, amf0.encode("|RtmpSampleAccess", True, True)),
        Message(18, 0, 1, amf0.encode("@setDataFrame") + metadata),
        Message(18, 0, 1, metadata),
        Message(8, 0, 1, b"\xb2sound"),
    ]

    found = list(_messages(Sent(sent), Namespace(seconds=None)))
    assert [tag.data for tag in found] == [metadata, metadata, b"\xb2sound"]


def test_user_and_password_stand_in_the_url(tmp_path, corpus):
    """Covers Field §"authmod=adobe": every command has them from there, and nobody prints them."""
    source = corpus / "flv" / "ruffle_aac_mono_44100hz.flv"
    users, played = tmp_path / "users", tmp_path / "played.flv"
    users.write_text("\n".join(user_lines("ann", "example.org", "s3cret")))
    with Serve(tmp_path / "serve", "--users", users, "--users-only") as server:
        plain = server.url("demo")
        known = plain.replace("rtmp://", "rtmp://ann:s3cret@")
        guess = plain.replace("rtmp://", "rtmp://ann:gue55@")
        refused = [
            Tool(tmp_path / f"refused{number}", *words).start()
            for number, words in enumerate(
                [
                    ("publish", source, plain),
                    ("publish", source, guess),
                    ("play", guess, "-o", played),
                    ("probe", guess),
                    ("push", guess, known, "--attempts", "1"),
                ]
            )
        ]
        assert [each.finish() for each in refused] == [1] * len(refused)
        play = Tool(tmp_path / "play", "play", known, "-o", played).start()
        probe = Tool(tmp_path / "probe", "probe", known, "--seconds", "15").start()
        copy = Tool(tmp_path / "copy", "push", known, known.replace("demo", "copy")).start()
        server.joined(3)
        done = [Tool(tmp_path / "publish", "publish", source, known).start(), play, probe, copy]
        assert [each.finish() for each in done] == [0] * len(done)
        assert media(played) == media(source)
        server.wait_until(lambda: "publishing copy," in server.output, what="the copy")
        lines = server.output.splitlines()
        assert sum("may not connect, 127.0.0.1: Wrong user" in line for line in lines) == 4
    said = "".join(each.output for each in (server, *done, *refused))
    assert "s3cret" not in said and "gue55" not in said
    assert "Wrong user or password." in refused[1].output


def test_an_operator_reads_who_is_refused(tmp_path, corpus):
    """A line each, with an address and a reason and without the key."""
    source = str(corpus / "flv" / "ruffle_aac_mono_44100hz.flv")
    with Serve(tmp_path / "serve", "--publish-key", "*=k1", "--play-key", "demo=k2") as server:
        url = server.url("demo")
        assert main(["publish", source, f"{url}?key=gue55"]) == 1
        assert main(["play", f"{url}?key=gue55", "-o", str(tmp_path / "x")]) == 1
        assert main(["play", url.replace("/live/", "/dead/"), "-o", str(tmp_path / "x")]) == 1
        lines = [line for line in server.output.splitlines() if "refus" in line or "may" in line]
    reasons = ("may not publish demo", "may not play demo", "no application 'dead'")
    assert all("127.0.0.1" in line for line in lines)
    assert [reason in line for line, reason in zip(lines, reasons, strict=True)] == [True] * 3
    assert "gue55" not in server.output


def test_an_operator_reads_of_one_too_many(tmp_path, corpus):
    """A connection of which its host has enough is refused, with a line."""
    source = str(corpus / "flv" / "ruffle_aac_mono_44100hz.flv")
    with Serve(tmp_path / "serve", "--max-per-address", "1") as server:
        url = server.url("demo")
        with Tool(tmp_path / "play", "play", url, "-o", tmp_path / "y"):
            server.joined(1)
            assert main(["publish", source, url]) == 1
        [line] = [line for line in server.output.splitlines() if "refus" in line]
    assert "refusing 127.0.0.1" in line


def test_a_file_begins_at_0(server, tmp_path, corpus):
    """Covers FLV 10.1 §E.4.1: whatever the time of the stream is when somebody comes to watch."""
    source, url = corpus / "flv" / "audio_speex16k.flv", server.url("demo")
    with Tool(tmp_path / "publish", "publish", source, url) as publish:
        publish.wait_until(
            lambda: re.search(r"^ *(1\.[5-9]|[2-9]\.\d) s", publish.output, re.M), what="1.5 s"
        )
        files = [tmp_path / "played.flv", tmp_path / "dumped.flv"]
        words = [
            (name, url, "-o", file) for name, file in zip(("play", "dump"), files, strict=True)
        ]
        players = [Tool(tmp_path / each[0], *each, "--seconds", "1").start() for each in words]
        assert [player.finish() for player in players] == [0, 0]
    played, dumped = ([tag for tag in media(file) if tag[0] == 8] for file in files)
    assert played[0][1] == 0 and 900 < played[-1][1] <= 1000
    assert dumped[0][1] >= 1500  # as it came
    tags = [Tag(kind, at, b"x") for kind, at in ((18, 7), (9, 5000), (18, 0), (8, 4990), (9, 5040))]
    assert [tag.timestamp for tag in _from_zero(iter(tags))] == [0, 0, 0, 0, 40]


BIG = 3_000_000_000  # ms
SOON, HEADERS = 60_000, ((9, b"\x17\0\0\0\0avcC"), (8, b"\xaf\0\x12\x10"))


def test_the_wait_for_a_key_frame_is_no_part_of_what_is_played():
    """Who comes late gets headers at once and pictures when the next group begins."""
    sent = [Message(type_id, SOON, 1, data) for type_id, data in HEADERS]
    sent += [Message(18, 0, 1, amf0.encode("onMetaData", {}))]
    for at in range(SOON + 1900, SOON + 3900, 40):
        first = at == SOON + 1900
        sent += [Message(9, at, 1, b"\x17\1" if first else b"\x27\1"), Message(8, at, 1, b"\xaf\1")]
    found = list(_messages(Sent(sent), Namespace(seconds=0.4)))
    assert [tag.timestamp - SOON for tag in found[3:]] == [
        at for at in range(1900, 2301, 40) for _ in range(2)
    ]
    stored = [tag.timestamp for tag in _from_zero(iter(found))]
    assert stored[:5] == [0] * 5 and stored[-1] == 400


@pytest.mark.parametrize(
    ("times", "found"),
    [
        ([BIG, 0, BIG + 500], [BIG, 0, BIG + 500]),  # data has no time
        ([(1 << 32) - 100, 0, 300, 1000], [(1 << 32) - 100, 0, 300]),  # the clock goes round
    ],
)
def test_so_many_seconds_of_any_clock(times, found):
    """Covers RTMP 1.0 §4: the times of a stream wrap."""
    sent = [Message(18 if at == 0 else 8, at, 1, b"\xb2sound") for at in times]
    assert [tag.timestamp for tag in _messages(Sent(sent), Namespace(seconds=0.5))] == found


def test_stdout_is_a_file_too(server, tmp_path, corpus):
    """For a pipe into ffplay or ffprobe."""
    url = server.url("demo")
    words = [sys.executable, "-m", "rtmplite", "play", url]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as play:
        server.joined(1)
        assert main(["publish", "--fast", str(corpus / "flv" / "ruffle_alaw.flv"), url]) == 0
        data = play.communicate(timeout=20)[0]
    assert Counter(tag.tag_type for tag in file.tags(data))[8] == 8


def test_a_server_may_do_without_plain_rtmp(tmp_path):
    """`off` is no address."""
    words = ("serve", "--rtmp", "off", "--rtmpt", "127.0.0.1:0")
    with Tool(tmp_path / "serve", *words) as server:
        server.wait_until(lambda: "ready rtmpt=" in server.output, what="it")
        assert " rtmp=" not in server.output


def test_sigterm_is_a_proper_end(server):
    """Exit 0, and a line that says who ended it."""
    server.child.send_signal(signal.SIGTERM)
    assert server.finish(5) == 0
    assert server.output.splitlines()[-1].endswith("Z stopping SIGTERM")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["serve", "--rtmp", "off"], 2),
        (["serve", "--rtmp", "192.0.2.1:1"], 2),
        (["serve", "--rtmp", "127.0.0.1:0", "--vod", "/no/such/folder"], 2),
        (["play", "rtmp://127.0.0.1/live"], 2),
        (["play", "http://127.0.0.1/live/x"], 2),
        (["play", "rtmp://[::1/live"], 2),
        (["dump", "rtmp://127.0.0.1:99999/live/x"], 2),
        (["publish", "/dev/null", "rtmp://a..b/live/x"], 2),
        (["serve", "--rtmp", "127.0.0.1:0", "--pull", "live/*=rtmp://[::1/live"], 2),
        (["serve", "--rtmp", "127.0.0.1:0", "--reconnect-to", "rtmp://[::1/live"], 2),
        (["serve", "--rtmp", "127.0.0.1:0", "--on-play", "http://[::1/"], 2),
        (["push", "http://127.0.0.1/live/x", "rtmp://127.0.0.1/live/x"], 2),
        (["publish", "/no/such/file", "rtmp://127.0.0.1/live/x"], 2),
        (["publish", __file__, "rtmp://127.0.0.1/live/x"], 2),
        (["publish", "/", "rtmp://127.0.0.1/live/x"], 2),
        (["repair", "/no/such/file"], 2),
        (["repair", __file__], 2),
        (["play", "rtmp://127.0.0.1:1/live/x", "--timeout", "1"], 1),
    ],
)
def test_one_clear_line_and_a_code(words, code, capsys):
    """2 for what is wrong here, 1 for what is wrong there."""
    assert main(words) == code
    error = capsys.readouterr().err
    assert error.startswith("rtmplite: ") and error.count("\n") == 1 and "Errno" not in error


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["fly"],
        ["serve", "--no-such-option"],
        ["serve", "--rtmp", "nonsense"],
        ["serve", "--rtmp", "a..b:1935"],
        ["publish"],
        ["play", "rtmp://127.0.0.1:1/live/x", "--timeout", "-1"],
        ["dump", "rtmp://127.0.0.1:1/live/x", "--seconds", "soon"],
        ["probe", "rtmp://127.0.0.1:1/live/x", "--seconds", "0"],
    ],
)
def test_what_is_no_command_is_one_line_as_well(words, capsys):
    """Not a page of usage, and never a traceback."""
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("rtmplite") and error.count("\n") == 1

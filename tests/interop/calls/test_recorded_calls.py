"""Recorded calls are for users, whoever asks, by whatever protocol and name."""

import shutil

import pytest
from interop.streams.test_vod import RtmpDump
from support.gateway.accounts import PASSWORD, users_file
from support.gateway.gateway import ANY_PORT
from support.peers.peers import Ffmpeg
from support.peers.rtmp_servers import Tool, media

PROOF = f"?user=alice&pass={PASSWORD}"


@pytest.fixture
def films(tmp_path, corpus):
    """A folder where somebody has recorded a call, a rich client and a stream."""
    for app in ("call", "sip", "mixed", "said", "live"):
        (tmp_path / "films" / app).mkdir(parents=True)
        source = corpus / "flv" / "ruffle_alaw.flv"
        shutil.copy(source, tmp_path / "films" / app / "bob%40example.org.flv")
    return tmp_path / "films"


def dumps(start, url):
    """Whether rtmpdump gets anything."""
    dump = start(RtmpDump, url)
    dump.finish()
    return dump.file.is_file() and dump.file.stat().st_size > 5000


def test_strangers_do_not_hear_recorded_calls(gateway, start, tmp_path, films):
    """Beside a listener for other machines loopback proves nothing."""
    users = users_file(tmp_path, "alice")
    both = ("--record", str(films), "--vod", str(films))
    server = gateway(
        *both, "--users", users, "--http", "0.0.0.0:0", "--rtmpt", ANY_PORT, "--rtmfp", ANY_PORT
    )
    assert f"recorded-calls folder={films} served_to=users\n" in server.output
    url = server.url("vod", "call/bob@example.org")
    assert not dumps(start, url)
    assert not dumps(start, server.url("vod", "sip/bob@example.org"))
    assert not dumps(start, server.url("vod", "mixed/bob@example.org"))
    assert not dumps(start, server.url("vod", "said/bob@example.org"))
    assert not dumps(start, server.url("vod/call", "bob@example.org"))
    assert not dumps(start, url.replace("bob@", "bob%40"))
    assert not dumps(start, f"{url}?user=alice&pass=guess")
    assert start(Ffmpeg, "-i", url, "-f", "null", "-").finish() != 0
    for listener in ("rtmfp", "rtmpt"):
        if listener == "rtmfp":
            far = f"rtmfp://{server.listeners[listener]}/vod/call/bob@example.org"
            assert start(Tool, "play", far, "-o", tmp_path / "x.flv").finish() == 1
            good = start(Tool, "play", far + PROOF, "-o", tmp_path / "y.flv")
            assert good.finish() == 0 and len(media(tmp_path / "y.flv")) > 5
        else:
            far = f"rtmpt://{server.listeners[listener]}/vod/call/bob@example.org"
            assert start(Ffmpeg, "-i", far, "-f", "null", "-").finish() != 0
    assert dumps(start, server.url("vod", "live/bob@example.org"))
    assert dumps(start, url + PROOF)
    refused = [line for line in server.output.splitlines() if " refused " in line]
    assert any("recorded calls are for users" in line and "source=127.0.0.1" in line
               for line in refused)  # fmt: skip
    assert PASSWORD not in server.output and "guess" not in server.output


def test_a_challenge_proves_it_as_well(gateway, start, tmp_path, films):
    """As ffmpeg answers it where everybody is challenged."""
    users = users_file(tmp_path, "alice")
    server = gateway("--vod", str(films), "--users", users, "--users-only", "--http", "0.0.0.0:0")
    url = server.url("vod", "call/bob@example.org").replace("//", f"//alice:{PASSWORD}@")
    assert start(Ffmpeg, "-i", url, "-f", "null", "-").finish() == 0


def test_a_machine_that_is_alone_hears_its_calls(gateway, start, films):
    """And is told so at the start, also without --record."""
    server = gateway("--vod", str(films))
    assert f"recorded-calls folder={films} served_to=loopback\n" in server.output
    assert dumps(start, server.url("vod", "call/bob@example.org"))

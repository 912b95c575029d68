"""Every peer publishes and plays every codec: what comes out is what went in, tag for tag.

Each tag's type, time and body; where a peer itself changes something, `rtmp_peers` says what.
The page docs/6-conformance/rtmp-peers.md is the table of these tests.
"""

from pathlib import Path

import pytest
from support.peers.peers import NginxRtmp
from support.peers.rtmp_peers import (
    GOOD_ENDS,
    MUXERS,
    PLAYERS,
    PUBLISHERS,
    FfmpegPlayer,
    LibrtmpPublisher,
    as_sent,
    as_stored,
)
from support.peers.rtmp_servers import Server, Tool, media
from support.peers.rtmp_sources import CODECS, Sources, takes

from rtmplite.flv import file

OWN = "rtmplite publish"
RELAYED = ("H.264 + AAC", "G.711 mu-law", "FLV1 (Sorenson)")
PAGE = Path(__file__).resolve().parents[3] / "docs" / "6-conformance" / "rtmp-peers.md"


@pytest.fixture(scope="module")
def source(tmp_path_factory, corpus):
    """The file of a codec."""
    return Sources(tmp_path_factory.mktemp("sources"), corpus)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server for all of these tests."""
    with Server(tmp_path_factory.mktemp("matrix") / "server") as running:
        yield running


def wait_for_players(server, count, *names):
    """Until each name has so many."""
    for name in names:
        line = f" playing {name}, "
        server.wait_until(lambda line=line: server.output.count(line) >= count, what=line)


def descriptions(path):
    """The script tags of a file but for what our server says to players itself."""
    tags = [tag.data for tag in file.tags(path.read_bytes()) if tag.tag_type == 18]
    return [data for data in tags if b"|RtmpSampleAccess" not in data]


@pytest.mark.parametrize("codec", CODECS)
def test_whoever_publishes(start, server, source, codec):
    """Others than us, all at once, each under its own name; what is no muxer sends the metadata."""
    path = source(codec)
    sent = media(path)
    able = [name for name in PUBLISHERS if name != OWN and takes(name, codec)]
    streams = [f"{CODECS.index(codec)}-{at}" for at in range(len(able))]
    urls = {name: server.url(stream) for name, stream in zip(able, streams, strict=True)}
    players = {name: start(FfmpegPlayer, urls[name]) for name in able}
    wait_for_players(server, 1, *streams)
    publishers = [start(PUBLISHERS[name], path, urls[name]) for name in able]
    for name, publisher in zip(able, publishers, strict=True):
        assert publisher.finish() == 0, name
        players[name].finish()
        assert media(players[name].file) == as_sent(name, sent), name
        if name not in MUXERS:
            assert descriptions(players[name].file) == descriptions(path), name


@pytest.mark.parametrize("codec", CODECS)
def test_whoever_plays(start, server, source, codec):
    """All players at once; our own client publishes."""
    path, stream = source(codec), f"{CODECS.index(codec)}-all"
    url = server.url(stream)
    players = {name: start(player, url) for name, player in PLAYERS.items()}
    wait_for_players(server, len(players), stream)
    assert start(PUBLISHERS[OWN], path, url).finish() == 0
    for name, player in players.items():
        assert player.finish() in GOOD_ENDS[name], name
        assert media(player.file) in as_stored(name, media(path)), name
    assert descriptions(players["ffmpeg 5.1"].file) == descriptions(path)


def test_every_file_of_the_corpus_passes(start, server, corpus):
    """Live, all at once: librtmp publishes what is in them, whatever it is, and ffmpeg plays it."""
    paths = sorted((corpus / "flv").glob("*.flv"))
    players = [start(FfmpegPlayer, server.url(path.stem)) for path in paths]
    wait_for_players(server, 1, *(path.stem for path in paths))
    publishers = [start(LibrtmpPublisher, path, server.url(path.stem)) for path in paths]
    for path, publisher, player in zip(paths, publishers, players, strict=True):
        assert publisher.finish() == player.finish() == 0, path.name
        assert media(player.file) == media(path), path.name
        assert descriptions(player.file) == descriptions(path), path.name


def test_nginx_in_between(start, source):
    """Pushed to nginx-rtmp and pulled from it, old codecs: the end of it is the same.

    Its beginning is missed, as the relays begin when somebody publishes.  nginx-rtmp 1.2.2 itself
    passes no enhanced video on.
    """
    nginx = start(NginxRtmp)
    here = start(Server, "--push", f"live/*={nginx.url('{name}')}")
    there = start(Server, "--pull", f"live/*={nginx.url('{name}')}")
    names = {codec: str(at) for at, codec in enumerate(RELAYED)}
    players = {codec: start(FfmpegPlayer, there.url(name)) for codec, name in names.items()}
    wait_for_players(there, 1, *names.values())
    there.wait_until(lambda: there.output.count(": running") == len(names), what="pulls")
    publishers = [
        start(Tool, "publish", source(codec), here.url(name)) for codec, name in names.items()
    ]
    for codec, publisher in zip(RELAYED, publishers, strict=True):
        assert publisher.finish() == players[codec].finish() == 0, codec
        got, sent = media(players[codec].file), media(source(codec))
        for kind in (8, 9):
            part, whole = (bodies(tags, kind) for tags in (got, sent))
            assert len(part) >= len(whole) / 3 and part == whole[len(whole) - len(part) :], codec


def bodies(tags, kind):
    """What one medium consists of, without the headers that those who come late are given."""
    headers = (b"\x17\x00", b"\xaf\x00")
    return [data for each, _, data in tags if each == kind and data[:2] not in headers]


def test_the_page_is_the_table_of_these_tests():
    """Peers, codecs, and who cannot do what."""
    rows = [line.strip("| ").split(" | ") for line in PAGE.read_text().splitlines() if "|" in line]
    table = {cells[0]: cells[1:] for cells in rows}
    assert table["codec"] == list(PUBLISHERS)
    for codec in CODECS:
        assert table[codec] == ["yes" if takes(name, codec) else "no" for name in PUBLISHERS]
    assert set(PLAYERS) <= set(table)

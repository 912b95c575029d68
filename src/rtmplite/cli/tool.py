"""The command line of `python -m rtmplite`, with its commands play and dump."""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final

import gevent

from rtmplite.amf import amf0
from rtmplite.cli import probe, push, serve
from rtmplite.cli import publish as sending
from rtmplite.errors import LocalError, RemoteError
from rtmplite.flv import file
from rtmplite.flv.metadata import unwrapped
from rtmplite.flv.repair import repair
from rtmplite.flv.tag import Tag, TagType
from rtmplite.live.tracks import Tracks
from rtmplite.net.client.client import ClientStream
from rtmplite.net.client.reconnecting import Connect, Player, Publisher
from rtmplite.net.client.rtmfp_client import RtmfpClient, connect
from rtmplite.net.last_resort import interrupted_quietly
from rtmplite.net.redaction import public
from rtmplite.net.server import access, transports
from rtmplite.net.server.files import FileSource
from rtmplite.net.server.settings import TrustSettings
from rtmplite.net.settings import add_options, chosen, rows
from rtmplite.net.usage import BAD_USAGE, Parser, add_timeout, in_words, program, seconds, sentence
from rtmplite.rtmfp.netconnection.media_flows import LIVE, RELIABLE
from rtmplite.rtmp.client import Target
from rtmplite.rtmp.wire.message import TIMESTAMP_MASK

FAILED: Final = 1  # exit code
LOOK: Final = 0.02  # s between looks for the first player that plays directly

# Data messages about the connection, which are no part of the stream.
_ABOUT_PLAYING: Final = (amf0.encode("|RtmpSampleAccess"), amf0.encode("onPlayStatus"))
_KINDS: Final = {TagType.AUDIO: "audio", TagType.VIDEO: "video", TagType.SCRIPT: "data"}


def main(arguments: list[str] | None = None) -> int:
    """Run one command; its exit code: 0 done, 1 the other side failed, 2 bad usage."""
    words = sys.argv[1:] if arguments is None else arguments
    options = _parser().parse_args(sending.spelled_out(words))
    interrupted_quietly()
    try:
        code: int = options.run(options)
        return code
    except KeyboardInterrupt:
        return 0
    except (OSError, RemoteError, TimeoutError) as error:
        print(f"rtmplite: {public(in_words(error))}", file=sys.stderr)
        is_ours = options.run is serve.run or getattr(error, "filename", None) is not None
        return BAD_USAGE if is_ours else FAILED
    except LocalError as error:
        print(f"rtmplite: {public(str(error))}", file=sys.stderr)
        return BAD_USAGE


def _parser() -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = Parser(
        prog=program(),
        description="Stream by RTMP, RTMPS, RTMPT and RTMFP: a server, clients, and tools for"
        " streams and their files.",
        epilog="COMMAND --help shows the options of a command.",
        usage="%(prog)s COMMAND ...",
    )
    commands = parser.add_subparsers(
        required=True, metavar="COMMAND", title="commands", prog=program()
    )

    serve.add_to(commands)
    publish = sending.add_to(commands)
    publish.set_defaults(run=_publish)

    said = "play a stream into an FLV file"
    play = commands.add_parser("play", help=said, description=sentence(said))
    play.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("-"),
        metavar="FILE",
        help="Write to this file; - is standard output, and the default.",
    )
    play.set_defaults(run=_play)

    said = "print a line for each message of a stream"
    dump = commands.add_parser("dump", help=said, description=sentence(said))
    dump.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="Write an FLV file as well."
    )
    dump.set_defaults(run=_dump)

    probe.add_to(commands)
    push.add_to(commands)
    _add_repair(commands)
    access.add_commands(commands)

    for command in (play, dump):
        command.add_argument(
            "--peer",
            metavar="ID",
            help="Play the stream directly from this client of the server, by RTMFP.",
        )
        command.add_argument(
            "--seconds", type=seconds, metavar="S", help="Stop after S seconds of media."
        )
    for command in (publish, play, dump):
        command.add_argument("url", metavar="URL", help=sending.URL)
        command.add_argument(
            "--digest", action="store_true", help="Sign the handshake, as Flash Player does."
        )
        add_timeout(command.add_argument)
        add_options(command.add_argument, rows(TrustSettings))
    return parser


def _publish(options: argparse.Namespace) -> int:
    tags = sending.load(options.file)
    if options.direct:
        return _publish_directly(_to_peers(options), _named(options), options, tags)
    publishing = Publisher.open(options.url, connect=_connector(options), timeout=options.timeout)
    try:
        sending.send(options, tags, publishing)
        publishing.client.send("FCUnpublish", publishing.name)
        publishing.stream.delete()
    except BaseException:
        publishing.leave()
        raise
    publishing.close()
    return 0


def _play(options: argparse.Namespace) -> int:
    with _playing(options) as playing, _output(options.output) as output:
        _store(output, _from_zero(_messages(playing, options)))
    return 0


def _dump(options: argparse.Namespace) -> int:
    with _playing(options) as playing:
        tags = _told(_messages(playing, options))
        if options.output is None:
            for _ in tags:
                pass
            return 0
        with _output(options.output) as output:
            _store(output, tags)
    return 0


def _told(tags: Iterator[Tag]) -> Iterator[Tag]:
    for tag in tags:
        kind = _KINDS[TagType(tag.tag_type)]
        print(f"{tag.timestamp / 1000:9.3f} s  {kind}  {len(tag.data):6}  {_describe(tag)}")
        yield tag


def _add_repair(commands: Any) -> None:
    said = "write a proper copy of an FLV file that a crash has cut off"
    mend = commands.add_parser("repair", help=said, description=sentence(said))
    mend.add_argument("file", type=Path, metavar="FILE", help="The file; it stays as it is.")
    mend.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="COPY",
        help="Write to this new file (FILE with the ending .repaired.flv).",
    )
    mend.set_defaults(run=_repair)


def _repair(options: argparse.Namespace) -> int:
    """Write the copy, and print the faults found."""
    target = options.output or options.file.with_suffix(".repaired.flv")
    with options.file.open("rb") as source:
        try:
            output = target.open("xb")
        except FileExistsError:
            raise LocalError(f"{target} exists") from None
        try:
            with output:
                report = repair(FileSource(source.fileno()), output.write)
        except RemoteError as error:
            os.unlink(target)
            raise LocalError(f"{options.file}: {error.description}") from None
        except BaseException:
            os.unlink(target)
            raise
    print(
        f"{target}: {report.duration / 1000:.3f} s, {report.tags} tags; "
        f"{report.wrong_sizes} wrong sizes, {report.lost} bytes dropped"
    )
    return 0


def _named(options: argparse.Namespace) -> str:
    name = Target.parse(options.url).stream
    if not name:
        raise LocalError(f"{options.url} names no stream")
    return name


def _to_peers(options: argparse.Namespace) -> RtmfpClient:
    """Connect to the server that introduces clients to each other."""
    client = _connector(options)(Target.parse(options.url))
    if not isinstance(client, RtmfpClient):
        client.close()
        raise LocalError(f"{options.url}: peers speak rtmfp")
    return client


def _publish_directly(
    client: RtmfpClient, name: str, options: argparse.Namespace, tags: Sequence[Tag]
) -> int:
    """Print our peer id, wait for the first player, and send the tags to all players."""
    try:
        publishing = client.publish_direct(name)
        print(f"peer {client.peer_id.hex()}", flush=True)
        while not publishing.players:
            gevent.sleep(LOOK)
        sending.send(options, tags, publishing)
        publishing.delete()
    except BaseException:
        client.leave()
        raise
    client.close()
    return 0


@contextmanager
def _playing(options: argparse.Namespace) -> Iterator[Player | ClientStream]:
    """Play from a server, or with `--peer` from another client; close that at the end."""
    if options.peer is None:
        with Player.open(
            options.url, connect=_connector(options), timeout=options.timeout
        ) as player:
            yield player
        return
    name, client = _named(options), _to_peers(options)
    try:
        yield client.play_from(_peer_id(options.peer), name, timeout=options.timeout)
    finally:
        client.close()


def _peer_id(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise LocalError(f"{text} is no peer id") from None


def _connector(options: argparse.Namespace) -> Connect:
    """A function that connects to a server: the one in the URL, or one it redirects to."""
    return partial(
        connect,
        timeout=options.timeout,
        digest=options.digest,
        tls=transports.trust(chosen(TrustSettings, vars(options))),
        lifetimes=RELIABLE if getattr(options, "fast", False) else LIVE,
    )


def _messages(playing: Player | ClientStream, options: argparse.Namespace) -> Iterator[Tag]:
    """The tags of a stream, to its end or for the seconds of media in the options."""
    begin = _Begin()
    while not playing.ended or not playing.is_drained:
        message = playing.read(timeout=1.0)
        if message is None:
            continue
        if message.payload.startswith(_ABOUT_PLAYING):
            continue  # about the connection, no part of the stream
        data = message.payload
        if message.type_id == TagType.SCRIPT:
            data = unwrapped(data)
        tag = Tag(message.type_id, message.timestamp, data)
        late = options.seconds is not None and begin.since(tag) > options.seconds * 1000
        if late and tag.tag_type != TagType.SCRIPT:  # some data has no time
            return
        yield tag


def _from_zero(tags: Iterator[Tag]) -> Iterator[Tag]:
    """The same tags, with times from 0 on as in files: FLV 10.1 §E.4.1."""
    begin = _Begin()
    for tag in tags:
        yield replace(tag, timestamp=max(0, begin.since(tag)))  # some data has no time


class _Begin:
    """Finds the time of the first media; a late player's wait for a key frame does not count."""

    def __init__(self) -> None:
        self._tracks, self._time = Tracks(), 0
        self._has_begun = False

    def since(self, tag: Tag) -> int:
        """The ms from the first media to a tag, 0 before it."""
        if not self._has_begun:
            if tag.tag_type == TagType.SCRIPT:
                return 0
            self._tracks.note(tag.tag_type, tag.timestamp, tag.data, 0.0)
            self._has_begun, self._time = self._tracks.begun, tag.timestamp
        since = (tag.timestamp - self._time) & TIMESTAMP_MASK
        return since if since < 1 << 31 else since - (1 << 32)


def _store(output: BinaryIO, tags: Iterator[Tag]) -> None:
    """Write tags as they come; the header promises both media, as they are not known yet."""
    output.write(bytes(file.FlvHeader(has_audio=True, has_video=True)) + bytes(4))
    for tag in tags:
        raw = bytes(tag)
        output.write(raw + len(raw).to_bytes(4, "big"))
        output.flush()


def _output(path: Path) -> BinaryIO:
    return os.fdopen(os.dup(sys.stdout.fileno()), "wb") if str(path) == "-" else path.open("wb")


def _describe(tag: Tag) -> str:
    if tag.tag_type != TagType.SCRIPT:
        return tag.data[:16].hex(" ")
    try:
        return " ".join(map(str, amf0.decode(tag.data)))
    except RemoteError as error:
        return str(error)

"""The command line of `python -m rtmplite`: play and dump; the other commands have modules."""

import argparse
import os
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

from rtmplite.amf import amf0
from rtmplite.errors import LocalError, RemoteError
from rtmplite.flv import file
from rtmplite.flv.tag import Tag, TagType
from rtmplite.net import access, mend, probe, push, serve, transports
from rtmplite.net import publish as sending
from rtmplite.net.following import Connect, Playing, Publishing
from rtmplite.net.rtmp_client import ClientStream, RtmpClient
from rtmplite.rtmp.client import Target

BAD_USAGE: Final = 2  # exit codes
FAILED: Final = 1

# What a server says of the playing, no part of what is played.
_ABOUT_PLAYING: Final = (amf0.encode("|RtmpSampleAccess"), amf0.encode("onPlayStatus"))
_KINDS: Final = {TagType.AUDIO: "audio", TagType.VIDEO: "video", TagType.SCRIPT: "data"}


def main(arguments: list[str] | None = None) -> int:
    """Run one command; its exit code: 0 done, 1 the other side failed, 2 bad usage."""
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options)
        return code
    except KeyboardInterrupt:
        return 0
    except (OSError, RemoteError, TimeoutError) as error:
        print(f"rtmplite: {error}", file=sys.stderr)
        return BAD_USAGE if options.run is serve.run else FAILED
    except LocalError as error:
        print(f"rtmplite: {error}", file=sys.stderr)
        return BAD_USAGE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m rtmplite", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    serve.add_to(commands)
    mend.add_to(commands)
    access.add_commands(commands)
    push.add_to(commands)
    probe.add_to(commands)

    publish = sending.add_to(commands)
    publish.set_defaults(run=_publish)

    play = commands.add_parser("play", help="store a stream in an FLV file")
    play.add_argument("-o", "--output", type=Path, default=Path("-"), help="the file, - for stdout")
    play.set_defaults(run=_play)

    dump = commands.add_parser("dump", help="print a line for every message of a stream")
    dump.add_argument("-o", "--output", type=Path, help="store it in an FLV file as well")
    dump.set_defaults(run=_dump)

    for command in (play, dump):
        command.add_argument("--seconds", type=float, help="stop after so much of it")
    for command in (publish, play, dump):
        command.add_argument("url", help="rtmp[s]://host[:port]/app/stream")
        command.add_argument("--digest", action="store_true", help="sign the handshake")
        command.add_argument("--timeout", type=float, default=10.0, help="seconds for each answer")
        transports.add_trust(command)
    return parser


def _publish(options: argparse.Namespace) -> int:
    tags = sending.load(options.file)
    client, stream = _open(options)
    publishing = Publishing(client, stream, _name(options), _connector(options), options.timeout)
    try:
        stream.publish(_name(options), timeout=options.timeout)
        sending.send(options, tags, publishing)
        publishing.client.send("FCUnpublish", _name(options))
        publishing.stream.delete()
    finally:
        publishing.close()
    return 0


def _play(options: argparse.Namespace) -> int:
    client, stream = _open(options)
    with _output(options.output) as output:
        _store(output, _messages(client, stream, options))
    return 0


def _dump(options: argparse.Namespace) -> int:
    client, stream = _open(options)

    def told() -> Iterator[Tag]:
        for tag in _messages(client, stream, options):
            kind = _KINDS[TagType(tag.tag_type)]
            print(f"{tag.timestamp / 1000:9.3f} s  {kind}  {len(tag.data):6}  {_describe(tag)}")
            yield tag

    if options.output is None:
        for _ in told():
            pass
        return 0
    with _output(options.output) as output:
        _store(output, told())
    return 0


def _open(options: argparse.Namespace) -> tuple[RtmpClient, ClientStream]:
    target = Target.parse(options.url)
    if not target.stream:
        raise LocalError(f"{options.url} names no stream")
    client = _connector(options)(target)
    return client, client.create_stream(timeout=options.timeout)


def _connector(options: argparse.Namespace) -> Connect:
    """How to reach a server, the one that was asked for or one that it sends us to."""
    return partial(
        RtmpClient.connect,
        timeout=options.timeout,
        handshake="digest" if options.digest else "simple",
        tls=transports.trust(options),
    )


def _name(options: argparse.Namespace) -> str:
    return Target.parse(options.url).stream


def _messages(
    client: RtmpClient, stream: ClientStream, options: argparse.Namespace
) -> Iterator[Tag]:
    """What a stream has, from its first message to its end or for so many seconds."""
    stream.play(_name(options), timeout=options.timeout)
    first: int | None = None
    playing = Playing(client, stream, _name(options), _connector(options), options.timeout)
    try:
        while not playing.ended or not playing.is_drained:
            message = playing.read(timeout=1.0)
            if message is None:
                continue
            if message.payload.startswith(_ABOUT_PLAYING):
                continue  # about the connection, no part of the stream
            first = message.timestamp if first is None else first
            if options.seconds is not None and message.timestamp - first > options.seconds * 1000:
                return
            yield Tag(message.type_id, message.timestamp, message.payload)
    finally:
        playing.close()


def _store(output: BinaryIO, tags: Iterator[Tag]) -> None:
    """Write as it comes: the header promises both media, since nobody knows yet."""
    output.write(bytes(file.Header(has_audio=True, has_video=True)) + bytes(4))
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

"""`python -m rtmplite publish`: sends an FLV file, once or in a loop."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Final, Protocol

import gevent

from rtmplite.errors import LocalError, RemoteError
from rtmplite.flv import file, metadata
from rtmplite.flv.tag import Tag, TagType, as_script
from rtmplite.net.clock import now
from rtmplite.net.usage import sentence

PROGRESS: Final = 0.5  # s
STEP: Final = 40  # ms from the end of a file to its next beginning, if the file does not tell
FOREVER: Final = 0
URL: Final = "The stream: rtmp, rtmps or rtmfp://[USER:PASSWORD@]HOST[:PORT]/APP/NAME."
LOOP: Final = "--loop"


class TagWriter(Protocol):
    """The stream that messages are published to."""

    def write(self, type_id: int, timestamp: int, payload: bytes) -> None:
        """Send one message, `timestamp` in ms."""


def add_to(commands: Any) -> argparse.ArgumentParser:
    """Add the command to a parser's; the caller adds the options common to all clients."""
    said = "publish an FLV file, at the pace of its timestamps"
    publish: argparse.ArgumentParser = commands.add_parser(
        "publish", help=said, description=sentence(said)
    )
    publish.add_argument("file", type=Path, metavar="FILE", help="The FLV file to publish.")
    publish.add_argument(
        "--fast", action="store_true", help="Publish as fast as the server takes it."
    )
    publish.add_argument(
        "--direct",
        action="store_true",
        help="Let other clients play from this one by RTMFP; the server only introduces them."
        " The peer id that they ask for is printed, and publishing begins with the first player.",
    )
    publish.add_argument(
        LOOP,
        type=_times,
        nargs="?",
        const=FOREVER,
        default=1,
        metavar="N",
        help="Publish the file N times; without a number until it is stopped.",
    )
    return publish


def spelled_out(words: Sequence[str]) -> list[str]:
    """Give `--loop` its number where it has none, as argparse would take a file for it.

    >>> spelled_out(["publish", "--loop", "a.flv", "--loop", "2"])
    ['publish', '--loop=0', 'a.flv', '--loop', '2']
    """
    following = [*words, ""][1:]
    return [
        f"{LOOP}={FOREVER}" if word == LOOP and not after.isdecimal() else word
        for word, after in zip(words, following, strict=True)
    ]


def send(options: argparse.Namespace, tags: Sequence[Tag], stream: TagWriter) -> None:
    """Write all tags, each when it is due, and print the progress."""
    began, sent, size, told, time = now(), 0, 0, 0.0, 0
    try:
        for time, tag in _rounds(tags, options.loop):
            if not options.fast and (early := began + time / 1000 - now()) > 0:
                gevent.sleep(early)
            data = tag.data
            if tag.tag_type == TagType.SCRIPT and metadata.read(data) is not None:
                data = metadata.wrapped(data)
            stream.write(tag.tag_type, time & 0xFFFFFFFF, data)
            sent, size = sent + 1, size + len(data)
            if now() - told >= PROGRESS:
                told = now()
                _progress(time, sent, size)
    finally:
        _progress(time, sent, size, "\n")


def load(path: Path) -> list[Tag]:
    """The tags of a file, data in AMF0: RTMP Errata §8.1.1.  OSError, LocalError for none."""
    try:
        tags = [as_script(tag) for tag in file.tags(path.read_bytes())]
    except RemoteError as error:
        raise LocalError(f"{path}: {error.description}") from None
    if not tags:
        raise LocalError(f"{path} is empty")
    return [tag for tag in tags if tag.tag_type != TagType.SCRIPT_AMF3]


def _times(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text} is no number of times")
    return int(text)


def _rounds(tags: Sequence[Tag], rounds: int) -> Iterator[tuple[int, Tag]]:
    """Give the time and the tag of each message; the times go on from round to round."""
    times = sorted({tag.timestamp for tag in tags})
    step = times[-1] - times[-2] if len(times) > 1 else STEP
    length = times[-1] - times[0] + step
    for number in count() if rounds == FOREVER else range(rounds):
        for tag in tags:
            yield tag.timestamp + number * length, tag


def _progress(milliseconds: int, messages: int, size: int, end: str = "\r") -> None:
    seconds = milliseconds / 1000
    print(f"{seconds:8.1f} s  {messages} messages  {size / 1000:.0f} kB", end=end, file=sys.stderr)

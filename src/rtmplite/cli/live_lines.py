"""Prints a line for each event of `net.server.live_log`, for people, with its time and name."""

import logging
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from rtmplite.net import addresses
from rtmplite.net.redaction import public
from rtmplite.net.server.live_log import LoggedLiveApplication, UserOf
from rtmplite.net.server.log_rate_limit import Bucket, LimitedPrinter
from rtmplite.rtmp.netconnection import NetConnection

log = logging.getLogger(__name__)

_WORDS: Final = {
    "publish-start": "publishing",
    "publish-end": "published",
    "play-start": "playing",
    "play-end": "played",
}


class PrintedLive(LoggedLiveApplication):
    """The application `live`, with a line on standard output for each event.

    Own design: a client that begins and ends all the time fills no log, nor do all together.
    """

    def __init__(self, user_of: UserOf = lambda connection, stream: "") -> None:
        super().__init__(self._print, user_of)
        self._printer = LimitedPrinter()
        self._clients: dict[object, Bucket] = {}

    def on_disconnect(self, connection: NetConnection, now: float) -> None:
        """Print why a client has gone, if a line was printed about it before."""
        super().on_disconnect(connection, now)
        if (client := self._clients.pop(connection.id, None)) is not None:
            line = f"{connection.id} {public(connection.reason)}"
            self._printer.say(stamped("disconnect", line), client, last=True)

    def _print(self, event: str, values: Mapping[str, object]) -> None:
        if event == "refused":
            warn(event, values)
            return
        who = values.get("rtmp", "http")
        if who not in self._clients:
            client = self._printer.client()
            if "rtmp" in values:
                self._clients[who] = client
        else:
            client = self._clients[who]
        address = addresses.written(str(values["source"]), int(str(values["port"])))
        line = f"{who} {_WORDS[event]} {values['name']}, {address}"
        if "user" in values:
            line += f", user {values['user']}"
        if "seconds" in values:
            line += f": {values['seconds']} s, {values['codecs'] or 'no media'}"
        if "bytes" in values:
            line += f", {values['bytes']} bytes"
        self._printer.say(stamped(event, line), client)


def warn(event: str, values: Mapping[str, object]) -> None:
    """Log a line about a client that is refused."""
    what = "connect" if values["wants"] == "connect" else f"have {values['name']}"
    line = f"{values['rtmp']} may not {what}, {values['source']}: {values['reason']}"
    log.warning("refused %s", _printable(line))


def stamped(event: str, line: str) -> str:
    """Write a line with its time in UTC and the name of the event."""
    return f"{stamp(time.time())} {event} {_printable(line)}"


def stamp(seconds: float) -> str:
    """Write a time in UTC in the format of RFC 3339, to the millisecond."""
    return f"{datetime.fromtimestamp(seconds, UTC).isoformat(timespec='milliseconds')[:-6]}Z"


def _printable(line: str) -> str:
    """Escape a line if a client has put anything unprintable into a name."""
    return line if line.isprintable() else ascii(line)[1:-1]

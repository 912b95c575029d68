"""The tables `[[route]]` of the configuration file: where calls to an address go.

Own design: the first table whose pattern matches decides; a call that none matches goes where it
would without routes.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from p2psip.errors import RemoteError
from p2psip.sip.uri import Uri
from rtmplite.net.settings import STRING, SettingType, required, rows, setting, string
from siprtmp.operation.arguments import did_you_mean

TARGETS: Final = ("to", "stream", "file", "announce")
USER: Final = "{user}"  # in `to`: the user that was called
_NAME: Final = re.compile(r"[^@?\s/]+")
INTRODUCTION: Final = (
    "A route says where calls to an address of ours go. The first one whose pattern matches "
    "counts; without one a call goes to a client, a stream or a phone of that name. A call that "
    "comes by a trunk is called what To says, a number without hyphens."
)


class Filled(SettingType[str]):
    """A text that is not empty."""

    def __init__(self) -> None:
        super().__init__(str, schema={**STRING, "minLength": 1})

    def read(self, value: object) -> str:
        if not value:
            raise ValueError("must be a string")
        return string(value)


@dataclass(frozen=True, slots=True)
class RouteSettings:
    """One table: calls to addresses that `match` go to one of the targets.

    `to` is a SIP URI, `stream` a name of the application `call`, `file` one of `--vod`; `announce`
    is a file that is played before the answer, and `push` a URL where the stream is published.
    """

    match: str = required(
        Filled(), "The pattern: user@domain, or the user alone.", example="+49301234*"
    )
    to: str = setting(
        Filled(), "", "Any SIP address, here or elsewhere; {user} is the user that was called."
    )
    stream: str = setting(
        Filled(),
        "",
        "A name of `call`, which answers at once and is heard and spoken to there.",
        example="studio",
    )
    file: str = setting(Filled(), "", "A file of `vod` that the caller hears.")
    announce: str = setting(
        Filled(),
        "",
        "A file that is heard before the answer, or alone, and then refused.",
        example="welcome",
    )
    push: str = setting(
        Filled(),
        "",
        "Publish the stream at this URL as well.",
        example="rtmps://live.example/app/KEY",
    )

    @property
    def pattern(self) -> str:
        """The pattern of user@domain, in small letters."""
        return (self.match if "@" in self.match else f"{self.match}@*").lower()

    @property
    def needs_files(self) -> bool:
        return bool(self.file or self.announce)

    def target(self, user: str) -> Uri:
        """The address that `to` names for a user that was called.  Raises RemoteError."""
        uri = Uri.parse(self.to.replace(USER, "x"))
        return uri.replace(user=user) if USER in self.to else uri


ROWS: Final = {row.name: row for row in rows(RouteSettings)}


def read_routes(value: Any) -> tuple[RouteSettings, ...]:
    """Read the tables.  Raises ValueError for a mistake, with one line that names it."""
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise ValueError("is a table: [[route]]")
    return tuple(map(_read, value))


def pushes(routes: tuple[RouteSettings, ...], app: str) -> tuple[str, ...]:
    """The rules of `--push` that the routes ask for, for streams of this application."""
    return tuple(f"{app}/{each.stream}={each.push}" for each in routes if each.push)


def _read(table: Mapping[str, Any]) -> RouteSettings:
    read = {}
    for key, value in table.items():
        if key not in ROWS:
            raise ValueError(f"unknown key {key!r}{did_you_mean(key, ROWS)}")
        try:
            read[key] = ROWS[key].type.read(value)
        except ValueError as error:
            raise ValueError(f"{key} {error}") from None
    if "match" not in read:
        raise ValueError('needs a match, such as "news" or "+4930*@*"')
    route = RouteSettings(**read)
    _check_targets(route, [key for key in TARGETS if key in read])
    return route


def _check_targets(route: RouteSettings, given: list[str]) -> None:
    at = f"match {route.match!r}"
    answering = [key for key in given if key != "announce"]
    if not given or len(answering) > 1:
        raise ValueError(f"{at}: one of to, stream and file is wanted, or announce alone")
    if route.to and len(given) > 1:
        raise ValueError(f"{at}: a call that goes to another address has no announce")
    if route.push and not route.stream:
        raise ValueError(f"{at}: push needs a stream")
    if route.stream and not _NAME.fullmatch(route.stream):
        raise ValueError(f"{at}: stream {route.stream!r} is a name without @, ? and /")
    if not route.to:
        return
    try:
        uri = route.target("x")
    except RemoteError:
        uri = Uri("")
    if uri.scheme not in ("sip", "sips") or not (uri.host and uri.user) or USER in uri.host:
        raise ValueError(f"{at}: to {route.to!r} is no SIP URI with a user")

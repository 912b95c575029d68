"""The tables `[[webhook]]` of the configuration file: web services that hear what calls do.

Own design: these are the operator's own, for all calls.  A user's subscription may have a URL as
well, which the gateway posts to if its host is on another list of the operator's (see
`--tree-webhook`); no other client can have it send requests to an address of its choice.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from rtmplite.net.settings import STRING, Choice, Many, SettingType, required, rows, setting, text
from siprtmp.operation.arguments import did_you_mean
from siprtmp.settings.types import check_service

SECRET: Final = "WEBHOOK_SECRET"  # the environment variable
EVENTS: Final = (
    *("begun", "ringing", "answered", "held", "resumed"),
    *("digit", "message", "transferred", "ended"),
)
INTRODUCTION: Final = (
    "A webhook is a web service that hears what happens to calls: an object of JSON is posted to "
    "it for each event, signed with the secret. What it does not answer with 2xx is posted again, "
    "later and later. Without a secret here, it is WEBHOOK_SECRET in the environment."
)


class Events(Many[str]):
    """Names of events, one or a list."""

    def __init__(self) -> None:
        super().__init__(Choice(*EVENTS))

    def read(self, value: object) -> tuple[str, ...]:
        names = value if isinstance(value, list) else [value]
        if not names or not all(each in EVENTS for each in names):
            raise ValueError(f"are some of {', '.join(EVENTS)}")
        return tuple(names)


def _url(url: str) -> str:
    check_service(url)
    return url


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """One service: its URL, the events it hears of, and the secret that signs them."""

    url: str = required(
        SettingType(_url, schema={**STRING, "pattern": "^[Hh][Tt][Tt][Pp][Ss]?://"}),
        "Where events are posted.",
        example="https://crm.example/calls",
    )
    events: tuple[str, ...] = setting(
        Events(), EVENTS, "The events that are posted.", example=["ringing", "answered", "ended"]
    )
    secret: str = setting(
        text(),
        "",
        "The key of the signature, if the environment lacks it.",
        repr=False,
        example="secret",
    )
    in_file: bool = field(default=False, compare=False)  # whether the file has the secret


ROWS: Final = {row.name: row for row in rows(WebhookSettings)}


def read_webhooks(
    value: Any, environment: Mapping[str, str] = os.environ
) -> tuple[WebhookSettings, ...]:
    """Read the tables.  Raises ValueError for a mistake, with one line that names it."""
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise ValueError("is a table: [[webhook]]")
    return tuple(_read(each, environment) for each in value)


def _read(table: Mapping[str, Any], environment: Mapping[str, str]) -> WebhookSettings:
    read = {}
    for key, value in {"url": "", **table}.items():
        if key not in ROWS:
            raise ValueError(f"unknown key {key!r}{did_you_mean(key, ROWS)}")
        try:
            read[key] = ROWS[key].type.read(value)
        except ValueError as error:
            raise ValueError(f"{key} {error}") from None
    in_file = bool(read.get("secret"))
    read["secret"] = read.get("secret") or environment.get(SECRET, "")
    if not read["secret"]:
        raise ValueError(f"{read['url']}: needs a secret, here or in {SECRET}")
    return WebhookSettings(**read, in_file=in_file)

"""The tables `[[trunk]]` of the configuration file: providers that calls to numbers leave by.

Own design: a trunk is one account at one provider.  Its password is in the table, or in the
environment, and goes to that provider alone.
"""

import argparse
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from p2psip.errors import RemoteError
from p2psip.sip.uri import Uri
from rtmplite.net.settings import (
    FLAG,
    STRING,
    Many,
    Number,
    Setting,
    SettingType,
    required,
    rows,
    setting,
    text,
)
from siprtmp.operation.arguments import did_you_mean

PASSWORD: Final = "TRUNK_PASSWORD_"  # the environment variable, followed by the name in capitals
REFRESH: Final = 120  # s, Own design: a provider that was started anew has forgotten us
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,32}")
INTRODUCTION: Final = (
    "A trunk is an account at a telephone provider. A call to a number leaves by the first trunk "
    "of which a pattern matches: to tel:+49-30-123 (hyphens, dots and brackets do not count), to "
    "+4930123 at one of the domains if nobody here has that name, or at the host of `address`. The "
    "next trunk that matches is called if that one answers 408 or 5xx, or cannot be reached. "
    "`numbers` need no `allow-targets`; the limits of calls hold. The password is proven to the "
    "server of the trunk alone; without it here, it is TRUNK_PASSWORD_BERLIN in the environment."
)


class Patterns(Many[str]):
    """Patterns of numbers, one or a list."""

    def __init__(self) -> None:
        super().__init__(SettingType(str, schema={"type": "string", "minLength": 1}))

    def read(self, value: object) -> tuple[str, ...]:
        patterns = value if isinstance(value, list) else [value]
        if not all(isinstance(each, str) and each for each in patterns):
            raise ValueError('are patterns, such as ["+49*", "0*"]')
        return tuple(patterns)


def _name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r}: letters, digits, - and _ are wanted")
    return name


def _uri(text: str) -> Uri:
    try:
        uri = Uri.parse(text)
    except RemoteError:
        uri = Uri("")
    if uri.scheme != "sip" or not uri.host or uri.password is not None:
        raise ValueError(f"{text!r} is no SIP URI")
    return uri


def _uri_or_none(text: str) -> Uri | None:
    return _uri(text) if text else None


@dataclass(frozen=True, slots=True)
class TrunkSettings:
    """One account: `address` is ours at the provider, `numbers` the patterns that it may call.

    `server` is where requests go if not to the host of `address`, `login` the user to authenticate
    as if it is not that of `address`.  Without `register` the provider calls us by its own ways;
    with it we register again after `refresh` seconds at the latest.
    `user` of `--users` is the one whose clients may take the calls of this number.
    """

    name: str = required(
        SettingType(_name, schema={**STRING, "pattern": f"^{_NAME.pattern}$"}),
        "What logs and the page of status call it.",
        example="berlin",
    )
    address: Uri = required(
        SettingType(_uri, schema={**STRING, "pattern": "^[Ss][Ii][Pp]:"}),
        "The account: a SIP URI with a user.",
        example="sip:4930123456@provider.example",
    )
    numbers: tuple[str, ...] = setting(
        Patterns(), (), "Patterns of the numbers that it calls.", example=["+49*", "0*"]
    )
    password: str = setting(
        text(), "", "The password, if the environment lacks it.", repr=False, example="secret"
    )
    login: str = setting(
        text(), "", "The user of the password, if not that of `address`.", example="4930123456"
    )
    server: Uri | None = setting(
        SettingType(_uri_or_none),
        None,
        "Where requests go, if not to the host of `address`.",
        example="sip:proxy.provider.example",
    )
    register: bool = setting(FLAG, True, "Register there; if not, the provider knows our address.")
    refresh: int = setting(
        Number(int, "S", 5, 86_400),
        REFRESH,
        "Register again after so many seconds at the latest.",
        unit="s",
    )
    user: str = setting(
        text(), "", "The one of `users` whose clients may take the number's calls.", example="alice"
    )
    in_file: bool = field(default=False, compare=False)  # whether the file has the password


ROWS: Final = {row.name: row for row in rows(TrunkSettings)}


def read_trunks(
    value: Any, environment: Mapping[str, str] = os.environ
) -> tuple[TrunkSettings, ...]:
    """Read the tables.  Raises ValueError for a mistake, with one line that names it."""
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise ValueError("is a table: [[trunk]]")
    trunks = tuple(_read(each, environment) for each in value)
    names = [trunk.name for trunk in trunks]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two are named {name}")
    return trunks


def variable_of(name: str) -> str:
    """The environment variable with the password of a trunk."""
    return PASSWORD + name.upper().replace("-", "_")


def _read(table: Mapping[str, Any], environment: Mapping[str, str]) -> TrunkSettings:
    for key in table:
        if key not in ROWS:
            raise ValueError(f"unknown key {key!r}{did_you_mean(key, ROWS)}")
    given = {"name": "", "address": "", **table}  # which are checked as if they were empty
    read = {key: _value(row, given) for key, row in ROWS.items() if key in given}
    name, password = read["name"], read.get("password", "")
    if not read["address"].user:
        raise ValueError(f"{name}: address needs a user, as in sip:493012345@provider.example")
    read["password"] = password or environment.get(variable_of(name), "")
    trunk = TrunkSettings(**read, in_file=bool(password))
    if trunk.register and not trunk.password:
        raise ValueError(f"{name}: needs a password, here or in {variable_of(name)}")
    return trunk


def _value(row: Setting, table: Mapping[str, Any]) -> Any:
    try:
        return row.type.read(table[row.name])
    except (ValueError, argparse.ArgumentTypeError) as error:
        at = "" if row.type.schema.get("type") == "string" else f"{table['name']}: "
        raise ValueError(f"{at}{row.name} {error}") from None

"""The tables `[[trunk]]` of the configuration file: providers that calls to numbers leave by.

Own design: a trunk is one account at one provider.  Its password is in the table, or in the
environment, and goes to that provider alone.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from p2psip.errors import RemoteError
from p2psip.sip.uri import Uri
from siprtmp.operation.arguments import did_you_mean

PASSWORD: Final = "TRUNK_PASSWORD_"  # the environment variable, followed by the name in capitals
KEYS: Final = (
    *("name", "address", "numbers", "password", "login", "server", "register", "refresh", "user"),
)
REFRESH: Final = 120  # s, Own design: a provider that was started anew has forgotten us
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,32}")


@dataclass(frozen=True, slots=True)
class TrunkSettings:
    """One account: `address` is ours at the provider, `numbers` the patterns that it may call.

    `server` is where requests go if not to the host of `address`, `login` the user to authenticate
    as if it is not that of `address`.  Without `register` the provider calls us by its own ways;
    with it we register again after `refresh` seconds at the latest.
    `user` of `--users` is the one whose clients may take the calls of this number.
    """

    name: str
    address: Uri
    numbers: tuple[str, ...]
    password: str = field(default="", repr=False)
    login: str = ""
    server: Uri | None = None
    register: bool = True
    refresh: int = REFRESH
    user: str = ""
    in_file: bool = field(default=False, compare=False)  # whether the file has the password


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
        if key not in KEYS:
            raise ValueError(f"unknown key {key!r}{did_you_mean(key, KEYS)}")
    name = _text(table, "name")
    if not _NAME.fullmatch(name):
        raise ValueError(f"name {name!r}: letters, digits, - and _ are wanted")
    address, server = _uri(table, "address"), _text(table, "server")
    if not address.user:
        raise ValueError(f"{name}: address needs a user, as in sip:493012345@provider.example")
    register = table.get("register", True)
    if not isinstance(register, bool):
        raise ValueError(f"{name}: register must be true or false")
    refresh = table.get("refresh", REFRESH)
    if type(refresh) is not int or not 5 <= refresh <= 86_400:
        raise ValueError(f"{name}: refresh must be seconds, 5 to 86400")
    password = _text(table, "password") or environment.get(variable_of(name), "")
    if register and not password:
        raise ValueError(f"{name}: needs a password, here or in {variable_of(name)}")
    return TrunkSettings(
        name,
        address,
        _patterns(table, name),
        password,
        _text(table, "login"),
        _uri(table, "server") if server else None,
        register,
        refresh,
        _text(table, "user"),
        in_file=bool(_text(table, "password")),
    )


def _patterns(table: Mapping[str, Any], name: str) -> tuple[str, ...]:
    given = table.get("numbers", [])
    patterns = given if isinstance(given, list) else [given]
    if not all(isinstance(each, str) and each for each in patterns):
        raise ValueError(f'{name}: numbers are patterns, such as ["+49*", "0*"]')
    return tuple(patterns)


def _text(table: Mapping[str, Any], key: str) -> str:
    value = table.get(key, "")
    if not isinstance(value, str):
        raise ValueError(f"{key} must be a string")
    return value


def _uri(table: Mapping[str, Any], key: str) -> Uri:
    text = _text(table, key)
    try:
        uri = Uri.parse(text)
    except RemoteError:
        uri = Uri("")
    if uri.scheme != "sip" or not uri.host or uri.password is not None:
        raise ValueError(f"{key} {text!r} is no SIP URI")
    return uri

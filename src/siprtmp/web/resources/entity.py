"""What a resource holds, or an event brings: a value of JSON, or octets of another media type.

Own design: values are compared and tagged by their octets, in one way of writing JSON.
"""

import binascii
import json
from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from hashlib import sha256
from math import isfinite
from typing import Any, Final

from p2psip.errors import RemoteError
from p2psip.sip import strict_json

JSON: Final = "application/json"
MAX_TYPE: Final = 100  # letters of a media type

JsonValue = Any
"""None, a boolean, a number, a string, or a list or an object of these."""


def is_json(media_type: str) -> bool:
    """Whether a media type is JSON.

    >>> is_json("application/geo+json"), is_json("application/sdp")
    (True, False)
    """
    essence = media_type.partition(";")[0].strip().lower()
    return essence == JSON or essence.endswith("+json")


@dataclass(frozen=True, slots=True)
class Entity:
    """A value of JSON if its `type` is, else octets.

    >>> Entity(JSON, {"a": 1}).octets
    b'{"a": 1}'
    """

    type: str
    data: JsonValue
    octets: bytes = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        octets = strict_json.dumps(self.data).encode() if is_json(self.type) else self.data
        object.__setattr__(self, "octets", octets)

    @classmethod
    def read(cls, media_type: str, octets: bytes) -> "Entity":
        """Read the content of a request.  Raises RemoteError, 400 or 415."""
        _check_type(media_type)
        return cls(media_type, read_json(octets) if is_json(media_type) else octets)

    @classmethod
    def of_message(cls, media_type: str, value: JsonValue) -> "Entity":
        """Read the `entity` of a message.  Raises RemoteError.

        A type that is not JSON has a string of base64.
        """
        _check_type(media_type)
        if is_json(media_type):
            return cls(media_type, value)
        if not isinstance(value, str):
            raise RemoteError("An entity of this type is a string of base64")
        try:
            return cls(media_type, b64decode(value, validate=True))
        except (binascii.Error, ValueError):
            raise RemoteError("An entity of this type is a string of base64") from None

    @property
    def for_message(self) -> JsonValue:
        """The `entity` of a message."""
        return self.data if is_json(self.type) else b64encode(self.data).decode()

    @property
    def tag(self) -> str:
        """The ETag, with its quotes: two entities have the same one if they are the same."""
        digest = sha256(self.type.encode() + b"\0" + self.octets)
        return f'"{digest.hexdigest()[:22]}"'


def read_json(octets: bytes) -> JsonValue:
    """Read a value.  Raises RemoteError if the octets are not JSON in UTF-8."""
    try:
        return json.loads(octets.decode(), parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError):
        raise RemoteError("That is not JSON") from None


def _refuse(name: str) -> JsonValue:
    raise ValueError(name)  # NaN, which Python reads and JSON lacks


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(text)
    return number


def _check_type(media_type: str) -> None:
    kind, slash, subtype = media_type.partition(";")[0].partition("/")
    is_plain = media_type.isascii() and media_type.isprintable()
    if not (kind and slash and subtype and is_plain) or len(media_type) > MAX_TYPE:
        raise RemoteError("A media type, please, such as application/json", 415)

"""A client's answers to a server that asks for user and password: Field §"authmod=adobe".

Own design: the server's half is in `credentials`, and uses the same digest.  The password itself
is never sent.

    >>> target = Target.parse("rtmp://ann:secret@example.net/live")
    >>> asked = "[ AccessManager.Reject ] : [ code=403 need auth; authmod=adobe ] : "
    >>> proven(target, asked, bytes).proof
    'authmod=adobe&user=ann'
"""

from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from hashlib import md5
from typing import Final

from rtmplite.errors import RemoteError
from rtmplite.rtmp.client import Target

_METHOD: Final = "authmod=adobe"
_FIRST: Final = "code=403 need auth"
_SECOND: Final = "?reason=needauth"
_FAILED: Final = "?reason=authfailed"


def proven(target: Target, refusal: str, random: Callable[[int], bytes]) -> Target | None:
    """Give `target` with its next proof, None if none is asked: Field §"authmod=adobe"."""
    if _METHOD not in refusal or not (target.user and target.password):
        return None
    if target.proof and _FAILED in refusal:
        raise RemoteError("Wrong user or password.", "NetConnection.Connect.Rejected")
    begin = f"{_METHOD}&user={target.user}"
    if not target.proof and _FIRST in refusal:
        return replace(target, proof=begin)
    if target.proof != begin or _SECOND not in refusal:
        return None
    said = _fields(refusal.partition(_SECOND)[2])
    word, opaque = random(4).hex(), said.get("opaque", "")
    salted = digest(target.user + said.get("salt", "") + target.password)
    response = digest(salted + (opaque or said.get("challenge", "")) + word)
    proof = f"{begin}&challenge={word}&response={response}"
    return replace(target, proof=f"{proof}&opaque={opaque}" if opaque else proof)


def _fields(query: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in query.split(" ")[0].split("&"))
    return {name: value for name, _, value in pairs}


def digest(words: str) -> str:
    """MD5 in base64: Field §"authmod=adobe"."""
    return b64encode(md5(words.encode(errors="replace"), usedforsecurity=False).digest()).decode()

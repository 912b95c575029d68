"""Signatures on the keying messages: empty, or made with passwords.

Implements RFC 7425 §4.3.5.

    >>> signature = sign(b"parameters", [(b"alice", b"secret")])
    >>> is_valid(signature, b"parameters", {b"alice": b"secret"}, required=True)
    True
    >>> is_valid(b"X", b"parameters", {b"alice": b"secret"}, required=True)
    False
"""

import hmac
from collections.abc import Iterable, Mapping

from rtmplite.errors import RemoteError
from rtmplite.rtmfp.crypto import fields
from rtmplite.rtmfp.crypto.params import NO_SIGNATURE, SignatureOption
from rtmplite.rtmfp.wire.option import Option, encode_options

_HMAC_LENGTH = 32


def sign(parameters: bytes, passwords: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Sign with each (identifier, password) of `passwords`; without any the signature is "X".

    §4.3.5.1.1, §4.3.5.
    """
    return (
        encode_options(
            Option(
                SignatureOption.SIMPLE_PASSWORD,
                # §4.3.5.1.1 [password-layout]
                hmac.digest(password, parameters, "sha256") + identifier,
            )
            for identifier, password in passwords
        )
        or NO_SIGNATURE  # §4.3.5 [x-for-none]
    )


def is_valid(
    signature: bytes, parameters: bytes, passwords: Mapping[bytes, bytes], *, required: bool
) -> bool:
    """Whether a signature is acceptable; `passwords` are by identifier: §4.3.5.

    Any signature is, unless one is `required`.
    """
    if not required:  # §4.3.5 [any-valid-if-not-required]
        return True
    try:
        options = fields.read(signature)
    except RemoteError:  # §4.3.5 [malformed-is-empty]
        return False
    verified = False
    # §4.3.5.1 [unknown-options-ignored]
    for value in fields.values(options, SignatureOption.SIMPLE_PASSWORD):
        # §4.3.5.1.1 [password-layout]
        digest, identifier = value[:_HMAC_LENGTH], value[_HMAC_LENGTH:]
        password = passwords.get(identifier)
        if password is None:  # §4.3.5.1.1 [unrecognized-ignored]
            continue
        if not hmac.compare_digest(digest, hmac.digest(password, parameters, "sha256")):
            return False  # §4.3.5.1.1 [one-bad-spoils-all]
        verified = True
    return verified  # §4.3.5 [may-require]

"""The Flash cryptography profile: an identity, and the key agreement with other ones.

Implements RFC 7425 §4; `FlashProfile` is a `rtmplite.rtmfp.crypto.profile.CryptoProfile`.

    >>> server = FlashProfile.server(bytes)
    >>> client = FlashProfile.client(bytes)
    >>> agreement = client.initiate(server.certificate)           # for the IIKeying
    >>> answer = server.respond(agreement.component, client.certificate)  # for the RIKeying
    >>> keys = agreement.agree(answer.component)
    >>> keys.cipher.open(answer.keys.cipher.seal(b"hello"))[:5]
    b'hello'
"""

import hmac
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from rtmplite.errors import LocalError, RemoteError
from rtmplite.rtmfp.crypto import fields
from rtmplite.rtmfp.crypto.certificate import Certificate, build
from rtmplite.rtmfp.crypto.cipher import FlashCipher, default_cipher
from rtmplite.rtmfp.crypto.dh import GROUPS, Group, KeyPair
from rtmplite.rtmfp.crypto.epd import Epd
from rtmplite.rtmfp.crypto.keying import Component, Policy, derive, protections
from rtmplite.rtmfp.crypto.params import NO_SIGNATURE, SALT_LENGTH, SignatureOption
from rtmplite.rtmfp.crypto.profile import KeyingAnswer, Keys
from rtmplite.rtmfp.wire.option import Option, encode_options

# Own design: the groups that §4.2 asks everybody to have, the strongest first.  Stronger ones
# take more time for each session, so they have to be asked for.
PREFERRED_GROUPS: Final = (14, 5, 2)

DEFAULT_POLICY: Final = Policy()

_HMAC_LENGTH = 32


def sign(parameters: bytes, passwords: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Sign with each (identifier, password) of `passwords`; without any the signature is "X".

    §4.3.5.1.1, §4.3.5.

        >>> signature = sign(b"parameters", [(b"alice", b"secret")])
        >>> is_valid(signature, b"parameters", {b"alice": b"secret"}, required=True)
        True
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
    """Whether a signature is acceptable, as any is unless one is `required`: §4.3.5."""
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


@dataclass(frozen=True, slots=True)
class Passwords:
    """The credentials of §4.3.5.1.1, as (identifier, password) and by identifier.

    We sign with `ours` and verify with `theirs`; if `required`, a signature without a known
    password is refused.
    """

    ours: tuple[tuple[bytes, bytes], ...] = field(default=(), repr=False)
    theirs: Mapping[bytes, bytes] = field(default_factory=dict, repr=False)
    required: bool = False


NO_PASSWORDS: Final = Passwords()


class FlashProfile:
    """One identity: its certificate, its static keys if any, and its policy of protection.

    RFC 7425 §4.  `keys` are static key pairs in order of preference; without them the keys are
    ephemeral, in one of `groups`, and the certificate differs from others by randomness alone.
    `random(n)` returns n bytes and may be called from any thread.
    """

    def __init__(
        self,
        random: Callable[[int], bytes],
        *,
        keys: Iterable[KeyPair] = (),
        groups: Iterable[int] = PREFERRED_GROUPS,
        hostname: bytes | None = None,
        accepts_ancillary_data: bool = True,
        policy: Policy = DEFAULT_POLICY,
        passwords: Passwords = NO_PASSWORDS,
    ) -> None:
        self._random = random
        # §4.3.3.5 [several-keys] [one-key-per-group]
        self._keys = {pair.group.group_id: pair for pair in keys}
        self._groups = tuple(self._keys) or tuple(groups)
        if not self._groups or not set(self._groups) <= GROUPS.keys():
            raise LocalError(f"no such Diffie-Hellman groups: {self._groups}")
        self._policy, self._passwords = policy, passwords
        static = bool(self._keys)
        self.certificate = build(
            hostname=hostname,
            accepts_ancillary_data=accepts_ancillary_data,
            # §4.3.3.4 [ephemeral-excludes-static], §4.3.3.5 [static-excludes-ephemeral]
            groups=() if static else self._groups,
            keys=((number, pair.public) for number, pair in self._keys.items()),
            extra=b"" if static else random(SALT_LENGTH),  # §4.3.3.3 [extra-unique]
        )
        self._near = Certificate.parse(self.certificate)

    @classmethod
    def server(
        cls, random: Callable[[int], bytes], *, policy: Policy = DEFAULT_POLICY
    ) -> "FlashProfile":
        """Make the identity of a server, which clients reach by URL: §7 [ephemeral-servers]."""
        return cls(random, policy=policy)

    @classmethod
    def client(
        cls,
        random: Callable[[int], bytes],
        *,
        groups: Iterable[int] = PREFERRED_GROUPS,
        policy: Policy = DEFAULT_POLICY,
    ) -> "FlashProfile":
        """Make a new identity, with a peer id that nobody can forge.  Slow: run it in a thread.

        §7 [static-clients] [new-certificate]: one for each NetConnection.  It is reached by
        fingerprint only.
        """
        keys = [KeyPair.generate(GROUPS[number], random) for number in groups]
        return cls(random, keys=keys, accepts_ancillary_data=False, policy=policy)

    def __repr__(self) -> str:
        return f"FlashProfile({self.peer_id.hex()})"

    @property
    def peer_id(self) -> bytes:
        """Our own fingerprint: §4.3.2 [fingerprint]."""
        return self._near.fingerprint

    def default_cipher(self) -> FlashCipher:
        """Give the cipher of the Default Session Key: §4.1."""
        return default_cipher()

    def selects(self, epd: bytes) -> bool:
        """Whether an EPD selects this endpoint: §4.4.3.  A malformed EPD selects no endpoint."""
        parsed = _parsed_epd(epd)
        return parsed is not None and parsed.selects(self._near)

    def is_selected(self, certificate: bytes, epd: bytes) -> bool:
        """Whether an EPD selects a certificate: §4.4.3.  False if either is malformed."""
        parsed = _parsed_epd(epd)
        try:
            return parsed is not None and parsed.selects(Certificate.parse(certificate))
        except RemoteError:
            return False

    def is_authentic(self, certificate: bytes) -> bool:
        """Whether a certificate is properly encoded: §4.3.4 [encoded-is-authentic]."""
        try:
            Certificate.parse(certificate)
        except RemoteError:
            return False
        return True

    def fingerprint(self, certificate: bytes) -> bytes:
        """Return the peer id of a certificate; RemoteError if it is malformed: §4.3.2."""
        return Certificate.parse(certificate).fingerprint

    def wanted_fingerprint(self, epd: bytes) -> bytes | None:
        """Return the peer id that an EPD asks for, if it asks for one: §4.4.2.3."""
        parsed = _parsed_epd(epd)
        return None if parsed is None else parsed.fingerprint

    def canonical_epd(self, certificate: bytes) -> bytes:
        """Return the discriminator that has only the fingerprint: §4.4.4 [canonical-epd]."""
        return Epd(fingerprint=self.fingerprint(certificate)).encode()

    def sign(self, parameters: bytes) -> bytes:
        """Sign with our passwords: §4.3.5."""
        return sign(parameters, self._passwords.ours)

    def verify(self, certificate: bytes, parameters: bytes, signature: bytes) -> bool:
        """Whether a signature is acceptable: §4.3.5.  Certificates have no signature keys."""
        given = self._passwords
        return is_valid(signature, parameters, given.theirs, required=given.required)

    def wins_glare(self, far_certificate: bytes) -> bool:
        """Whether our certificate comes first in byte order: §4.3.6 [glare-order]."""
        return self.certificate <= far_certificate

    def overrides(self, new_certificate: bytes, old_certificate: bytes) -> bool:
        """Whether a new session replaces an old one: §4.3.7 [only-identical-overrides]."""
        return new_certificate == old_certificate

    def initiate(self, far_certificate: bytes) -> "FlashAgreement":
        """Choose a group, make our component; RemoteError for no common group: §4.6.1.  Slow."""
        far = Certificate.parse(far_certificate)
        number = next((number for number in self._groups if number in far.groups), None)
        if number is None:
            raise RemoteError("no Diffie-Hellman group in common")
        _check_static_key(far, number)
        if number in self._keys:
            # §4.5.2.3 [select-if-static] [select-only-if-static], §4.6.1.3 [initiator-salts]
            # §4.6.1.4 [both-salt], §4.5.2.2 [salt-size]
            pair = self._keys[number]
            salt = self._random(SALT_LENGTH)
            near = self._policy.component(group_select=number, extra_randomness=salt)
        else:
            # §4.5.2.1 [key-if-ephemeral]; the responder's certificate says if §4.6.1.1 or §4.6.1.2
            pair = KeyPair.generate(GROUPS[number], self._random)
            near = self._policy.component(ephemeral_key=(number, pair.public))
        return FlashAgreement(pair, near, far, self._policy)

    def respond(self, far_component: bytes, far_certificate: bytes) -> KeyingAnswer:
        """Make our component and the keys; RemoteError if the other does not fit: §4.6.1.  Slow."""
        far, initiator = Component.parse(far_component), Certificate.parse(far_certificate)
        self._policy.check(far)
        group, far_public = _initiators_key(initiator, far)
        if group.group_id not in self._groups:
            raise RemoteError(f"group {group.group_id} is not among ours")
        # §4.6.2 [no-session-with-bad-key], before the slow part
        if not group.is_acceptable(far_public):
            raise RemoteError("the initiator's Diffie-Hellman public key is not acceptable")
        if self._keys:
            # §4.5.2.1 [no-key-if-static], §4.6.1.2 [responder-salts], §4.6.1.4 [both-salt]
            pair = self._keys[group.group_id]
            near = self._policy.component(extra_randomness=self._random(SALT_LENGTH))
        else:
            # §4.5.2.1 [key-if-ephemeral], §4.6.1.1 [same-group], §4.6.1.3 [initiator-salts]
            pair = KeyPair.generate(group, self._random)
            near = self._policy.component(ephemeral_key=(group.group_id, pair.public))
        component = near.encode()
        keys = _make_keys(pair.secret(far_public), component, far_component)
        return KeyingAnswer(component, keys)


class FlashAgreement:
    """An initiator's half of the keying until the other comes; an `Agreement`: §4.6.1."""

    def __init__(self, pair: KeyPair, near: Component, far: Certificate, policy: Policy) -> None:
        self._pair, self._far, self._policy = pair, far, policy
        self.component = near.encode()

    def agree(self, far_component: bytes) -> Keys:
        """Make the keys; RemoteError if the responder's component does not fit: §4.6.  Slow."""
        far = Component.parse(far_component)
        self._policy.check(far)
        number = self._pair.group.group_id
        if self._far.static_keys:
            _refuse_ephemeral(far)
            # §4.6.1.2 [responder-salts], §4.6.1.4 [both-salt]
            far_public = self._far.static_keys[number]
        elif far.ephemeral_key is None or far.ephemeral_key[0] != number:
            # §4.5.2.1 [key-if-ephemeral], §4.6.1.1 [same-group], §4.6.1.3
            raise RemoteError(f"the responder sent no ephemeral key in group {number}")
        else:
            far_public = far.ephemeral_key[1]
        return _make_keys(self._pair.secret(far_public), self.component, far_component)


def _parsed_epd(epd: bytes) -> Epd | None:
    try:
        return Epd.parse(epd)
    except RemoteError:
        return None


def _check_static_key(far: Certificate, number: int) -> None:
    """Refuse a certificate whose static key is unsafe to use: §4.6.2."""
    public = far.static_keys.get(number)
    if public is not None and not GROUPS[number].is_acceptable(public):
        raise RemoteError("the responder's Diffie-Hellman public key is not acceptable")


def _initiators_key(certificate: Certificate, component: Component) -> tuple[Group, int]:
    """Find the group that an initiator chose, and its public key there: §4.6.1."""
    if certificate.static_keys:
        _refuse_ephemeral(component)
        number = component.group_select
        if number is None or number not in certificate.static_keys:
            # §4.5.2.3 [select-if-static]
            raise RemoteError("the initiator selects none of its static keys")
        public = certificate.static_keys[number]
    elif component.ephemeral_key is None or component.group_select is not None:
        # §4.5.2.1 [key-if-ephemeral], §4.5.2.3 [select-only-if-static]
        raise RemoteError("no ephemeral key of the initiator, or a static one that it has not")
    else:
        number, public = component.ephemeral_key
        if number not in certificate.ephemeral_groups:  # §4.6.1.1 [same-group], §4.6.1.2
            raise RemoteError(f"group {number} is not among the initiator's")
    group = GROUPS.get(number)
    if group is None:
        raise RemoteError(f"Diffie-Hellman group {number} is not known")
    return group, public


def _refuse_ephemeral(component: Component) -> None:
    """Refuse an ephemeral key if the certificate has static ones: §4.5.2.1 [no-key-if-static]."""
    if component.ephemeral_key is not None:
        raise RemoteError("an ephemeral key, from an end with static ones")


def _make_keys(dh_secret: bytes, sknc: bytes, skfc: bytes) -> Keys:
    """Derive the keys and set up the cipher: §4.6.3 to §4.6.6."""
    keys = derive(dh_secret, sknc, skfc)
    send, receive = protections(keys, Component.parse(sknc), Component.parse(skfc))
    return Keys(FlashCipher(send, receive), keys.near_nonce, keys.far_nonce)

"""Session keying components: public keys, salt, and how packets are to be protected.

Implements RFC 7425 §4.5, and the keys that two components make: §4.6.3 to §4.6.6.
"""

import hmac
from dataclasses import dataclass, field

from rtmplite.errors import LocalError, RemoteError
from rtmplite.rtmfp.crypto import fields
from rtmplite.rtmfp.crypto.cipher import Protection
from rtmplite.rtmfp.crypto.params import HMAC_LENGTH, HMAC_LENGTHS, KeyingOption
from rtmplite.rtmfp.wire.option import Option, encode_options
from rtmplite.rtmfp.wire.vlu import decode_vlu, encode_vlu

_SND, _SOR, _REQ = 4, 2, 1  # the flags of §4.5.2.4 and §4.5.2.5


@dataclass(frozen=True, slots=True)
class Negotiation:
    """One end's flags about HMACs or numbers, none without the option: §4.5.2.4, §4.5.2.5."""

    will_send_always: bool = False
    will_send_on_request: bool = False
    request: bool = False

    @classmethod
    def parse(cls, flags: int) -> "Negotiation":
        """Read the flags; reserved ones are ignored: RFC 7425 §3 [reserved-ignored]."""
        # §4.5.2.4 [hmac-layout], §4.5.2.5 [sseq-layout]
        return cls(bool(flags & _SND), bool(flags & _SOR), bool(flags & _REQ))

    @property
    def flags(self) -> int:
        """The byte of flags, reserved ones zero: RFC 7425 §3 [reserved-zero]."""
        # §4.5.2.4 [hmac-layout], §4.5.2.5 [sseq-layout]
        return _SND * self.will_send_always + _SOR * self.will_send_on_request + _REQ * self.request

    @property
    def can_send(self) -> bool:
        """Whether this end sends them at all: §4.6.4, §4.6.6."""
        return self.will_send_always or self.will_send_on_request

    def sends_to(self, far: "Negotiation") -> bool:
        """Whether this end sends them in a session with the other end: §4.6.4, §4.6.6."""
        # §4.6.4 [hmac-always] [hmac-on-request], §4.6.6 [sseq-always]
        # §4.6.6 [sseq-on-request]
        return self.will_send_always or (self.will_send_on_request and far.request)


EAGER = Negotiation(will_send_always=True, will_send_on_request=True, request=True)


@dataclass(frozen=True, slots=True)
class Policy:
    """The protection that an endpoint wants: §4.5.2.4, §4.5.2.5.

    The HMACs it sends are cut to `hmac_length` bytes.  It should request what it requires.  Own
    design: by default HMACs and numbers are sent and requested, as an HMAC takes no more time than
    a checksum; neither is required, since some peers in the field have none.
    """

    hmac: Negotiation = EAGER  # §7 [hmac]
    hmac_length: int = HMAC_LENGTH
    sequence_numbers: Negotiation = EAGER  # §7 [numbers-against-replay] [numbers-against-likeness]
    requires_hmac: bool = False
    requires_sequence_numbers: bool = False

    def __post_init__(self) -> None:
        """Raise LocalError for a length that HMACs cannot have: §4.5.2.4 [hmac-length]."""
        if self.hmac_length not in HMAC_LENGTHS:
            raise LocalError(f"HMACs of {self.hmac_length} bytes")

    def component(
        self,
        ephemeral_key: tuple[int, int] | None = None,
        group_select: int | None = None,
        extra_randomness: bytes = b"",
    ) -> "Component":
        """Make our component for one keying: §4.5.1."""
        return Component(
            ephemeral_key,
            group_select,
            extra_randomness,
            self.hmac,
            self.hmac_length if self.hmac.can_send else 0,  # §4.5.2.4 [hmac-length]
            self.sequence_numbers,
        )

    def check(self, far: "Component") -> None:
        """Raise RemoteError if the far end will not send fields we require: §4.6.4, §4.6.6."""
        # §4.6.4 [reject-without-hmac]
        if self.requires_hmac and not far.hmac.can_send:
            raise RemoteError("the far end sends no HMACs")
        # §4.6.6 [reject-without-sseq]
        if self.requires_sequence_numbers and not far.sequence_numbers.can_send:
            raise RemoteError("the far end sends no session sequence numbers")


@dataclass(frozen=True, slots=True)
class Component:
    """The options of a session keying component: §4.5.2.

    `ephemeral_key` is a group id and a public key; `group_select` is the group id of the static
    keys to use.
    """

    ephemeral_key: tuple[int, int] | None = None
    group_select: int | None = None
    extra_randomness: bytes = b""
    hmac: Negotiation = Negotiation()
    hmac_length: int = 0
    sequence_numbers: Negotiation = Negotiation()

    @classmethod
    def parse(cls, encoded: bytes | memoryview) -> "Component":
        """Read a component, ignoring unknown options: §4.5.2.  RemoteError if malformed."""
        options = fields.read(encoded)
        # §4.5.2.1 [ephemeral-key-once], §4.5.2.3 [group-select-once]
        key = fields.only(options, KeyingOption.EPHEMERAL_PUBLIC_KEY)
        group = fields.only(options, KeyingOption.GROUP_SELECT)
        hmac_value = fields.only(options, KeyingOption.HMAC_NEGOTIATION)
        numbers = fields.only(options, KeyingOption.SEQUENCE_NUMBER_NEGOTIATION)
        hmac_flags, hmac_length = _read_hmac(hmac_value)
        return cls(
            None if key is None else fields.read_key(key),
            None if group is None else fields.read_group(group),
            b"".join(fields.values(options, KeyingOption.EXTRA_RANDOMNESS)),
            hmac_flags,
            hmac_length,
            Negotiation() if numbers is None else _read_flags(numbers),
        )

    def encode(self) -> bytes:
        """Write the options that are set, and both negotiations in any case: §4.5.1."""
        options: list[Option] = []
        if self.group_select is not None:
            options.append(Option(KeyingOption.GROUP_SELECT, encode_vlu(self.group_select)))
        if self.ephemeral_key is not None:
            value = fields.write_key(*self.ephemeral_key)
            options.append(Option(KeyingOption.EPHEMERAL_PUBLIC_KEY, value))
        if self.extra_randomness:
            options.append(Option(KeyingOption.EXTRA_RANDOMNESS, self.extra_randomness))
        hmac_value = bytes((self.hmac.flags,)) + encode_vlu(self.hmac_length)
        numbers = bytes((self.sequence_numbers.flags,))
        options.append(Option(KeyingOption.HMAC_NEGOTIATION, hmac_value))
        options.append(Option(KeyingOption.SEQUENCE_NUMBER_NEGOTIATION, numbers))
        return encode_options(options)


def _read_flags(value: bytes) -> Negotiation:
    if not value:
        raise RemoteError("a negotiation without flags")
    return Negotiation.parse(value[0])


def _read_hmac(value: bytes | None) -> tuple[Negotiation, int]:
    if value is None:
        return Negotiation(), 0
    flags = _read_flags(value)
    length = decode_vlu(value, 1)[0]
    # §4.5.2.4 [hmac-length], §4.6.4 [hmac-length-4-to-32]; without HMACs the length is ignored
    if flags.can_send and length not in HMAC_LENGTHS:
        raise RemoteError(f"HMACs of {length} bytes")
    return flags, length


@dataclass(frozen=True, slots=True)
class SessionKeys:
    """The keys and nonces derived from a shared secret, 32 bytes each: §4.6.3 to §4.6.5."""

    encrypt_key: bytes = field(repr=False)
    decrypt_key: bytes = field(repr=False)
    hmac_send_key: bytes = field(repr=False)
    hmac_recv_key: bytes = field(repr=False)
    near_nonce: bytes = field(repr=False)
    far_nonce: bytes = field(repr=False)


def derive(dh_secret: bytes, sknc: bytes, skfc: bytes) -> SessionKeys:
    """Make the keys and nonces of the end that sent `sknc` and got `skfc`: §4.6."""
    # §4.6.3 [encrypt-key] [decrypt-key]
    encrypt_key = _hmac(dh_secret, _hmac(skfc, sknc))
    decrypt_key = _hmac(dh_secret, _hmac(sknc, skfc))
    return SessionKeys(
        encrypt_key,
        decrypt_key,
        _hmac(dh_secret, encrypt_key),  # §4.6.4 [hmac-send-key]
        _hmac(dh_secret, decrypt_key),  # §4.6.4 [hmac-recv-key]
        _hmac(dh_secret, sknc),  # §4.6.5 [near-nonce]
        _hmac(dh_secret, skfc),  # §4.6.5 [far-nonce]
    )


def protections(
    keys: SessionKeys, near: Component, far: Component
) -> tuple[Protection, Protection]:
    """Return the protection of packets to send, and of packets received: §4.6.4, §4.6.6."""
    return (
        _protection(keys.encrypt_key, keys.hmac_send_key, near, far),
        _protection(keys.decrypt_key, keys.hmac_recv_key, far, near),
    )


def _protection(key: bytes, hmac_key: bytes, sender: Component, receiver: Component) -> Protection:
    numbered = sender.sequence_numbers.sends_to(receiver.sequence_numbers)
    if not sender.hmac.sends_to(receiver.hmac):  # §4.6.4 [else-checksum]
        return Protection(key, numbered=numbered)
    # §4.7.3.2 [each-end-its-length]
    return Protection(key, hmac_key, sender.hmac_length, numbered)


def _hmac(key: bytes, message: bytes) -> bytes:
    """HMAC-SHA256(K, M): RFC 7425 §2."""
    return hmac.digest(key, message, "sha256")

"""Strategies for STUN messages, for tests of any implementation.

Own design: the oracle's grammar of RFC 8489 §5 and §14.
"""

from functools import cache
from struct import pack
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from p2psip.nat.stun import (
    StunClass,
    StunMessage,
    StunType,
    TransportAddress,
    write_address,
    write_error,
)
from p2psip.nat.turn import (
    CHANNELS,
    TurnMethod,
    TurnType,
    write_channel,
    write_family,
    write_lifetime,
    write_transport,
)

classes: SearchStrategy[StunClass] = st.sampled_from(StunClass)
methods: SearchStrategy[int] = st.just(1) | st.integers(0, 0xFFF)
transaction_ids: SearchStrategy[bytes] = st.binary(min_size=12, max_size=12)
addresses: SearchStrategy[TransportAddress] = st.builds(
    TransportAddress,
    st.ip_addresses().filter(lambda ip: not getattr(ip, "scope_id", None)).map(str),
    st.integers(0, 0xFFFF),
)
_signatures = {StunType.MESSAGE_INTEGRITY, StunType.MESSAGE_INTEGRITY_SHA256, StunType.FINGERPRINT}


@cache
def attributes() -> SearchStrategy[tuple[int, bytes]]:
    """One attribute that signs nothing: RFC 8489 §14."""
    texts = st.sampled_from([StunType.USERNAME, StunType.REALM, StunType.NONCE, StunType.SOFTWARE])
    others = st.integers(0, 0xFFFF).filter(lambda kind: kind not in _signatures)
    errors = st.builds(write_error, st.integers(300, 699), st.text(max_size=20))
    return st.one_of(
        st.tuples(texts, st.text(max_size=40).map(str.encode)),
        st.tuples(st.just(StunType.MAPPED_ADDRESS), addresses.map(write_address)),
        st.tuples(st.just(StunType.ERROR_CODE), errors),
        st.tuples(others, st.binary(max_size=40)),
    )


_ATTRIBUTES: Final = st.lists(attributes(), max_size=6)


@st.composite
def messages(
    draw: DrawFn,
    keys: SearchStrategy[bytes | None] | None = None,
    fingerprints: SearchStrategy[bool] | None = None,
) -> StunMessage:
    """Any message, signed or not, with a fingerprint or not: RFC 8489 §5.

    `keys` draws the key of the signature; by default there is none.
    """
    identifier = draw(transaction_ids)
    listed = draw(_ATTRIBUTES)
    if draw(st.booleans()):
        mapped = write_address(draw(addresses), identifier)
        listed.append((StunType.XOR_MAPPED_ADDRESS, mapped))
    return StunMessage.write(
        draw(classes),
        draw(methods),
        identifier,
        listed,
        key=draw(keys) if keys is not None else None,
        fingerprint=draw(st.booleans() if fingerprints is None else fingerprints),
    )


_BEHIND: Final = st.sampled_from([StunType.MESSAGE_INTEGRITY, StunType.SOFTWARE])


def trailed() -> SearchStrategy[tuple[bytes, StunMessage]]:
    """Octets with an attribute behind the signature, and the message without it: RFC 8489 §14.5."""
    signed = messages(st.just(b"key"), st.just(False))  # RFC 8489 §14.7: the last
    return st.builds(_trailed, signed, _BEHIND, st.binary(min_size=20, max_size=20))


def _trailed(message: StunMessage, kind: StunType, value: bytes) -> tuple[bytes, StunMessage]:
    grown = message.data + pack("!HH", kind, len(value)) + value
    return grown[:2] + pack("!H", len(grown) - 20) + grown[4:], message


channel_messages: SearchStrategy[tuple[int, bytes]] = st.tuples(
    st.integers(CHANNELS[0], CHANNELS[-1]), st.binary(max_size=200)
)


_ADDRESSES: Final = (TurnType.XOR_PEER_ADDRESS, TurnType.XOR_RELAYED_ADDRESS)
_TURN_VALUES: Final[dict[TurnType, SearchStrategy[bytes]]] = {
    TurnType.CHANNEL_NUMBER: st.integers(CHANNELS[0], CHANNELS[-1]).map(write_channel),
    TurnType.LIFETIME: st.integers(0, 0xFFFFFFFF).map(write_lifetime),
    TurnType.DATA: st.binary(max_size=200),
    TurnType.REQUESTED_ADDRESS_FAMILY: st.booleans().map(write_family),
    TurnType.REQUESTED_TRANSPORT: st.integers(0, 255).map(write_transport),
    TurnType.EVEN_PORT: st.sampled_from([b"\x00", b"\x80"]),
    TurnType.RESERVATION_TOKEN: st.binary(min_size=8, max_size=8),
    TurnType.DONT_FRAGMENT: st.just(b""),
}
_TURN_TYPES: Final = st.lists(st.sampled_from([*_ADDRESSES, *_TURN_VALUES]), max_size=5)
_TURN_METHODS: Final = st.sampled_from(TurnMethod)


@st.composite
def turn_messages(draw: DrawFn) -> StunMessage:
    """A TURN message with attributes of TURN, whatever its method has: RFC 8656 §17, §18.1."""
    identifier = draw(transaction_ids)
    listed = [
        (
            kind,
            write_address(draw(addresses), identifier)
            if kind in _ADDRESSES
            else draw(_TURN_VALUES[kind]),
        )
        for kind in draw(_TURN_TYPES)
    ]
    return StunMessage.write(draw(classes), draw(_TURN_METHODS), identifier, listed)

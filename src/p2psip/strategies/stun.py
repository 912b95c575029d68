"""Strategies for STUN messages, for tests of any implementation.

Own design: the oracle's grammar of RFC 8489 §5 and §14.
"""

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from p2psip.nat.stun import Class, Message, TransportAddress, Type, write_address, write_error

classes: SearchStrategy[Class] = st.sampled_from(Class)
methods: SearchStrategy[int] = st.just(1) | st.integers(0, 0xFFF)
transaction_ids: SearchStrategy[bytes] = st.binary(min_size=12, max_size=12)
addresses: SearchStrategy[TransportAddress] = st.builds(
    TransportAddress,
    st.ip_addresses().filter(lambda ip: not getattr(ip, "scope_id", None)).map(str),
    st.integers(0, 0xFFFF),
)
_signatures = {Type.MESSAGE_INTEGRITY, Type.MESSAGE_INTEGRITY_SHA256, Type.FINGERPRINT}


def attributes() -> SearchStrategy[tuple[int, bytes]]:
    """One attribute that signs nothing: RFC 8489 §14."""
    texts = st.sampled_from([Type.USERNAME, Type.REALM, Type.NONCE, Type.SOFTWARE])
    others = st.integers(0, 0xFFFF).filter(lambda kind: kind not in _signatures)
    errors = st.builds(write_error, st.integers(300, 699), st.text(max_size=20))
    return st.one_of(
        st.tuples(texts, st.text(max_size=40).map(str.encode)),
        st.tuples(st.just(Type.MAPPED_ADDRESS), addresses.map(write_address)),
        st.tuples(st.just(Type.ERROR_CODE), errors),
        st.tuples(others, st.binary(max_size=40)),
    )


@st.composite
def messages(draw: DrawFn, keys: SearchStrategy[bytes | None] | None = None) -> Message:
    """Any message, signed or not, with a fingerprint or not: RFC 8489 §5.

    `keys` draws the key of the signature; by default there is none.
    """
    identifier = draw(transaction_ids)
    listed = draw(st.lists(attributes(), max_size=6))
    if draw(st.booleans()):
        mapped = write_address(draw(addresses), identifier)
        listed.append((Type.XOR_MAPPED_ADDRESS, mapped))
    return Message.write(
        draw(classes),
        draw(methods),
        identifier,
        listed,
        key=draw(keys) if keys is not None else None,
        fingerprint=draw(st.booleans()),
    )

"""Values of the Flash cryptography profile: certificates, discriminators, keying components.

Own design, over RFC 7425 §4: what is written here must be accepted, the odd with the plain, and
what `build` and `encode` of our own never write is among it.
"""

from functools import cache
from typing import cast

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from rtmplite.rtmfp.crypto import fields
from rtmplite.rtmfp.crypto.certificate import Certificate
from rtmplite.rtmfp.crypto.dh import GROUPS, KeyPair
from rtmplite.rtmfp.crypto.epd import Epd
from rtmplite.rtmfp.crypto.keying import Component, Negotiation, Policy
from rtmplite.rtmfp.crypto.params import CertificateOption, EpdOption, KeyingOption
from rtmplite.rtmfp.wire.option import MARKER, Option, encode_options
from rtmplite.rtmfp.wire.vlu import encode_vlu

_VALUE = st.binary(max_size=40)
_GROUP = st.one_of(st.sampled_from(sorted(GROUPS)), st.integers(0, 1 << 20))
_PUBLIC = st.integers(1, (1 << 256) - 1)
_MAYBE = st.none() | _VALUE
_MAYBE_FINGERPRINT = st.none() | st.binary(min_size=32, max_size=32)
_MAYBE_GROUP = st.none() | _GROUP
_MAYBE_KEY = st.none() | st.tuples(_GROUP, _PUBLIC)
_KEYS = st.dictionaries(_GROUP, _PUBLIC, max_size=3)
_KNOWN = {*CertificateOption, *EpdOption, *KeyingOption}


@cache
def unknown_options() -> SearchStrategy[Option]:
    """Options to be passed over: RFC 7425 §4.3.3, §4.4.2 and §4.5.2."""
    types = st.integers(0, (1 << 21) - 1).filter(lambda type_id: type_id not in _KNOWN)
    return st.builds(Option, types, _VALUE)


@cache
def key_pairs(group_id: int = 2) -> SearchStrategy[KeyPair]:
    """Key pairs of one group, with short exponents to be quick: RFC 7425 §4.6.2."""
    group = GROUPS[group_id]
    exponents = st.integers(group.prime.bit_length(), 1 << 64)
    return exponents.map(lambda private: KeyPair.of(group, private))


@cache
@st.composite
def certificates(draw: st.DrawFn) -> tuple[bytes, Certificate]:
    """Certificate bytes, with unknown options, and the value to read: RFC 7425 §4.3."""
    hostname = draw(_MAYBE)
    accepts = draw(st.booleans())
    groups = draw(st.lists(_GROUP, max_size=3))
    keys = {} if groups else draw(_KEYS)
    random = draw(st.lists(st.binary(min_size=1, max_size=64), max_size=2))
    static = [fields.write_key(*key) for key in keys.items()]
    options = [
        *([] if hostname is None else [Option(CertificateOption.HOSTNAME, hostname)]),
        *([Option(CertificateOption.ACCEPTS_ANCILLARY_DATA)] if accepts else []),
        *(Option(CertificateOption.EXTRA_RANDOMNESS, data) for data in random),
        *(Option(CertificateOption.SUPPORTED_EPHEMERAL_GROUP, encode_vlu(n)) for n in groups),
        *(Option(CertificateOption.STATIC_PUBLIC_KEY, value) for value in static),
    ]
    for option in draw(st.lists(unknown_options(), max_size=2)):
        options.insert(draw(st.integers(0, len(options))), option)
    canonical = encode_options(options)
    certificate = Certificate(canonical, hostname, accepts, tuple(groups), keys, tuple(random))
    return canonical + draw(_tails()), certificate


@cache
def _tails() -> SearchStrategy[bytes]:
    """The bytes after the canonical section: none, or a marker and bytes that do not count."""
    ignored = st.sampled_from(
        [
            Option(CertificateOption.HOSTNAME, b"elsewhere"),
            Option(CertificateOption.ACCEPTS_ANCILLARY_DATA),
            Option(CertificateOption.SUPPORTED_EPHEMERAL_GROUP, b"\x0e"),
            Option(CertificateOption.STATIC_PUBLIC_KEY, b"\x02\x07"),
        ]
    )
    rest = st.lists(ignored | unknown_options(), max_size=3).map(encode_options)
    return st.just(b"") | st.lists(rest, max_size=2).map(lambda r: MARKER + MARKER.join(r))


@cache
@st.composite
def epds(draw: st.DrawFn) -> tuple[bytes, Epd]:
    """A discriminator as bytes, in any order, and the value to read: RFC 7425 §4.4."""
    epd = Epd(
        draw(_MAYBE),
        draw(_MAYBE),
        draw(_MAYBE_FINGERPRINT),
    )
    options = [*fields.read(epd.encode()), *draw(st.lists(unknown_options(), max_size=2))]
    return encode_options(draw(st.permutations(options))), epd


@cache
def negotiations() -> SearchStrategy[Negotiation]:
    """All eight that three flags can say: RFC 7425 §4.5.2.4 and §4.5.2.5."""
    return st.builds(Negotiation, st.booleans(), st.booleans(), st.booleans())


@cache
def policies() -> SearchStrategy[Policy]:
    """An endpoint's wishes, none of them a demand: RFC 7425 §4.6.4 and §4.6.6."""
    return st.builds(Policy, negotiations(), st.integers(4, 32), negotiations())


@cache
@st.composite
def components(draw: st.DrawFn) -> tuple[bytes, Component]:
    """A keying component as bytes, in any order, and the value to read: RFC 7425 §4.5."""
    component = draw(policies()).component(
        draw(_MAYBE_KEY),
        draw(_MAYBE_GROUP),
        draw(st.binary(max_size=64)),
    )
    options = [*fields.read(component.encode()), *draw(st.lists(unknown_options(), max_size=2))]
    return encode_options(draw(st.permutations(options))), component


@cache
def signatures() -> SearchStrategy[bytes]:
    """Signature fields: none, the letter X, passwords' and unknown ones: RFC 7425 §4.3.5."""
    passwords = st.binary(min_size=32, max_size=48).map(lambda value: Option(0x1D, value))
    options = st.lists(passwords | unknown_options(), max_size=3).map(encode_options)
    return cast(SearchStrategy[bytes], st.sampled_from([b"", b"X"]) | options)

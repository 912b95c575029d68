"""Packets sealed and opened, with every kind of protection."""

import hmac

import pytest
from Crypto.Cipher import AES
from hypothesis import assume, event, given
from hypothesis import strategies as st
from support.mutations import mutations, peak

from rtmplite.errors import LocalError, RemoteError
from rtmplite.rtmfp.crypto.blocks import checksum
from rtmplite.rtmfp.crypto.cipher import (
    KEY_LENGTH,
    CbcDecryptor,
    CbcEncryptor,
    FlashCipher,
    Opener,
    Protection,
    ReplayWindow,
    Sealer,
    default_cipher,
)
from rtmplite.rtmfp.wire.vlu import decode_vlu, encode_vlu

KEY, HMAC_KEY = bytes(range(32)), bytes(range(32, 64))
PACKETS = st.binary(min_size=1, max_size=100)
PROTECTIONS = st.builds(
    Protection,
    st.just(KEY),
    st.just(HMAC_KEY),
    st.just(0) | st.integers(4, 32),
    st.booleans(),
)


def _cbc(blocks, mode):
    """AES-128-CBC by the library, one object for each packet."""
    return getattr(AES.new(KEY[:16], AES.MODE_CBC, bytes(16)), mode)(blocks)


@given(st.lists(st.integers(1, 6).flatmap(lambda n: st.binary(min_size=16 * n, max_size=16 * n))))
def test_kept_cipher_objects_are_plain_cbc(packets):
    """Covers RFC 7425 §4.7.1 [aes-128-cbc] [zero-iv], RFC 7016 §2.2.3 [cbc]."""
    encryptor, decryptor = CbcEncryptor(KEY[:16]), CbcDecryptor(KEY[:16])
    for packet in packets:
        assert encryptor.encrypt(packet) == _cbc(packet, "encrypt")
        assert decryptor.decrypt(packet) == _cbc(packet, "decrypt")


@given(PROTECTIONS, st.lists(PACKETS, max_size=5))
def test_round_trip(protection, packets):
    """Covers RFC 7425 §4.7.2 [encrypted-layout] [plain-layout] [pad-with-ff].

    What is opened has padding and nothing else besides: RFC 7425 §4.7.2.
    """
    sealer, opener = Sealer(protection), Opener(protection)
    for packet in packets:
        room = sealer.room(150)
        sealed = sealer.seal(packet)
        assert (len(sealed) <= 150) == (len(packet) <= room)
        opened = opener.open(memoryview(sealed))
        assert opened[: len(packet)] == packet
        assert set(opened[len(packet) :]) <= {0xFF}
        assert len(opened) - len(packet) < 16


def test_checksum_layout():
    """Covers RFC 7425 §4.7.2 [checksum-unless-hmac] [pad-with-ff] [plain-layout].

    RFC 7425 §4.7.3.1 [checksum-after-padding]: the padding counts.
    RFC 7425 §4.6.3 [first-128-bits]: the library gets 16 bytes of the key.
    RFC 7016 §2.2.4 [pad-0xff].
    """
    sealed = Sealer(Protection(KEY)).seal(b"abc")
    padded = b"abc" + b"\xff" * 11
    assert _cbc(sealed, "decrypt") == checksum(padded).to_bytes(2) + padded
    assert Opener(Protection(KEY)).open(sealed) == padded


def test_numbered_checksum_layout():
    """Covers RFC 7425 §4.6.6 [starts-at-zero] [increments-by-one].

    RFC 7425 §4.7.3.3 [numbers-never-repeat]: and a packet sent again is another one.
    RFC 7425 §4.7.3.1 [odd-byte-low] [checksum-after-padding]: after a number of one byte what is
    checked is odd, and the number is not part of it.
    """
    protection = Protection(KEY, numbered=True)
    sealer, opener = Sealer(protection), Opener(protection)
    for number in range(130):
        sealed = sealer.seal(b"\x01\x02\x03")
        vlu = encode_vlu(number)
        padded = b"\x01\x02\x03" + b"\xff" * (11 - len(vlu))
        words = [int.from_bytes(padded[at : at + 2]) for at in range(0, len(padded), 2)]
        total = sum(words)
        total = (total & 0xFFFF) + (total >> 16)
        assert _cbc(sealed, "decrypt") == vlu + (0xFFFF ^ total).to_bytes(2) + padded
        assert opener.open(sealed) == padded


def test_hmac_layout():
    """Covers RFC 7425 §4.7.3.2 [encrypt-then-mac], as RFC 7425 §4.7.2 lays it out."""
    sealed = Sealer(Protection(KEY, HMAC_KEY, 10)).seal(b"abc")
    assert len(sealed) == 26
    assert _cbc(sealed[:16], "decrypt") == b"abc" + b"\xff" * 13
    assert sealed[16:] == hmac.digest(HMAC_KEY, sealed[:16], "sha256")[:10]


def test_default_session_key():
    """Covers RFC 7425 §4.1 [default-key] [default-checksum-no-sseq].

    And RFC 7016 §2.2.3 [default-key].
    """
    sealed = default_cipher().seal(b"hello")
    plain = AES.new(b"Adobe Systems 02", AES.MODE_CBC, bytes(16)).decrypt(sealed)
    assert plain[2:] == b"hello" + b"\xff" * 9
    assert default_cipher().open(sealed) == default_cipher().open(sealed) == plain[2:]


@given(PROTECTIONS, PACKETS, st.data())
def test_one_flipped_bit_is_noticed(protection, packet, data):
    """Covers RFC 7425 §4.7.3.2 [hmac-mismatch-discarded].

    And RFC 7425 §4.7.3.1 [checksum-mismatch-discarded], with a chance of 1 in 65536 to miss it.
    """
    sealed = Sealer(protection).seal(packet)
    opener = Opener(protection)
    bit = data.draw(st.integers(0, len(sealed) * 8 - 1))
    flipped = (int.from_bytes(sealed) ^ 1 << bit).to_bytes(len(sealed))
    try:
        opened = opener.open(flipped)
    except RemoteError:
        event("refused")
    else:
        assert not protection.hmac_length
        assert opened != packet
        assume(not protection.numbered)
    assert opener.open(sealed)[: len(packet)] == packet, "a forged packet leaves no trace"


def test_wrong_checksum_and_wrong_hmac():
    """Covers RFC 7425 §4.7.3.1 [checksum-mismatch-discarded].

    And RFC 7425 §4.7.3.2 [hmac-mismatch-discarded], RFC 7016 §2.2.3 [unverified-discarded].
    """
    wrong = _cbc(b"\x00\x00" + b"\x01" * 14, "encrypt")
    with pytest.raises(RemoteError, match="checksum"):
        Opener(Protection(KEY)).open(wrong)
    protection = Protection(KEY, HMAC_KEY, 4)
    sealed = Sealer(protection).seal(b"abc")
    with pytest.raises(RemoteError, match="HMAC"):
        Opener(protection).open(sealed[:-1] + bytes([sealed[-1] ^ 1]))
    with pytest.raises(RemoteError, match="HMAC"):
        Opener(Protection(KEY, KEY, 4)).open(sealed)


@pytest.mark.parametrize("size", [0, 1, 3, 4, 15, 17, 19, 21, 33])
@pytest.mark.parametrize("length", [0, 4])
def test_no_whole_blocks(size, length):
    """Covers RFC 7425 §4.7.2 [encrypted-layout]."""
    data = bytes(size)
    if length:
        data = data + hmac.digest(HMAC_KEY, data, "sha256")[:length]
    with pytest.raises(RemoteError, match="blocks"):
        Opener(Protection(KEY, HMAC_KEY, length)).open(data)


@pytest.mark.parametrize("length", [0, 16])
def test_replay_is_refused(length):
    """Covers RFC 7425 §4.7.3.3 [duplicate-discarded] [window-of-32].

    And RFC 7016 §2.2.3 [replays-noticed] [packets-stand-alone]: they come in any order.
    """
    protection = Protection(KEY, HMAC_KEY, length, numbered=True)
    sealer, opener = Sealer(protection), Opener(protection)
    sealed = [sealer.seal(bytes([n % 256])) for n in range(400)]
    for batch in (sealed[32:33], sealed[1:32], sealed[:1], sealed[33:]):
        for packet in batch:
            opener.open(packet)
    for packet in sealed:
        with pytest.raises(RemoteError, match="seen"):
            opener.open(packet)


def test_without_numbers_a_repeated_packet_passes():
    """RFC 7425 §4.7.3.3: nothing tells it from the first."""
    cipher = default_cipher()
    sealed = cipher.seal(b"twice")
    assert cipher.open(sealed) == cipher.open(sealed)


def test_directions_are_apart():
    """RFC 7425 §4.6.3: each direction has its key and its numbers."""
    ours, theirs = Protection(KEY, HMAC_KEY, 8, True), Protection(HMAC_KEY)
    near, far = FlashCipher(ours, theirs), FlashCipher(theirs, ours)
    assert far.open(near.seal(b"a"))[:1] == b"a"
    assert near.open(far.seal(b"b"))[:1] == b"b"
    assert far.room(64) == 62
    assert near.room(64) == 47
    assert near.room(7) == near.room(8) == near.room(0) == 0


@given(
    st.lists(
        st.integers(0, 80) | st.integers(29, 35) | st.integers(0, (1 << 64) - 1),
        max_size=60,
    ),
    st.integers(33, 70),
)
def test_window_against_a_set(numbers, size):
    """Covers RFC 7425 §4.7.3.3 [duplicate-discarded] [window-of-32]."""
    window, seen, highest = ReplayWindow(size), set(), -1
    for number in numbers:
        new = number not in seen and number > highest - size
        assert window.is_new(number) == new
        if new:
            window.add(number)
            seen.add(number)
            highest = max(highest, number)
            assert window._seen.bit_length() <= size


def test_a_window_does_not_grow():
    """Covers RFC 7425 §4.7.3.3: a long session takes no more memory than a short."""
    window = ReplayWindow()

    def pass_by(numbers):
        for number in numbers:
            window.add(number)

    pass_by(range(1000))
    assert peak(lambda: pass_by(range(1000, 40000))) < 2000


def test_numbers_of_64_bits():
    """Covers RFC 7425 §4.6.6 [64-bits]: the highest number, and one before it, still pass."""
    protection = Protection(KEY, HMAC_KEY, 8, numbered=True)
    sealer, opener = Sealer(protection), Opener(protection)
    sealer._next = (1 << 64) - 2
    late, last = sealer.seal(b"late"), sealer.seal(b"last")
    plain = CbcDecryptor(KEY[:KEY_LENGTH]).decrypt(late[:-8])
    assert decode_vlu(plain) == ((1 << 64) - 2, 10)
    assert opener.open(last)[:4] == b"last"
    assert opener.open(late)[:4] == b"late"
    with pytest.raises(LocalError):
        sealer.seal(b"one more")


def test_every_bit_of_a_number_counts():
    """Covers RFC 7425 §4.6.6 [64-bits]: two that differ in a high one are two."""
    protection = Protection(KEY, HMAC_KEY, 8, numbered=True)
    sealer, opener = Sealer(protection), Opener(protection)
    for number in (5, *((1 << bit) + 5 for bit in range(3, 64))):
        sealer._next = number
        sealed = sealer.seal(b"new")
        assert opener.open(sealed)[:3] == b"new"
    with pytest.raises(RemoteError):
        opener.open(sealed)


@given(PROTECTIONS, st.data())
def test_never_crashes(protection, data):
    """Anything at all opens, or is refused with RemoteError: RFC 7425 §4.7.3."""
    sealed = st.lists(PACKETS, min_size=1, max_size=3).map(
        lambda packets: b"".join(map(Sealer(protection).seal, packets))
    )
    datagram = data.draw(mutations(sealed))
    opener = Opener(protection)

    def attempt():
        try:
            opener.open(datagram)
            event("opened")
        except RemoteError as error:
            event("no blocks" if "blocks" in str(error) else "refused later")

    assert peak(attempt) <= 32 * len(datagram) + 65536


def test_keys_are_not_shown():
    """Own design: no repr shows a secret."""
    protection = Protection(b"secret key", b"secret too", 4)
    shown = repr([protection, Sealer(Protection(b"k" * 16)), FlashCipher(*[Protection(KEY)] * 2)])
    assert "secret" not in shown
    assert "kkk" not in shown

"""What is protected can be opened once, by the key alone, and by no other packet's tag."""

from contextlib import nullcontext

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from p2psip.errors import LocalError, RemoteError
from p2psip.rtp.packet import RtpPacket
from p2psip.rtp.rtcp import compound
from p2psip.srtp import srtp
from p2psip.srtp.srtp import SrtpReceiver, SrtpSender, derive, guess_index, keystream
from p2psip.srtp.suites import (
    AES_CM_128_HMAC_SHA1_32,
    SUITES,
)
from p2psip.strategies.rtp import compounds, rtp_packets

KEY = bytes.fromhex("E1F97A0D3E018BE0D64FA32C06DE4139")
SALT = bytes.fromhex("0EC675AD498AFEEBB6960B3AABE6")
SHORT = AES_CM_128_HMAC_SHA1_32
ALL = list(SUITES.values())


def keys_of(suite):
    """A master key and salt of the lengths that a suite has."""
    return bytes(range(suite.key_octets)), bytes(range(100, 100 + suite.salt_octets))


def test_keystream_of_the_appendix():
    """Covers RFC 3711 §B.2 and §4.1.1 [keystream], §4.3.1 [secure-prf]."""
    start = int("F0F1F2F3F4F5F6F7F8F9FAFBFCFD0000", 16)
    stream = keystream(bytes.fromhex("2B7E151628AED2A6ABF7158809CF4F3C"), start, 1044512)
    assert stream[:48].hex().upper() == (
        "E03EAD0935C95E80E166B16DD92B4EB4D23513162B02D0F72A43A2FE4A5F97AB"
        "41E95B3BB0A2E8DD477901E4FCA894C0"
    )
    assert stream[-48:].hex().upper() == (
        "EC8CDF7398607CB0F2D21675EA9EA1E4362B7C3C6773516318A077D7FC5073AE"
        "6A2CC3787889374FBEB4C81B17BA6C44"
    )


def test_key_derivation_of_the_appendix():
    """Covers RFC 3711 §B.3 and §4.3.1 [derivation-input], §4.3.3 [prf-is-aes-cm].

    Covers RFC 3711 §4.3.1 [as-defined] [secure-prf], §5.3 [salt-and-rate-by-default] and §9.2
    [no-padded-keys].
    """
    assert derive(KEY, SALT, 0, 16).hex().upper() == "C61E7A93744F39EE10734AFE3FF7A087"
    assert derive(KEY, SALT, 2, 14).hex().upper() == "30CBBC08863D8C85D49DB34A9AE1"
    assert derive(KEY, SALT, 1, 94).hex().upper() == (
        "CEBE321F6FF7716B6FD4AB49AF256A156D38BAA48F0A0ACF3C34E2359E6CDBCE"
        "E049646C43D9327AD175578EF72270986371C10C9A369AC2F94A8C5FBCDDDC25"
        "6D6E919A48B610EF17C2041E474035766B68642C59BBFC2F34DB60DBDFB2"
    )
    for wrong in ((KEY[1:], SALT), (KEY, SALT + b"0")):
        with pytest.raises(LocalError):
            derive(*wrong, 0, 16)
    for suite in ALL:
        key, salt = keys_of(suite)
        for wrong in ((key[1:], salt), (key, salt[1:])):
            with pytest.raises(LocalError):
                SrtpSender(*wrong, suite)


def test_keystreams_of_longer_keys():
    """Covers RFC 6188 §7.1 and §7.3: the first and the last block."""
    start, octets = int("f0f1f2f3f4f5f6f7f8f9fafbfcfd0000", 16), 1044512
    for key, first, last in (
        (
            "57f82fe3613fd170a85ec93c40b1f0922ec4cb0dc025b58272147cc438944a98",
            "92bdd28a93c3f52511c677d08b5515a4",
            "6eb246913062a16891433e97dd01a57f",
        ),
        (
            "eab234764e517b2d3d160d587d8c86219740f65f99b6bcf7",
            "35096cba4610028dc1b57503804ce37c",
            "a5dab625811034e8cebdfeb6dc158dd3",
        ),
    ):
        stream = keystream(bytes.fromhex(key), start, octets)
        assert (stream[:16].hex(), stream[-16:].hex()) == (first, last)


def test_key_derivation_by_longer_keys():
    """Covers RFC 6188 §7.2 and §7.4 and §3.1 [prf-of-192] [prf-of-256] [no-shorter-prf].

    Covers RFC 7714 §3 [master-is-as-long] and §11 [prf-of-the-key]: by the same functions, from a
    salt of its own length.
    """
    for key, salt, cipher, salting, authentication in (
        (
            "f0f04914b513f2763a1b1fa130f10e2998f6f6e43e4309d1e622a0e332b9f1b6",
            "3b04803de51ee7c96423ab5b78d2",
            "5ba1064e30ec51613cad926c5a28ef731ec7fb397f70a960653caf06554cd8c4",
            "fa31791685ca444a9e07c6c64e93",
            "fd9c32d39ed5fbb5a9dc96b30818454d1313dc05",
        ),
        (
            "73edc66c4fa15776fb57f9505c17136550ffda71f3e8e5f1",
            "c8522f3acd4ce86d5add78edbb11",
            "31874736a8f1143870c26e4857d8a5b2c4a354407faadabb",
            "2372b82d639b6d8503a47adc0a6c",
            "355b10973cd95b9eacf4061c7e1a7151e7cfbfcb",
        ),
    ):
        secrets = bytes.fromhex(key), bytes.fromhex(salt)
        assert derive(*secrets, 0, len(secrets[0])).hex() == cipher
        assert derive(*secrets, 2, 14).hex() == salting
        assert derive(*secrets, 1, 20).hex() == authentication
    assert derive(KEY, SALT[:12], 0, 16) == derive(KEY, SALT[:12] + bytes(2), 0, 16)


RTP_CLEAR = bytes.fromhex(
    "8040f17b8041f8d35501a0b247616c6c69612065737420"
    "6f6d6e697320646976697361 20696e20706172746573207472 6573".replace(" ", "")
)
RTCP_CLEAR = bytes.fromhex(
    "81c8000d4d6172734e5450314e545032525450200000042a0000e9304c756e61" + "deadbeef" * 5
)
GCM_SALT = bytes.fromhex("517569642070726f2071756f")
GCM_KEY = bytes(range(32))


@pytest.mark.parametrize(
    ("octets", "sealed"),
    [
        (
            16,
            "f24de3a3fb34de6cacba861c9d7e4bcabe633bd50d294e6f42a5f47a51c7d19b36de3adf8833"
            "899d7f27beb16a9152cf765ee4390cce",
        ),
        (
            32,
            "32b1de78a822fe12ef9f78fa332e33aab18012389a58e2f3b50b2a0276ffae0f1ba63799b87b"
            "7aa3db36dfffd6b0f9bb7878d7a76c13",
        ),
    ],
)
def test_aead_packets_of_the_rfc(octets, sealed):
    """Covers RFC 7714 §16.1.1, §16.1.2, §16.2.1 and §16.2.2, by session keys.

    Covers RFC 7714 §1 [tag-is-whole], §5.3 [authentic-first], §7.1 [aead-authenticates], §8.2
    [both-in-each-packet] and §10 [nonce-of-12] [block-counter] [tag-of-16].
    """
    mode = srtp.GcmMode(srtp.SessionKeys(GCM_KEY[:octets], GCM_SALT))
    head = RTP_CLEAR[:12]
    protected = mode.protect_rtp(RTP_CLEAR, 12, 0x5501A0B2, 0xF17B)
    assert protected == head + bytes.fromhex(sealed)
    assert mode.open_rtp(protected, 12, 0x5501A0B2, 0xF17B) == RTP_CLEAR
    with pytest.raises(RemoteError):
        mode.open_rtp(protected, 12, 0x5501A0B2, 0x1F17B)


@pytest.mark.parametrize(
    ("octets", "sealed", "tagged"),
    [
        (
            16,
            "63e94885dcdab67ca727d7662f6b7e997ff5c0f76c06f32dc676a5f1730d6fda4ce09b4686303ded"
            "0bb9275bc84aa45896cf4d2fc5abf87245d9eade800005d4",
            "841dd9683dd78ec92ae58790125f62b3000005d4",
        ),
        (
            32,
            "d50ae4d1f5ce5d304ba297e47d470c282c3ece5dbffe0a50a2eaa5c1110555be8415f658c61de047"
            "6f1b6fad1d1eb30c4446839f57ff6f6cb26ac3be800005d4",
            "91db4afbfeee5a978fab4393ed2615fe000005d4",
        ),
    ],
)
def test_aead_reports_of_the_rfc(octets, sealed, tagged):
    """Covers RFC 7714 §17.1 to §17.4, by session keys: encrypted, and in clear with a tag.

    Covers RFC 7714 §5.3 [authentic-first], §7.1 [no-second-tag] and §9 [reports-are-authenticated].
    """
    mode, ssrc = srtp.GcmMode(srtp.SessionKeys(GCM_KEY[:octets], GCM_SALT)), 0x4D617273
    protected = mode.protect_rtcp(RTCP_CLEAR, ssrc, 0x800005D4)
    assert protected == RTCP_CLEAR[:8] + bytes.fromhex(sealed)
    assert mode.rtcp_word(protected) == 0x800005D4
    assert mode.open_rtcp(protected, ssrc, 0x800005D4) == RTCP_CLEAR
    clear = RTCP_CLEAR + bytes.fromhex(tagged)
    assert mode.open_rtcp(clear, ssrc, 0x5D4) == RTCP_CLEAR
    for wrong in (clear[:20] + b"?" + clear[21:], clear[:-5] + b"?" + clear[-4:]):
        with pytest.raises(RemoteError):
            mode.open_rtcp(wrong, ssrc, 0x5D4)


def test_a_packet_as_other_implementations_protect_it():
    """Covers RFC 3711 §4.1.1 [counter-block], §4.2 [roc-authenticated] and §4.2.1
    [leftmost-octets]: computed here from the derived keys, step by step.

    Covers RFC 3711 §3.1 [tag-in-each] [encrypt-then-authenticate], §3.3 [protects], §3.3.1
    [begins-at-zero], §4.1.1 [keystream], §4.2.1 [no-prefix] [hmac-of-the-message], §4.3.1
    [keys-are-derived] [derived-at-first] [labels-differ], §5.1 [session-key-of-128]
    [session-salt-of-112] and §5.2 [sha1-by-default] [authentication-key].  Covers RFC 4568 §6.4
    [roc-is-zero-at-first].
    """
    import hmac

    packet = bytes.fromhex("800f1234decafbadcafebabe") + bytes([0xAB] * 16)
    start = int.from_bytes(derive(KEY, SALT, 2, 14), "big") << 16
    start ^= 0xCAFEBABE << 64 ^ 0x1234 << 16
    stream = keystream(derive(KEY, SALT, 0, 16), start, 16)
    data = packet[:12] + bytes(a ^ b for a, b in zip(packet[12:], stream, strict=True))
    tag = hmac.digest(derive(KEY, SALT, 1, 20), data + bytes(4), "sha1")
    assert SrtpSender(KEY, SALT).protect_rtp(packet) == data + tag[:10]
    assert SrtpSender(KEY, SALT, SHORT).protect_rtp(packet) == data + tag[:4]
    # The packet of libsrtp's own test (test/srtp_driver.c), made with this key.
    assert data.hex() == "800f1234decafbadcafebabe4e55dc4ce79978d88ca4d215949d2402"
    assert tag[:10].hex() == "b78d6acc99ea179b8dbb"


def test_a_report_as_other_implementations_protect_it():
    """Covers RFC 3711 §3.4 [rtcp-as-rtp] [no-random-prefix] [rtcp-index-is-there]
    [rtcp-tag-is-there], §4.1.1 [first-ssrc-of-a-compound] [rtcp-index-in-the-block] [rtcp-keys],
    §4.3.2 [one-master-key] [labels-of-rtcp] and §5.2 [rtcp-tag-of-80].

    Covers RFC 3711 §3.2.1 [session-keys-are-apart].
    """
    packet = bytes.fromhex("81c8000bcafebabe") + bytes([0xAB] * 16)
    sender = SrtpSender(KEY, SALT, SHORT)
    sender.protect_rtcp(packet)  # libsrtp begins with the index 1
    protected = sender.protect_rtcp(packet)
    # The packet of libsrtp's own test (test/srtp_driver.c), made with this key.
    assert protected.hex(" ", -4) == (
        "81c8000b cafebabe 7128035b e487b9bd bef89041 f977a5a8 80000001 993e08cd 54d6c123 0798"
    )
    assert SrtpReceiver(KEY, SALT, SHORT).open_rtcp(protected) == packet


def test_the_sender_counts_how_often_its_numbers_wrap():
    """Covers RFC 3711 §3.3.1 [sender-counts-wraps]: by what the tag covers beside the packet.

    Covers RFC 3711 §3.1 [tag-in-each], §4.2 [roc-authenticated] and §9.2 [packets-are-counted].
    """
    import hmac

    sender, count = SrtpSender(KEY, SALT), 0
    for sequence in (40000, 65535, 0, 30000, 60000, 10000):
        count += sequence in (0, 10000)
        data = sender.protect_rtp(bytes(RtpPacket(0, sequence, 0, 7, b"sound")))
        authenticated = data[:-10] + count.to_bytes(4, "big")
        assert hmac.digest(derive(KEY, SALT, 1, 20), authenticated, "sha1")[:10] == data[-10:]


@given(rtp_packets().map(bytes), st.sampled_from(ALL))
def test_opening_undoes_protecting(packet, suite):
    """Covers RFC 3711 §3.3 and §3.3.2 [replay-refused] [noted-when-authentic].

    Covers RFC 3711 §3.1 [tag-in-each] [encrypt-then-authenticate], §3.3 [protects] [opens]
    [replayed-is-dropped] [forged-is-dropped], §3.3.1 [begins-with-the-first-packet]
    [counts-what-is-authentic], §3.3.2 [protocols-alike] and §4.2 [mismatch-is-told].

    Covers RFC 3711 §3.2.1 [highest-is-authentic] and §3.2.3 [no-context-no-packet], RFC 4568 §6.4.1
    [bound-when-authentic].
    """
    key, salt = keys_of(suite)
    protected = SrtpSender(key, salt, suite).protect_rtp(packet)
    assert len(protected) == len(packet) + suite.tag_octets
    assert suite.tag_octets == (16 if suite.is_aead else 10 if "80" in suite.name else 4)
    receiver = SrtpReceiver(key, salt, suite)
    forged = protected[:-1] + bytes([protected[-1] ^ 1])
    with pytest.raises(RemoteError):
        receiver.open_rtp(forged)
    assert receiver.open_rtp(protected) == packet
    with pytest.raises(RemoteError):
        receiver.open_rtp(protected)
    with pytest.raises(RemoteError):
        SrtpReceiver(key[::-1], salt, suite).open_rtp(protected)


@given(compounds().map(lambda packets: compound(*packets)), st.sampled_from(ALL))
def test_opening_undoes_protecting_reports(packet, suite):
    """Covers RFC 3711 §3.4 [rtcp-index-counts] [rtcp-always-authenticated] [e-flag].

    Covers RFC 3711 §3.3.2 [protocols-alike], §3.4 [rtcp-tag-is-there], §5.2 [rtcp-tag-of-80].
    Covers RFC 4568 §6 [e-bit-is-no-choice], §6.3.2 [e-bit-by-default].
    """
    key, salt = keys_of(suite)
    sender, receiver = SrtpSender(key, salt, suite), SrtpReceiver(key, salt, suite)
    first, second = sender.protect_rtcp(packet), sender.protect_rtcp(packet)
    tag = 16 if suite.is_aead else 10
    assert len(first) == len(packet) + 4 + tag and first[:8] == packet[:8]
    at = len(packet) + (tag if suite.is_aead else 0)
    assert (first[at : at + 4].hex(), second[at : at + 4].hex()) == ("80000000", "80000001")
    with pytest.raises(RemoteError):
        receiver.open_rtcp(second[:-1] + bytes([second[-1] ^ 1]))
    assert receiver.open_rtcp(second) == receiver.open_rtcp(first) == packet
    with pytest.raises(RemoteError):
        receiver.open_rtcp(first)


def test_reports_in_clear_are_read_if_they_are_authentic():
    """Covers RFC 3711 §3.4 [e-flag] [clear-rtcp-is-left]."""
    sender = SrtpSender(KEY, SALT)
    data = bytes.fromhex("80c900010000cafe") + b"text" + bytes(4)
    protected = data + sender._rtcp._tag(data)
    assert SrtpReceiver(KEY, SALT).open_rtcp(protected) == data[:-4]


@given(st.binary(max_size=60))
def test_any_octets_are_refused(data):
    """Covers RFC 3711 §3.3: nobody guesses a tag."""
    receiver = SrtpReceiver(KEY, SALT)
    for open_ in (receiver.open_rtp, receiver.open_rtcp):
        with pytest.raises(RemoteError):
            open_(data)
    assert not receiver._rtp_replay and not receiver._rtcp_replay


@pytest.mark.parametrize(("window", "late"), [(srtp.WINDOW, 63), (512, 511)])
def test_a_packet_that_is_sent_again_is_opened_within_the_window(window, late):
    """Covers RFC 3711 §3.3.2 [window-of-64]: the same octets as before, since its index stays.

    Covers RFC 3711 §3.3.2 [replay-refused].
    """
    sender, receiver = SrtpSender(KEY, SALT), SrtpReceiver(KEY, SALT, window=window)
    packets = [bytes(RtpPacket(0, at, 0, 7, b"part")) for at in range(late + 2)]
    protected = [sender.protect_rtp(each) for each in packets]
    for each in (protected[0], *protected[3:]):
        receiver.open_rtp(each)
    assert sender.protect_rtp(packets[2]) == protected[2]
    assert receiver.open_rtp(protected[2]) == packets[2]
    for each in (protected[2], protected[0]):  # again, and too late
        with pytest.raises(RemoteError):
            receiver.open_rtp(each)
    with pytest.raises(LocalError):
        SrtpReceiver(KEY, SALT, window=srtp.WINDOW - 1)


@given(st.lists(st.integers(-40, 60), max_size=60), st.integers(0, 0xFFFF))
def test_packets_out_of_order_are_opened_across_the_wrap(steps, first):
    """Covers RFC 3711 §3.3.1 [roc-guessed] and §3.3.2 [replay-refused].

    Covers RFC 3711 §3.1 [encrypt-then-authenticate] and §3.3 [forged-is-dropped].
    """
    sender, receiver = SrtpSender(KEY, SALT), SrtpReceiver(KEY, SALT)
    top = first + 70000  # beyond one wrap at the least
    protected = {}
    for index in range(first, top, 20000):
        packet = bytes(RtpPacket(0, index & 0xFFFF, 0, 7, b"sound"))
        assert receiver.open_rtp(sender.protect_rtp(packet)) == packet
    last = max(range(first, top, 20000))
    for at in sorted({last + 1 + abs(step) for step in steps}):
        protected[at] = sender.protect_rtp(bytes(RtpPacket(0, at & 0xFFFF, 0, 7, b"sound")))
    highest, opened = last, set()
    for step in steps:
        at = last + 1 + abs(step)
        fresh = at not in opened and at > highest - srtp.WINDOW
        event(f"fresh: {fresh}")
        if fresh:
            assert RtpPacket.parse(receiver.open_rtp(protected[at])).payload == b"sound"
            opened.add(at)
            highest = max(highest, at)
        else:
            with pytest.raises(RemoteError):
                receiver.open_rtp(protected[at])


@given(st.integers(0, 1 << 40), st.integers(-0x7FFF, 0x7FFF))
def test_the_index_is_the_nearest(highest, step):
    """Covers RFC 3711 §3.3.1 [roc-guessed]."""
    index = highest + step
    assume(index >= 0)
    assert guess_index(index & 0xFFFF, highest) == index


def test_half_of_the_numbers_behind_is_behind():
    """Covers RFC 3711 §3.3.1 [roc-guessed]: half of them ahead would be as near."""
    assert guess_index(0, 0x8000) == 0 and guess_index(7, 0x38007) == 0x30007
    assert guess_index(0, 0x8001) == 0x10000


def test_one_key_has_so_many_sources():
    """Own design: the holder of a key must not fill our memory.

    Covers RFC 3711 §3.2.1 [counts-of-each-source] and §3.2.3 [context-of-the-source], RFC 4568
    §6.4.1 [late-binding]: each has a first packet of the same number.
    """
    sender, receiver = SrtpSender(KEY, SALT), SrtpReceiver(KEY, SALT)
    packets = [bytes(RtpPacket(0, 1, 0, ssrc, b"")) for ssrc in range(srtp.MAX_SOURCES + 1)]
    for packet in packets[:-1]:
        receiver.open_rtp(sender.protect_rtp(packet))
    with pytest.raises(RemoteError):
        receiver.open_rtp(sender.protect_rtp(packets[-1]))


def test_a_key_protects_no_more_than_it_may(monkeypatch):
    """Covers RFC 3711 §3.4 [rtcp-index-counts] [rtcp-is-counted] and §9.2 [ends-at-the-limit].

    Covers RFC 3711 §3.2.1 [counts-of-each-source], §3.3.1 [key-used-up] and §9.2
    [packets-are-counted].
    """
    monkeypatch.setattr(srtp, "MAX_RTP_INDEX", 0x10000)
    sender = SrtpSender(KEY, SALT)
    for sequence in (0xFFFF, 0):
        sender.protect_rtp(bytes(RtpPacket(0, sequence, 0, 7, b"")))
    for source in (7, 8):  # whose limits are their own
        packet = bytes(RtpPacket(0, 1, 0, source, b""))
        with pytest.raises(LocalError) if source == 7 else nullcontext():
            sender.protect_rtp(packet)
    monkeypatch.setattr(srtp, "MAX_RTCP_INDEX", 0)
    sender = SrtpSender(KEY, SALT)
    sender.protect_rtcp(bytes(8))
    for wrong in (bytes(8), bytes(7)):
        with pytest.raises(LocalError):
            sender.protect_rtcp(wrong)
    with pytest.raises(LocalError):
        sender.protect_rtp(b"no packet")


@pytest.mark.parametrize("suite", [each for each in ALL if each.is_aead])
def test_an_aead_key_ends_at_its_limits(suite, monkeypatch):
    """Covers RFC 7714 §8.4 [new-key-before-a-cycle], §9.4 [new-key-before-a-cycle], §13.1
    [ends-at-the-limit].
    """
    monkeypatch.setattr(srtp, "MAX_RTP_INDEX", 0)
    monkeypatch.setattr(srtp, "MAX_RTCP_INDEX", 0)
    sender = SrtpSender(*keys_of(suite), suite)
    sender.protect_rtp(bytes(RtpPacket(0, 0, 0, 7, b"")))
    sender.protect_rtcp(bytes(8))
    for _ in range(2):
        with pytest.raises(LocalError):
            sender.protect_rtp(bytes(RtpPacket(0, 1, 0, 7, b"")))
        with pytest.raises(LocalError):
            sender.protect_rtcp(bytes(8))

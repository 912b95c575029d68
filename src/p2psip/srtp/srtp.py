"""SRTP: RTP and RTCP that nobody on the way can read, change or play back.

Implements RFC 3711 §3 and §4 without an MKI: AES in counter mode with HMAC-SHA1, by keys of three
lengths (RFC 6188), and AES-GCM (RFC 7714).

Not done: RFC 3711 §5.1 [null-cipher]: who wants SRTP wants its audio unheard by others, and a peer
that asks for audio in clear (UNENCRYPTED_SRTP) is refused.

Each end encrypts with a master key of its own; keys and salts come from the signalling.

    >>> key, salt = bytes(16), bytes(14)
    >>> sender, receiver = SrtpSender(key, salt), SrtpReceiver(key, salt)
    >>> packet = bytes.fromhex("80000001000000a00000cafe") + b"sound"
    >>> protected = sender.protect_rtp(packet)
    >>> len(protected) - len(packet), receiver.open_rtp(protected) == packet
    (10, True)
"""

import hmac
from struct import Struct
from typing import Final, NamedTuple, Protocol

from Crypto.Cipher import AES
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from p2psip.errors import LocalError, RemoteError
from p2psip.rtp import fast
from p2psip.srtp.suites import AES_CM_128_HMAC_SHA1_80, SrtpSuite

KEY_OCTETS: Final = (16, 24, 32)  # Source: §8.2, RFC 6188 §4, of a master key
SALT_OCTETS: Final = 14  # Source: §8.2
AUTH_OCTETS: Final = 20  # Source: §8.2, §5.2 [authentication-key], of a session's tags
WINDOW: Final = 64  # packets. Source: §3.3.2
MAX_SOURCES: Final = 32  # of one key, Own design: memory must be bounded
MAX_RTP_INDEX: Final = (1 << 48) - 1  # Source: §3.3.1
MAX_RTCP_INDEX: Final = (1 << 31) - 1  # Source: §3.4
# Source: §4.3.2, the labels of the session keys: of SRTP, and after that of SRTCP
# §4.3.1 [labels-differ]
ENCRYPTION, AUTHENTICATION, SALTING = 0, 1, 2
RTCP_LABELS: Final = 3  # §4.3.2 [labels-of-rtcp]
_WORD: Final = Struct("!I")
_RTCP_HEAD: Final = 8  # octets that stay in clear. Source: §3.4
_ENCRYPTED: Final = 1 << 31  # the E flag, above the index. Source: §3.4
NOT_AUTHENTIC: Final = "SRTP packet that is not authentic"
CAME_BEFORE: Final = "SRTP packet that came before"


def rtcp_octets(suite: SrtpSuite) -> int:
    """How much longer protection makes a report: §3.4."""
    return _WORD.size + suite.rtcp_tag_octets


def keystream(key: bytes, start: int, octets: int) -> bytes:
    """Encrypt zeros in counter mode from the block `start`: §4.1.1, RFC 6188 §2."""
    # §4.1.1 [keystream], §4.3.1 [secure-prf]
    return AES.new(key, AES.MODE_CTR, nonce=b"", initial_value=start).encrypt(bytes(octets))


def derive(key: bytes, salt: bytes, label: int, octets: int) -> bytes:
    """Derive a session key from a master key and salt, at a derivation rate of 0: §4.3.1.

    A salt of 96 bits has zeros behind it, which is what other implementations do.
    """
    if len(key) not in KEY_OCTETS or len(salt) > SALT_OCTETS:  # §9.2 [no-padded-keys]
        raise LocalError("a master key has 16, 24 or 32 octets, a master salt 12 or 14")
    # §4.3.1 [derivation-input] [as-defined], §4.3.3 [prf-is-aes-cm]
    # §5.3 [salt-and-rate-by-default]
    x = int.from_bytes(salt.ljust(SALT_OCTETS, b"\0"), "big") ^ label << 48
    # RFC 6188 §3.1 [prf-of-192] [prf-of-256] [no-shorter-prf]
    # RFC 7714 §3 [master-is-as-long], §11 [prf-of-the-key]
    return keystream(key, x << 16, octets)


class SessionKeys(NamedTuple):
    """The keys of one direction, of RTP or of RTCP: §4.3; `authentication` is not for an AEAD."""

    cipher: bytes
    salt: bytes
    authentication: bytes = b""


def session_keys(suite: SrtpSuite, key: bytes, salt: bytes, first_label: int) -> SessionKeys:
    """Derive the keys of RTP (from label 0), or those of RTCP (from `RTCP_LABELS`): §4.3.2."""
    if (len(key), len(salt)) != (suite.key_octets, suite.salt_octets):  # §9.2 [no-padded-keys]
        raise LocalError(f"{suite.name} has a key of {suite.key_octets} octets, and a salt")
    # §4.3.1 [keys-are-derived] [derived-at-first]
    # §5.1 [session-key-of-128] [session-salt-of-112]
    return SessionKeys(
        derive(key, salt, first_label + ENCRYPTION, suite.key_octets),
        derive(key, salt, first_label + SALTING, suite.salt_octets),
        b"" if suite.is_aead else derive(key, salt, first_label + AUTHENTICATION, AUTH_OCTETS),
    )


class Transform(Protocol):
    """Encrypts and authenticates the packets of one direction, of RTP or of RTCP: §3.1.

    `start` is where the payload begins, `index` the packet's; `word` is the index of a report and
    its E flag.  What is opened is authentic, or RemoteError is raised.
    """

    def protect_rtp(self, packet: bytes, start: int, ssrc: int, index: int) -> bytes:
        """Make an SRTP packet: §3.3."""

    def open_rtp(self, data: bytes, start: int, ssrc: int, index: int) -> bytes:
        """Read an SRTP packet: §3.3."""

    def protect_rtcp(self, compound: bytes, ssrc: int, word: int) -> bytes:
        """Make an SRTCP packet: §3.4."""

    def rtcp_word(self, data: bytes) -> int:
        """Read the E flag and the index of an SRTCP packet: §3.4."""

    def open_rtcp(self, data: bytes, ssrc: int, word: int) -> bytes:
        """Read an SRTCP packet: §3.4."""


class CounterMode:
    """AES in counter mode, and a tag of HMAC-SHA1 behind: §4.1.1, §4.2.1, RFC 6188 §2."""

    def __init__(self, keys: SessionKeys, tag_octets: int) -> None:
        self._cipher_key, self._auth_key = keys.cipher, keys.authentication
        self._salt = int.from_bytes(keys.salt, "big") << 16
        self._tag_octets = tag_octets

    def protect_rtp(self, packet: bytes, start: int, ssrc: int, index: int) -> bytes:
        # §3.1 [encrypt-then-authenticate], §3.3 [protects]
        data = packet[:start] + self._crypt(packet[start:], ssrc, index)
        # §3.1 [tag-in-each], §4.2 [roc-authenticated]
        return data + self._tag(data + _WORD.pack(index >> 16 & 0xFFFFFFFF))

    def open_rtp(self, data: bytes, start: int, ssrc: int, index: int) -> bytes:
        packet, tag = data[: -self._tag_octets], data[-self._tag_octets :]
        # §3.1 [encrypt-then-authenticate], §3.2.3 [no-context-no-packet]
        # §3.3 [forged-is-dropped]
        self._check(packet + _WORD.pack(index >> 16 & 0xFFFFFFFF), tag)
        return packet[:start] + self._crypt(packet[start:], ssrc, index)  # §3.3 [opens]

    def protect_rtcp(self, compound: bytes, ssrc: int, word: int) -> bytes:
        # §3.4 [no-random-prefix], §4.1.1 [rtcp-index-in-the-block]
        body = self._crypt(compound[_RTCP_HEAD:], ssrc, word & MAX_RTCP_INDEX)
        # §3.4 [rtcp-index-is-there]
        data = compound[:_RTCP_HEAD] + body + _WORD.pack(word)
        return data + self._tag(data)  # §3.4 [rtcp-always-authenticated] [rtcp-tag-is-there]

    def rtcp_word(self, data: bytes) -> int:
        """Read what stands before the tag: §3.4."""
        (word,) = _WORD.unpack_from(data, len(data) - self._tag_octets - _WORD.size)
        return int(word)

    def open_rtcp(self, data: bytes, ssrc: int, word: int) -> bytes:
        end = len(data) - self._tag_octets
        self._check(data[:end], data[end:])  # §3.4 [rtcp-tag-is-there]
        body = data[_RTCP_HEAD : end - _WORD.size]
        if word & _ENCRYPTED:  # §3.4 [e-flag] [clear-rtcp-is-left]
            # §4.1.1 [rtcp-index-in-the-block]
            body = self._crypt(body, ssrc, word & MAX_RTCP_INDEX)
        return data[:_RTCP_HEAD] + body

    def _crypt(self, data: bytes, ssrc: int, index: int) -> bytes:
        """Encrypt or decrypt the packet of a source and an index: §4.1.1."""
        start = self._salt ^ ssrc << 64 ^ index << 16  # §4.1.1 [counter-block]
        # §4.1.1 [keystream]
        cipher = AES.new(self._cipher_key, AES.MODE_CTR, nonce=b"", initial_value=start)
        return cipher.encrypt(data)

    def _tag(self, authenticated: bytes) -> bytes:
        """Authenticate a packet and what it does not carry: §4.2.1 [leftmost-octets]."""
        # §4.2.1 [no-prefix] [hmac-of-the-message], §5.2 [sha1-by-default]
        return hmac.digest(self._auth_key, authenticated, "sha1")[: self._tag_octets]

    def _check(self, authenticated: bytes, tag: bytes) -> None:
        """Raise RemoteError unless the tag is right: §4.2.1."""
        if not hmac.compare_digest(self._tag(authenticated), tag):
            raise RemoteError(NOT_AUTHENTIC)  # §4.2 [mismatch-is-told]


class GcmMode:
    """AES-GCM, whose tag stands where the ciphertext ends: RFC 7714 §8 and §9."""

    def __init__(self, keys: SessionKeys) -> None:
        # RFC 7714 §7.1 [aead-authenticates], §10 [block-counter]
        self._aead = AESGCM(keys.cipher)  # RFC 7714 §1 [tag-is-whole], §10 [tag-of-16]
        self._salt = int.from_bytes(keys.salt, "big")

    def protect_rtp(self, packet: bytes, start: int, ssrc: int, index: int) -> bytes:
        """Encrypt the payload; the head is associated data: RFC 7714 §8.2 [both-in-each-packet]."""
        head = packet[:start]
        return head + self._aead.encrypt(self._nonce(ssrc, index), packet[start:], head)

    def open_rtp(self, data: bytes, start: int, ssrc: int, index: int) -> bytes:
        """Read an SRTP packet: RFC 7714 §8.2."""
        head = data[:start]
        return head + self._opened(self._nonce(ssrc, index), data[start:], head)

    def protect_rtcp(self, compound: bytes, ssrc: int, word: int) -> bytes:
        """Make an SRTCP packet, with flag and index behind the tag: RFC 7714 §9."""
        head, tail = compound[:_RTCP_HEAD], _WORD.pack(word)
        nonce = self._nonce(ssrc, word & MAX_RTCP_INDEX)
        # RFC 7714 §9 [reports-are-authenticated], §7.1 [no-second-tag]
        return head + self._aead.encrypt(nonce, compound[_RTCP_HEAD:], head + tail) + tail

    def rtcp_word(self, data: bytes) -> int:
        """Read the last word: RFC 7714 §9."""
        (word,) = _WORD.unpack_from(data, len(data) - _WORD.size)
        return int(word)

    def open_rtcp(self, data: bytes, ssrc: int, word: int) -> bytes:
        """Read an SRTCP packet, encrypted or not: RFC 7714 §9."""
        head, body, tail = data[:_RTCP_HEAD], data[_RTCP_HEAD:-4], data[-4:]
        nonce = self._nonce(ssrc, word & MAX_RTCP_INDEX)
        if word & _ENCRYPTED:
            return head + self._opened(nonce, body, head + tail)
        clear = head + body[:-16]  # all is associated data, but for the tag
        self._opened(nonce, body[-16:], clear + tail)
        return clear

    def _nonce(self, ssrc: int, index: int) -> bytes:
        """The IV of a packet: RFC 7714 §8.1, §9.1, one layout since an index has 48 bits."""
        # RFC 7714 §10 [nonce-of-12]
        return (self._salt ^ ssrc << 48 ^ index).to_bytes(12, "big")

    def _opened(self, nonce: bytes, sealed: bytes, associated: bytes) -> bytes:
        """Decrypt what is authentic: RFC 7714 §5.3 [authentic-first]."""
        try:
            return self._aead.decrypt(nonce, sealed, associated)
        except InvalidTag:
            raise RemoteError(NOT_AUTHENTIC) from None


def transform(suite: SrtpSuite, key: bytes, salt: bytes, first_label: int = 0) -> Transform:
    """Make the transform of RTP by a master key, or that of RTCP by `RTCP_LABELS`: §3.2.1."""
    keys = session_keys(suite, key, salt, first_label)
    if suite.is_aead:  # RFC 7714 §12 [both-key-sizes]
        return GcmMode(keys)
    return CounterMode(keys, suite.rtcp_tag_octets if first_label else suite.tag_octets)


class _Replay:
    """The indices of one source that were received, `window` of them: §3.3.2."""

    def __init__(self, window: int = WINDOW) -> None:
        self.highest: int | None = None
        self._window, self._mask = window, (1 << window) - 1
        self._seen = 0  # bit n: the index n below the highest

    def check(self, index: int) -> None:
        """Raise RemoteError for an index that came already, or is too old to tell."""
        if self.highest is None or index > self.highest:
            return
        behind = self.highest - index
        if behind >= self._window or self._seen >> behind & 1:  # §3.3.2 [replay-refused]
            raise RemoteError(CAME_BEFORE)

    def note(self, index: int) -> None:
        """Keep an index, once its packet has been authenticated."""
        if self.highest is None or index > self.highest:
            window = self._window
            ahead = window if self.highest is None else min(index - self.highest, window)
            self._seen = (self._seen << ahead | 1) & self._mask
            self.highest = index
        else:
            self._seen |= 1 << self.highest - index


def guess_index(sequence: int, highest: int | None) -> int:
    """Extend a sequence number to the 48-bit index nearest to the highest seen: §3.3.1.

    >>> guess_index(0, 65535), guess_index(65535, 65536), guess_index(7, None)
    (65536, 65535, 7)
    """
    if highest is None:
        # §3.3.1 [begins-at-zero] [begins-with-the-first-packet]
        # RFC 4568 §6.4 [roc-is-zero-at-first]
        return sequence
    index = (highest & ~0xFFFF) | sequence
    if index < highest - 0x8000:  # §3.3.1 [roc-guessed]
        index += 0x10000
    elif index > highest + 0x8000 and index >= 0x10000:
        index -= 0x10000
    return index


class SrtpSender:
    """Protects what one end sends: §3.3."""

    def __init__(self, key: bytes, salt: bytes, suite: SrtpSuite = AES_CM_128_HMAC_SHA1_80) -> None:
        self._rtp = transform(suite, key, salt)
        # §3.2.1 [session-keys-are-apart]
        # §3.4 [rtcp-as-rtp], §4.1.1 [rtcp-keys], §4.3.2 [one-master-key]
        self._rtcp = transform(suite, key, salt, RTCP_LABELS)
        self._highest: dict[int, int] = {}
        self._rtcp_index = 0

    def protect_rtp(self, packet: bytes) -> bytes:
        """Encrypt the payload of an RTP packet and authenticate the whole: §3.3."""
        header = fast.unpack(packet)
        if header is None:
            raise LocalError("no RTP packet")
        _, _, sequence, _, ssrc, start, _ = header
        index = guess_index(sequence, self._highest.get(ssrc))  # §3.3.1 [sender-counts-wraps]
        if index > MAX_RTP_INDEX:  # §3.3.1 [key-used-up], §9.2 [ends-at-the-limit]
            # RFC 7714 §8.4 [new-key-before-a-cycle], §13.1 [ends-at-the-limit]
            raise LocalError("the key has protected all the RTP that it may")
        # §3.2.1 [counts-of-each-source], §9.2 [packets-are-counted]
        self._highest[ssrc] = max(index, self._highest.get(ssrc, index))
        return self._rtp.protect_rtp(packet, start, ssrc, index)

    def protect_rtcp(self, compound: bytes) -> bytes:
        """Encrypt a compound but for its first header, and authenticate the whole: §3.4."""
        if len(compound) < _RTCP_HEAD:
            raise LocalError("no RTCP compound")
        index = self._rtcp_index
        if index > MAX_RTCP_INDEX:  # §3.4 [rtcp-is-counted], §9.2 [ends-at-the-limit]
            # RFC 7714 §9.4 [new-key-before-a-cycle]
            raise LocalError("the key has protected all the RTCP that it may")
        self._rtcp_index += 1  # §3.4 [rtcp-index-counts], §9.2 [packets-are-counted]
        (ssrc,) = _WORD.unpack_from(compound, 4)  # §4.1.1 [first-ssrc-of-a-compound]
        # RFC 4568 §6 [e-bit-is-no-choice], §6.3.2 [e-bit-by-default]
        return self._rtcp.protect_rtcp(compound, ssrc, _ENCRYPTED | index)


class SrtpReceiver:
    """Opens what one end receives, each packet once: §3.3.

    `window` is how many packets late one of RTP may come; 64 at least, and more where lost packets
    are sent again.
    Departs from RFC 4568 §6.5 [removed-as-members-are]: what is known of a source stays as long as
    the key; if it were forgotten, old packets could be played back.
    """

    def __init__(
        self,
        key: bytes,
        salt: bytes,
        suite: SrtpSuite = AES_CM_128_HMAC_SHA1_80,
        *,
        window: int = WINDOW,
    ) -> None:
        if window < WINDOW:  # §3.3.2 [window-of-64]
            raise LocalError("a replay window has 64 packets at least")
        self._window, self._suite = window, suite
        self._rtp = transform(suite, key, salt)
        # §3.2.1 [session-keys-are-apart]
        # §3.4 [rtcp-as-rtp], §4.1.1 [rtcp-keys], §4.3.2 [one-master-key]
        self._rtcp = transform(suite, key, salt, RTCP_LABELS)
        self._rtp_replay: dict[int, _Replay] = {}
        self._rtcp_replay: dict[int, _Replay] = {}

    def open_rtp(self, data: bytes) -> bytes:
        """Check and decrypt an SRTP packet, or raise RemoteError: §3.3."""
        end = len(data) - self._suite.tag_octets
        if end < 12 or data[0] >> 6 != 2:
            raise RemoteError("no SRTP packet")
        _, _, sequence, _, ssrc = fast.unpack_fixed(data)
        # §3.2.3 [context-of-the-source], RFC 4568 §6.4.1 [late-binding]
        replay = self._rtp_replay.get(ssrc) or _Replay(self._window)
        index = guess_index(sequence, replay.highest)
        replay.check(index)  # §3.3 [replayed-is-dropped], §3.3.2 [protocols-alike]
        packet = self._rtp.open_rtp(data, _payload_start(data[:end]), ssrc, index)
        # §3.2.1 [highest-is-authentic], §3.3.1 [counts-what-is-authentic]
        # RFC 4568 §6.4.1 [bound-when-authentic]
        self._keep(self._rtp_replay, ssrc, replay, index)
        return packet

    def open_rtcp(self, data: bytes) -> bytes:
        """Check and decrypt an SRTCP packet, or raise RemoteError: §3.4."""
        if len(data) < _RTCP_HEAD + rtcp_octets(self._suite):
            raise RemoteError("no SRTCP packet")
        word = self._rtcp.rtcp_word(data)
        (ssrc,) = _WORD.unpack_from(data, 4)  # §4.1.1 [first-ssrc-of-a-compound]
        index = word & MAX_RTCP_INDEX
        replay = self._rtcp_replay.get(ssrc) or _Replay()
        replay.check(index)  # §3.3.2 [protocols-alike]
        compound = self._rtcp.open_rtcp(data, ssrc, word)
        self._keep(self._rtcp_replay, ssrc, replay, index)
        return compound

    def _keep(self, known: dict[int, _Replay], ssrc: int, replay: _Replay, index: int) -> None:
        """Note an authentic packet; refuse one source too many, which only the key holder sends."""
        if ssrc not in known and len(known) >= MAX_SOURCES:
            raise RemoteError("too many sources of one SRTP key")
        known[ssrc] = replay  # §3.2.1 [counts-of-each-source]
        replay.note(index)  # §3.3.2 [noted-when-authentic]


def _payload_start(packet: bytes) -> int:
    """Find where encryption begins, with the padding count encrypted as well: §3.1."""
    header = fast.unpack(bytes((packet[0] & ~0x20,)) + packet[1:])
    if header is None:
        raise RemoteError("no SRTP packet")
    return header[5]

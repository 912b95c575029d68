"""SRTP: RTP and RTCP that nobody on the way can read, change or play back.

Implements RFC 3711 §3 and §4, with AES in counter mode and HMAC-SHA1, and no MKI.

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
from typing import Final

from Crypto.Cipher import AES

from p2psip.errors import LocalError, RemoteError
from p2psip.rtp import fast

KEY_OCTETS: Final = 16  # Source: §8.2, of a master key
SALT_OCTETS: Final = 14  # Source: §8.2
AUTH_OCTETS: Final = 20  # Source: §8.2, §5.2 [authentication-key], of a session's tags
RTCP_TAG_OCTETS: Final = 10  # Source: §5.2 [rtcp-tag-of-80], whatever RTP's tag is
WINDOW: Final = 64  # packets. Source: §3.3.2
MAX_SOURCES: Final = 32  # of one key, Own design: memory must be bounded
MAX_RTP_INDEX: Final = (1 << 48) - 1  # Source: §3.3.1
MAX_RTCP_INDEX: Final = (1 << 31) - 1  # Source: §3.4
# Source: §4.3.2, the labels of the session keys: of SRTP, and after that of SRTCP
# §4.3.1 [labels-differ]
ENCRYPTION, AUTHENTICATION, SALTING = 0, 1, 2
RTCP_LABELS: Final = 3  # §4.3.2 [labels-of-rtcp]
_WORD: Final = Struct("!I")
RTCP_OCTETS: Final = _WORD.size + RTCP_TAG_OCTETS  # that SRTCP adds. Source: §3.4
_RTCP_HEAD: Final = 8  # octets that stay in clear. Source: §3.4
_ENCRYPTED: Final = 1 << 31  # the E flag, above the index. Source: §3.4


def keystream(key: bytes, start: int, octets: int) -> bytes:
    """Encrypt zeros in counter mode from the block `start`: §4.1.1."""
    # §4.1.1 [keystream], §4.3.1 [secure-prf]
    return AES.new(key, AES.MODE_CTR, nonce=b"", initial_value=start).encrypt(bytes(octets))


def derive(key: bytes, salt: bytes, label: int, octets: int) -> bytes:
    """Derive a session key from a master key and salt, at a derivation rate of 0: §4.3.1."""
    if len(key) != KEY_OCTETS or len(salt) != SALT_OCTETS:  # §9.2 [no-padded-keys]
        raise LocalError("a master key has 16 octets, a master salt 14")
    # §4.3.1 [derivation-input] [as-defined], §4.3.3 [prf-is-aes-cm]
    # §5.3 [salt-and-rate-by-default]
    x = int.from_bytes(salt, "big") ^ label << 48
    return keystream(key, x << 16, octets)


class _Keys:
    """The session keys of one direction, of RTP or of RTCP: §4.3."""

    def __init__(self, key: bytes, salt: bytes, first_label: int, tag_octets: int) -> None:
        # §4.3.1 [keys-are-derived] [derived-at-first]
        # §5.1 [session-key-of-128]
        self._cipher_key = derive(key, salt, first_label + ENCRYPTION, KEY_OCTETS)
        self._auth_key = derive(key, salt, first_label + AUTHENTICATION, AUTH_OCTETS)
        # §5.1 [session-salt-of-112]
        salting = derive(key, salt, first_label + SALTING, SALT_OCTETS)
        self._salt = int.from_bytes(salting, "big") << 16
        self.tag_octets = tag_octets

    def crypt(self, data: bytes, ssrc: int, index: int) -> bytes:
        """Encrypt or decrypt the packet of a source and an index: §4.1.1."""
        start = self._salt ^ ssrc << 64 ^ index << 16  # §4.1.1 [counter-block]
        # §4.1.1 [keystream]
        cipher = AES.new(self._cipher_key, AES.MODE_CTR, nonce=b"", initial_value=start)
        return cipher.encrypt(data)

    def tag(self, authenticated: bytes) -> bytes:
        """Authenticate a packet and what it does not carry: §4.2.1 [leftmost-octets]."""
        # §4.2.1 [no-prefix] [hmac-of-the-message], §5.2 [sha1-by-default]
        return hmac.digest(self._auth_key, authenticated, "sha1")[: self.tag_octets]

    def check(self, authenticated: bytes, tag: bytes) -> None:
        """Raise RemoteError unless the tag is right: §4.2.1."""
        if not hmac.compare_digest(self.tag(authenticated), tag):
            raise RemoteError("SRTP packet that is not authentic")  # §4.2 [mismatch-is-told]


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
            raise RemoteError("SRTP packet that came before")

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
    """Protects what one end sends: §3.3.  `tag_octets` of RTP is 10, or 4."""

    def __init__(self, key: bytes, salt: bytes, tag_octets: int = 10) -> None:
        self._rtp = _Keys(key, salt, 0, tag_octets)
        # §3.2.1 [session-keys-are-apart]
        # §3.4 [rtcp-as-rtp], §4.1.1 [rtcp-keys], §4.3.2 [one-master-key]
        self._rtcp = _Keys(key, salt, RTCP_LABELS, RTCP_TAG_OCTETS)
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
            raise LocalError("the key has protected all the RTP that it may")
        # §3.2.1 [counts-of-each-source], §9.2 [packets-are-counted]
        self._highest[ssrc] = max(index, self._highest.get(ssrc, index))
        # §3.1 [encrypt-then-authenticate], §3.3 [protects]
        data = packet[:start] + self._rtp.crypt(packet[start:], ssrc, index)
        # §3.1 [tag-in-each], §4.2 [roc-authenticated]
        return data + self._rtp.tag(data + _WORD.pack(index >> 16 & 0xFFFFFFFF))

    def protect_rtcp(self, compound: bytes) -> bytes:
        """Encrypt a compound but for its first header, and authenticate the whole: §3.4."""
        if len(compound) < _RTCP_HEAD:
            raise LocalError("no RTCP compound")
        index = self._rtcp_index
        if index > MAX_RTCP_INDEX:  # §3.4 [rtcp-is-counted], §9.2 [ends-at-the-limit]
            raise LocalError("the key has protected all the RTCP that it may")
        self._rtcp_index += 1  # §3.4 [rtcp-index-counts], §9.2 [packets-are-counted]
        (ssrc,) = _WORD.unpack_from(compound, 4)  # §4.1.1 [first-ssrc-of-a-compound]
        # §3.4 [no-random-prefix], §4.1.1 [rtcp-index-in-the-block]
        data = compound[:_RTCP_HEAD] + self._rtcp.crypt(compound[_RTCP_HEAD:], ssrc, index)
        # §3.4 [rtcp-index-is-there]
        # RFC 4568 §6 [e-bit-is-no-choice], §6.3.2 [e-bit-by-default]
        data += _WORD.pack(_ENCRYPTED | index)
        return data + self._rtcp.tag(data)  # §3.4 [rtcp-always-authenticated] [rtcp-tag-is-there]


class SrtpReceiver:
    """Opens what one end receives, each packet once: §3.3.

    `window` is how many packets late one of RTP may come; 64 at least, and more where lost packets
    are sent again.
    Departs from RFC 4568 §6.5 [removed-as-members-are]: what is known of a source stays as long as
    the key; if it were forgotten, old packets could be played back.
    """

    def __init__(
        self, key: bytes, salt: bytes, tag_octets: int = 10, *, window: int = WINDOW
    ) -> None:
        if window < WINDOW:  # §3.3.2 [window-of-64]
            raise LocalError("a replay window has 64 packets at least")
        self._window = window
        self._rtp = _Keys(key, salt, 0, tag_octets)
        # §3.2.1 [session-keys-are-apart]
        # §3.4 [rtcp-as-rtp], §4.1.1 [rtcp-keys], §4.3.2 [one-master-key]
        self._rtcp = _Keys(key, salt, RTCP_LABELS, RTCP_TAG_OCTETS)
        self._rtp_replay: dict[int, _Replay] = {}
        self._rtcp_replay: dict[int, _Replay] = {}

    def open_rtp(self, data: bytes) -> bytes:
        """Check and decrypt an SRTP packet, or raise RemoteError: §3.3."""
        end = len(data) - self._rtp.tag_octets
        packet, tag = data[: max(end, 0)], data[max(end, 0) :]
        if len(packet) < 12 or packet[0] >> 6 != 2:
            raise RemoteError("no SRTP packet")
        _, _, sequence, _, ssrc = fast.unpack_fixed(packet)
        # §3.2.3 [context-of-the-source], RFC 4568 §6.4.1 [late-binding]
        replay = self._rtp_replay.get(ssrc) or _Replay(self._window)
        index = guess_index(sequence, replay.highest)
        replay.check(index)  # §3.3 [replayed-is-dropped], §3.3.2 [protocols-alike]
        # §3.1 [encrypt-then-authenticate], §3.2.3 [no-context-no-packet], §3.3 [forged-is-dropped]
        self._rtp.check(packet + _WORD.pack(index >> 16 & 0xFFFFFFFF), tag)
        start = _payload_start(packet)
        # §3.2.1 [highest-is-authentic], §3.3.1 [counts-what-is-authentic]
        # RFC 4568 §6.4.1 [bound-when-authentic]
        self._keep(self._rtp_replay, ssrc, replay, index)
        return packet[:start] + self._rtp.crypt(packet[start:], ssrc, index)  # §3.3 [opens]

    def open_rtcp(self, data: bytes) -> bytes:
        """Check and decrypt an SRTCP packet, or raise RemoteError: §3.4."""
        end = len(data) - RTCP_TAG_OCTETS
        if end < _RTCP_HEAD + _WORD.size:
            raise RemoteError("no SRTCP packet")
        (word,) = _WORD.unpack_from(data, end - _WORD.size)
        (ssrc,) = _WORD.unpack_from(data, 4)  # §4.1.1 [first-ssrc-of-a-compound]
        index = word & MAX_RTCP_INDEX
        replay = self._rtcp_replay.get(ssrc) or _Replay()
        replay.check(index)  # §3.3.2 [protocols-alike]
        self._rtcp.check(data[:end], data[end:])  # §3.4 [rtcp-tag-is-there]
        self._keep(self._rtcp_replay, ssrc, replay, index)
        body = data[_RTCP_HEAD : end - _WORD.size]
        if word & _ENCRYPTED:  # §3.4 [e-flag] [clear-rtcp-is-left]
            body = self._rtcp.crypt(body, ssrc, index)  # §4.1.1 [rtcp-index-in-the-block]
        return data[:_RTCP_HEAD] + body

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

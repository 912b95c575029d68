"""Keys of recorded sessions, and every packet opened and sealed again."""

import json
from pathlib import Path

import dpkt
import pytest

from rtmplite.errors import RemoteError
from rtmplite.rtmfp.crypto.certificate import Certificate
from rtmplite.rtmfp.crypto.cipher import Opener, Sealer, default_cipher
from rtmplite.rtmfp.crypto.dh import GROUPS, KeyPair
from rtmplite.rtmfp.crypto.keying import Component, derive, protections
from rtmplite.rtmfp.wire.packet import scramble, unscramble
from rtmplite.rtmfp.wire.startup_chunks import (
    InitiatorInitialKeying,
    ResponderHello,
    ResponderInitialKeying,
)

CAPTURES = (
    "connect_play_nobody",
    "publish_play_h264_speex",
    "publish_play_nohmac_nosseq",
    "p2p_introduction",
)


def _text(path):
    return Path(path).read_text()


@pytest.fixture(params=CAPTURES)
def capture(request, corpus):
    """The datagrams of a capture by frame number, its lines, and its sessions."""
    base = corpus / "rtmfp" / request.param
    lines = [json.loads(line) for line in _text(f"{base}.decrypted.jsonl").splitlines()]
    datagrams = {}
    with open(f"{base}.pcap", "rb") as file:
        for number, (_, frame) in enumerate(dpkt.pcap.Reader(file), 1):
            datagrams[number] = bytes(dpkt.ethernet.Ethernet(frame).data.data.data)
    return datagrams, lines, json.loads(_text(f"{base}.keys.json"))


def _keys(session):
    server = bytes.fromhex(session["server_keying_component"])
    client = bytes.fromhex(session["client_keying_component"])
    secret = bytes.fromhex(session["dh_shared_secret"])
    keys = derive(secret, server, client)
    return keys, protections(keys, Component.parse(server), Component.parse(client))


def test_keys(capture):
    """Covers RFC 7425 §4.6.3 [encrypt-key] [decrypt-key], RFC 7425 §4.6.5 [near-nonce] [far-nonce].

    RFC 7425 §4.6.4 [hmac-send-key] [hmac-recv-key] [hmac-on-request] [else-checksum].
    """
    for session in capture[2]:
        keys, (send, receive) = _keys(session)
        assert keys.encrypt_key == bytes.fromhex(session["server_to_client_key"])
        assert keys.decrypt_key == bytes.fromhex(session["client_to_server_key"])
        assert keys.hmac_send_key == bytes.fromhex(session["server_to_client_hmac_key"])
        assert keys.hmac_recv_key == bytes.fromhex(session["client_to_server_hmac_key"])
        assert keys.near_nonce == bytes.fromhex(session["server_nonce"])
        assert keys.far_nonce == bytes.fromhex(session["client_nonce"])
        used = 16 if session["hmac_used"] else 0
        assert send.hmac_length == receive.hmac_length == used


def test_every_packet(capture):
    """Covers RFC 7425 §4.7.2 [encrypted-layout] [plain-layout] [checksum-unless-hmac].

    RFC 7425 §4.7.1 [aes-128-cbc] [zero-iv], RFC 7425 §4.7.3.2 [encrypt-then-mac].
    """
    datagrams, lines, sessions = capture
    halves = {}
    for session in sessions:
        _, (server, client) = _keys(session)
        halves[f"{session['id']}.server_to_client"] = Opener(server), Sealer(server), server
        halves[f"{session['id']}.client_to_server"] = Opener(client), Sealer(client), client
    default = default_cipher()
    for line in lines:
        session_id, encrypted = unscramble(datagrams[line["n"]])
        assert session_id == line["ssid"]
        plain = bytes.fromhex(line["plain"])
        if line["key"] == "default":
            opened = default.open(encrypted)
            assert plain[2:] == opened
            assert default.seal(opened) == encrypted
            continue
        opener, sealer, protection = halves[line["key"]]
        assert protection.hmac_length == line.get("hmac_len", 0)
        assert protection.numbered == ("sseq" in line)
        opened = opener.open(encrypted)
        assert plain.endswith(opened)
        assert scramble(session_id, sealer.seal(opened)) == datagrams[line["n"]]
        if protection.numbered:
            with pytest.raises(RemoteError, match="seen"):
                opener.open(encrypted)


def test_packets_beyond_the_lines(capture):
    """RFC 7425 §4.7.3: packets of the capture without a line open with one of the keys."""
    datagrams, lines, sessions = capture
    openers = [Opener(half) for session in sessions for half in _keys(session)[1]]
    known = {line["n"] for line in lines}
    for number, datagram in datagrams.items():
        if number not in known:
            opened = [opener for opener in openers if _opens(opener, unscramble(datagram)[1])]
            assert len(opened) == 1


def _opens(opener, encrypted):
    try:
        opener.open(encrypted)
    except RemoteError:
        return False
    return True


@pytest.fixture
def handshake(corpus):
    """The four packets of a Flash Player's handshake, each as its only chunk."""
    packets = json.loads((corpus / "rtmfp/flash_player_handshake.json").read_text())["packets"]
    cipher = default_cipher()
    for packet in packets:
        session_id, encrypted = unscramble(bytes.fromhex(packet["wire"]))
        plain = cipher.open(encrypted)
        assert session_id == packet["ssid"]
        assert bytes.fromhex(packet["plain"])[2:] == plain
        assert cipher.seal(plain) == encrypted
    return [bytes.fromhex(packet["chunks"][0]["payload"]) for packet in packets]


def test_flash_player(handshake):
    """Covers RFC 7425 §4.5.2.4 [hmac-layout] and RFC 7425 §4.5.2.5 [sseq-layout].

    A static initiator (RFC 7425 §4.6.1.3), with an X for a signature (RFC 7425 §4.3.5), and an
    ephemeral responder: the 64 bytes in its certificate that once passed for a public key are
    randomness (RFC 7425 §4.3.3.3).
    """
    hello = ResponderHello.parse(handshake[1])
    server = Certificate.parse(hello.responder_certificate)
    assert server.ephemeral_groups == (2, 5, 14)
    assert server.accepts_ancillary_data
    assert [len(data) for data in server.extra_randomness] == [64]
    initial = InitiatorInitialKeying.parse(handshake[2])
    client = Certificate.parse(initial.initiator_certificate)
    assert list(client.static_keys) == [2]
    component = Component.parse(initial.session_key_initiator_component)
    assert component.group_select == 2
    assert len(component.extra_randomness) == 64
    assert component.hmac.flags == component.sequence_numbers.flags == 2
    assert component.hmac_length == 10
    assert initial.signature == b"X"


def test_session_of_a_flash_player(handshake):
    """Covers RFC 7425 §4.6.3 [encrypt-key] [decrypt-key] against Adobe's own player.

    The responder's private key is known: the prime of group 2 with its first byte cleared.  The
    packet that the player then sent, an acknowledgement, is from the same recording.
    """
    initial = InitiatorInitialKeying.parse(handshake[2])
    answer = ResponderInitialKeying.parse(handshake[3])
    pair = KeyPair.of(GROUPS[2], GROUPS[2].prime & (1 << 1016) - 1)
    skrc, skic = answer.session_key_responder_component, initial.session_key_initiator_component
    near, far = Component.parse(skrc), Component.parse(skic)
    assert near.ephemeral_key == (2, pair.public)
    secret = pair.secret(Certificate.parse(initial.initiator_certificate).static_keys[2])
    _, receive = protections(derive(secret, skrc, skic), near, far)
    assert receive.hmac_length == 0
    assert not receive.numbered
    packet = Opener(receive).open(bytes.fromhex("607c26ea9932d5ff84a86bf2973b44e4"))
    assert packet.hex(" ") == "0d 1e b7 64 97 51 00 04 01 ff 7f 02 ff ff"

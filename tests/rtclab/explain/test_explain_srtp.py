"""SRTP is opened by the keys that a description, an operator or a log of DTLS gives."""

import base64
import io
import json
from pathlib import Path

import pytest
from support.explained import hold
from support.lint.dtls_handshake import dtls_handshake
from support.lint.media_cases import FROM_A, TO_B, rtp
from support.lint.scene import Scene, datagrams
from support.lint.srtp_cases import OURS, THEIRS, agreed, encoded, forged, parts, sealed

from p2psip.rtp.rtcp import ReceiverReport
from p2psip.srtp.srtp import SrtpSender
from p2psip.srtp.suites import AES_CM_128_HMAC_SHA1_80, SUITES
from rtclab.__main__ import main
from rtclab.explain.command import explain, key_file
from rtclab.explain.fields.context import Context
from rtclab.explain.render import as_json, text_lines
from rtclab.lint.command import lint
from rtclab.lint.packets import read_capture
from rtclab.unwrap.key_log import DtlsHello, exported, read_key_log
from rtclab.unwrap.srtp import SrtpSessions
from siprtmp.edge.pcap_file import CapturedConnection, PcapFile

CAPTURES = Path(__file__).parent / "captures"
REPORT = bytes(ReceiverReport(0xCAFE))


def told(file, context=None):
    """The fields of the last packet's datagram, and the names of all within."""
    field = explain(file, context or Context())
    hold(field, file)
    [*_, datagram] = field.children[-1].children
    return datagram, {each.name: each for each in datagram.walk()}


def faults(field):
    return [each.fault.reason for each in field.walk() if each.fault]


@pytest.mark.parametrize("suite", SUITES.values(), ids=SUITES)
def test_the_keys_of_a_description_open_both_kinds(suite):
    """The payload is explained as that of plain RTP, and the report as plain RTCP."""
    sender = SrtpSender(*parts(suite, OURS), suite)
    for packet, name, inner in (
        (sender.protect_rtp(rtp(1, kind=8)), "SRTP", "RTP"),
        (sender.protect_rtcp(REPORT), "SRTCP", "receiver report"),
    ):
        field, names = told(datagrams(agreed(suite).udp(FROM_A, TO_B, packet)))
        assert (field.name, field.meaning) == (name, suite.name) and not faults(field)
        assert inner in names and names["tag"].meaning == "authentic"
    assert names["encrypted"].value == "1" and names["index"].value == "0"
    assert field.children[0].octets == REPORT


def test_the_payload_is_shown_as_that_of_plain_rtp():
    [packet] = sealed([rtp(1, kind=8)])
    field, names = told(datagrams(agreed().udp(FROM_A, TO_B, packet)))
    _, plain = told(datagrams(Scene().udp(FROM_A, TO_B, rtp(1, kind=8))))
    assert names["payload"].meaning == plain["payload"].meaning == "PCMA/8000"
    assert field.children[0].octets == rtp(1, kind=8)


def test_a_wrong_tag_is_named_from_the_first_packet_on():
    """By the address that the description gives its sender; elsewhere no key may be right."""
    [packet] = sealed([rtp(1)])
    field, names = told(datagrams(agreed().udp(FROM_A, TO_B, forged(packet))))
    assert faults(field) == ["SRTP packet that is not authentic"]
    assert names["tag"].fault.citation.startswith("RFC 3711") and names["tag"].meaning == "wrong"
    assert names["SSRC"].value == "0x0000cafe"  # what is in the clear is told
    field, _ = told(datagrams(agreed().udp("192.0.2.9:1", TO_B, forged(packet))))
    assert field.name == "RTP"


def test_a_wrong_tag_is_named_after_one_that_is_right():
    """Also of a report, and where a description leaves open whether the call is encrypted."""
    sender = SrtpSender(*parts(AES_CM_128_HMAC_SHA1_80, OURS))
    packet, report = sender.protect_rtp(rtp(1)), sender.protect_rtcp(REPORT)
    scene = agreed(protocol=b"RTP/AVP").udp(FROM_A, TO_B, packet, forged(report))
    field, names = told(datagrams(scene))
    assert faults(field) == ["SRTP packet that is not authentic"] and names["tag"].fault
    field, names = told(datagrams(scene.udp(FROM_A, TO_B, packet)))
    assert faults(field) == ["SRTP packet that came before"]
    assert names["packet"].fault and not names["tag"].fault


def test_keys_that_come_by_tcp_open_what_goes_by_udp():
    """Though streams are put together behind the packets; a key may stand in two segments."""
    calls, media = agreed().packets, sealed([rtp(1)])[0]
    invite = calls[0].data
    middle = invite.index(b"inline:") + 20
    file, ends = io.BytesIO(), (("192.0.2.1", 5060), ("192.0.2.2", 5060))
    pcap = PcapFile(file)
    tale = CapturedConnection(*ends)
    for piece in (invite[:middle], invite[middle:]):
        pcap.piece(tale, ends[0], piece, 1e9)
    pcap.datagram(("192.0.2.1", 20000), ("192.0.2.2", 20000), media, 1e9)
    field = explain(file.getvalue(), Context())
    hold(field, file.getvalue())
    [opened] = [each for each in field.walk() if each.name == "SRTP"]
    assert opened.children[0].octets == rtp(1)
    tree = json.dumps(as_json(field, file.getvalue()))
    assert invite[middle : middle + 20].hex() not in tree
    assert invite[middle - 13 : middle].hex() not in tree


def test_plain_rtp_beside_keys_stays_plain():
    """An offer of keys under RTP/AVP may be answered without them: RFC 8643 §3.1."""
    field, _ = told(datagrams(agreed(protocol=b"RTP/AVP").udp(FROM_A, TO_B, rtp(1))))
    assert field.name == "RTP" and not faults(field)


def test_a_new_key_of_the_same_end_opens_what_follows():
    old, new = sealed([rtp(1)]), sealed([rtp(2)], secret=THEIRS)
    _, names = told(datagrams(agreed().udp(FROM_A, TO_B, *old, *new)))
    assert names["tag"].meaning == "authentic" and names["sequence"].value == "2"


def test_a_key_is_given_by_option_or_file(tmp_path, capsys):
    """The key of either end opens the packet of that end alone; no output has the key."""
    suite = AES_CM_128_HMAC_SHA1_80
    [packet] = sealed([rtp(1)])
    ours, theirs = (f"{suite.name} inline:{encoded(suite, each)}" for each in (OURS, THEIRS))
    file = tmp_path / "keys"
    file.write_text(f"# two ends\n\na=crypto:1 {ours}|2^20\n{theirs}\n{'00' * 16}\n")
    for words in (["--srtp-key", ours], ["--keys", str(file)]):
        assert main(["explain", *words, packet.hex()]) == 0
        said = capsys.readouterr().out
        assert "SRTP  (AES_CM_128_HMAC_SHA1_80)" in said and "PCMU/8000" in said
        assert ours[-30:] not in said
    assert main(["explain", "--as", "rtp", "--srtp-key", theirs, packet.hex()]) == 0
    assert "SRTP" not in capsys.readouterr().out
    assert len(key_file(str(file)).srtp) == 2 and len(key_file(str(file)).rtmfp) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("AES_CM_128_HMAC_SHA1_80 inline:c2hvcnQ=", "SRTP key and salt of 5 octets"),
        ("F8_128_HMAC_SHA1_80 inline:" + "A" * 40, "a key that is not for any of AES_CM"),
        ("CLIENT_RANDOM 00ff", "CLIENT_RANDOM without a random and a secret"),
        ("CLIENT_RANDOM 00 11", "CLIENT_RANDOM with a random or a secret of another length"),
        ("EXPORTER_SECRET xx yy", "non-hexadecimal number"),
    ],
)
def test_a_bad_key_is_one_line_without_the_key(tmp_path, capsys, text, said):
    file = tmp_path / "keys"
    file.write_text(f"{text}\n")
    assert main(["explain", "--keys", str(file), rtp(1).hex()]) == 2
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1 and text.partition(" ")[2] not in err


def test_secrets_are_in_no_output():
    """Neither in the lines nor in JSON, as text, octets or what was put together."""
    suite = AES_CM_128_HMAC_SHA1_80
    file = datagrams(agreed().udp(FROM_A, TO_B, *sealed([rtp(1)])))
    field = explain(file, Context())
    lines, tree = "\n".join(text_lines(field, file)), json.dumps(as_json(field, file))
    for secret in (OURS, THEIRS):
        shown = encoded(suite, secret)
        raw = base64.b64decode(shown)
        assert shown.encode() in file
        for each in (shown, shown.encode().hex(), raw.hex(), raw.hex(" ")):
            assert each not in lines and each not in tree
    assert "AES_CM_128_HMAC_SHA1_80" in lines


def test_the_log_of_openssl_opens_what_dtls_agreed_on():
    """Both directions, by the hellos in the capture.  Covers RFC 5764 §4.2."""
    secrets = []
    _, _, keys, sent = dtls_handshake(secrets.append)
    log = read_key_log(line.decode() for line in secrets)
    scene, ends = Scene(), ("192.0.2.1:4", "192.0.2.2:5")
    for is_clients, data in sent:
        scene.udp(*(ends if is_clients else ends[::-1]), data)
    scene.udp(*ends, SrtpSender(*keys.theirs).protect_rtp(rtp(1)))
    scene.udp(*ends[::-1], SrtpSender(*keys.ours).protect_rtp(rtp(2)))
    file = datagrams(scene)
    field = explain(file, Context(srtp=SrtpSessions((), log)))
    names = [packet.children[-1].name for packet in field.children]
    assert names[-2:] == ["SRTP", "SRTP"] and set(names[:-2]) == {"DTLS"} and not faults(field)
    field = explain(file, Context())
    assert [packet.children[-1].name for packet in field.children][-2:] == ["RTP", "RTP"]


def test_the_log_of_firefox_opens_what_dtls_1_3_agreed_on():
    """Firefox 153 ESR with itself: a client hello in parts, AES-GCM, and feedback of transport."""
    file = (CAPTURES / "firefox.pcap").read_bytes()
    keys = key_file(str(CAPTURES / "firefox.keys"))
    field = explain(file, Context(srtp=SrtpSessions(keys.srtp, keys.dtls)))
    hold(field, file)
    found = [packet.children[-1] for packet in field.children]
    opened = [each for each in found if each.name in ("SRTP", "SRTCP")]
    assert [each.name for each in opened].count("SRTP") == 4 and len(opened) == 7
    assert {each.meaning for each in opened} == {"AEAD_AES_128_GCM"}
    payloads = {each.children[0].children[-1].name for each in opened if each.name == "SRTP"}
    assert payloads == {"payload"}
    assert lint(read_capture(file), keys).findings == []


def test_a_longer_hash_makes_other_keys():
    known = read_key_log(["CLIENT_RANDOM " + "00" * 32 + " " + "11" * 48])[bytes(32)]
    made = [exported(known, bytes(32), DtlsHello(bytes(32), each, (8,))) for each in (1, 0xC02C)]
    assert made[0] != made[1] and len(made[0]) == 2
    assert exported(known, bytes(32), DtlsHello(bytes(32), 1, (5, 99))) == []  # no encryption

"""RTMFP's pages show what the code does today, and name what there is."""

import hmac
import importlib
import json
import pkgutil
import re
import subprocess
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest
import rtmfp_dump
import rtmfp_walk
from Crypto.Cipher import AES
from support.gateway.gateway import ANY_PORT, Gateway

import rtmplite.rtmfp

REPO = Path(__file__).resolve().parent.parent
LEDGER = REPO / "docs/4-protocols/rtmfp-2011.md"
TABLE = re.compile(r"^(\w+): Final\[Mapping\[\w*State, Mapping\[\w*Event, tuple", re.MULTILINE)
PLACE = re.compile(r"(\w+)(?:\.(\w+))?(?: (7016|7425) §([\d.]+))?")


@pytest.fixture(scope="module")
def conversation():
    return rtmfp_walk.Conversation()


def names():
    """All public names of the package, and what they stand for."""
    found = {}
    for module in pkgutil.walk_packages(rtmplite.rtmfp.__path__, "rtmplite.rtmfp."):
        found |= vars(importlib.import_module(module.name))
    return found


def test_the_steps_are_those_of_today():
    """If not: `PYTHONPATH=src python tests/rtmfp_walk.py`, and read what has changed."""
    text = rtmfp_walk.PAGE.read_text()
    assert len(rtmfp_walk.BLOCK.findall(text)) == text.count("<!-- run: ") == 19
    assert rtmfp_walk.renewed(text) == text


def test_the_whole_bytes_are_those_of_today():
    """And enough to go from one to the other with AES, HMAC and XOR, by nobody's code."""
    assert rtmfp_walk.VECTORS.read_text() == rtmfp_walk.vectors()
    found = json.loads(rtmfp_walk.VECTORS.read_text())
    secret, skic, skrc = (bytes.fromhex(found[name]) for name in ("secret", "skic", "skrc"))
    inner = hmac.digest(skrc, skic, "sha256")
    assert found["client_keys"]["encrypt_key"] == hmac.digest(secret, inner, "sha256").hex()
    assert len(found["datagrams"]) > 20 and any(each["lost"] for each in found["datagrams"])
    for each in found["datagrams"]:
        datagram, decrypted = bytes.fromhex(each["datagram"]), bytes.fromhex(each["decrypted"])
        assert decrypted.endswith(bytes.fromhex(each["packet"]))
        cipher = AES.new(bytes.fromhex(each["key"]), AES.MODE_CBC, bytes(16))
        assert cipher.encrypt(decrypted) == datagram[4 : 4 + len(decrypted)]
        words = [int.from_bytes(datagram[at : at + 4]) for at in (0, 4, 8)]
        assert f"{words[0] ^ words[1] ^ words[2]:08x}" == each["session_id"]


def test_every_field_of_the_steps_is_in_its_class_and_every_section_in_its_rfc(conversation):
    known = names()
    runs = conversation, rtmfp_walk.Introduction(), rtmfp_walk.Redirection()
    places = {place for run in runs for seen in run.seen for place in rtmfp_dump.packet(seen)[1]}
    assert len(places) > 60
    for place in places:
        name, attribute, rfc, section = PLACE.fullmatch(place).groups()
        thing = known[name]
        if attribute:
            of_class = {field.name for field in fields(thing)} if is_dataclass(thing) else set()
            assert attribute in of_class or hasattr(thing, attribute), place
        if rfc:
            index = (REPO / f"rfc_annotations/index/rfc{rfc}.txt").read_text()
            assert re.search(rf"^{re.escape(section)}\b", index, re.MULTILINE), place


def test_the_sniffer_makes_the_keys_that_the_ends_have(conversation):
    """Covers RFC 7425 §4.6: from the wire and one private key, nothing else."""
    client, server = conversation.sessions
    keys = conversation.agreed.keys
    assert (keys.near_nonce, keys.far_nonce) == (client.near_nonce, client.far_nonce)
    assert (keys.far_nonce, keys.near_nonce) == (server.near_nonce, server.far_nonce)


def test_every_table_of_states_is_drawn():
    page = (REPO / "docs/4-protocols/rtmfp-steps.md").read_text()
    rooms = REPO / "src/rtmplite/rtmfp"
    found = [
        f"rtmplite.rtmfp.{file.parent.name}.{file.stem}:{name}"
        for file in rooms.rglob("*.py")
        for name in TABLE.findall(file.read_text())
    ]
    assert len(found) >= 3
    assert [name for name in found if f"{{state-machine}} {name}\n" not in page] == []


def test_the_ledger_has_three_columns_and_a_section_in_every_row():
    rows = [line for line in LEDGER.read_text().splitlines() if line.startswith("| ")]
    assert len(rows) > 40
    for row in rows:
        _, article, rfc, _field, _ = row.split("|")
        assert article.strip()
        assert rfc == " the RFCs " or "RFC 7" in rfc or "There are none" in rfc, row


def test_the_script_with_two_clients_runs(tmp_path):
    """Only the port of the gateway differs."""
    text = (REPO / "docs/3-howto/rtmfp.md").read_text()
    [program] = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert "rtmfp://127.0.0.1/" in program
    with Gateway(tmp_path, "--rtmfp", ANY_PORT) as gateway:
        address = gateway.listeners["rtmfp"]
        words = [sys.executable, "-c", program.replace("rtmfp://127.0.0.1/", f"rtmfp://{address}/")]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr

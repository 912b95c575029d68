"""The comparison of wire traces masks chance and nothing else."""

from pathlib import Path

import pytest
import traces

ROOT = Path(__file__).resolve().parent.parent
ONE = "BYE sip:a@127.0.0.1:5060 SIP/2.0\nVia: SIP/2.0/UDP 127.0.0.1:5060;branch=z9hG4bK1\n"
OTHER = "BYE sip:a@127.0.0.1:5071 SIP/2.0\nVia: SIP/2.0/UDP 127.0.0.1:5071;branch=z9hG4bK2\n"


def test_only_what_chance_draws_is_masked():
    assert traces.masked(ONE) == traces.masked(OTHER)
    assert traces.masked(ONE) != traces.masked(ONE.replace("BYE", "INFO"))
    assert traces.masked("CSeq: 1 BYE\nMax-Forwards: 70") == "CSeq: * BYE\nMax-Forwards: 70"


@pytest.mark.timeout(300)
def test_a_call_leaves_its_messages(tmp_path):
    traces.record(ROOT, tmp_path / "one", ["rich-call"])
    told = (tmp_path / "one/rich-call.txt").read_text()
    for kind, part in (
        ("sip sent", "INVITE sip:bob@"),
        ("rtmp sent", "accepted"),
        ("rtp", "2a" * 160),
    ):
        assert part in told.partition(f"== {kind}\n")[2].partition("\n== ")[0]
    (tmp_path / "two").mkdir()
    (tmp_path / "two/rich-call.txt").write_text(told)
    assert traces.compare(tmp_path / "one", tmp_path / "two") == 0
    (tmp_path / "two/rich-call.txt").write_text(told.replace("Max-Forwards: 70", "Max-Forwards: 7"))
    assert traces.compare(tmp_path / "one", tmp_path / "two") == 1

"""The clause that a fault names is a section of a specification that we know."""

from pathlib import Path

import pytest

from p2psip.strategies import large, rtp_faults, sdp_faults, sip, stun_faults
from rfc_annotations import specs
from rfc_annotations.grammar import Grammar
from rtmplite.strategies import amf_faults, enhanced_faults, rtmfp_faults, rtmp_faults

MODULES = (
    sip,
    large,
    sdp_faults,
    rtp_faults,
    stun_faults,
    amf_faults,
    enhanced_faults,
    rtmfp_faults,
    rtmp_faults,
)
FOLDER = Path(specs.__file__).parent


def lists():
    """Every list of faults, by its name."""
    for module in MODULES:
        for name, value in vars(module).items():
            if name.endswith(("FAULTS", "EXCESSES")) and not name.startswith("_"):
                yield f"{module.__name__}.{name}", value


@pytest.mark.parametrize(("name", "faults"), list(lists()))
def test_each_fault_has_a_name_and_a_clause(name, faults):
    known = specs.load(FOLDER / "specs.toml")
    index, grammar = specs.read_index(known, FOLDER / "index"), Grammar(tuple(known))
    names = [fault.name for fault in faults]
    assert len(names) == len(set(names)), name
    for fault in faults:
        (citation,) = grammar.parse(fault.clause)
        assert citation.section in index[citation.spec], fault.clause

"""The clause that a fault names is a section of a specification that we know."""

from pathlib import Path

import pytest

from p2psip.strategies import (
    digest,
    format_faults,
    header_values,
    large,
    multipart,
    payload_faults,
    rtp_faults,
    sdp_faults,
    sip,
    sip_streams,
    srtp,
    stun_faults,
)
from rfc_annotations import specs
from rfc_annotations.grammar import Grammar
from rtmplite.strategies import (
    amf_faults,
    avc_faults,
    enhanced_faults,
    flv_faults,
    hevc_faults,
    limits,
    rtmfp_faults,
    rtmp_faults,
)

MODULES = (
    *(format_faults, srtp, sip, digest, header_values, multipart, sip_streams),
    *(large, payload_faults, sdp_faults, rtp_faults, stun_faults),
    *(amf_faults, avc_faults, enhanced_faults, flv_faults, hevc_faults, rtmfp_faults, rtmp_faults),
    limits,
)
UNLISTED = ("H.264 ", "H.265 ")  # specifications that are not in the catalogue
FOLDER = Path(specs.__file__).parent


def lists():
    """Every list of faults, by its name."""
    for module in MODULES:
        for name, value in vars(module).items():
            if name.endswith(("FAULTS", "EXCESSES", "LIMITS")) and not name.startswith("_"):
                yield f"{module.__name__}.{name}", value


@pytest.mark.parametrize(("name", "faults"), list(lists()))
def test_each_fault_has_a_name_and_a_clause(name, faults):
    known = specs.load(FOLDER / "specs.toml")
    index, grammar = specs.read_index(known, FOLDER / "index"), Grammar(tuple(known))
    names = [fault.name for fault in faults]
    assert len(names) == len(set(names)), name
    for fault in faults:
        if fault.clause.startswith(UNLISTED):
            continue
        (citation,) = grammar.parse(fault.clause)
        assert citation.section in index[citation.spec], fault.clause

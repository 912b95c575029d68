"""Sequence headers of HEVC, as Enhanced RTMP has them."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.gateway.h265_world import PPS, SPS, VPS
from support.mutations import mutations

from rtmplite.errors import LocalError, RemoteError
from rtmplite.flv import hevc
from rtmplite.flv.hevc import HevcArray, HevcConfig, HevcParameters
from rtmplite.strategies.hevc import hevc_configs, hevc_parameter_sets, hevc_units


@given(hevc_configs())
def test_a_record_reads_back(config):
    """Covers E-RTMP v2 §"Enhanced Video"."""
    assert HevcConfig.parse(bytes(config)) == config
    assert HevcConfig.parse(bytes(config) + b"more") == config


def test_a_record_of_an_encoder():
    """Own design: by x265, of which the length of 322 by 244 with B-frames is known."""
    config = HevcConfig.of([VPS], [SPS], [PPS])
    assert config.general.hex() == "01600000009000000000003c"
    assert [config.units(kind) for kind in (32, 33, 34)] == [(VPS,), (SPS,), (PPS,)]
    head = "0101600000009000000000003cf000fcfdf8f800000f03"
    assert bytes(config).hex().startswith(head + "a000010018")
    read = HevcParameters.parse(SPS)
    assert (read.width, read.height, read.reorder, read.sub_layers) == (322, 244, 2, 1)
    assert hevc.pps_ids(PPS) == (0, 0) and hevc.vps_id(VPS) == hevc.sps_vps_id(SPS) == 0


@given(hevc_parameter_sets())
def test_the_fields_of_a_sequence_parameter_set(drawn):
    """Own design: against a writer of the syntax of H.265, and in a record."""
    unit, fields = drawn
    assert HevcParameters.parse(unit) == fields
    config = HevcConfig.of([VPS], [unit], [PPS])
    assert HevcConfig.parse(bytes(config)) == config
    assert (config.luma_depth, config.chroma_depth) == (fields.luma_depth, fields.chroma_depth)
    assert (config.chroma_format, config.nested) == (fields.chroma_format, fields.nested)


@given(mutations(hevc_parameter_sets().map(lambda drawn: drawn[0])) | hevc_units())
def test_any_octets_are_parameters_or_refused(data):
    """Own design: nothing but RemoteError, and a size that exists."""
    readers = hevc.pps_ids, hevc.slice_pps_id, hevc.vps_id, hevc.sps_vps_id
    for reader in readers:
        try:
            assert reader(data) is not None
        except RemoteError:
            event("no id")
    try:
        read = HevcParameters.parse(data)
    except RemoteError:
        event("refused")
        return
    assert 0 < read.width <= 16888 and 0 < read.height <= 16888 and 0 <= read.set_id <= 15


@given(mutations(hevc_configs().map(bytes)) | st.binary(max_size=60))
def test_any_octets_are_a_record_or_refused(data):
    """Covers E-RTMP v2 §"Enhanced Video": what is read is no more than what came."""
    try:
        config = HevcConfig.parse(data)
    except RemoteError:
        event("refused")
        return
    assert sum(len(unit) for each in config.arrays for unit in each.units) <= len(data)


@pytest.mark.parametrize(
    "wrong",
    [
        HevcConfig(b"short", ()),
        HevcConfig(bytes(12), (), length_size=5),
        HevcConfig(bytes(12), (HevcArray(32, (b"",)),)),
        HevcConfig(bytes(12), (HevcArray(32, (bytes(65536),)),)),
    ],
)
def test_what_no_record_holds(wrong):
    with pytest.raises(LocalError):
        bytes(wrong)


def test_a_record_needs_a_set():
    with pytest.raises(LocalError):
        HevcConfig.of([VPS], [], [PPS])

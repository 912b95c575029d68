"""Sequence headers and NAL units of AVC, as FLV files hold them."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations

from rtmplite.errors import LocalError, RemoteError
from rtmplite.flv.avc import (
    AvcConfig,
    SequenceParameters,
    join_units,
    pps_ids,
    slice_pps_id,
    split_units,
)
from rtmplite.flv.file import read_flv
from rtmplite.strategies.avc import BitWriter, avc_configs, avc_units, sequence_parameter_sets
from rtmplite.strategies.avc_faults import cut_usability

SPS, PPS = bytes.fromhex("6742c00cda0507ec0440000003004000000603c50aa8"), b"\x68\xce\x3c\x80"


@given(avc_configs())
def test_a_record_reads_back(config):
    """Covers FLV 10.1 §E.4.3.2 [decoder-configuration]."""
    assert AvcConfig.parse(bytes(config)) == config


@given(sequence_parameter_sets())
def test_a_record_of_parameter_sets_tells_what_they_tell(drawn):
    """Covers FLV 10.1 §E.4.3.2 [decoder-configuration]: the octets for High profiles included."""
    unit, fields = drawn
    config = AvcConfig.of([unit], [PPS])
    assert (config.profile, config.compatibility, config.level) == tuple(unit[1:4])
    assert AvcConfig.parse(bytes(config)) == config
    event(f"{len(config.extension)} octets behind the sets")
    if config.extension:
        luma, chroma = fields.luma_depth - 8, fields.chroma_depth - 8
        values = 0xFC | fields.chroma_format, 0xF8 | luma, 0xF8 | chroma, 0
        assert config.extension == bytes(values)
    else:
        assert fields.profile in (66, 77, 88)


@given(sequence_parameter_sets())
def test_the_fields_of_a_sequence_parameter_set(drawn):
    """Own design: against a writer of the syntax of H.264."""
    unit, fields = drawn
    event(f"reorder: {fields.reorder is not None}")
    assert SequenceParameters.parse(unit) == fields


@given(cut_usability())
def test_a_set_that_ends_behind_the_size_still_tells_it(drawn):
    """Own design: what comes behind it counts as not said."""
    unit, fields = drawn
    assert SequenceParameters.parse(unit) == fields


@given(mutations(sequence_parameter_sets().map(lambda drawn: drawn[0])) | st.binary(max_size=60))
def test_any_octets_are_parameters_or_refused(data):
    """Own design: nothing but RemoteError, and a size that exists."""
    try:
        read = SequenceParameters.parse(data)
    except RemoteError:
        event("refused")
        return
    assert 0 < read.width <= 16880 and 0 < read.height <= 16880 and 0 <= read.set_id <= 31
    for reader in (pps_ids, slice_pps_id):
        try:
            assert reader(data) is not None
        except RemoteError:
            event("no id")


@given(st.integers(0, 255), st.integers(0, 31), st.integers(0, 1 << 16), st.integers(0, 9))
def test_ids_of_picture_parameter_sets_and_slices(pps, sps, macroblock, kind):
    """Own design: the first numbers of both, whatever their length."""
    first, second = BitWriter(), BitWriter()
    first.exp_golomb(pps, sps)
    second.exp_golomb(macroblock, kind, pps)
    assert pps_ids(first.unit(0x68)) == (pps, sps)
    assert slice_pps_id(second.unit(0x65)) == pps


@given(mutations(avc_configs().map(bytes)) | st.binary(max_size=60))
def test_any_octets_are_a_record_or_refused(data):
    """Covers FLV 10.1 §E.4.3.2: and it holds no more than came."""
    try:
        config = AvcConfig.parse(data)
    except RemoteError:
        event("refused")
        return
    assert sum(map(len, (*config.sps, *config.pps, config.extension))) <= len(data)


@given(st.lists(avc_units(), max_size=5))
def test_units_read_back(units):
    """Covers FLV 10.1 §E.4.3.2."""
    assert split_units(join_units(units)) == units


@given(mutations(st.lists(avc_units(), max_size=5).map(join_units)), st.sampled_from([1, 2, 4]))
def test_any_octets_are_units_or_refused(data, length_size):
    """Covers FLV 10.1 §E.4.3.2: nothing is lost but lengths of nothing."""
    try:
        units = split_units(data, length_size)
    except RemoteError:
        event("refused")
        return
    assert all(units) and sum(len(each) + length_size for each in units) <= len(data)


@pytest.mark.parametrize(
    "data",
    [
        "", "0142c00cff", "0242c00cffe0", "0142c00cffe0",  # short, version 2, no count
        "0142c00cffe10004674200", "0142c00cffe10000", "0142c00cffe001",  # sets cut short, empty
    ],
)  # fmt: skip
def test_broken_records(data):
    """Covers FLV 10.1 §E.4.3.2."""
    with pytest.raises(RemoteError):
        AvcConfig.parse(bytes.fromhex(data))


@pytest.mark.parametrize(
    "config",
    [
        AvcConfig(66, 0, 30, (SPS,) * 32, ()),
        AvcConfig(66, 0, 30, (), (PPS,) * 256),
        AvcConfig(66, 0, 30, (b"",), ()),
        AvcConfig(66, 0, 30, (), (b"h" * 0x10000,)),
        AvcConfig(66, 0, 30, (), (), length_size=5),
    ],
)
def test_records_that_cannot_be_written(config):
    """Covers FLV 10.1 §E.4.3.2."""
    with pytest.raises(LocalError):
        bytes(config)


def test_a_record_of_nothing_cannot_be_made():
    """Covers FLV 10.1 §E.4.3.2."""
    with pytest.raises(LocalError):
        AvcConfig.of([], [PPS])
    with pytest.raises(RemoteError):
        AvcConfig.of([b"\x67\x64\0\x1f"], [PPS])


@pytest.mark.parametrize(
    ("name", "size", "reorder", "same"),
    [
        ("seed_320x240_12fps_h264_speex16k_10s", (320, 240), 0, True),
        ("h264_slices4_speex16k", (320, 240), 0, True),
        ("h264_720p30_bf3_aac44k_30s", (1280, 720), 2, True),
        ("red5_flashContent1", (320, 240), 0, False),  # Flash Player clears the constraint flags
        ("red5_h264_speex", (160, 120), 0, False),
        ("mona_Video", (40, 40), 0, False),  # without the octets for High profiles
    ],
)
def test_sequence_headers_of_recorded_streams(corpus, name, size, reorder, same):
    """Covers FLV 10.1 §E.4.3.2 [decoder-configuration]: sizes are those that ffprobe tells."""
    _, tags = read_flv((corpus / f"flv/{name}.flv").read_bytes())
    bodies = [each.data for each in tags if each.tag_type == 9 and each.data[0] & 0x8F == 7]
    for body in (each[5:] for each in bodies if each[1] == 0):
        config = AvcConfig.parse(body)
        assert bytes(config) == body
        assert (bytes(AvcConfig.of(config.sps, config.pps)) == body) == same
        read = SequenceParameters.parse(config.sps[0])
        assert ((read.width, read.height), read.reorder) == (size, reorder)
        assert [pps_ids(each) for each in config.pps] == [(0, read.set_id)]
    pictures = [split_units(each[5:]) for each in bodies if each[1] == 1]
    assert all(pictures) and [join_units(each) for each in pictures] == [
        each[5:] for each in bodies if each[1] == 1
    ]

"""Files are walked through by headers alone, past what is no tag."""

from contextlib import suppress

from hypothesis import event, given
from hypothesis import strategies as st
from support.corpus_lines import readme_lines
from support.mutations import mutations, peak

from rtmplite.errors import RemoteError
from rtmplite.flv import file
from rtmplite.flv.tag import Tag, TagType
from rtmplite.flv.walk import PEEK, Walk, load, load_script
from rtmplite.strategies import flv

FILES = [line[0] for line in readme_lines("FLV")]


def test_real_files_have_the_steps_of_their_tags(corpus):
    """Covers FLV 10.1 §E.3 and FLV 10.1 §E.4.1."""
    for name in FILES:
        raw = (corpus / "flv" / name).read_bytes()
        source = file.MemoryFile(raw)
        walk = Walk(source)
        steps = list(walk)
        assert [load(source, step) for step in steps] == list(file.tags(raw))
        assert all(step.is_linked for step in steps)
        assert (walk.lost, walk.end, steps[-1].end) == (0, len(raw), len(raw))
        assert all(load(source, step).data[:PEEK] == step.peek for step in steps)


@given(flv.damaged())
def test_wrong_sizes_and_a_cut_end_cost_nothing_else(damaged):
    """Covers FLV 10.1 §E.3."""
    kept, raw = damaged
    source = file.MemoryFile(raw)
    walk = Walk(source)
    assert [load(source, step) for step in walk] == kept
    assert walk.lost == len(raw) - len(file.write_flv(kept)) and walk.end == len(raw) - walk.lost
    event(f"something is lost: {walk.lost > 0}")


@given(st.binary(max_size=200).filter(lambda noise: not any(kind in noise for kind in TagType)))
def test_noise_between_tags_is_stepped_over(noise):
    """Own design: the next header with a size after it that agrees is where it goes on."""
    one, two = Tag(TagType.AUDIO, 20, b"one"), Tag(TagType.VIDEO, -40, b"two")
    source = file.MemoryFile(file.write_flv([one]) + noise + file.framed(two))
    walk = Walk(source)
    assert [load(source, step) for step in walk] == [one, two] and walk.lost == len(noise)


def test_a_long_stretch_of_noise_is_searched_in_blocks():
    """Own design: a header may lie across two of them."""
    one, two = Tag(TagType.AUDIO, 20, b"one"), Tag(TagType.VIDEO, 40, b"two")
    for length in (65534, 65536, 65540, 131072):
        source = file.MemoryFile(file.write_flv([one]) + bytes(length) + file.framed(two))
        walk = Walk(source)
        assert [load(source, step) for step in walk] == [one, two] and walk.lost == length


@given(mutations(flv.files()) | st.binary(max_size=40))
def test_no_file_is_too_broken(raw):
    """Own design: it ends, in bounded memory, with what it found."""

    def walk():
        with suppress(RemoteError):
            for step in Walk(file.MemoryFile(raw)):
                seen.append(True)
                assert step.position > 0 and step.end <= len(raw) + 4

    seen = []
    assert peak(walk) <= 32 * len(raw) + 65536
    event(f"found a tag or more: {bool(seen)}")


def test_script_data_of_both_types_is_known():
    """Covers E-RTMP v2 §"Enabling AMF3 in FLV" [tag-type-15]."""
    tags = [Tag(15, 0, b"\0one"), Tag(15, 0, b"\1two"), Tag(18, 0, b"three"), Tag(8, 0, b"\0four")]
    source = file.MemoryFile(file.write_flv(tags))
    walk = Walk(source)
    found = [load_script(source, step) for step in walk]
    assert found == [Tag(18, 0, b"one"), None, Tag(18, 0, b"three"), None] and walk.lost == 0

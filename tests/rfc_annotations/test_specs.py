"""Every kind of spec text is cut at its headings, and only there."""

import pytest

from rfc_annotations import specs
from rfc_annotations.fingerprint import fingerprint, locate, squeeze
from rfc_annotations.settings import SettingsError
from rfc_annotations.specs import Library, Spec, cut

TOOL = specs.Path(specs.__file__).parent


def numbers(style, text, **more):
    return [n for n in cut(Spec("X", "X", "x", style, **more), text) if n]


def test_numbered_headings_stand_in_column_0():
    text = "1.  One\n\n   2. not a heading\n\n1.1 Two\n\nAppendix A.  Three\n\nA.1. Four\n"
    assert numbers("numbered", text) == ["1", "1.1", "A", "A.1"]


def test_a_heading_may_be_indented_where_its_number_is_missing():
    text = "1. One\n\n   2. An item,\n   as here.\n\n   2.  Two\n\n   2. Again\n\n3. Three\n"
    found = cut(Spec("X", "X", "x"), text)
    assert [n for n in found if n] == ["1", "2", "3"]
    assert found["2"][0] == "Two" and "An item" in found["1"][1] and "Again" in found["2"][1]
    assert numbers("numbered", "1. One\n\n   2. Item\n\n2. Two\n") == ["1", "2"]


def test_page_furniture_is_no_text():
    text = "1 One\n   half a\nAuthor  [Page 7]\n\fRFC 1   Title   May 1999\n   sentence\n"
    _, body = cut(Spec("X", "X", "x"), text)["1"]
    assert squeeze(body) == "1Onehalfasentence"
    _, body = cut(Spec("X", "X", "x", furniture=r"\s+half.*"), text)["1"]
    assert squeeze(body) == "1Onesentence"


def test_a_sequence_counts_on_past_its_table_of_contents():
    text = "1 One\n1.1 Two\n2. Three---4\n1 One\n48 cups\n1.1 Two\nA cup of\n2.0 is\n2 Three\n"
    found = cut(Spec("X", "X", "x", "sequence"), text)
    assert [n for n in found if n] == ["1", "1.1", "2"]
    assert "48 cups" in found["1"][1] and "2.0 is" in found["1.1"][1]


def test_a_list_item_may_repeat_a_number():
    text = "1 One\n\n   Text.\n\n2 Two\n\n1 Item\n"
    assert "Text." in cut(Spec("X", "X", "x"), text)["1"][1]


def test_headings_without_numbers():
    text = "Group   Date\n\nThe format\n\n   Text.\n\nUse\n"
    assert numbers("headings", text) == ["The format", "Use"]
    assert numbers("markdown", "# A\n```\n# not\n```\n## `B` C ##\n") == ["A", "`B` C"]


def test_the_index_knows_every_section_of_every_copy(specs):
    from rfc_annotations import specs as module

    known = module.load(TOOL / "specs.toml")
    library = Library(known, specs)
    assert library.present
    index = module.read_index(known, TOOL / "index")
    for name in library.present:
        assert list(index[name]) == [n for n in library.sections(name) if n]


@pytest.mark.parametrize(
    ("name", "sections"),
    [
        ("RFC 1071", ["1", "2", "3"]),
        ("RFC 3261", ["8.1.1.1", "17.1.1.2", "25.1"]),
        ("RTMP 1.0", ["5.3.1.2.4", "7.2.2.8"]),
        ("AMF0", ["2.2", "2.17", "4.1.3"]),
        ("AMF3", ["1.3.1", "2.2", "3.16"]),
        ("FLV 10.1", ["E.4.2.1", "E.4.4.10", "F.3.3.1"]),
        ("E-RTMP v2", ["Enhanced Video"]),
        ("RFC 2782", ["The format of the SRV RR"]),
    ],
)
def test_the_index_has_the_sections_that_we_live_by(name, sections):
    index = specs.read_index(specs.load(TOOL / "specs.toml"), TOOL / "index")
    assert set(sections) <= set(index[name])


def test_index_titles_are_too_short_to_be_quotations():
    index = specs.read_index(specs.load(TOOL / "specs.toml"), TOOL / "index")
    assert all(len(title.split()) < 12 for name in index for title in index[name].values())


def test_a_mark_finds_its_sentence_whatever_the_line_breaks():
    text = "Before. The gap\n   doubles, what-\n   ever T1 is. After."
    mark = fingerprint("The gap doubles, what- ever T1 is.")
    assert locate(text, mark) == "The gap doubles, what- ever T1 is."
    assert locate(text.replace("gap", "pause"), mark) is None


def test_two_specs_of_one_name_are_refused(tmp_path):
    entry = '[[spec]]\nname = "A"\ntitle = "A"\nfile = "a"\n'
    (tmp_path / "specs.toml").write_text(entry * 2)
    with pytest.raises(SettingsError, match="two specs"):
        specs.load(tmp_path / "specs.toml")

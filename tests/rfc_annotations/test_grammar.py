"""Citations are found wherever they stand in a text, whole or not at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rfc_annotations.grammar import Citation, Grammar, Mistake, spell

NAMES = ("RFC 3261", "RFC 6026", "RTMP 1.0", "AMF0", "E-RTMP v2", "Field")
GRAMMAR = Grammar(NAMES)


def one(text):
    (item,) = GRAMMAR.parse(text)
    return item


@pytest.mark.parametrize(
    ("text", "spec", "section", "slugs"),
    [
        ("RFC 3261 §17.1.1.2", "RFC 3261", "17.1.1.2", ()),
        ("(RFC 3261 §8.)", "RFC 3261", "8", ()),
        ("§17.1.3 [a-1] [b], then", None, "17.1.3", ("a-1", "b")),
        ("RFC\n3261\n    §17.1.3\n   [a]\n[b]", "RFC 3261", "17.1.3", ("a", "b")),
        ('E-RTMP v2 §"Enhanced\n    Video"', "E-RTMP v2", "Enhanced Video", ()),
        ("AMF0 §2.18", "AMF0", "2.18", ()),
        ("RTMP 1.0 §A.1", "RTMP 1.0", "A.1", ()),
        ("See §5", None, "5", ()),
    ],
)
def test_a_citation_is_read_whole(text, spec, section, slugs):
    item = one(text)
    assert (item.spec, item.section, item.slugs) == (spec, section, slugs)


@pytest.mark.parametrize("text", ["§17x", "§Annex", "RFC 99 §1", "RTMP §5.2", "AMF §2", '§"open'])
def test_what_only_looks_like_a_citation_is_a_mistake(text):
    assert isinstance(one(text), Mistake)


def test_verbs_are_those_right_before_the_citation():
    verbs = [i.verb for i in GRAMMAR.parse("Implements RFC 3261 §1, as RFC 6026 §8. Covers §2")]
    assert verbs == ["Implements", "", "Covers"]


@pytest.mark.parametrize("verb", ["Departs from", "Not done:"])
def test_declining_needs_a_reason(verb):
    assert isinstance(one(f"{verb} RFC 3261 §1 [a]."), Mistake)
    assert one(f"{verb} RFC 3261 §1 [a]: no peer does").verb == verb


def test_a_list_goes_on_with_its_spec_and_prose_does_not():
    chained = [i.chained for i in GRAMMAR.parse("RFC 3261 §9 [a], §15 and\n§18 §19. Elsewhere §2")]
    assert chained == [None, "RFC 3261", "RFC 3261", "RFC 3261", None]


@pytest.mark.parametrize("text", ["Tea.\n\nImplements RFC\n3261 §17", "Implements RFC 3261, all."])
def test_the_default_is_what_a_module_implements(text):
    assert GRAMMAR.default(text) == "RFC 3261"
    assert GRAMMAR.default(text.replace("Implements", "Like")) is None


@given(
    st.sampled_from(NAMES),
    st.lists(st.integers(1, 99), min_size=1, max_size=5).map(lambda n: ".".join(map(str, n))),
    st.one_of(st.just(""), st.from_regex(r"[a-z0-9-]{1,12}", fullmatch=True)),
    st.text("ab \n.,;", max_size=20),
)
def test_what_is_spelled_is_read_back(spec, section, slug, around):
    text = spell(spec, section, slug)
    item = one(f"{around} {text}. {around}")
    assert isinstance(item, Citation)
    assert spell(item.spec, item.section, *item.slugs) == text


@given(st.text('§RFC 3261.AMF0[]-a"\n:', max_size=60))
def test_any_text_can_be_read(text):
    for item in GRAMMAR.parse(text):
        assert text[item.start] in "§RAEF"

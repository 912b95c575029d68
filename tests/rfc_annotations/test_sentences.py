"""Sentences are found in text that was set for paper."""

import pytest

from rfc_annotations.fingerprint import fingerprint
from rfc_annotations.sentences import sentences, unmarked

PAGE_BREAK = "\n\n\n\n"


def test_sentences_end_at_full_stops_and_not_at_abbreviations():
    text = "It waits (i.e. It sleeps). See Sec. 4.  B. Smith MUST NOT! Is 3.5 s\nlong? 4 is."
    assert list(sentences(text)) == [
        "It waits (i.e. It sleeps).",
        "See Sec. 4.",
        "B. Smith MUST NOT!",
        "Is 3.5 s long?",
        "4 is.",
    ]


def test_a_sentence_goes_on_over_a_page_break_and_a_paragraph_does_not():
    assert list(sentences(f"The pot{PAGE_BREAK}MUST be warm.")) == ["The pot MUST be warm."]
    assert list(sentences("The pot\n\nof tea MUST be warm.")) == ["The pot of tea MUST be warm."]
    assert list(sentences("Figure 5\n\nThe pot is warm.")) == ["Figure 5", "The pot is warm."]
    assert list(sentences(f"It is.{PAGE_BREAK}So be it.")) == ["It is.", "So be it."]


def test_items_of_lists_stand_alone():
    text = "She MUST:\n   o  warm the pot\n      well\n   2. pour\n   (b) wait, and\n\n   - drink"
    assert list(sentences(text)) == [
        "She MUST:",
        "o warm the pot well",
        "2. pour",
        "(b) wait, and",
        "- drink",
    ]


def test_rows_of_tables_and_figures_stand_alone():
    text = "+-----+\n| MAY | milk |\n|  x  | SHOULD |\n+-----+\nand tea\nMUST be hot"
    assert list(sentences(text)) == [
        "+-----+",
        "| MAY | milk |",
        "| x | SHOULD |",
        "+-----+",
        "and tea MUST be hot",
    ]
    assert list(unmarked(text, [fingerprint("| MAY | milk |")])) == [
        "| x | SHOULD |",
        "and tea MUST be hot",
    ]


@pytest.mark.parametrize("word", ["must", "MUSTARD", "May", "DISMAY"])
def test_only_whole_words_in_capitals_bind(word):
    assert list(unmarked(f"The pot {word} be warm.", ())) == []


def test_the_same_sentence_again_needs_a_mark_of_its_own():
    """A mark names the first place where its text stands."""
    text = "It MUST be. And so. It MUST be."
    assert list(unmarked(text, [fingerprint("It MUST be.")])) == ["It MUST be."]
    assert list(unmarked(text, [fingerprint(text)])) == []


def test_nothing_of_a_spec_is_lost(specs):
    """Every word of two whole specs comes out, in order."""
    for name in ("rfc3261.txt", "enhanced-rtmp-v2.md"):
        text = (specs / name).read_text()
        assert " ".join(sentences(text)).split() == text.split()

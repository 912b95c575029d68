"""The API pages: every public name of a front door on one of them, under its level."""

import re
from pathlib import Path

import pytest
from api import LEVELS, Entry, by_room, spelled_out
from test_front_door import DOORS, importlib

PAGES = Path(__file__).resolve().parent.parent / "docs" / "5-reference"


@pytest.mark.parametrize("door", DOORS)
def test_every_public_name_is_on_one_page(door):
    module = importlib.import_module(door)
    shown = [
        name for level in LEVELS for names in by_room(module, level).values() for name in names
    ]
    assert sorted(shown) == sorted(module.__all__)
    pages = "".join(page.read_text() for page in PAGES.glob("api-*.md"))
    for level in LEVELS:
        assert not by_room(module, level) or f"```{{api}} {door} {level}\n" in pages


@pytest.mark.parametrize("door", DOORS)
def test_every_entry_says_something(door):
    module = importlib.import_module(door)
    for name in module.__all__:
        text = "\n".join(Entry(module, name).lines())
        assert text.startswith("::::{py:") and len(text) > 80, name
        assert not re.search(r"§\S+ \[", text), name


def test_every_page_opens_with_an_example():
    for page in PAGES.glob("api-*.md"):
        assert ">>> " in page.read_text().partition("```{api}")[0], page.name


def test_a_section_says_of_which_specification():
    text = "As §5.1 [layout] and RFC 3261 §9, §15 say"
    assert spelled_out(text, "RFC 3550") == "As RFC 3550 §5.1 and RFC 3261 §9, §15 say"

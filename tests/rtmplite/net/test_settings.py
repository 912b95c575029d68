"""A field of a frozen dataclass is an option: its type, its default, its help and its check."""

import argparse
from dataclasses import dataclass, fields

import pytest

from rtmplite.net.settings import (
    FLAG,
    Choice,
    Many,
    Number,
    Repeated,
    add_options,
    changed,
    groups,
    parsed,
    required,
    rows,
    section,
    setting,
    text,
)


def _even(value):
    if value % 2:
        raise ValueError(f"{value} is odd")


@dataclass(frozen=True, slots=True)
class Oven:
    """Some rows."""

    heat: int = setting(Number(int, "N"), 180, "Heat to N degrees ({default}).", unit="°C")
    is_fan: bool = setting(FLAG, False, "Run the fan.")
    side: str = setting(Choice("top", "both"), "both", "Heat from there ({default}).")
    dish: tuple[str, ...] = setting(Many(text("NAME")), (), "Bake these.")
    note: tuple[str, ...] = setting(Repeated("TEXT"), (), "Say 100% of this.")
    steps: tuple[int, ...] = setting(Many(Number(int)), (2, 4), "Use ({default}).", check=_even)


@dataclass(frozen=True, slots=True)
class Grill(Oven):
    """A row of another default, and the next."""

    heat: int = changed(Oven, "heat", default=250)
    coal: bool = setting(FLAG, False, "Burn coal.")


@dataclass(frozen=True, slots=True)
class Kitchen:
    """Two sections under one title."""

    oven: Oven = section(Oven, "heat")
    more: Oven = section(Oven, "more")


@dataclass(frozen=True, slots=True)
class Garden:
    """One section."""

    grill: Grill = section(Grill, "fire")


def line(*words):
    """The settings of a garden from these words."""
    parser = argparse.ArgumentParser()
    for options in groups(Garden).values():
        add_options(parser.add_argument, options)
    return parsed(Garden, parser.parse_args(words)).grill


def test_what_is_not_given_has_its_default():
    assert line() == Grill()
    assert line("--heat", "99") == Grill(heat=99)


def test_each_type_has_its_form_on_the_line():
    words = ["--heat", "9", "--is-fan", "--side", "top", "--dish", "a", "b", "--dish", "c"]
    grill = line(*words, "--note", "x", "--note", "y", "--steps", "2", "6", "--coal")
    assert grill == Grill(9, True, "top", ("a", "b", "c"), ("x", "y"), (2, 6), True)


@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        ("heat", 9, 9),
        ("is_fan", True, True),
        ("side", "top", "top"),
        ("dish", "a", ("a",)),
        ("dish", ["a", "b"], ("a", "b")),
        ("note", "x", ("x",)),
        ("steps", [2], (2,)),
    ],
)
def test_each_type_has_its_form_in_a_file_and_writes_it(name, value, read):
    [row] = [row for row in rows(Oven) if row.name == name]
    assert row.type.read(value) == read
    assert row.type.read(row.type.write(read)) == read


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("heat", "9", "must be a number"),
        ("heat", True, "must be a number"),
        ("is_fan", 1, "must be true or false"),
        ("side", "left", "must be one of top, both"),
        ("side", ["top"], "must be one of top, both"),
        ("dish", [1], "must be a string"),
        ("note", [1], "must be a string, or a list of strings"),
    ],
)
def test_a_wrong_value_of_a_file_is_told(name, value, said):
    [row] = [row for row in rows(Oven) if row.name == name]
    with pytest.raises(ValueError, match=f"^{said}$"):
        row.type.read(value)


def test_a_heir_keeps_the_order_and_changes_a_row():
    assert [row.name for row in rows(Grill)] == [each.name for each in fields(Grill)]
    assert rows(Grill)[0].meaning == "Heat to N degrees (250)."
    assert rows(Oven)[0].meaning == "Heat to N degrees (180)."


def test_help_has_the_default_and_takes_a_percent_sign():
    parser = argparse.ArgumentParser()
    add_options(parser.add_argument, rows(Oven))
    shown = parser.format_help()
    assert "Heat to N degrees (180)." in shown and "100% of this" in shown


def test_a_check_gets_each_value_and_names_the_option():
    [row] = [row for row in rows(Oven) if row.name == "steps"]
    row.verify((2, 4))
    with pytest.raises(ValueError, match=r"^--steps 3 is odd$"):
        row.verify((2, 3))


def test_sections_of_a_program_are_groups():
    assert {title: len(found) for title, found in groups(Kitchen).items()} == {"heat": 6, "more": 6}


def test_a_row_without_a_default_is_required():
    @dataclass(frozen=True)
    class Table:
        name: str = required(text(), "Its name.")

    with pytest.raises(TypeError):
        Table()
    assert rows(Table)[0].written is None


@pytest.mark.parametrize(
    ("kind", "word", "said"),
    [
        (int, "hot", "'hot' is not a whole number"),
        (float, "hot", "'hot' is not a number"),
        (float, "nan", "nan is not between 0.5 and 300"),
        (int, "301", "301 is not between 0.5 and 300"),
    ],
)
def test_a_number_tells_its_limits(kind, word, said):
    heat = Number(kind, "N", 0.5, 300)
    assert heat.schema["minimum"] == 0.5 and heat.schema["maximum"] == 300
    with pytest.raises(argparse.ArgumentTypeError, match=f"^{said}$"):
        heat.parse(word)

"""How the command line answers what it does not know, and how it shows its options."""

import re

import pytest

from rtmplite.cli.serve import ServeSettings
from rtmplite.cli.tool import main
from rtmplite.net.settings import groups
from rtmplite.net.usage import did_you_mean


def said(capsys, *words):
    """Exit code and output of a command line that ends in the parser."""
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    shown = capsys.readouterr()
    return ended.value.code, shown.out + shown.err


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["serve", "--rtpm", "1935"], "serve: there is no option --rtpm; did you mean --rtmp?"),
        (["serve", "--recrod=/tmp"], "there is no option --recrod; did you mean --record?"),
        (["play", "--xyzzy", "rtmp://h/live/x"], "play: there is no option --xyzzy\n"),
        (["probe", "rtmp://h/live/x", "more"], "probe: there is no argument more\n"),
        (["serve", "--rtmp", "1935"], "argument --rtmp: '1935' is not HOST:PORT; write 127.0.0.1"),
        (["serve", "--rtmp", "rtmp://[::1]:1935"], "is not HOST:PORT; write [::1]:1935\n"),
    ],
)
def test_a_mistake_is_one_line_with_advice(capsys, words, answer):
    """Exit code 2."""
    code, text = said(capsys, *words)
    assert code == 2 and answer in text and text.count("\n") == 1


def test_nothing_is_suggested_for_what_is_like_nothing():
    """A wrong guess is worse than none."""
    assert did_you_mean("--xyzzy", ["--rtmp", "--users"]) == ""


def test_the_help_of_all_commands(capsys):
    """A description, a line for each command; options in sentences, each in one group."""
    _, text = said(capsys, "--help")
    commands = re.findall(r"^    ([a-z]+) +\S.*$", text, re.MULTILINE)
    assert commands == [
        *("serve", "publish", "play", "dump", "probe", "push", "repair", "users", "sign")
    ]
    for command in commands:
        _, text = said(capsys, command, "--help")
        options = re.split(r"\n  (?=-|[A-Z{]|name|user|realm)", text)[1:]
        assert options and all(re.search(r"\.\s*(\n\n[\w ,]+:)?\s*$", each) for each in options)
    names = [row.option for rows in groups(ServeSettings).values() for row in rows]
    assert len(names) == len(set(names))

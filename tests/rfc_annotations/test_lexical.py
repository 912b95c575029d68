"""Comments and literals, as `tokenize` finds them."""

import io
import tokenize
from pathlib import Path

import pytest

from rfc_annotations.lexical import comments, literals, tokens

SOURCE = r'''
# one
# two
def f(a=1_0, *, b="# no comment", c=b'\'#'):  # beside
    """A docstring
    of 2 lines."""  # behind it
    # alone
    x1 = a.b[0x1F : -.5e-3] + 1.e5j if "it's" else 7or 8
    y = r"\" # still a string" rb'\\' u"x" \
        "more"
    return (  # in brackets
        """'" # no comment \""" """, '',
        # alone in brackets
        {1: [2]}, "%d" % 3)
a = "1"; b = '2'  # two statements on a line
'''
KINDS = {tokenize.STRING: "literal", tokenize.NUMBER: "literal", tokenize.COMMENT: "comment"}


@pytest.mark.parametrize("source", [SOURCE, Path(__file__).read_text()])
def test_they_are_those_that_tokenize_finds(source):
    read = tokenize.generate_tokens(io.StringIO(source).readline)
    wanted = [(KINDS[t.type], t.start[0], t.string) for t in read if t.type in KINDS]
    found = [(token.kind, token.line, token.text) for token in tokens(source)]
    assert [each for each in found if each[0] != "end"] == wanted


def test_comments_on_lines_of_their_own_go_together():
    found = [(c.line, c.last, c.text, c.alone, c.column) for c in comments(tokens(SOURCE))]
    assert found == [
        (2, 3, "one\ntwo", True, 0),
        (4, 4, "beside", False, 0),
        (6, 6, "behind it", False, 0),
        (7, 7, "alone", True, 4),
        (11, 11, "in brackets", False, 0),
        (13, 13, "alone in brackets", True, 8),
        (15, 15, "two statements on a line", False, 0),
    ]


def test_literals_go_together_by_logical_line():
    found = list(literals(tokens(SOURCE), {5}))
    assert found == [
        (range(4, 5), "10 # no comment '#"),
        (range(8, 9), "31 0.0005 100000j it's 7 8"),
        (range(9, 11), r"\" # still a string \\ x more"),
        (range(11, 15), '\'" # no comment """   1 2 %d 3'),
        (range(15, 16), "1 2"),
    ]

"""Comments of C, Rust, Go and JavaScript, and the lines that claims in them stand for."""

import pytest

from rfc_annotations.braces import Source, reads

C = """\
/* Tea.
 * Implements RFC 7001 §1. */
#include "pot.h"  // no "end
#define HOT(x) ((x) > 90)

// 0
static const int table[] = {
    4, /* A */
};

/* B */
struct cup *brew(int minutes,
                 const char *what)
{
    // C
    if (minutes < 4) {  // D
        // E
        return NULL;
    } else {  // F

        puts("} // not a comment { \\" /*");
    }
    int sum = add(minutes,
                  1);  // G
    switch (sum) {
    case 1:  /* H */
        pour('"', '{', '\\'');
        break;
    }
    return cup;
    // I
}

// J
struct cup { int size; };
// K
int drink(void) { return 1; }
"""
RUST = """\
//! Tea.  Implements RFC 7001 §1.
use std::io;

/// A
#[derive(Debug)]
pub(crate) struct Cup<'a> { name: &'a str }

// B
impl<'a> Cup<'a> {
    /// C
    #[inline]
    pub fn brew(&self, c: char) -> u8 {
        match c {
            'x' => { // D
                4
            }
            _ => self
                .pour(r#"} " // "#), // E
        }
    }
}

#[cfg(test)]
mod tests {
    // F
    #[test]
    fn it_waits() {
        assert_eq!(Cup { name: "" }.brew('"'), 4);
    }
}
"""
GO = """\
// Package tea.  Implements RFC 7001 §1.
package tea

import (
	"fmt"
)

// A
type Cup struct {
	size int // B
}

// C
func (c *Cup) Brew(n int) string {
	// D
	text := fmt.Sprint(n,
		`\\`, `} // {`)
	if n < 4 { // E
		return text
	}
	return "tea" // F
}
"""
SCRIPT = """\
import a from 'a // b'
const x = `{ ${a} \\` // `

// A
export const brew = (n) => {
  // B
  return n
    < 4 ? 'it\\'s /* water' : "tea"
}

describe('tea', () => {
  it('waits', () => { expect(brew(4)).toBe('tea') })  // C
})
"""


def found(text, suffix):
    """The anchor of each comment, by the last word of it."""
    source = Source(text, suffix)
    return {c.text.split()[-1]: sorted(source.of_comment(c)) for c in source.comments()}


def lines(*spans):
    return [line for first, last in spans for line in range(first, last + 1)]


def test_a_claim_in_c_stands_for_a_statement_a_function_or_all_functions():
    anchors = found(C, ".c")
    everything = lines((14, 32), (37, 37))
    assert anchors["§1."] == anchors["0"] == anchors["A"] == everything
    assert anchors["J"] == []  # no function in it
    assert anchors["B"] == lines((14, 32))
    assert anchors["C"] == anchors["D"] == [16]
    assert (anchors["E"], anchors["F"]) == ([18], [21])
    assert (anchors["G"], anchors["H"]) == ([23, 24], [27])
    assert anchors["I"] == [31]  # the end of a block has no statement
    assert anchors["K"] == [37]


def test_a_claim_in_rust_is_of_the_method_of_the_block_or_of_the_arm():
    anchors = found(RUST, ".rs")
    assert anchors["§1."] == anchors["B"] + anchors["F"]
    assert (anchors["A"], anchors["B"], anchors["C"]) == ([], lines((12, 20)), lines((12, 20)))
    assert (anchors["D"], anchors["E"], anchors["F"]) == ([15], [17, 18], lines((27, 29)))


def test_a_claim_in_go_ends_with_the_line_unless_a_bracket_is_open():
    anchors = found(GO, ".go")
    body = lines((14, 22))
    assert anchors["§1."] == anchors["B"] == anchors["C"] == body
    assert anchors["A"] == []
    assert (anchors["D"], anchors["E"], anchors["F"]) == ([16, 17], [18], [21])


def test_strings_of_a_script_hide_no_comment_and_make_none():
    assert found(SCRIPT, ".js") == {"A": lines((5, 9)), "B": [7], "C": [12]}


def test_comments_lose_their_marks_and_join_where_they_stand_alone():
    text = "/** One\n * two.\n */\n/// three\nint a; // four\n// five\n"
    source = Source(text, ".c")
    told = [(c.line, c.last, " ".join(c.text.split()), c.alone) for c in source.comments()]
    assert told == [
        (1, 4, "One two. three", True),
        (5, 5, "four", False),
        (6, 6, "five", True),
    ]
    assert Source('f("a" "b");', ".c").strings == [(1, '"a"'), (1, '"b"')]


def test_the_comments_above_all_code_are_the_heading():
    source = Source(C, ".c")
    assert [c.line for c in source.comments() if source.is_heading(c)] == [1]
    source = Source(RUST, ".rs")
    assert [c.line for c in source.comments() if source.is_heading(c)] == [1]


@pytest.mark.parametrize("text", ["/* open", '"open\n}', "}}}{{{ //", "'", "`", 'r#"', ""])
@pytest.mark.parametrize("suffix", [".c", ".rs", ".go", ".js"])
def test_what_is_not_a_program_is_read_too(text, suffix):
    source = Source(f"{text}\nint x; // §1", suffix)
    assert all(source.of_comment(c) is not None for c in source.comments())
    assert reads(f"a{suffix}") and not reads("a.py") and not reads("a.md")

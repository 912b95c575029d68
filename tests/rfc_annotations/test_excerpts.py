"""Which lines stand beside a requirement."""

import pytest

from rfc_annotations.excerpts import LONGEST, Excerpts

SOURCE = '''\
"""Tea.

RFC 7001 §1 [module].
"""

# RFC 7001 §1 [two-lines]
# and why.
MINUTES = {  # [beside]
    "green": 2,
    "black": 4,  # [row]
}


@dataclass
class Pot:
    """A pot (§1 [class])."""

    size: int


def brew(leaves):
    """Brew (§1 [function])."""
    # §1 [above-a-head]
    if leaves:
        return 1
    match leaves:
        case None:  # §1 [case]
            return 2
    # §1 [above]
    return 3  # §1 [line]


def test_long():
    """§1 [long]"""
''' + "".join(f"    leaves({n})\n" for n in range(40))


@pytest.mark.parametrize(
    ("slug", "first", "last"),
    [
        ("module", '"""Tea.', '"""'),
        ("two-lines", "# RFC 7001 §1 [two-lines]", "}"),
        ("beside", "# RFC 7001 §1 [two-lines]", "}"),
        ("row", "# RFC 7001 §1 [two-lines]", "}"),
        ("class", "@dataclass", "    size: int"),
        ("function", "def brew(leaves):", "    return 3  # §1 [line]"),
        ("above-a-head", "    # §1 [above-a-head]", "        return 1"),
        ("case", "        case None:  # §1 [case]", "            return 2"),
        ("above", "    # §1 [above]", "    return 3  # §1 [line]"),
        ("line", "    # §1 [above]", "    return 3  # §1 [line]"),
    ],
)
def test_a_claim_shows_what_it_speaks_of(tmp_path, slug, first, last):
    shown = lines_of(tmp_path, slug)
    assert (shown[0], shown[-1]) == (first, last)


def test_what_is_long_is_shortened(tmp_path):
    shown = lines_of(tmp_path, "long")
    assert len(shown) == LONGEST
    assert shown[0] == "def test_long():"


def lines_of(folder, slug):
    (folder / "tea.py").write_text(SOURCE)
    number = next(n for n, text in enumerate(SOURCE.splitlines(), 1) if f"[{slug}]" in text)
    excerpts = Excerpts(folder)
    return excerpts.text("tea.py", excerpts.of("tea.py", number))

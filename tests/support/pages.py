"""The pages of the documentation, as far as they can be run."""

import re
import shlex
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    """The contents of a page's fenced blocks of one language."""
    return [text for found, text in FENCE.findall(page.read_text()) if found == language]


def commands(page: Path) -> list[str]:
    """The lines of the shell blocks of a page, continued ones joined, prompts and remarks cut."""
    lines = "".join(blocks(page, "sh")).replace("\\\n", " ").splitlines()
    return [line.removeprefix("$ ") for line in lines if line.strip() and line[0] != "#"]


class Tutorial:
    """A tutorial's commands, at the places where a test has its programs.

    `places` maps addresses of the page to those of the test, and grows as programs are ready.
    """

    def __init__(self, name: str) -> None:
        """`name` is that of the page, without its folder and suffix."""
        self._page = REPO / "docs" / "2-tutorials" / f"{name}.md"
        self.places: dict[str, str] = {}

    def words(self, start: str, about: str = "") -> list[str]:
        """The words after `start` of the one command that begins so, and is about that."""
        known = [line for line in commands(self._page) if line.startswith(start)]
        [line] = [line for line in known if about in line]
        return [self._moved(word) for word in shlex.split(line.removeprefix(start))]

    def typed(self, start: str) -> str:
        """What follows `start` in the one line that is to be typed into a program."""
        texts = blocks(self._page, "text")
        [line] = [line for text in texts for line in text.splitlines() if line.startswith(start)]
        return self._moved(line.removeprefix(start).strip())

    def _moved(self, word: str) -> str:
        for written, real in self.places.items():
            if written in word:
                return word.replace(written, real)
        return word

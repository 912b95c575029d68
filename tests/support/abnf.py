"""Matches octets against a grammar in ABNF, which is read from the text of an RFC at test time.

Own design: a second opinion on what a strategy draws, which shares no line with our parsers.
A rule becomes a non-deterministic automaton, and sets of its states are remembered as they are
met, so that the time is linear in the input and no alternative hides another one.  The core rules
of ABNF are below; a rule that contains itself is entered `DEPTH` times.

    >>> grammar = Grammar('greeting = ("hello" / %s"Hi") 1*2SP 1*ALPHA ; any capitals')
    >>> [grammar.refusal("greeting", data) for data in (b"HELLO  you", b"Hi me", b"hi")]
    [None, None, 'greeting: octet 1 of 2']
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

DEPTH = 3

Octets = frozenset[int]
LETTERS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
DIGITS = frozenset(b"0123456789")
CORE: Mapping[str, Octets | str] = {
    "alpha": LETTERS,
    "digit": DIGITS,
    "hexdig": DIGITS | frozenset(b"ABCDEFabcdef"),
    "dquote": frozenset(b'"'),
    "sp": frozenset(b" "),
    "htab": frozenset(b"\t"),
    "wsp": frozenset(b" \t"),
    "cr": frozenset(b"\r"),
    "lf": frozenset(b"\n"),
    "char": frozenset(range(1, 128)),
    "ctl": frozenset([*range(32), 127]),
    "octet": frozenset(range(256)),
    "vchar": frozenset(range(33, 127)),
    "crlf": "CR LF",
}

RULE = re.compile(r"( *)([A-Za-z][A-Za-z0-9-]*) *(=/?)[ \n]")
PAGE_BREAK = re.compile(r"\n+[^\n]*\[Page \d+\]\s*RFC \d+ [^\n]*\n\n+")
TOKEN = re.compile(
    r"""\s*(?:;[^\n]*
    | (?P<exact>%s)?(?:%i)?"(?P<text>[^"]*)"
    | (?P<prose><[^>]*>)
    | %x(?P<hex>[0-9A-Fa-f]+(?:-[0-9A-Fa-f]+|(?:\.[0-9A-Fa-f]+)*))
    | (?P<times>\d*\*\d*|\d+)
    | (?P<name>[A-Za-z][A-Za-z0-9-]*)
    | (?P<mark>[()\[\]/]))""",
    re.VERBOSE,
)


def rule_texts(text: str) -> Iterator[tuple[str, str, bool]]:
    """Yield name, definition, and whether it adds alternatives, of each rule in an RFC's text.

    A definition ends at an empty line or at one that is not indented more than its name.
    """
    text = PAGE_BREAK.sub("\n", text.replace("\r\n", "\n"))
    name, definition, column, more = "", "", 0, False
    for line in [*text.split("\n"), ""]:
        found = RULE.match(line + "\n")
        starts = found is not None and (not name or len(found[1]) <= column)
        if name and (starts or not line.strip() or len(line) - len(line.lstrip()) <= column):
            yield name, definition, more
            name = ""
        if found is not None and starts:
            name, column, more = found[2], len(found[1]), found[3] == "=/"
            definition = line[found.end() - 1 :]
        elif name:
            definition += "\n" + line


class Step(NamedTuple):
    """One step of the automaton: the characters a state reads, and the next state."""

    octets: Octets
    target: int


class Automaton:
    """States that read an octet or none; sets of states are named by numbers as they are met."""

    def __init__(self) -> None:
        self.free: list[list[int]] = []
        self.steps: list[Step | None] = []
        self.start = self.state()
        self.end = self.start
        self._numbers: dict[Octets, int] = {}
        self._sets: list[Octets] = []
        self._next: list[dict[int, int]] = []
        self._closures: dict[int, Octets] = {}

    def state(self) -> int:
        """Make a state that leads nowhere yet."""
        self.free.append([])
        self.steps.append(None)
        return len(self.free) - 1

    def taken(self, data: bytes) -> tuple[int, bool]:
        """Return how many octets were taken, and whether that is a whole match."""
        at = self._number({self.start})
        for count, octet in enumerate(data):
            following = self._next[at].get(octet)
            if following is None:
                following = self._next[at][octet] = self._after(at, octet)
            if not self._sets[following]:
                return count, False
            at = following
        return len(data), self.end in self._sets[at]

    def _after(self, at: int, octet: int) -> int:
        steps = [self.steps[state] for state in self._sets[at]]
        return self._number({step.target for step in steps if step and octet in step.octets})

    def _number(self, states: set[int]) -> int:
        key = frozenset().union(*map(self._closure, states)) if states else frozenset()
        if key not in self._numbers:
            self._numbers[key] = len(self._sets)
            self._sets.append(key)
            self._next.append({})
        return self._numbers[key]

    def _closure(self, state: int) -> Octets:
        """The states that are reached without an octet and read one, or are the end."""
        known = self._closures.get(state)
        if known is None:
            seen, todo = {state}, [state]
            while todo:
                fresh = [each for each in self.free[todo.pop()] if each not in seen]
                seen.update(fresh)
                todo += fresh
            known = frozenset(each for each in seen if self.steps[each] or each == self.end)
            self._closures[state] = known
        return known


class Grammar:
    """The rules of some texts.  The first text that defines a name wins; `CORE` wins over all."""

    def __init__(self, *texts: str) -> None:
        self.rules: dict[str, str] = {}
        for text in texts:
            mine: dict[str, str] = {}
            for name, definition, more in rule_texts(text):
                key = name.lower()
                if more:
                    mine[key] += "\n/ " + definition
                else:
                    mine.setdefault(key, definition)
            self.rules = mine | self.rules
        self._automata: dict[str, Automaton] = {}

    def refusal(self, rule: str, data: bytes) -> str | None:
        """Return None if all of `data` is this rule, else how far it is."""
        if rule not in self._automata:
            automaton = Automaton()
            automaton.end = _Compiler(self.rules, automaton).rule(rule, automaton.start)
            self._automata[rule] = automaton
        count, whole = self._automata[rule].taken(data)
        return None if whole else f"{rule}: octet {count} of {len(data)}"


class _Node(NamedTuple):
    """A piece of a definition, as often as it may stand there; `most` is None for any number."""

    least: int
    most: int | None
    what: list[list["_Node"]] | re.Match[str]  # a group's alternatives, or one token


class _Compiler:
    """Adds to an automaton what rules say; a method takes the state before and gives that after."""

    def __init__(self, rules: Mapping[str, str], automaton: Automaton) -> None:
        self._rules, self._to = rules, automaton
        self._inside: list[str] = []
        self._read_already: dict[str, list[list[_Node]]] = {}

    def rule(self, name: str, start: int) -> int:
        """The rule of this name; a rule that is inside of itself too often leads nowhere."""
        key = name.lower()
        core = CORE.get(key)
        if isinstance(core, frozenset):
            return self._read(core, start)
        if self._inside.count(key) >= DEPTH:
            return self._to.state()
        if key not in self._read_already:
            tokens = _tokens(name, core or self._rules[key])
            self._read_already[key] = _alternatives(tokens)
        self._inside.append(key)
        end = self._group(self._read_already[key], start)
        self._inside.pop()
        return end

    def _read(self, octets: Octets, start: int) -> int:
        before, after = self._to.state(), self._to.state()
        self._to.free[start].append(before)
        self._to.steps[before] = Step(octets, after)
        return after

    def _group(self, alternatives: list[list[_Node]], start: int) -> int:
        end = self._to.state()
        for sequence in alternatives:
            at = start
            for node in sequence:
                at = self._repeated(node, at)
            self._to.free[at].append(end)
        return end

    def _repeated(self, node: _Node, start: int) -> int:
        at = start
        for _ in range(node.least):
            at = self._once(node, at)
        if node.most is None:
            loop = self._to.state()
            self._to.free[at].append(loop)
            self._to.free[self._once(node, loop)].append(loop)
            return loop
        end = self._to.state()
        for _ in range(node.most - node.least):
            self._to.free[at].append(end)
            at = self._once(node, at)
        self._to.free[at].append(end)
        return end

    def _once(self, node: _Node, start: int) -> int:
        if isinstance(node.what, list):
            return self._group(node.what, start)
        if node.what["name"]:
            return self.rule(node.what["name"], start)
        if node.what["prose"]:
            return self._to.state()
        at = start
        for octets in _octets(node.what):
            at = self._read(octets, at)
        return at


def _alternatives(tokens: list[re.Match[str]]) -> list[list[_Node]]:
    """Take tokens up to the end, or to the bracket that closes a group."""
    found: list[list[_Node]] = [[]]
    while tokens and tokens[0]["mark"] not in (")", "]"):
        token = tokens.pop(0)
        if token["mark"] == "/":
            found.append([])
            continue
        least: int = 1
        most: int | None = 1
        if token["times"]:
            low, star, high = token["times"].partition("*")
            least = int(low or 0)
            most = int(high) if high else None if star else least
            token = tokens.pop(0)
        if token["mark"] == "[":
            least = 0
        if token["mark"]:
            found[-1].append(_Node(least, most, _alternatives(tokens)))
            tokens.pop(0)
        else:
            found[-1].append(_Node(least, most, token))
    return found


def _octets(token: re.Match[str]) -> list[Octets]:
    """The octets of a literal, each with the alternatives that its capitals leave."""
    if token["hex"]:
        low, dash, high = token["hex"].partition("-")
        if dash:
            return [frozenset(range(int(low, 16), int(high, 16) + 1))]
        return [frozenset([int(each, 16)]) for each in low.split(".")]
    letters = token["text"].encode("ascii")
    if token["exact"]:
        return [frozenset([octet]) for octet in letters]
    return [frozenset(bytes([octet]).lower() + bytes([octet]).upper()) for octet in letters]


def _tokens(name: str, definition: str) -> list[re.Match[str]]:
    found: list[re.Match[str]] = []
    place, definition = 0, definition.rstrip()
    while place < len(definition):
        token = TOKEN.match(definition, place)
        if token is None:
            raise ValueError(f"{name}: {definition[place:]!r} is no ABNF")
        place = token.end()
        if token.lastgroup:
            found.append(token)
    return found

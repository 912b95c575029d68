"""What must hold for every tree of fields, whatever it was made of."""

import json

from rtclab.explain.render import as_json, text_lines


def hold(field, data):
    """The tree lies in its buffer, its parts do not overlap, and both renderers print it."""
    assert (field.start, field.end) == (0, len(data))
    count = 0
    waiting = [(field, len(data))]
    while waiting:
        each, size = waiting.pop()
        count += 1
        assert 0 <= each.start <= each.end <= size, each
        first, last = (0, 8 * len(each.octets)) if each.octets is not None else each.span
        inner = size if each.octets is None else len(each.octets)
        for child in each.children:
            assert first <= child.span[0] <= child.span[1] <= last, (each.name, child)
            first = child.span[1]
            waiting.append((child, inner))
    lines = list(text_lines(field, data))
    assert all(line.isprintable() for line in lines)
    assert len(lines) == count + len(list(field.faults()))
    text = json.dumps(as_json(field, data))
    return count, sum(map(len, lines)), len(text)


def gaps(field):
    """The names of the fields that nobody described."""
    return [each.name for each in field.walk() if each.name == "rest"]


def bounded(field, data):
    """Hold what `hold` does, and print no more than some hundred characters for an octet."""
    count, text, encoded = hold(field, data)
    assert count <= 64 + 8 * len(data)
    assert text <= 40_000 + 2500 * len(data)
    assert encoded <= 40_000 + 2500 * len(data)

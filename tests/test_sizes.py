"""No folder, file or function outgrows what a reader can hold."""

import ast
from collections import Counter
from itertools import chain
from pathlib import Path

from rfc_annotations.anchors import blocks
from rfc_annotations.scan import shared_tree

ROOT = Path(__file__).resolve().parent.parent
FOLDER_FILES, MODULE_LINES, FUNCTION_LINES = 24, 600, 60  # "some twenty" files
CLASS_LINES, CLASS_ROOMS = 400, ("src/siprtmp/calls/", "src/siprtmp/media/")

OURS = [
    path
    for top in ("src", "rfc_annotations", "tests", "perf")
    for path in sorted((ROOT / top).rglob("*.py"))
]


def test_no_room_outgrows_a_look():
    sizes = Counter(str(path.parent.relative_to(ROOT)) for path in OURS)
    rooms = {room: size for room, size in sizes.items() if room.startswith(("src/", "tests/"))}
    assert {room: size for room, size in rooms.items() if size > FOLDER_FILES} == {}


def test_no_module_outgrows_a_reader():
    sizes = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in OURS}
    assert {path: size for path, size in sizes.items() if size > MODULE_LINES} == {}


def test_no_class_of_calls_or_media_outgrows_its_idea():
    rooms = [path for path in OURS if str(path.relative_to(ROOT)).startswith(CLASS_ROOMS)]
    sizes = {
        f"{path.relative_to(ROOT)}:{node.name}": node.end_lineno - node.lineno + 1
        for path in rooms
        for node in chain.from_iterable(blocks(shared_tree(path.read_text())))
        if isinstance(node, ast.ClassDef)
    }
    assert sizes  # the rooms are where they were
    assert {place: size for place, size in sizes.items() if size > CLASS_LINES} == {}


def test_no_function_outgrows_a_screen():
    sizes = {
        f"{path.relative_to(ROOT)}:{node.lineno}": node.end_lineno - node.lineno + 1
        for path in OURS
        for node in chain.from_iterable(blocks(shared_tree(path.read_text())))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
    assert {place: size for place, size in sizes.items() if size > FUNCTION_LINES} == {}

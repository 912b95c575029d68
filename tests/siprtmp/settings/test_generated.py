"""What is made from the table of settings is fresh, and says what the readers do."""

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import example as trying
from hypothesis import given
from hypothesis import strategies as st
from support.json_schema import accepts
from support.settings_rows import ROWS

from siprtmp.operation.arguments import ConfigError
from siprtmp.settings import __main__ as command
from siprtmp.settings.generated import SCHEMA, example, schema
from siprtmp.settings.load import read_document
from siprtmp.settings.trunks import ROWS as TRUNK_ROWS

REPO = Path(__file__).resolve().parents[3]
EXAMPLES = REPO / "examples"
JSON_SCHEMA = json.loads(schema())
TRUNK = {"name": "a", "address": "sip:a@b", "password": "p"}

values = st.recursive(
    st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=9)
    | st.sampled_from(["off", "on", "127.0.0.1:1", "a@b", "1024-2000", "sip:a@b", "live/x=y"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=1),
)
tables = st.fixed_dictionaries(
    {key: st.just(value) for key, value in TRUNK.items()},
    optional={key: values for key in TRUNK_ROWS.keys() - TRUNK.keys()},
)


@pytest.mark.parametrize(("name", "made"), [("siprtmp.toml", example), (SCHEMA, schema)])
def test_the_files_beside_the_examples_are_those_that_the_table_makes(name, made):
    """If this fails: `python -m siprtmp.settings example > examples/siprtmp.toml`, or schema."""
    assert (EXAMPLES / name).read_text() == made()


@pytest.mark.parametrize(("word", "made"), [("example", example), ("schema", schema)])
def test_an_installation_prints_both(word, made, capsys):
    assert command.main([word]) == 0
    assert capsys.readouterr().out == made()
    with pytest.raises(ConfigError, match="invalid choice"):
        command.main(["page"])


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_the_schema_accepts_each_example(path):
    assert accepts(JSON_SCHEMA, tomllib.loads(path.read_text()))


def test_the_example_says_every_key_with_its_meaning_and_no_second_one_of_it():
    text = example()
    for row in ROWS.values():
        lines = text.splitlines()
        [at] = [i for i, line in enumerate(lines) if line.lstrip("#").startswith(f"{row.option} =")]
        assert lines[at - 1].startswith("# "), row.option
    first = f"#:schema {SCHEMA}"  # where editors look
    assert text.splitlines()[0] == first


@given(st.dictionaries(st.sampled_from([row.option for row in ROWS.values()]), values, max_size=2))
@trying({"sip": ["off", "[::1]:1"]})
@trying({"call-from": '"a" <sip:b@c>', "sip-t1": 60_000})
@trying({"idle": 0, "drain": 9_999_999.5, "max-message": 4096})
def test_what_the_gateway_reads_the_schema_accepts(document):
    """So an editor marks nothing that is right."""
    try:
        read_document(document, Path("x"))
    except ConfigError:
        return
    assert accepts(JSON_SCHEMA, document)


@given(tables)
def test_what_is_read_as_a_trunk_the_schema_accepts(table):
    try:
        read_document({"trunk": [table]}, Path("x"))
    except ConfigError:
        return
    assert accepts(JSON_SCHEMA, {"trunk": [table]})


@pytest.mark.parametrize(
    "document",
    [
        {"sip-t1": "20"},
        {"sip-t1": True},
        {"sip-t1": 0},
        {"nat": 1},
        {"rtmp": 1935},
        {"rtmp": "1935"},
        {"domain": [1]},
        {"log-level": "loud"},
        {"push": {"a": 1}},
        {"idle": -1},
        {"max-connections": 1.5},
        {"sing": 1},
        {"source": "x"},
        {"config": "x"},
        {"rtp-ports": "x"},
        {"trunk": [{"name": "a"}]},
        {"trunk": [{**TRUNK, "nubers": []}]},
        {"trunk": [{**TRUNK, "name": "a b"}]},
        {"trunk": [{**TRUNK, "refresh": 4}]},
        {"trunk": [{**TRUNK, "numbers": [""]}]},
        {"trunk": TRUNK},
        {"route": [{"stream": "a"}]},
        {"route": [{"match": "a", "stream": ""}]},
        {"route": "a"},
    ],
)
def test_mistakes_that_an_editor_can_mark_are_refused_by_both(document):
    assert not accepts(JSON_SCHEMA, document)
    with pytest.raises(ConfigError):
        read_document(document, Path("x"))

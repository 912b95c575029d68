"""The values that a branch and the tree share: modes, entities and merge patches."""

import pytest

from p2psip.errors import RemoteError
from siprtmp.web.resources.entity import JSON, Entity
from siprtmp.web.resources.merge_patch import merged
from siprtmp.web.resources.mode import Mode, Right, Standing

# original, patch, result.  Source: RFC 7396 §A
EXAMPLES = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize("original, patch, result", EXAMPLES)
def test_a_merge_patch_does_what_the_examples_of_the_rfc_show(original, patch, result):
    """Covers RFC 7396 §1 [null-removes] [members-are-replaced] [members-are-added]
    and RFC 7396 §2 [no-object-replaces-all]."""
    assert merged(original, patch) == result


def test_a_merge_patch_leaves_the_old_value_as_it_was():
    old = {"a": {"b": 1}}
    assert merged(old, {"a": {"b": 2}}) == {"a": {"b": 2}}
    assert old == {"a": {"b": 1}}


def test_a_mode_is_read_and_written_the_same():
    text = "cruws-r--s-r------w-"
    mode = Mode.parse(text)
    assert str(mode) == text
    granted = [
        (standing, right)
        for standing in Standing
        for right in Right
        if mode.allows(standing, right)
    ]
    assert granted == [
        *((Standing.SELF, right) for right in Right),
        (Standing.GROUP, Right.READ),
        (Standing.GROUP, Right.SUBSCRIBE),
        (Standing.AUTHENTICATED, Right.READ),
        (Standing.ANONYMOUS, Right.WRITE),
    ]


@pytest.mark.parametrize(
    "text", ["", "cruws", "c" * 20, "cruwscruwscruwscruw", "cruws" * 5, None, 20, "rcuws" * 4]
)
def test_a_text_that_is_no_mode_is_refused(text):
    with pytest.raises(RemoteError) as caught:
        Mode.parse(text)
    assert caught.value.status == 400


@pytest.mark.parametrize(
    "octets", [b"", b"{", b"NaN", b"[Infinity]", b"1e999", b"\xff", b"[" * 5000, b"1" * 5000]
)
def test_octets_that_are_not_json_are_refused(octets):
    with pytest.raises(RemoteError) as caught:
        Entity.read(JSON, octets)
    assert caught.value.status == 400


@pytest.mark.parametrize("media_type", ["", "text", "/", "text/", "a/b\n", "a/" + "b" * 200])
def test_a_text_that_is_no_media_type_is_refused(media_type):
    with pytest.raises(RemoteError) as caught:
        Entity.read(media_type, b"")
    assert caught.value.status == 415


def test_octets_of_another_type_travel_as_base64():
    entity = Entity.read("application/sdp", b"v=0\r\n\xff")
    assert Entity.of_message("application/sdp", entity.for_message) == entity
    with pytest.raises(RemoteError):
        Entity.of_message("application/sdp", "a!")
    with pytest.raises(RemoteError):
        Entity.of_message("application/sdp", {})


def test_entities_have_the_same_tag_if_they_are_the_same():
    assert Entity(JSON, {"a": 1}).tag == Entity.read(JSON, b' {"a":1}').tag
    tags = {Entity(JSON, 1).tag, Entity(JSON, 2).tag, Entity("text/plain", b"1").tag}
    assert len(tags) == 3

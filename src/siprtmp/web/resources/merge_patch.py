"""JSON merge patch: a change of a value, written as the value itself.

Implements RFC 7396 §2.
"""

from siprtmp.web.resources.entity import JsonValue


def merged(target: JsonValue, patch: JsonValue) -> JsonValue:
    """Return a new value, with the members of `patch` in it; a member of null is taken out.

    >>> merged({"name": "Bob", "away": True}, {"away": None, "mood": {"is": "glad", "was": None}})
    {'name': 'Bob', 'mood': {'is': 'glad'}}
    """
    if not isinstance(patch, dict):
        return patch  # RFC 7396 §2 [no-object-replaces-all]
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)  # RFC 7396 §1 [null-removes]
        else:
            # RFC 7396 §1 [members-are-added] [members-are-replaced]
            result[name] = merged(result.get(name), value)
    return result

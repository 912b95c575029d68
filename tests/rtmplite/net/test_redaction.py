"""What a log may have of a URL."""

import pytest

from rtmplite.net.redaction import public


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("rtmp://host/live/demo", "rtmp://host/live/demo"),
        ("rtmp://host/live/demo?key=k", "rtmp://host/live/demo?..."),
        ("rtmps://ann:pa@host/live", "rtmps://host/live"),
        ("sent to rtmp://a/b?c and http://d:e@f/?g", "sent to rtmp://a/b?... and http://f/?..."),
        ("really?", "really?"),
        ("", ""),
    ],
)
def test_keys_and_passwords_are_left_out(text, shown):
    """Own design: nothing else is."""
    assert public(text) == shown

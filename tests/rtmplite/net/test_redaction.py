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
        ("rtmp://ann:p@ss@host/live/x", "rtmp://host/live/x"),
        ("rtmp://ann:p/ss@host/live/x is none", "rtmp://host/live/x is none"),
        ("rtmp://host:1935/call/bob@example.com", "rtmp://host:1935/call/bob@example.com"),
        ("rtmp://host/call/bob@example.com", "rtmp://host/call/bob@example.com"),
        ("really?", "really?"),
        ("", ""),
    ],
)
def test_keys_and_passwords_are_left_out(text, shown):
    """Own design: nothing else is."""
    assert public(text) == shown

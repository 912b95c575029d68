"""The tables of routes are read, and a mistake in one is named."""

import tomllib

import pytest

from siprtmp.operation.arguments import ConfigError
from siprtmp.settings.load import load
from siprtmp.settings.routes import RouteSettings, pushes, read_routes

PUSH = "rtmp://example.net/live/key"


def read(text):
    return read_routes(tomllib.loads(f"[[route]]\n{text}\n")["route"])


def test_a_table_is_read():
    [route] = read(f'match = "News"\nstream = "show"\nannounce = "hello"\npush = "{PUSH}"')
    assert route == RouteSettings("News", stream="show", announce="hello", push=PUSH)
    assert route.pattern == "news@*" and route.needs_files
    assert pushes((route, RouteSettings("a", file="b")), "mixed") == (f"mixed/show={PUSH}",)
    [route] = read('match = "+49*@home"\nto = "sip:{user}@far;transport=tcp"')
    assert route.pattern == "+49*@home" and not route.needs_files
    assert str(route.target("+49 1")) == "sip:+49%201@far;transport=tcp"


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ('mach = "a"', "unknown key 'mach'; did you mean match"),
        ("match = 1", "match must be a string"),
        ('match = ""', "match must be a string"),
        ('stream = "a"', "needs a match"),
        ('match = "a"', "one of to, stream and file is wanted"),
        ('match = "a"\nstream = "a"\nfile = "b"', "one of to, stream and file is wanted"),
        ('match = "a"\nto = "sip:a@b"\nannounce = "b"', "has no announce"),
        ('match = "a"\nfile = "b"\npush = "rtmp://a/b/c"', "push needs a stream"),
        ('match = "a"\nstream = "a@b"', "without @"),
        ('match = "a"\nto = "tel:+49"', "no SIP URI with a user"),
        ('match = "a"\nto = "sip:b"', "no SIP URI with a user"),
        ('match = "a"\nto = "sip:a@["', "no SIP URI with a user"),
    ],
)
def test_mistakes(text, mistake):
    with pytest.raises(ValueError, match=mistake):
        read(text)


def test_the_file_has_tables_of_routes(tmp_path):
    path = tmp_path / "siprtmp.toml"
    path.write_text(f'[[route]]\nmatch = "a"\nstream = "b"\npush = "{PUSH}"\n')
    settings = load(["--config", str(path), "--push", "live/x=rtmp://a/b/c"])
    assert settings.relays.push == ("live/x=rtmp://a/b/c", f"call/b={PUSH}")
    settings = load(["--config", str(path), "--mix-calls"])
    assert settings.relays.push == (f"mixed/b={PUSH}",)
    with pytest.raises(ConfigError, match=r"\[\[route\]\] needs --sip"):
        load(["--config", str(path), "--sip", "off"])
    path.write_text('[[route]]\nmatch = "a"\nfile = "b"\n')
    with pytest.raises(ConfigError, match="needs --vod"):
        load(["--config", str(path)])
    path.write_text('route = "a"')
    with pytest.raises(ConfigError, match=r"route: is a table: \[\[route\]\]"):
        load(["--config", str(path)])

"""URLs of everybody: whatever the text, nothing comes out but a URL or the package's errors."""

from contextlib import suppress

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from rtmplite.errors import LocalError, RemoteError
from rtmplite.net import addresses
from rtmplite.net.client import client
from rtmplite.net.server.hooks import service
from rtmplite.relay.rules import Rule
from rtmplite.relay.session import redirected
from rtmplite.rtmp import reconnect
from rtmplite.rtmp.client import Target, redirection
from rtmplite.rtmp.wire.url import MAX_URL, join, split
from siprtmp.operation.arguments import ConfigError
from siprtmp.settings.check import check
from siprtmp.settings.table import Settings

HERE = Target.parse("rtmps://ann:secret@far.example/live/demo")
PIECES = (
    *("rtmp:", "rtmps:", "rtmfp:", "http:", "//", "/", "[", "]", "::1", "@", ":", "?", "#", "%"),
    *("..", "h", "live", "1935", "99999", "{name}", "a" * 64, "\0", "\t", "\r\n", " ", "\ud800"),
    *("²", "℀", "xn--", "ß", "[v1.x]", "%25eth0"),
)
TEXTS = st.text() | st.lists(st.sampled_from(PIECES) | st.text(max_size=3)).map("".join)
NOWHERE = ["rtmp://[::1/live", "rtmp://h:99999/live", "rtmp://a..b/live", f"rtmp://{'a' * 64}/x"]

USERS = {
    "target": Target.parse,
    "rule": lambda text: Rule.parse(f"live/*={text}").target("live", "x"),
    "name": lambda text: Rule.parse("live/*=rtmp://h/live/{name}").target("live", text),
    "hook": service,
    "address": addresses.parse,
    "join": lambda text: join("rtmp://h/live", text),
    "tcUrl": lambda text: reconnect.resolve(text, "rtmp://h/live"),
    "reconnect": lambda text: reconnect.requested(reconnect.request(text), "rtmp://h/live"),
    "relay": lambda text: redirected(HERE, text),
    "redirect": lambda text: client.next_target(
        HERE, client.failure({"ex": {"code": 302.0, "redirect": text}}), 1
    ),
    "redirection": lambda text: redirection({"ex": {"code": 302.0, "redirect": text}}),
    "may-go": lambda text: client.may_go(HERE, text),
    "setting": lambda text: check(Settings.of(pull=(f"live/*={text}",))),
}


@given(TEXTS)
def test_any_text_is_a_url_or_an_error_of_ours(text):
    """Covers the one parser and all that use it; each text is for all of them."""
    for user, use in USERS.items():
        note(user)
        with suppress(LocalError, RemoteError, ConfigError):
            use(text)


@given(TEXTS)
def test_any_text_is_a_listener_or_one_line(text):
    """Own design: argparse makes one line of the error."""
    with suppress(LocalError):
        host, port = addresses.parse(text)
        assert host.isprintable() and 0 <= port < 65536
        assert ":" in host or host.encode("idna")


@given(TEXTS)
def test_a_host_is_one_that_a_resolver_takes(text):
    """Own design: it would raise something else than OSError for the others."""
    with suppress(LocalError):
        url = split(text)
        assert ":" in url.host or url.host.encode("idna") is not None
        assert "\0" not in url.host and url.port in (None, *range(65536))
        str(url).encode()


@pytest.mark.parametrize("text", NOWHERE)
@pytest.mark.parametrize("user", ["target", "rule", "hook", "setting", "may-go"])
def test_what_leads_nowhere_is_one_line(user, text):
    """Own design: the parser of the standard library raises ValueError, or nothing until later."""
    text = text.replace("rtmp:", "http:") if user == "hook" else text
    with pytest.raises((LocalError, ConfigError)) as caught:
        USERS[user](text)
    assert str(caught.value).isprintable() and "no URL" in str(caught.value)


def test_a_url_has_an_end():
    """Own design: what is longer is a mistake, or an attempt."""
    with pytest.raises(LocalError, match="letters"):
        split("rtmp://h/" + "x" * MAX_URL)
    assert split("rtmp://h/" + "x" * (MAX_URL - 9)).host == "h"

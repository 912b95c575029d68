"""The options of the gateway as its operator reads them, and what a mistake is answered with."""

import errno
import re
import socket
from itertools import chain

import pytest

from rtmplite.cli import tool
from rtmplite.net.addresses import not_had
from rtmplite.net.settings import groups
from siprtmp.edge.gateway import Gateway
from siprtmp.operation.arguments import ConfigError
from siprtmp.settings.load import build_parser, load
from siprtmp.settings.table import Settings


def test_help_has_every_option_once_in_the_group_where_it_is_looked_for():
    found = {title: [row.option for row in rows] for title, rows in groups(Settings).items()}
    names = [name for group in found.values() for name in group]
    assert len(names) == len(set(names))
    assert set(names) == set(dict(OPTIONS_OF_HELP)) - {"help", "config"}
    shown = build_parser().format_help()
    for title, group in found.items():
        block = shown.partition(f"\n{title}:\n")[2].partition("\n\n")[0]
        assert re.findall(r"^  --([a-z0-9-]+)", block, re.MULTILINE) == group


OPTIONS_OF_HELP = [
    (action.option_strings[-1].removeprefix("--"), action.help)
    for action in build_parser()._actions
]


@pytest.mark.parametrize("text", [text for _, text in OPTIONS_OF_HELP])
def test_help_speaks_in_whole_sentences(text):
    assert text[0].isupper() and text.endswith(".") and len(text.split()) > 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--rtmp", "1935"], "--rtmp: '1935' is not HOST:PORT; write 127.0.0.1:1935"),
        (["--rtmp", "rtmp://127.0.0.1:1935"], "is not HOST:PORT; write 127.0.0.1:1935"),
        (["--rtmp", "rtmp://10.0.0.1:1935/live"], "is not HOST:PORT; write 10.0.0.1:1935"),
        (["--sip", "::1:5060"], "write [::1]:5060"),
        (["--rtmp", "nowhere"], "write for example 127.0.0.1:1935 or [::1]:1935"),
        (["--http", "nowhere"], "write for example 127.0.0.1:8080 or [::1]:8080"),
        (["--sip", "localhost"], "write for example 127.0.0.1:5060 or [::1]:5060"),
        (["--sips", "localhost"], "write for example 127.0.0.1:5061 or [::1]:5061"),
        (["--stun", "localhost"], "write for example 127.0.0.1:3478 or [::1]:3478"),
        (["--push", "live"], "--push live is not APP/NAME=URL"),
        (["--push", "live/a=http://x"], "--push http://x is not rtmp://host[:port]/app/stream"),
        (["--pull", "live"], "--pull live is not APP/NAME=URL"),
        (
            ["--reconnect-to", "rtmp://h:99999/a"],
            "--reconnect-to rtmp://h:99999/a is no URL: Port out of range 0-65535",
        ),
        (["--rtmq", "1935"], "there is no option --rtmq; did you mean --rtmp?"),
        (["--rtmq=1935"], "there is no option --rtmq; did you mean --rtmp?"),
        (["--zzz"], "there is no option --zzz"),
        (["word"], "there is no argument word"),
    ],
)
def test_a_mistake_is_answered_with_the_right_form(words, said):
    with pytest.raises(ConfigError) as refused:
        load(words)
    assert str(refused.value).endswith(said)


def test_what_a_server_without_telephones_can_do_the_gateway_can(capsys):
    """By the same names."""
    with pytest.raises(SystemExit):
        tool.main(["serve", "--help"])
    theirs = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    ours = set(re.findall(r"--[a-z-]+", build_parser().format_help()))
    assert "--vod" in theirs and theirs <= ours


@pytest.mark.parametrize("option", ["--rtmp", "--sip", "--http"])
def test_a_port_in_use_says_who_may_have_it(option):
    """In one line that names the option, whatever opens the listener."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        at = f"127.0.0.1:{taken.getsockname()[1]}"
        others = {"--rtmp": "127.0.0.1:0", "--sip": "127.0.0.1:0", "--http": "off"} | {option: at}
        gateway = Gateway(load([*chain(*others.items()), "--rtmfp", "off"]))
        try:
            with pytest.raises(ConfigError) as refused:
                gateway.start()
        finally:
            gateway.stop()
    assert str(refused.value) == (
        f"{option} {at}: Address already in use, perhaps by this program started twice: "
        "see ss -lntup"
    )


def test_a_port_that_others_have_as_a_rule_is_said():
    error = OSError(errno.EADDRINUSE, "Address already in use: ('127.0.0.1', 5060)")
    assert "Address already in use, perhaps" in not_had(error, 5060)
    assert "Asterisk" in not_had(error, 5060) and "nginx" in not_had(error, 1935)
    assert "CAP_NET_BIND_SERVICE" in not_had(OSError(errno.EACCES, "Permission denied"), 80)
    assert not_had(OSError(errno.EACCES, "Permission denied"), 8080) == "Permission denied"
    assert not_had(OSError("odd"), 1) == "odd"

"""Settings: every option, from the command line and from a file, and what is refused."""

import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.certificates import certificate
from support.settings_rows import ROWS, values

from siprtmp.operation.arguments import ConfigError
from siprtmp.settings.check import check, load_users
from siprtmp.settings.load import build_parser, load, load_file, read_document
from siprtmp.settings.table import TABLES, Settings
from siprtmp.settings.types import VideoLimits

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "siprtmp.toml"
HASH = "0" * 32

V6 = ("::1", 1)
# option, command line, TOML, the field's value
OPTIONS = [
    ("rtmp", ["127.0.0.1:0"], '"127.0.0.1:0"', ("127.0.0.1", 0)),
    ("rtmp", ["off"], '"off"', None),
    ("sip", ["[::1]:5070"], '"[::1]:5070"', (("::1", 5070),)),
    (
        "sip",
        ["127.0.0.1:5070", "[::1]:5070"],
        '["127.0.0.1:5070", "[::1]:5070"]',
        (("127.0.0.1", 5070), ("::1", 5070)),
    ),
    ("sip", ["[::1]:5070", "off"], '["[::1]:5070", "off"]', ()),
    ("http", ["localhost:81"], '"localhost:81"', ("localhost", 81)),
    ("webrtc", ["localhost:82"], '"localhost:82"', ("localhost", 82)),
    ("ws", ["[::1]:1", "127.0.0.1:2"], '["[::1]:1", "127.0.0.1:2"]', (V6, ("127.0.0.1", 2))),
    ("domain", ["a.example", "b.net"], '["a.example", "b.net"]', ("a.example", "b.net")),
    ("outbound-proxy", ["sip:p.example;lr"], '"sip:p.example;lr"', "sip:p.example;lr"),
    ("viewer", ["ann"], '["ann"]', ("ann",)),
    ("admin", ["ann"], '["ann"]', ("ann",)),
    ("operator", ["ann", "bob"], '["ann", "bob"]', ("ann", "bob")),
    ("allow-anonymous", [], "true", True),
    ("external-ip", ["192.0.2.1"], '"192.0.2.1"', "192.0.2.1"),
    ("turn", ["turn:u@a:1"], '"turn:u@a:1"', "turn:u@a:1"),
    ("stun", ["a:1", "[::1]:2"], '["a:1", "[::1]:2"]', (("a", 1), ("::1", 2))),
    ("rtp-ports", ["10000-20000"], '"10000-20000"', (10000, 20000)),
    ("nat", [], "true", True),
    ("sip-t1", ["20"], "20", 20),
    ("answer-timeout", ["2.5"], "2.5", 2.5),
    ("media-timeout", ["30"], "30", 30.0),
    ("merge-ms", ["15"], "15", 15),
    ("video-packet-size", ["900"], "900", 900),
    ("srtp", ["any"], '"any"', "any"),
    ("anchor", ["always"], '"always"', "always"),
    ("transcode-video", ["640x360@15,500"], '"640x360@15,500"', VideoLimits(640, 360, 15, 500)),
    ("gop-cache", ["off"], '"off"', "off"),
    ("tls-cert", ["/etc/c.pem"], '"/etc/c.pem"', Path("/etc/c.pem")),
    ("tls-key", ["/etc/k.pem"], '"/etc/k.pem"', Path("/etc/k.pem")),
    ("record", ["/var/takes"], '"/var/takes"', Path("/var/takes")),
    ("record-when", ["asked"], '"asked"', "asked"),
    ("capture-calls", ["/var/packets"], '"/var/packets"', Path("/var/packets")),
    ("tree-push", ["live.example"], '["live.example"]', ("live.example",)),
    ("state", ["/var/lib/siprtmp"], '"/var/lib/siprtmp"', Path("/var/lib/siprtmp")),
    ("location", ["redis://a/0"], '"redis://a/0"', "redis://a/0"),
    ("keep-first-line", [], "true", True),
    ("call-from", ['"S" <sip:s@x.org>'], "'\"S\" <sip:s@x.org>'", '"S" <sip:s@x.org>'),
    ("rtmpt", ["127.0.0.1:0"], '"127.0.0.1:0"', ("127.0.0.1", 0)),
    ("rtmfp", ["127.0.0.1:0"], '"127.0.0.1:0"', ("127.0.0.1", 0)),
    ("push", ["live/*=rtmp://a/live"], '["live/*=rtmp://a/live"]', ("live/*=rtmp://a/live",)),
    ("pull", ["live/a=rtmp://a/b/c"], '"live/a=rtmp://a/b/c"', ("live/a=rtmp://a/b/c",)),
    ("insecure", [], "true", True),
    ("publish-key", ["demo=k"], '["demo=k"]', ("demo=k",)),
    ("play-key", ["*=k"], '["*=k"]', ("*=k",)),
    ("on-connect", ["http://a/"], '"http://a/"', "http://a/"),
    ("on-publish", ["http://a/"], '"http://a/"', "http://a/"),
    ("on-play", ["https://a/"], '"https://a/"', "https://a/"),
    ("on-done", ["http://a/"], '"http://a/"', "http://a/"),
    ("hook-timeout", ["1.5"], "1.5", 1.5),
    ("hook-requests", ["7"], "7", 7),
    ("idle", ["30"], "30", 30.0),
    ("max-connections", ["7"], "7", 7),
    ("max-per-address", ["7"], "7", 7),
    ("max-message", ["70000"], "70000", 70000),
    ("max-rtmfp-memory", ["2000000"], "2000000", 2000000),
    ("drain", ["2"], "2", 2.0),
    ("reconnect-to", ["rtmp://b/live"], '"rtmp://b/live"', "rtmp://b/live"),
    ("rtmfp-peers", ["both"], '"both"', "both"),
    ("rtmfp-relay-host", ["192.0.2.1"], '"192.0.2.1"', "192.0.2.1"),
    ("rtmfp-redirect-to", ["192.0.2.1:1"], '"192.0.2.1:1"', "192.0.2.1:1"),
    ("rtmfp-overflow-to", ["192.0.2.1:1"], '"192.0.2.1:1"', "192.0.2.1:1"),
    ("shared", ["/var/objects"], '"/var/objects"', Path("/var/objects")),
    ("sign-play", [], "true", True),
    ("max-user-calls", ["3"], "3", 3),
    ("max-user-calls-per-hour", ["0"], "0", 0),
    ("max-user-messages-per-hour", ["5"], "5", 5),
    ("allow-targets", ["+49*@a", "*@b"], '["+49*@a", "*@b"]', ("+49*@a", "*@b")),
    ("call-records", ["/var/calls"], '"/var/calls"', Path("/var/calls")),
    ("capture", ["/var/a.pcap"], '"/var/a.pcap"', Path("/var/a.pcap")),
    ("room", ["team", "attic"], '["team", "attic"]', ("team", "attic")),
    ("mix-calls", [], "true", True),
    ("tree-mode", ["off"], '"off"', "off"),
    ("tree-webhook", ["a.example"], '["a.example"]', ("a.example",)),
    ("tree-origin", ["https://a.example"], '["https://a.example"]', ("https://a.example",)),
    ("token-key", ["/etc/t.key"], '"/etc/t.key"', Path("/etc/t.key")),
    ("tree-redis", ["redis://a"], '"redis://a"', "redis://a"),
    ("tree-auth", ["http://a/who"], '"http://a/who"', "http://a/who"),
    ("log-level", ["debug"], '"debug"', "debug"),
    ("log-format", ["json"], '"json"', "json"),
]


def written(folder, text):
    path = folder / "siprtmp.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(("option", "words", "toml", "value"), OPTIONS)
def test_an_option_means_the_same_on_the_line_and_in_the_file(tmp_path, option, words, toml, value):
    name = option.replace("-", "_")
    line = load([f"--{option}", *words])
    file = load(["--config", str(written(tmp_path, f"{option} = {toml}\n"))])
    assert values(line)[name] == values(file)[name] == value
    assert line == file != Settings()


def test_every_setting_is_tried_here_and_shown_in_the_example():
    names = {row.option for row in ROWS.values()}
    need_others = {"users", "vod", "rtmps", "sips", "users-only", "ca", "sign-key", "workers"}
    assert {option for option, *_ in OPTIONS} | need_others == names
    text = EXAMPLE.read_text()
    shown = re.findall(r"^#?([a-z0-9-]+) = ", text, re.MULTILINE)
    assert sorted(shown) == sorted(names)
    parser = build_parser()
    options = {text for action in parser._actions for text in action.option_strings}
    assert options - {"-h", "--help", "--config"} == {f"--{name}" for name in shown}


def test_a_mistyped_key_of_the_file_is_answered_with_the_right_one(tmp_path):
    with pytest.raises(ConfigError, match="unknown setting 'media-timout'; did you mean media-t"):
        load(["--config", str(written(tmp_path, "media-timout = 3\n"))])


def test_the_example_is_good_and_says_the_defaults(tmp_path):
    assert check(load_file(EXAMPLE)) == Settings()
    assert check(Settings(source=EXAMPLE)) == Settings()
    text = re.sub(r"^#(\[\[|  [a-z]+ = )", r"\1", EXAMPLE.read_text(), flags=re.MULTILINE)
    everything = re.sub(r"^#([a-z-]+ = )", r"\1", text, flags=re.MULTILINE)
    (tmp_path / "siprtmp.users").write_text(f"bob:example.org:{HASH}\n")
    (tmp_path / "sign.key").write_text("0123456789abcdef")
    (tmp_path / "trusted.pem").write_text(certificate(tmp_path).file.read_text())
    (tmp_path / "films").mkdir()
    settings = check(load_file(written(tmp_path, everything)))
    assert settings.access.users == tmp_path / "siprtmp.users" and len(settings.calls.domain) == 2
    defaults = values(Settings())
    changed = {name for name, value in values(settings).items() if value != defaults[name]}
    assert changed == {
        "domain",
        "users",
        "outbound_proxy",
        "call_from",
        "external_ip",
        "stun",
        "turn",
        "rtp_ports",
        "record",
        "vod",
        "state",
        "location",
        "max_user_calls",
        "max_user_calls_per_hour",
        "max_user_messages_per_hour",
        "allow_targets",
        "viewer",
        "operator",
        "admin",
        "room",
        "mix_calls",
        "tls_cert",
        "tls_key",
        "push",
        "pull",
        "ca",
        "publish_key",
        "play_key",
        "sign_key",
        "on_connect",
        "on_publish",
        "on_play",
        "on_done",
        "reconnect_to",
        "rtmfp_relay_host",
        "rtmfp_redirect_to",
        "rtmfp_overflow_to",
        "shared",
        *("capture", "capture_calls", "call_records"),
        *("tree_origin", "tree_webhook", "tree_auth", "tree_push", "tree_redis", "token_key"),
        *TABLES,
    }


def test_rtmps_has_files(tmp_path):
    """Beside the file that names them."""
    (tmp_path / "c.pem").write_text("")
    path = written(tmp_path, 'rtmps = "127.0.0.1:0"\ntls-cert = "c.pem"\n')
    settings = load(["--config", str(path), "--rtmp", "off", "--sip", "off"])
    assert settings.tls.tls_cert == tmp_path / "c.pem"
    assert settings.listeners.rtmps == ("127.0.0.1", 0)
    with pytest.raises(ConfigError, match="other machines"):
        load(["--rtmps", "192.0.2.1:443", "--tls-cert", str(tmp_path / "c.pem")])


def test_a_folder_to_play_from_is_there_or_is_recorded_into(tmp_path):
    """A typo is told before it serves nothing, beside the file or on the line."""
    path = written(tmp_path, 'vod = "films"\n')
    films = tmp_path / "films"
    for words in (["--config", str(path)], ["--vod", str(films)], ["--vod", str(path)]):
        with pytest.raises(ConfigError, match=r"^--vod \S+: no such folder$"):
            load(words)
    words = ["--vod", str(films), "--record"]
    with pytest.raises(ConfigError, match="--vod"):
        load([*words, str(tmp_path / "other")])
    assert load([*words, str(tmp_path / "x" / ".." / "films")]).folders.vod == films
    assert not films.exists()  # that is for who serves
    films.mkdir()
    assert load(["--config", str(path)]) == load(["--vod", str(films)])


def test_the_line_wins_over_the_file(tmp_path):
    path = written(tmp_path, 'sip-t1 = 20\nlog-level = "error"\n')
    settings = load(["--sip-t1", "30", "--config", str(path)])
    assert (settings.calls.sip_t1, settings.logs.log_level, settings.source) == (30, "error", path)


@pytest.mark.parametrize(
    "words",
    [
        ["--rtmp", "127.0.0.1"],
        ["--rtmp", "127.0.0.1:65536"],
        ["--rtmp", ":1935"],
        ["--sip", "::1:5060"],
        ["--rtmps", "127.0.0.1:1"],
        ["--sips", "127.0.0.1:1"],
        ["--sip", "off", "--sips", "127.0.0.1:1", "--tls-cert", "no/such/file"],
        ["--rtmps", "127.0.0.1:1", "--tls-cert", "no/such/file"],
        ["--rtmfp", "127.0.0.1"],
        ["--rtp-ports", "20000-10000"],
        ["--rtp-ports", "80-90"],
        ["--rtp-ports", "10001-10002"],
        ["--rtp-ports", "²-³"],
        ["--sip-t1", "0"],
        ["--sip-t1", "1.5"],
        ["--answer-timeout", "nan"],
        ["--answer-timeout", "-1"],
        ["--media-timeout", "inf"],
        ["--merge-ms", "2000"],
        ["--video-packet-size", "99"],
        ["--max-user-calls", "-1"],
        ["--max-user-calls-per-hour", "many"],
        ["--allow-targets"],
        ["--allow-targets", "trunk.example"],
        ["--log-level", "loud"],
        ["--external-ip", "example.org"],
        ["--stun", "example.org"],
        ["--stun", "example.org:0"],
        ["--outbound-proxy", "http://x"],
        ["--outbound-proxy", "sip:"],
        ["--call-from", "<sip:x"],
        ["--call-from", "bob"],
        ["--domain", "a:5060"],
        ["--domain", "bob@a"],
        ["--users", "no/such/file"],
        ["--config", "no/such/file"],
        ["--rtmp", "off", "--rtmfp", "off", "--sip", "off"],
        ["--sip", "0.0.0.0:5060", "--allow-anonymous"],
        ["--push", "live=rtmp://a/b"],
        ["--pull", "live/*=http://a/b"],
        ["--publish-key", "demo"],
        ["--play-key", "=k"],
        ["--sign-key", "no/such/file"],
        ["--users-only"],
        ["--on-publish", "ftp://a"],
        ["--hook-timeout", "0"],
        ["--max-connections", "0"],
        ["--drain", "-1"],
        ["--ca", "no/such/file"],
        ["--sip"],
        ["--sing"],
        ["--dom", "a"],  # no abbreviations: they would be taken by later options
        ["word"],
    ],
)
def test_what_cannot_be_served_is_told_in_one_line(words):
    with pytest.raises(ConfigError) as refused:
        load(words)
    assert str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "toml",
    [
        "sip-t1 = true",
        "sip-t1 = '20'",
        "sip-t1 = 20.5",
        "nat = 1",
        "rtmp = 1935",
        "sips = true",
        "domain = [1]",
        "domain = 3",
        "domain = {a = 1}",
        "log-level = 'loud'",
        "log-format = 3",
        "users = 3",
        "push = [1]",
        "push = {a = 1}",
        "publish-key = true",
        "idle = '3'",
        "max-connections = 1.5",
        "max-connections = true",
        "insecure = 1",
        "on-publish = 3",
        "sing = 1",
        "source = 'x'",
        "[sip]\nport = 1",
        "sip = [5060]",
        "not toml",
    ],
)
def test_a_bad_file_is_told_with_its_name_and_key(tmp_path, toml):
    path = written(tmp_path, toml)
    with pytest.raises(ConfigError, match=re.escape(str(path))) as refused:
        load(["--config", str(path)])
    assert "\n" not in str(refused.value)


def test_a_file_that_is_no_text(tmp_path):
    path = tmp_path / "siprtmp.toml"
    path.write_bytes(b"\xff\xfe")
    for words in (["--config", str(path)], ["--users", str(path)], ["--users", str(tmp_path)]):
        with pytest.raises(ConfigError, match=re.escape(words[1])):
            load(words)


@pytest.mark.parametrize("listener", ["rtmp", "sip", "http"])
@pytest.mark.parametrize("host", ["192.0.2.1", "0.0.0.0", "[::]", "example.org"])
def test_other_machines_are_served_only_with_users_or_a_plain_word(tmp_path, listener, host):
    words = [f"--{listener}", f"{host}:0", "--external-ip", "192.0.2.1"]
    with pytest.raises(ConfigError, match=r"give --users FILE, or --allow-anonymous"):
        load(words)
    assert load([*words, "--allow-anonymous"]).access.allow_anonymous
    users = tmp_path / "users"
    users.write_text(f"bob:example.org:{HASH}\n")
    settings = load([*words, "--users", str(users)])
    assert len(load_users(settings.access)) == 1


@pytest.mark.parametrize(
    ("words", "works"),
    [
        (["--publish-key", "*=k"], True),
        (["--on-publish", "http://a/"], True),
        (["--on-connect", "http://a/"], True),
        (["--play-key", "*=k"], False),
        (["--on-play", "http://a/"], False),
    ],
)
@pytest.mark.parametrize("listener", ["rtmp", "rtmpt", "rtmfp", "http", "sip"])
def test_who_guards_publishing_need_not_have_users(listener, words, works):
    """But for phones."""
    words = [f"--{listener}", "192.0.2.1:0", *words]
    if works and listener != "sip":
        load(words)
    else:
        with pytest.raises(ConfigError, match="other machines"):
            load(words)


def test_a_key_is_not_told_on(tmp_path):
    """What is wrong with one is told without it."""
    with pytest.raises(ConfigError) as refused:
        load(["--publish-key", "=sesame"])
    assert "sesame" not in str(refused.value)


def test_lists_of_the_line_stand_for_those_of_the_file(tmp_path):
    path = written(tmp_path, 'push = ["live/a=rtmp://a/b/c", "live/b=rtmp://a/b/d"]\n')
    assert len(load(["--config", str(path)]).relays.push) == 2
    settings = load(["--config", str(path), "--push", "live/x=rtmp://a/b/c"])
    assert settings.relays.push == ("live/x=rtmp://a/b/c",)


def test_a_users_file_with_a_mistake_names_the_line(tmp_path):
    users = tmp_path / "users"
    users.write_text(f"bob:example.org:{HASH}\nalice\n")
    with pytest.raises(ConfigError, match="line 2"):
        load(["--users", str(users)])
    assert load_users(Settings().access) is None


@given(
    st.dictionaries(
        st.sampled_from([*(row.option for row in ROWS.values()), *TABLES, "source"]),
        st.recursive(
            st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
            lambda inner: (
                st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=1)
            ),
        ),
    )
)
def test_any_values_are_settings_or_an_error(document):
    """Own design: nothing that TOML can say gets a traceback."""
    try:
        check(Settings.of(**read_document(document, Path("x"))))
    except ConfigError as error:
        assert str(error)


def test_settings_are_made_by_the_names_of_their_options():
    """An unknown name is the mistake of a caller."""
    assert Settings.of(sip_t1=20, nat=True).calls.sip_t1 == 20
    with pytest.raises(TypeError, match="no such settings: sip_t2"):
        Settings.of(sip_t1=20, sip_t2=30)


def test_toml_is_what_the_example_is():
    assert tomllib.loads(EXAMPLE.read_text())["sip-t1"] == 500


@pytest.mark.parametrize(
    "words",
    [
        *(("--shared", "objects"), ("--stun", "192.0.2.1:3478"), ("--room", "team")),
    ],
)
def test_several_workers_are_refused_with_what_they_cannot_share(words, tmp_path):
    option = words[0].strip("-")
    with pytest.raises(ConfigError, match=f"--workers 2 does not go with --{option} yet"):
        load(["--workers", "2", *words])
    (tmp_path / "bad.toml").write_text('workers = 2\nshared = "a"\n')
    with pytest.raises(ConfigError, match="--workers 2 does not go with --shared yet"):
        check(load_file(tmp_path / "bad.toml"))
    assert load(["--workers", "2"]).process.workers == 2
    with pytest.raises(ConfigError, match="--webrtc: the last worker's port would be 65537: "):
        load(["--workers", "4", "--webrtc", "127.0.0.1:65534"])
    assert load(["--workers", "1", *words]).process.workers == 1

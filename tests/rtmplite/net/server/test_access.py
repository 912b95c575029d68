"""The options that say who may use a server."""

import argparse
import io
import sys

import gevent
import pytest
from gevent.pywsgi import WSGIServer
from support.sockets import until

from rtmplite.auth.credentials import user_lines
from rtmplite.auth.guard import Event, GuardedApplication, Question
from rtmplite.cli.tool import main
from rtmplite.errors import LocalError
from rtmplite.net.server import access
from rtmplite.net.server.settings import AccessSettings, ClientLimits
from rtmplite.net.settings import add_options, chosen, rows
from rtmplite.rtmp.application import LiveApplication


def options(*words, of=AccessSettings):
    """What these words on the command line say."""
    parser = argparse.ArgumentParser()
    add_options(parser.add_argument, rows(of))
    return chosen(of, vars(parser.parse_args(words)))


def admits(doors, name="demo", query=""):
    return doors.admits("live", name, query, "192.0.2.1")


def test_without_options_there_is_no_guard():
    """And no cost."""
    doors, live = access.Access(options()), LiveApplication()
    assert doors.guard(live) is live and admits(doors)
    doors.stop()


@pytest.fixture
def files(tmp_path):
    """A file of users and one with a secret."""
    (tmp_path / "users").write_text("\n".join(user_lines("ann", "home", "secret")))
    (tmp_path / "key").write_bytes(b"0123456789abcdef\n")
    return tmp_path


def test_open_addresses_need_a_guard_for_publishers(files):
    """Loopback needs none."""
    ports = [("127.0.0.1", 1), ("::1", 1), ("localhost", 1), None]
    access.Access(options()).check(ports)
    for words in ([], ["--play-key", "a=b"], ["--on-play", "http://x"], ["--on-done", "http://x"]):
        for host in ("0.0.0.0", "::", "192.0.2.1", "example.net"):
            with pytest.raises(LocalError, match="open to all"):
                access.Access(options(*words)).check([*ports, (host, 1)])
    for words in (
        ["--users", str(files / "users")],
        ["--publish-key", "a=b"],
        ["--sign-key", str(files / "key")],
        ["--on-publish", "http://x"],
        ["--on-connect", "http://x"],
        ["--allow-anonymous"],
    ):
        access.Access(options(*words)).check([("0.0.0.0", 1)])


@pytest.mark.parametrize(
    "words",
    [
        ("--users", "/nowhere"),
        ("--users-only",),
        ("--publish-key", "a"),
        ("--play-key", "=b"),
        ("--sign-key", "/dev/null"),
        ("--on-play", "x"),
    ],
)
def test_wrong_options_are_refused_at_once(words):
    """Not when the first client comes."""
    with pytest.raises(LocalError):
        access.Access(options(*words))


def test_viewers_without_rtmp_are_judged_as_well(files, monkeypatch, capsys):
    """By key, by signed link, and by all of that together."""
    doors = access.Access(options("--play-key", "demo=k"))
    assert admits(doors, query="key=k") and not admits(doors) and not admits(doors, "other")
    doors = access.Access(options("--users", str(files / "users"), "--users-only"))
    assert admits(doors, query="user=ann&pass=secret") and not admits(doors)
    doors = access.Access(options("--sign-key", str(files / "key"), "--sign-play"))
    assert main(["sign", "play", "demo", "--key", str(files / "key")]) == 0
    name, _, query = capsys.readouterr().out.strip().partition("?")
    assert name == "demo" and admits(doors, query=query) and not admits(doors, "other", query)


def test_a_service_is_asked_of_viewers(files):
    """It is not asked to play who may not connect."""
    asked = []

    def service(environ, begin):
        asked.append(environ["PATH_INFO"])
        begin("302 Found" if environ["PATH_INFO"] == "/p" else "200 OK", [("Location", "other")])
        return []

    server = WSGIServer(("127.0.0.1", 0), service, log=None)
    server.start()
    base = f"http://127.0.0.1:{server.socket.getsockname()[1]}"
    with gevent.Timeout(10):
        doors = access.Access(options("--on-connect", f"{base}/c"))
        assert admits(doors)
        doors = access.Access(options("--on-connect", f"{base}/c", "--on-play", f"{base}/p"))
        assert not admits(doors)
    assert asked == ["/c", "/c", "/p"]
    server.stop()


def test_a_line_for_a_user(monkeypatch, capsys, files):
    """Two, from a pipe; what it makes, `--users` reads."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("secret\n"))
    assert main(["users", "ann", "home"]) == 0
    lines = capsys.readouterr().out
    assert lines.count("\n") == 2 and lines.count("ann:home:") == 2
    (files / "users").write_text(lines)
    doors = access.Access(options("--users", str(files / "users"), "--users-only"))
    assert admits(doors, query="user=ann&pass=secret")


def test_users_are_read_again(files):
    """All or nothing; who has none, or asks nobody for one, has nothing to read."""
    path, ann, bob = files / "users", "user=ann&pass=secret", "user=bob&pass=hidden"
    doors = access.Access(options("--users", str(path), "--users-only"))
    anyone = access.Access(options("--users", str(path), "--allow-anonymous"))
    path.write_text("\n".join([*user_lines("bob", "home", "hidden"), "mallory"]))
    with pytest.raises(LocalError, match=rf"^{path}: line 3 is not USER:REALM:HA1$"):
        doors.reload()
    assert admits(doors, query=ann) and not admits(doors, query=bob)
    path.write_text("\n".join(user_lines("bob", "home", "hidden")))
    doors.reload()
    assert admits(doors, query=bob) and not admits(doors, query=ann)
    path.unlink()
    with pytest.raises(LocalError, match="No such file"):
        doors.reload()
    assert admits(doors, query=bob)
    anyone.reload()
    access.Access(options()).reload()


def test_everybody_means_everybody(files):
    """Users of telephones are no reason to turn publishers away, if all may publish."""
    words = ("--users", str(files / "users"), "--allow-anonymous")
    doors, live = access.Access(options(*words)), LiveApplication()
    assert doors.guard(live) is live and not doors.guards_publishing
    doors.check([("0.0.0.0", 1)])
    with pytest.raises(LocalError, match="no --allow-anonymous"):
        access.Access(options(*words, "--users-only"))


def test_applications_with_rules_of_their_own_ask_the_service_alone(files):
    """If there is one."""
    live = LiveApplication()
    doors = access.Access(options("--users", str(files / "users")))
    assert doors.ask_service(live) is live and doors.guard(live) is not live
    doors = access.Access(options("--on-publish", "http://x"))
    assert isinstance(doors.ask_service(live), GuardedApplication)


@pytest.mark.parametrize(
    "words, proving",
    [
        ((), ""),
        (("--users", "users"), "publish"),
        (("--users", "users", "--users-only"), "publish play"),
        (("--users", "users", "--allow-anonymous"), ""),
        (("--publish-key", "demo=x"), "publish"),
        (("--play-key", "demo=x"), "play"),
        (("--sign-key", "key"), "publish"),
        (("--sign-key", "key", "--sign-play"), "publish play"),
        (("--on-publish", "http://x", "--on-play", "http://x"), ""),
    ],
)
def test_a_rule_that_lets_in_nobody_without_a_proof(files, words, proving):
    """A web service may let in anybody."""
    doors = access.Access(
        options(*(str(files / each) if each in ("users", "key") else each for each in words))
    )
    found = [str(each) for each in (Event.PUBLISH, Event.PLAY) if doors.demands_proof(each)]
    assert " ".join(found) == proving


@pytest.mark.parametrize("name", ["rtmp://127.0.0.1/live/demo", "demo?key=x"])
def test_a_link_is_for_a_name(files, name, capsys):
    """An URL would make a link that fits nothing."""
    assert main(["sign", "publish", name, "--key", str(files / "key")]) == 2
    said = capsys.readouterr()
    assert not said.out and "the name of a stream, such as demo" in said.err
    assert said.err.count("\n") == 1


@pytest.mark.parametrize(
    ("option", "bad"),
    [
        *(("hook-timeout", text) for text in ("0", "nan", "inf", "x")),
        *(("hook-requests", text) for text in ("0", "1.5", "9999999999")),
        ("idle", "-1"),
        ("max-connections", "0"),
        ("max-per-address", "0"),
        ("max-message", "1"),
        ("max-rtmfp-memory", "1"),
    ],
)
def test_numbers_have_limits(option, bad):
    """Own design: none of them would do what was meant."""
    with pytest.raises(SystemExit):
        options(f"--{option}", bad)


def test_each_refusal_is_told(files):
    """But not the challenge to a client that has named its user."""
    told = []
    words = ("--users", str(files / "users"), "--users-only", "--play-key", "demo=k")
    doors = access.Access(options(*words), lambda *what: told.append(what))
    assert not admits(doors, query="authmod=adobe&user=ann") and told == []
    assert not admits(doors, query="key=k")
    assert until(lambda: told)  # it names none meanwhile
    assert not admits(doors, query="user=ann&pass=guess&key=k")
    assert not admits(doors, query="user=ann&pass=secret&key=guess")
    assert not admits(doors, query="key=other")
    assert len(told) == 3
    doors.stop()
    assert [(question.event, reason) for question, reason in told] == [
        ("connect", "The client named no user."),
        ("connect", "Wrong user or password."),
        ("play", "No such stream, or not by this key."),
        ("connect", "The client named no user."),
    ]


def test_a_login_in_two_steps_is_no_refusal(files, monkeypatch):
    """Covers Field §"authmod=adobe": nor are several from one host, as far as they go on."""
    told = []
    words = ("--users", str(files / "users"), "--users-only")
    doors = access.Access(options(*words), lambda *what: told.append(what))
    for query in ("one", "two"):
        assert not admits(doors, query=query)
    for _ in range(2):
        assert not admits(doors, query="authmod=adobe&user=ann")
    doors.stop()
    assert told == []
    monkeypatch.setattr(access, "MOST_WAITING", 1)
    for query in ("one", "two"):
        assert not admits(doors, query=query)
    assert len(told) == 1
    assert not admits(doors, query="authmod=adobe&user=ann&response=x&opaque=y&challenge=z")
    doors.stop()
    assert [reason for _, reason in told] == [
        *("The client named no user.", "Wrong user or password.", "The client named no user."),
    ]


def test_events_have_an_option_each():
    """Whatever there is to ask."""
    assert all(hasattr(options(), f"on_{event}") for event in Event)
    assert Question.__slots__  # frozen and slotted, as it is kept while a service thinks
    limits = access.limits(options("--idle", "5", "--max-message", "70000", of=ClientLimits))
    assert (limits.idle, limits.message) == (5.0, 70000)

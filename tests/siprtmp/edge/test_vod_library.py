"""Who is played recorded calls."""

from types import SimpleNamespace

import pytest
from support.sip.homes import PASSWORD

from p2psip.sip.auth import ha1
from rtmplite.auth.credentials import Users
from rtmplite.net.server.access import Access
from rtmplite.net.workers import Workers
from siprtmp.calls.access.admission import Admission
from siprtmp.edge.vod_library import VodLibrary
from siprtmp.settings.table import Settings

FAR, HERE = "192.0.2.9", "127.0.0.1"
GOOD, WRONG = f"user=bob&pass={PASSWORD}", "user=bob&pass=guess"


class Told:
    """A log that is kept."""

    def __init__(self):
        self.lines = []

    def event(self, what, **values):
        self.lines.append((what, values))

    report = event


class World:
    """The films of a gateway; `options` are its settings."""

    def __init__(self, folder, *, has_users=True, **options):
        users = folder / "users"
        line = f"bob:home:{ha1('bob', 'home', PASSWORD, 'MD5')}"
        users.write_text(line)
        given = {"record": folder, "vod": folder, "users": users if has_users else None}
        settings = Settings.of(**given | options)
        credentials = Users.parse(line) if has_users else None
        admission = Admission(settings.access.allow_anonymous, None, credentials)
        doors = Access(settings.access)
        self.log = Told()
        self.films = VodLibrary(settings.for_rtmp, Workers(), doors, admission, self.log)

    def may(self, host, query="", connect_query=""):
        """Whether a client there may have all that is recorded."""
        tc_url = f"rtmp://host/vod?{connect_query}"
        connection = SimpleNamespace(
            properties={"tcUrl": tc_url, "app": "vod"},
            peer_address=(host, 1),
            id="1",
            app="vod",
            connect_args=(),
        )
        return self.films.library_for(connection, query) is self.films.all

    @property
    def said(self):
        """What is logged at the start."""
        self.films.say()
        return [values["served_to"] for what, values in self.log.lines if what == "recorded-calls"]


ABROAD = ("192.0.2.1", 0)


@pytest.mark.parametrize("host", [HERE, FAR])
@pytest.mark.parametrize("listener", ["rtmp", "rtmps", "rtmpt", "rtmfp", "http", "sip"])
def test_one_listener_for_others_and_everybody_has_to_prove_it(tmp_path, listener, host):
    """Somebody may stand between, such as a proxy on this machine."""
    world = World(tmp_path, **{listener: (ABROAD,) if listener == "sip" else ABROAD})
    assert not world.may(host) and not world.may(host, WRONG) and not world.may(host, "", WRONG)
    assert world.may(host, GOOD) and world.may(host, "", GOOD)
    assert world.said == ["users"]


def test_this_machine_has_them_while_it_is_alone(tmp_path):
    world = World(tmp_path)
    assert world.may(HERE) and world.may("::1") and not world.may(FAR)
    assert world.said == ["users,loopback"]
    assert World(tmp_path, has_users=False).said == ["loopback"]


def test_anonymous_is_no_user(tmp_path):
    """That everybody may call does not let everybody hear others' calls."""
    world = World(tmp_path, rtmp=ABROAD, allow_anonymous=True)
    assert not world.may(HERE) and not world.may(FAR, WRONG) and world.may(FAR, GOOD)
    assert not world.may(FAR, "", "user=bob&authmod=adobe&response=x")  # which nobody has checked
    nobody = World(tmp_path, rtmp=ABROAD, allow_anonymous=True, has_users=False)
    assert not nobody.may(HERE) and not nobody.may(FAR, GOOD)
    assert nobody.said == ["nobody"]


def test_a_challenge_that_was_answered_is_proof(tmp_path):
    """Field §"authmod=adobe": with a wrong answer nobody connects."""
    assert World(tmp_path, rtmp=ABROAD).may(FAR, "", "user=bob&authmod=adobe&response=x")


@pytest.mark.parametrize(
    ("vod", "record", "is_said"),
    [
        ("", "", True),
        ("", "inner", True),
        ("inner", "", True),
        ("films", "recordings", False),
        ("films", None, False),
        ("recorded", None, True),  # by another run
        ("recorded/call", None, True),
    ],
)
def test_it_is_said_where_calls_may_be(tmp_path, vod, record, is_said):
    (tmp_path / "recorded" / "call").mkdir(parents=True)
    (tmp_path / "films").mkdir()
    options = {"vod": tmp_path / vod, "record": None if record is None else tmp_path / record}
    assert bool(World(tmp_path, **options).said) is is_said

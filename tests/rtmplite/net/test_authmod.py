"""User and password of a URL with real servers, to wherever those send us."""

import os

import gevent
import pytest
from support.limits import patience

from rtmplite.auth.credentials import Users, UsersGuard, user_lines
from rtmplite.auth.guard import Calling, Event, GuardedApplication, Guards, Verdict
from rtmplite.errors import RemoteError
from rtmplite.live.streams import Registry
from rtmplite.net.client.reconnecting import Publisher
from rtmplite.net.client.rtmp_client import RtmpClient
from rtmplite.net.clock import now
from rtmplite.net.server.rtmp_listener import RtmpListener
from rtmplite.rtmp.application import LiveApplication
from rtmplite.rtmp.server import ServerConnection

KEY = b"\x91av01idr"


class Home:
    """A server for users, which sends those who connect to `elsewhere` if that is set."""

    def __init__(self):
        self.elsewhere = ""
        lines = "\n".join(user_lines("ann", "example.org", "s3cret"))
        users = UsersGuard(Users.parse(lines), os.urandom, for_all=True)
        application = GuardedApplication(LiveApplication(), Guards([users, Calling(self._judge)]))
        self.registry = Registry()

        def connection(address):
            return ServerConnection({"live": application}.get, self.registry, os.urandom, now())

        self.server = RtmpListener("127.0.0.1", 0, connection)
        self.server.start()
        self.place = "{}:{}/live".format(*self.server.address)

    def _judge(self, question):
        is_new = question.event is Event.CONNECT
        return Verdict(True, url=self.elsewhere if is_new else "")


@pytest.fixture
def homes():
    """Two servers."""
    found = [Home(), Home()]
    yield found
    for home in found:
        home.server.stop()


def test_who_is_known_is_let_in(homes):
    """Covers Field §"authmod=adobe"."""
    client = RtmpClient.connect(f"rtmp://ann:s3cret@{homes[0].place}")
    client.create_stream().publish("demo")
    client.close()
    with pytest.raises(RemoteError, match="Wrong user or password"):
        RtmpClient.connect(f"rtmp://ann:guess@{homes[0].place}")
    with pytest.raises(RemoteError, match="need auth"):
        RtmpClient.connect(f"rtmp://{homes[0].place}", properties={"flashVer": "FMLE/3.0"})


def test_who_is_sent_elsewhere_is_the_same_there(homes):
    """Covers Field §"Redirects": after the proof, and then it is asked for again."""
    homes[0].elsewhere = f"rtmp://{homes[1].place}"
    client = RtmpClient.connect(f"rtmp://ann:s3cret@{homes[0].place}")
    assert client.target.port == homes[1].server.address[1]
    client.create_stream().publish("demo")
    client.close()


def test_who_is_asked_to_move_is_the_same_there(homes):
    """Own design: E-RTMP v2 §"Reconnect Request" says nothing of users."""
    client = RtmpClient.connect(f"rtmp://ann:s3cret@{homes[0].place}")
    stream = client.create_stream()
    stream.publish("demo")
    publishing = Publisher(client, stream, "demo", RtmpClient.connect, timeout=2.0)
    assert len(homes[0].server.ask_to_reconnect(f"rtmp://{homes[1].place}")) == 1
    with patience(20):
        while publishing.client is client:
            publishing.write(9, 40, KEY)
            gevent.sleep(0.01)
    assert homes[1].registry.open("live", "demo").publishing
    publishing.close()

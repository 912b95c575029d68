"""A server of WHIP and WHEP in this process, for suites of conform, whose parts can be replaced."""

from contextlib import contextmanager
from types import SimpleNamespace

from gevent.pywsgi import WSGIServer
from support.gateway.whip_world import H264_HEADER

from rtmplite.live.streams import Registry
from siprtmp.edge.webrtc_side import WebRtcSide
from siprtmp.settings.table import MediaSettings
from siprtmp.web.ice_servers import IceServers, TurnAccess
from siprtmp.web.whip import WhipApplication

TOKEN = "secret"


def ignore(*_, **__):
    """Nobody reads the log."""


def admits(kind, app, name, query, host):
    """Let in who has the token."""
    return ignore if query == f"key={TOKEN}" else None


@contextmanager
def web_server(within=lambda application: application, registry=None):
    """The root of the server's URLs; `within(application)` is what is served in its place.

    The streams are those of `registry`, for tests that send something.
    """
    registry = registry or Registry()
    side = WebRtcSide(
        ("127.0.0.1", 0), None, MediaSettings(), registry,
        SimpleNamespace(event=ignore, warning=ignore),
    )  # fmt: skip
    live = registry.open("live", "obs")
    live.write(9, 0, H264_HEADER, 0.0)
    live.write(8, 0, b"\xaf\x00\x11\x90", 0.0)
    turn = TurnAccess("turn:127.0.0.1:3478", "gate", "north")
    servers = IceServers(["127.0.0.1:3478"], turn, lambda *_: True, float)
    application = within(WhipApplication(side.sessions, ["live"], admits, servers))
    server = WSGIServer(("127.0.0.1", 0), application, log=None)
    server.start()
    try:
        yield f"http://{TOKEN}@127.0.0.1:{server.server_port}"
    finally:
        server.stop()
        side.stop()

"""A tree in this process that is judged by `rtclab conform resource`, with two users and others."""

import time
from contextlib import contextmanager
from unittest.mock import patch

import jwt
from support.peers.process import free_port
from support.resources.sites import BASIC, Site

from p2psip.errors import RemoteError
from rtclab.conform.resource import SUITE, lifetime
from siprtmp.edge.web import tree_side
from siprtmp.web.resources import session

SECRET = "a secret of tokens that is long enough"
TOKEN = jwt.encode({"sub": "bob", "groups": ["friends"], "exp": time.time() + 86_400}, SECRET)
PROOFS = (BASIC, f"Bearer {TOKEN}")
POSTED_TO = ("127.0.0.1", free_port())
WHOLE = SUITE.with_users(PROOFS).with_webhook(POSTED_TO)


def proves(token):
    """The user and the groups of a token."""
    try:
        claims = jwt.decode(token, SECRET, algorithms=["HS256"])
    except jwt.PyJWTError:
        raise RemoteError("The token is not valid", 401) from None
    return claims["sub"], frozenset(claims["groups"])


@contextmanager
def conformed():
    """The target; a starved machine has more time to tell of an end, and is fast enough for 429."""
    with (
        patch.object(tree_side, "WRONG_SECONDS", 0.01),
        patch.object(lifetime, "GONE", 60.0),
        patch.object(session, "RATE", 20.0),
    ):
        site = Site(proves, told=("{}:{}".format(*POSTED_TO),))
        host, port = site.server.address
        try:
            yield f"http://{host}:{port}/tree"
        finally:
            site.stop()

"""A server of SIP by WebSocket, with TLS and without, that answers what it gets."""

import pytest
from support.certificates import certificate
from support.sockets import Echo

from p2psip.net.tls import TlsContexts, client_context, server_context


@pytest.fixture(scope="module")
def of_websockets(tmp_path_factory):
    """The certificate of `echo`."""
    return certificate(tmp_path_factory.mktemp("ws"))


@pytest.fixture
def echo(of_websockets):
    """The server."""
    contexts = TlsContexts(client_context(), server_context(of_websockets.file, of_websockets.key))
    echo = Echo(ws=True, tls=contexts)
    yield echo
    echo.driver.close()

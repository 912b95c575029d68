"""The servers of `--stun` and `--turn` for browsers, and the secret of the latter.

Own design: `p2psip.nat.long_term` tells how the secret of a TURN server makes passwords.  Without
it the server is named to nobody: the gateway's own password is no client's.
"""

import os
import time
from collections.abc import Sequence

from p2psip.errors import LocalError
from p2psip.net.media.relayed_ports import SECRET, turn_server
from rtmplite.net.addresses import written
from siprtmp.operation.arguments import ConfigError
from siprtmp.web.ice_servers import IceServers, Proves, TurnAccess


def ice_servers(stun: Sequence[tuple[str, int]], turn: str | None, proves: Proves) -> IceServers:
    """What answers name.  Raises ConfigError for a TURN server that is not written as one."""
    return IceServers([written(*each) for each in stun], _turn(turn), proves, time.time)


def _turn(uri: str | None) -> TurnAccess | None:
    secret = os.environ.get(SECRET, "")
    if uri is None or not secret:
        return None
    try:
        server = turn_server(uri)
    except LocalError as error:
        raise ConfigError(f"--turn {error}") from None
    place = written(server.host, server.port)
    return TurnAccess(f"turn:{place}?transport=udp", server.user, secret)

"""The servers of `--stun` and `--turn` for browsers, and the environment's passwords of the latter.

Own design: `p2psip.nat.long_term` tells how the secret of a TURN server makes passwords.
"""

import os
import time
from collections.abc import Sequence

from p2psip.errors import LocalError
from p2psip.net.media.relayed_ports import PASSWORD, SECRET, turn_server
from rtmplite.net.addresses import written
from siprtmp.operation.arguments import ConfigError
from siprtmp.web.ice_servers import IceServers, Proves, TurnAccess


def ice_servers(stun: Sequence[tuple[str, int]], turn: str | None, proves: Proves) -> IceServers:
    """What answers name.  Raises ConfigError for a TURN server that is not written as one."""
    return IceServers([written(*each) for each in stun], _turn(turn), proves, time.time)


def _turn(uri: str | None) -> TurnAccess | None:
    if uri is None:
        return None
    password, secret = os.environ.get(PASSWORD, ""), os.environ.get(SECRET, "")
    if not (password or secret):
        raise ConfigError(
            f"--turn: its password is missing in the environment, {PASSWORD} or {SECRET}"
        )
    try:
        server = turn_server(uri)
    except LocalError as error:
        raise ConfigError(f"--turn {error}") from None
    place = written(server.host, server.port)
    return TurnAccess(f"turn:{place}?transport=udp", server.user, password, secret)

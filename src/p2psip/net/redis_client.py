"""A client of Redis whose calls let all others of the loop go on (extra `redis`).

Own design: redis-py would sleep between tries, and connect by blocking sockets.  Here it tries
once, by sockets of gevent, and its caller decides when to try again.
"""

from typing import Final

from gevent import socket
from redis import Redis
from redis.backoff import NoBackoff
from redis.connection import Connection, ConnectionPool
from redis.retry import Retry

from p2psip.errors import LocalError

PATIENCE: Final = 2.0  # s for an answer of Redis, and between questions whether it is still there
RETRY_SECONDS: Final = 1.0  # until the next try


def redis_client(url: str) -> Redis:
    """A client of the Redis at `url`, such as "redis://192.0.2.7:6379/0"; LocalError for another.

    It connects when it is used first.
    """
    try:
        if not url.startswith("redis://"):
            raise ValueError("neither TLS nor a socket in the file system")
        pool = ConnectionPool.from_url(
            url,
            connection_class=_Connection,
            protocol=2,  # whose answers look the same in all versions of redis-py
            socket_timeout=PATIENCE,
            retry=Retry(NoBackoff(), 0),  # it would sleep, and nobody be served meanwhile
        )
    except ValueError as error:
        raise LocalError("no URL such as redis://192.0.2.7:6379/0") from error
    return Redis(connection_pool=pool)


class _Connection(Connection):
    """A connection of redis-py by sockets of gevent."""

    def _connect(self) -> socket.socket:
        return socket.create_connection((self.host, self.port), PATIENCE)

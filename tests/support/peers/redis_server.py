"""A Redis of its own for a test."""

from support.peers.process import Process, free_port, require, tcp_answers


class RedisServer(Process):
    """A Redis that keeps nothing on disk: when it is killed, it forgets all."""

    def __init__(self, folder, port=0):
        program = require("redis-server", "redis-server")
        self.port = port or free_port()
        options = {"port": self.port, "bind": "127.0.0.1", "save": "", "appendonly": "no"}
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        super().__init__(folder, [program, *words])

    def is_ready(self):
        return tcp_answers(self.port)

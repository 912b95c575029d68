"""A small web service of an operator, in a process of its own."""

import json
import sys

from support.peers.process import Process


class JsonService(Process):
    """A script that prints `ready PORT`, then a line of JSON for what it takes.

    `port` is that port, `said` what the lines hold.
    """

    def __init__(self, folder, script, *arguments):
        super().__init__(folder, [sys.executable, "-c", script, *arguments])
        self.port = ""

    def is_ready(self):
        lines = self.output.splitlines(keepends=True)
        if lines and lines[0].endswith("\n"):
            self.port = lines[0].split()[1]
        return self.port

    @property
    def said(self):
        lines = self.output.splitlines(keepends=True)[1:]
        return [json.loads(line) for line in lines if line.endswith("\n")]

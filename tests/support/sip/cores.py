"""A core for tests that has one recipient for all."""

from p2psip.stack.stack import Recipient


class TakesAll:
    """A core whose `on_request(server, request, now)` gets every request."""

    def recipient(self, request, flow, now):
        return Recipient(self.on_request)

"""gevent's handler of HTTP requests, that writes nothing about nonsense."""

import http.client
from typing import Any

from gevent.pywsgi import WSGIHandler


class Handler(WSGIHandler):
    """One HTTP connection."""

    def read_request(self, raw_requestline: str) -> Any:
        """Read the head; too many headers are as bad as others, and no reason for a trace."""
        try:
            return super().read_request(raw_requestline)
        except http.client.HTTPException as error:
            raise ValueError(str(error)) from None

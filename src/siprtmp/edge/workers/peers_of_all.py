"""Clients of RTMFP that look for each other, and have reached different workers.

Own design: the worker that is asked for a peer it does not have knows the asker, and vouches for
the applications that have accepted it.  The worker that has the peer decides, and answers the asker
itself: all workers send from one address.  What is asked may be lost, as datagrams are.
"""

from rtmplite.net.clock import now
from rtmplite.net.server.rtmfp_listener import Asked, RtmfpListener
from siprtmp.edge.workers.bus import Message
from siprtmp.edge.workers.team import Team


class PeersOfAll:
    """Introduces the clients of `listener` and of the other workers: RFC 7016 §3.5.1.6."""

    def __init__(self, team: Team, listener: RtmfpListener) -> None:
        self._team, self._listener = team, listener
        listener.on_asked_elsewhere = self._ask
        team.handlers["peer"] = self._asked

    def _ask(self, asked: Asked) -> None:
        message: Message = {"do": "peer", "epd": asked.epd.hex(), "tag": asked.tag.hex()}
        message |= {"source": asked.source, "apps": asked.apps}
        for worker in self._team.place.others:
            self._team.bus.offer(message, worker)

    def _asked(self, worker: int, message: Message) -> None:
        epd, tag = (bytes.fromhex(message[name]) for name in ("epd", "tag"))
        host, port = message["source"]
        self._listener.introduce(Asked(epd, tag, (host, port), message["apps"]), now())

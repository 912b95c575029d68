"""The whole gateway without a socket: RTMP clients, SIP phones, and one clock for all of them.

Everything inside is real: connections, chunks, stacks, transactions, dialogs, registrar, calls and
media.  Only what carries bytes from one to the other is made of memory.
"""

from pathlib import Path

from support.gateway.gateway_parts import Alarm, Wire
from support.gateway.gateway_parts import Log as Log
from support.rtmfp.link import Link, calm
from support.rtmp.rtmp_world import World
from support.sip.elements import PORT, Phone, random_source
from support.sip.homes import HOME, Home

from p2psip.errors import LocalError
from p2psip.server.port_shares import PortShares
from p2psip.sip.address import Address
from p2psip.sip.uri import Uri
from p2psip.stack.stack import Listener
from p2psip.ua.requests.extensions import Extensions
from p2psip.ua.requests.request_validation import CALL_METHODS
from rtmplite.auth.credentials import Users
from rtmplite.live.streams import Registry
from rtmplite.rtmp.application import LiveApplication
from rtmplite.rtmp.client import Reply
from siprtmp.calls.access.admission import Admission
from siprtmp.core.gateway_core import GatewayCore, Surroundings
from siprtmp.media.stream import StreamSettings
from siprtmp.media.transport import MediaAddress
from siprtmp.settings.table import Settings

DESK = "10.0.0.3"
BOB, CALLER = f"user@{DESK}", f"<sip:user@{DESK}>"
PCMU, PCMA = "0", "8"
ROOMS = ("team", "attic")
AUDIO = 8
USUAL = {  # without the limits that strangers have
    "sip": ((HOME, PORT),),
    "domain": ("home",),
    "room": ROOMS,
    "state": Path("state"),
    "max_user_calls": 0,
    "max_user_calls_per_hour": 0,
    "max_user_messages_per_hour": 0,
    "allow_targets": ("*",),
}


def sdp(*formats, at=DESK, port=5004, maps=(), more=()):
    """A description with one audio line of these formats."""
    kind = "IP6" if ":" in at else "IP4"
    lines = ["v=0", f"o=- 1 1 IN {kind} {at}", "s=-", f"c=IN {kind} {at}", "t=0 0"]
    lines += [f"m=audio {port} RTP/AVP {' '.join(formats)}"]
    lines += [f"a=rtpmap:{line}" for line in maps] + [f"a={line}" for line in more]
    return "".join(f"{line}\r\n" for line in lines).encode()


SPEEX = sdp("96", "101", maps=("96 speex/16000", "101 telephone-event/8000"))


class MemoryMedia:
    """The `MediaEdge` of a network in memory; `room` pairs of ports at a time."""

    media_host = HOME

    def __init__(self, gateway, room, media_timeout, transcode, pictures):
        self.gateway, self.link, self.room = gateway, gateway.link, room
        self.media_timeout, self.transcode = media_timeout, transcode
        self.video_transcoding, self.shares = pictures, PortShares(1000)
        self.ports, self.sessions = set(), []

    def host_for(self, peers):
        return self.media_host

    def open(self, session, lost, peers, now, share=None):
        settings = StreamSettings(
            self.gateway.random,
            cname="cname",
            media_timeout=self.media_timeout,
            transcoding=self.transcode,
            video_transcoding=self.video_transcoding,
        )
        session.open(MemoryTransports(self), settings, now)
        self.sessions.append(session)

    def waker(self, machine):
        return Alarm(self.gateway, machine)


class MemoryTransports:
    """The wires of one session."""

    def __init__(self, media):
        self._media, self.waker = media, media.waker

    def open(self):
        media = self._media
        if len(media.ports) >= media.room:
            raise LocalError("no ports")
        wire = Wire(media, max(media.ports, default=4000) + 2)
        return wire, MediaAddress(media.media_host, wire.rtp_port, wire.rtp_port + 1)

    def release(self, transport):
        pass


class Gateway(Home):
    """The gateway of the domain "home" on a network in memory; `settings` are an operator's."""

    def __init__(
        self,
        link,
        *,
        users=None,
        room=100,
        registry=None,
        transcode=False,
        pictures=None,
        **settings,
    ):
        self.link, self.log, self.random = link, Log(), random_source("home")
        chosen = Settings.of(**USUAL | {"users": users and Path("users")} | settings)
        timeout = chosen.calls.media_timeout
        self.edge = MemoryMedia(self, room, timeout, transcode, pictures)
        hashes = {} if users is None else users._hashes  # by user, realm and algorithm
        credentials = Users((*key[:2], ha1) for key, ha1 in hashes.items()) if hashes else None
        self.admission = Admission(True, users, credentials)
        surroundings = Surroundings(
            listeners=[Listener("UDP", HOME, PORT), Listener("TCP", HOME, PORT)],
            media=self.edge,
            random=self.random,
            clock=lambda: link.now,
            trusting=True,
        )
        registry = Registry() if registry is None else registry
        self.core = core = GatewayCore(
            chosen.for_sip, surroundings, self.admission, registry, self.log, users
        )
        self.serve(core.server, link)
        self.machines.append(core.registrations)
        self.context, self.tolls, self.rights = core.context, core.tolls, core.rights
        self.sip, self.call, self.rooms = core.lines, core.names, core.rooms
        self.mixes, self.contact = core.mixes, core.contact
        self.applications = {**core.applications, "live": LiveApplication()}

    def admit(self, everybody):
        """Let anybody place calls, or only who proves a user."""
        self.admission._allow_all = everybody

    @property
    def ports(self):
        return self.edge.ports

    @property
    def audios(self):
        """The streams of audio, and the wire of each."""
        return {each._audio: each._audio.transport for each in self.edge.sessions if each.is_open}

    @property
    def videos(self):
        """The other streams, and the wire of each."""
        streams = [stream for each in self.edge.sessions for stream in each._streams]
        return {each: each.transport for each in streams if each not in self.audios}

    @property
    def leftovers(self):
        """Every collection that must be empty after all calls, but for entries held by timers."""
        return {
            "calls": len(self.context.calls),
            "streams": len(self.audios) + len(self.videos),
            "ports": len(self.ports),
            "alarms": sum(isinstance(each, Alarm) for each in self.machines),
            "lines": len(self.sip) + len(self.sip._by_token),
            "names": len(self.call),
            "room members": len(self.rooms),
            "mixes": len(self.mixes),
            "registrations": len(self.core.registrations),
            "agent calls": self.agent.calls,
            "dialogs": self.agent.dialogs,
        }

    @property
    def media(self):
        """The wire of the only call."""
        [wire] = self.audios.values()
        return wire

    @property
    def audio(self):
        """The stream of audio of the only call."""
        [audio] = self.audios
        return audio


class Desk(Phone):
    """A phone at DESK; `answers` is the SDP, or the status, that it answers with."""

    def __init__(self, link, address=DESK, answers=None, **options):
        self.answers = sdp(PCMU, at=address) if answers is None else answers
        super().__init__(link, address, self._answer, **options)
        self.agent.core.extensions = Extensions(
            methods=(*CALL_METHODS, "MESSAGE", "REFER", "NOTIFY")
        )

    def _answer(self, call, now):
        if isinstance(self.answers, int):
            call.reject(self.answers, "Busy Here" if self.answers == 486 else "No", now)
        elif self.answers:
            call.accept(self.answers, now)
        else:
            call.ring(now)

    def ring(self, user, now, offer=None, host=HOME):
        """Call a user of the gateway."""
        to, me = Address(Uri("sip", user, None, host)), Address(Uri("sip", "user", None, DESK))
        offer = sdp(PCMU) if offer is None else offer
        call = self.agent.invite(to, me, self.contact, offer, self, now)
        self.calls.append(call)
        return call


class GatewayWorld(World):
    """A gateway, its network, and RTMP clients."""

    def __init__(self, *, weather=None, **options):
        self.link = Link(weather or calm())
        registry = Registry(keeps_groups=False)
        self.gateway = Gateway(self.link, registry=registry, **options)
        self.resumed = []
        super().__init__(self.gateway.sip, registry=registry)

    @property
    def now(self):
        return self.link.now

    @now.setter
    def now(self, at):
        self.link.now = max(self.link.now, at)

    def application_for(self, name):
        return self.gateway.applications.get(name)

    def server(self):
        connection = super().server()
        connection.transport.on_reading = self._on_reading
        return connection

    def _on_reading(self, transport):
        if transport.reading:
            self.resumed.append(transport.user)

    def run(self):
        """Carry RTMP bytes, and SIP messages inside the gateway, until there are none."""
        moved = True
        while moved:
            moved = any([peer.carry() for peer in self.peers]) or bool(self.resumed)
            while self.resumed:
                self.resumed.pop().transport.receive(b"", self.now)
            self.link.flush()

    def wait(self, seconds=0.1):
        """Let time pass for everybody."""
        end = self.now + seconds
        self.run()
        while True:
            ends = [end_ for peer in self.peers for end_ in (peer.client, peer.server)]
            due = [each.deadline for each in (self.link, *ends) if each.deadline is not None]
            if min(due, default=end + 1) > end:
                break
            self.now = min(due)
            if self.link.deadline is not None and self.link.deadline <= self.now:
                self.link.step()
            for each in ends:
                if each.deadline is not None and each.deadline <= self.now:
                    each.tick(self.now)
            self.run()
        self.now = end

    def drop(self, peer):
        """A client dies without a word."""
        self.peers.remove(peer)
        peer.server.transport.connection_lost(self.now)
        self.run()

    def is_clean(self):
        """Close everything, let the last timer go; is all forgotten?"""
        for peer in list(self.peers):
            self.drop(peer)
        self.wait(120.0)
        left = {name: count for name, count in self.gateway.leftovers.items() if count}
        assert left == {}
        return not self.gateway.stack.transactions

    def rich(self, identity, *args, **options):
        """A rich client, as far as it got."""
        peer = self.client(f"rtmp://host/sip/{identity}", args=args, **options)
        return Rich(self, peer)

    def tool(self, app="call"):
        """A stock tool at the application `call`, or another."""
        return self.client(f"rtmp://host/{app}")


class Rich:
    """A rich client, and the calls of its methods by the server."""

    def __init__(self, world, peer):
        self.world, self.peer, self._read = world, peer, 0

    @property
    def connected(self):
        """Whether connect succeeded; None while it is not answered."""
        for event in self.peer.events:
            if isinstance(event, Reply) and event.transaction_id == 1:
                return event.succeeded
        return None

    @property
    def refusal(self):
        """The information object of a refused connect."""
        replies = [event for event in self.peer.events if isinstance(event, Reply)]
        return replies[0].values[-1]

    @property
    def closed(self):
        return self.peer.server.closed

    def call(self, name, *args):
        """One command; it has an empty result at once."""
        assert self.peer.call(name, *args) == (None,)

    def heard(self):
        """The calls since the last time."""
        calls = self.peer.calls()
        new, self._read = calls[self._read :], len(calls)
        return new

    def failures(self):
        """What the client was told of commands that failed after their empty result."""
        return [text for code, text in self.peer.statuses() if code == "NetConnection.Call.Failed"]

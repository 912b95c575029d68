"""The whole gateway without a socket: RTMP clients, SIP phones, and one clock for all of them.

Everything inside is real: connections, chunks, stacks, transactions, dialogs, registrar, calls and
media.  Only what carries bytes from one to the other is made of memory.
"""

from support.gateway.gateway_parts import Alarm, Wire
from support.gateway.gateway_parts import Log as Log
from support.rtmfp.link import Link, calm
from support.rtmp.rtmp_world import World
from support.sip.elements import Phone
from support.sip.homes import HOME, Home

from p2psip.errors import LocalError
from p2psip.server.call_allowance import Allowance
from p2psip.sip.address import Address
from p2psip.sip.uri import Uri
from p2psip.ua.registering.registration import Registration
from p2psip.ua.registering.registrations import Registrations
from p2psip.ua.requests.extensions import Extensions
from p2psip.ua.requests.request_validation import CALL_METHODS
from rtmplite.auth.credentials import Users
from rtmplite.live.streams import Registry
from rtmplite.rtmp.application import LiveApplication
from rtmplite.rtmp.client import Reply
from siprtmp.calls.access.admission import Admission
from siprtmp.calls.access.name_rights import NameRights
from siprtmp.calls.call import CallContext
from siprtmp.calls.call_app import CallApplication
from siprtmp.calls.conference.room_app import RoomApplication
from siprtmp.calls.home import EXTENSIONS
from siprtmp.calls.mixed.mixed_call import MixedApplication, MixedCalls
from siprtmp.calls.rich.sip_app import LINE_PARAM, SipApplication
from siprtmp.calls.toll_guard import Tolls
from siprtmp.media.stream import StreamSettings
from siprtmp.media.transport import MediaAddress

DESK = "10.0.0.3"
BOB, CALLER = f"user@{DESK}", f"<sip:user@{DESK}>"
PCMU, PCMA = "0", "8"
ROOMS = ("team", "attic")
AUDIO = 8


def sdp(*formats, at=DESK, port=5004, maps=(), more=()):
    """A description with one audio line of these formats."""
    kind = "IP6" if ":" in at else "IP4"
    lines = ["v=0", f"o=- 1 1 IN {kind} {at}", "s=-", f"c=IN {kind} {at}", "t=0 0"]
    lines += [f"m=audio {port} RTP/AVP {' '.join(formats)}"]
    lines += [f"a=rtpmap:{line}" for line in maps] + [f"a={line}" for line in more]
    return "".join(f"{line}\r\n" for line in lines).encode()


SPEEX = sdp("96", "101", maps=("96 speex/16000", "101 telephone-event/8000"))


class MemoryTransports:
    """The wires of one session."""

    def __init__(self, gateway):
        self._gateway = gateway

    def open(self):
        gateway = self._gateway
        if len(gateway.ports) >= gateway.room:
            raise LocalError("no ports")
        wire = Wire(gateway, max(gateway.ports, default=4000) + 2)
        return wire, MediaAddress(gateway.media_host, wire.rtp_port, wire.rtp_port + 1)

    def release(self, transport):
        pass

    def waker(self, machine):
        return Alarm(self._gateway, machine)


class Gateway(Home):
    """The domain "home" with the applications `sip` and `call`; `room` pairs of media ports."""

    def __init__(
        self,
        link,
        *,
        users=None,
        room=100,
        media_timeout=60.0,
        keep_first=False,
        allowance=None,
        registry=None,
        transcode=None,
        mix=False,
        pictures=None,
    ):
        super().__init__(link, users=users, route=self._route)
        self.agent.core.extensions = EXTENSIONS
        self.link, self.users, self.room = link, users, room
        self.media_host, self.media_timeout, self.transcode = HOME, media_timeout, transcode
        self.log, self.ports, self.allowed = Log(), set(), True
        self.video_transcoding = pictures
        self.sessions = []
        self.registrations = Registrations()
        self.machines.append(self.registrations)
        self.tolls = Tolls(Allowance() if allowance is None else allowance, self.domains)
        self.context = CallContext(self.agent, self, self.random, self.log, self.tolls)
        hashes = {} if users is None else users._hashes  # by user, realm and algorithm
        credentials = Users((*key[:2], ha1) for key, ha1 in hashes.items()) if hashes else None
        self.admission = Admission(True, users, credentials)
        self.rights = NameRights(self.admission, self.domains, self._is_bound, rooms=ROOMS)
        self.sip = SipApplication(self, keep_first=keep_first)
        self.call = CallApplication(self)
        self.rooms = RoomApplication(self, ROOMS, registry)
        self.mixes = MixedCalls(self, Registry() if registry is None else registry)
        if mix:
            self.context.on_up = self.mixes.follow
        self.context.on_end = lambda call, reason, now: self.mixes.stop(call, now)
        self.applications = {
            "sip": self.sip, "call": self.call, "room": self.rooms, "live": LiveApplication(),
            "mixed": MixedApplication(self),
        }  # fmt: skip
        self.caller = Address(Uri("sip", "call", None, "home"))

    def tick(self, now):
        for machine in list(self.machines):
            if machine.deadline is not None and machine.deadline <= now:
                machine.tick(now)
        self.now = now

    def _route(self, request):
        return self.sip.find(request) or self.rooms.find(request) or self.call.find(request)

    # MediaEdge
    def host_for(self, peers):
        return self.media_host

    def open(self, session, lost, peers, now, share=None):
        settings = StreamSettings(
            self.random,
            cname="cname",
            media_timeout=self.media_timeout,
            transcoding=self.transcode,
            video_transcoding=self.video_transcoding,
        )
        session.open(MemoryTransports(self), settings, now)
        self.sessions.append(session)

    @property
    def audios(self):
        """The streams of audio, and the wire of each."""
        return {each._audio: each._audio.transport for each in self.sessions if each.is_open}

    @property
    def videos(self):
        """The other streams, and the wire of each."""
        streams = [stream for each in self.sessions for stream in each._streams]
        return {each: each.transport for each in streams if each not in self.audios}

    def phone_hosts(self, user, now):
        return {binding.flow.remote[0] for binding in self.registrar.bindings(user, now)}

    def waker(self, machine):
        return Alarm(self, machine)

    def _is_bound(self, uri):
        bound = self.registrar.bindings(uri, self.now)
        return any(not self.stack.is_ours(binding.contact.uri) for binding in bound)

    # SipHome and CallHome
    def contact(self, user, line):
        return self.stack.contact(user or None).with_params(**{LINE_PARAM: line})

    def register(self, aor, contact, credentials, owner, host):
        registration = Registration(
            self.stack,
            aor,
            contact,
            aor.uri.replace(user=None),
            owner,
            self.random,
            login=credentials,
        )
        self.registrations.add(registration)
        return registration

    def unregister(self, registration, now):
        registration.close(now)
        self.registrations.discard(registration)

    def canonical(self, uri):
        aor = self.domains.address_of_record(uri)
        return (uri.user or "", uri.host.lower(), uri.port) if aor is None else (*aor, None)

    def is_local_domain(self, uri):
        return self.domains.of(uri) is not None

    def may_use(self, connection, query):
        return self.allowed

    def is_proven(self, server, now):
        return False

    def payer(self, client, identity, query):
        return str(identity) if identity is not None else client.host

    def holder_of(self, name):
        return self.call.holder_of(name) or self.sip.holder_of(name)

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
            "registrations": len(self.registrations),
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

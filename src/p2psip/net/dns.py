"""A small stub resolver: it asks the configured name servers, and caches their answers.

Own design, for RFC 3263 §4: it blocks the greenlet that asks, and no other.

Each question goes out on a socket of its own, with a random port and a random id, so that a forged
answer has to guess both.  There is no search list: a SIP domain is complete as written.
"""

import logging
import os
import socket as constants
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

import dns.exception
import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import gevent
from dns.message import QueryMessage as Reply
from dns.name import Name
from dns.rdata import Rdata
from dns.rdtypes.IN.A import A
from dns.rdtypes.IN.AAAA import AAAA
from dns.rdtypes.IN.NAPTR import NAPTR
from dns.rdtypes.IN.SRV import SRV
from gevent import socket
from gevent.lock import BoundedSemaphore

from p2psip.stack.locate import Answer, Hop, Locator, Naptr, Question, Record, Srv, is_numeric

DNS_PORT: Final = 53
CACHED: Final = 1024  # answers; the oldest goes first
LONGEST_TTL: Final = 3600.0  # s, for records with an absurd TTL
UNANSWERED_TTL: Final = 5.0  # s without questions to silent servers: a call asks 5 times
AT_ONCE: Final = 64  # questions under way; more wait, since each has a socket
RECORDS: Final = 64  # kept of one answer
FORGERIES: Final = 50  # datagrams that do not fit the question, until we give up on UDP
DATAGRAM_OCTETS: Final = 4096

log: Final = logging.getLogger(__name__)

Server = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Config:
    """The name servers, as /etc/resolv.conf has them; `hosts` maps names to addresses."""

    servers: tuple[Server, ...] = (("127.0.0.1", DNS_PORT),)
    timeout: float = 2.0  # s for one try
    attempts: int = 2  # with every server
    hosts: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def read(cls, resolv_conf: str = "/etc/resolv.conf", hosts: str = "/etc/hosts") -> Self:
        """Read the system's files; one that is absent or unreadable counts as empty."""
        servers: list[Server] = []
        options: dict[str, float] = {}
        for word, *rest in _fields(resolv_conf):
            if word == "nameserver" and rest and is_numeric(rest[0]):
                servers.append((rest[0], DNS_PORT))
            elif word == "options":
                pairs = (option.partition(":") for option in rest)
                options |= {name: float(text) for name, _, text in pairs if text.isdecimal()}
        names: dict[str, tuple[str, ...]] = {}
        for address, *aliases in _fields(hosts):
            if is_numeric(address):
                for alias in aliases:
                    names[alias.lower()] = (*names.get(alias.lower(), ()), address)
        return cls(
            tuple(servers[:3]) or cls().servers,
            min(max(options.get("timeout", cls().timeout), 0.1), 10.0),
            min(max(int(options.get("attempts", cls().attempts)), 1), 5),
            names,
        )


class NoAnswerError(Exception):
    """No server gave a usable answer."""


class Resolver:
    """Answers `Question`s from memory, the hosts file or a server, equal ones at once."""

    def __init__(
        self, config: Config | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._config = config or Config.read()
        self._clock = clock
        self._cache: dict[Question, tuple[float, Answer]] = {}
        self._pending: dict[Question, gevent.Greenlet[[Question], Answer]] = {}
        self._room = BoundedSemaphore(AT_ONCE)

    def locate(self, locator: Locator) -> tuple[Hop, ...]:
        """Answer the questions of a search until it ends; returns its hops: RFC 3263 §4."""
        while locator.questions:
            if len(locator.questions) == 1:
                locator.answer([self.resolve(locator.questions[0])])
                continue
            jobs = [gevent.spawn(self.resolve, question) for question in locator.questions]
            locator.answer([job.get() for job in jobs])
        return locator.hops or ()

    def resolve(self, question: Question) -> Answer:
        """The records for one question, maybe none; never raises."""
        question = Question(question.name.lower().rstrip("."), question.type)
        local = self._locally(question)
        if local is not None:
            return local
        expires, answer = self._cache.get(question, (0.0, ()))
        if self._clock() < expires:
            return answer
        if question not in self._pending:  # in another greenlet: the one that asks may be killed
            self._pending[question] = gevent.spawn(self._remember, question)
        return self._pending[question].get()

    def _locally(self, question: Question) -> Answer | None:
        """The answer for a name of the hosts file or an address, which have no SRV records."""
        name = question.name
        while name.startswith("_"):
            name = name.partition(".")[2]
        if name == "localhost" or name.endswith(".localhost"):
            addresses = self._config.hosts.get("localhost", ("127.0.0.1", "::1"))
        elif name in self._config.hosts:
            addresses = self._config.hosts[name]
        elif is_numeric(name):
            addresses = (name,)
        else:
            return None
        if name != question.name:
            return ()
        colon = {"A": False, "AAAA": True}.get(question.type)
        return tuple(address for address in addresses if (":" in address) is colon)

    def _remember(self, question: Question) -> Answer:
        """Ask, and cache the answer for its time to live."""
        try:
            with self._room:
                answer, ttl = self._ask(question)
        except NoAnswerError as error:
            log.info("dns no-answer question=%r why=%s", str(question), error)
            answer, ttl = (), UNANSWERED_TTL
        finally:
            del self._pending[question]
        self._cache.pop(question, None)
        while len(self._cache) >= CACHED:
            del self._cache[next(iter(self._cache))]
        self._cache[question] = (self._clock() + min(ttl, LONGEST_TTL), answer)
        return answer

    def _ask(self, question: Question) -> tuple[Answer, float]:
        """Ask every server in turn, as often as configured; returns records and their TTL."""
        query, why = _query(question), "no server"
        for _ in range(self._config.attempts):
            for server in self._config.servers:
                try:
                    return _records(self._exchange(query, server))
                except NoAnswerError as error:
                    why = str(error)
                except OSError as error:  # unreachable, refused, timed out
                    why = f"{server[0]}: {error or type(error).__name__}"
        raise NoAnswerError(why)

    def _exchange(self, query: dns.message.Message, server: Server) -> Reply:
        """Ask one server once, by UDP, and by TCP if the answer was too long for UDP."""
        query.id = int.from_bytes(os.urandom(2), "big")
        with gevent.Timeout(self._config.timeout, NoAnswerError(f"{server[0]}: timed out")):
            response = _by_udp(query, server)
            if response is None or response.flags & dns.flags.TC:
                response = _by_tcp(query, server)
        if response is None:
            raise NoAnswerError(f"{server[0]}: nonsense")
        return response


def _by_udp(query: dns.message.Message, server: Server) -> Reply | None:
    family = constants.AF_INET6 if ":" in server[0] else constants.AF_INET
    with socket.socket(family, constants.SOCK_DGRAM) as udp:
        udp.connect(server)  # the kernel drops what others send
        udp.send(query.to_wire())
        for _ in range(FORGERIES):
            response = _response(query, udp.recv(DATAGRAM_OCTETS))
            if response:
                return response
    return None


def _by_tcp(query: dns.message.Message, server: Server) -> Reply | None:
    wire = query.to_wire()
    with socket.create_connection(server) as tcp:
        tcp.sendall(struct.pack("!H", len(wire)) + wire)
        (length,) = struct.unpack("!H", _read(tcp, 2))
        return _response(query, _read(tcp, length))


def _query(question: Question) -> dns.message.Message:
    try:
        kind = dns.rdatatype.from_text(question.type)
        return dns.message.make_query(question.name, kind)
    except (dns.exception.DNSException, ValueError) as error:  # a label of 64 letters, say
        raise NoAnswerError(f"no name to ask for: {error}") from None


def _response(query: dns.message.Message, data: bytes) -> Reply | None:
    """The response in a datagram; None if it is not ours, and the true one may still come."""
    try:
        response = dns.message.from_wire(data, ignore_trailing=True)
    except (dns.exception.DNSException, ValueError, struct.error):
        return None
    if isinstance(response, Reply) and query.is_response(response):
        return response
    return None


def _records(response: Reply) -> tuple[Answer, float]:
    """The records of a response, through its aliases, and their time to live in s.

    Departs from RFC 2782 §"Notes:" [reads-them-all]: no more than `RECORDS`, or the zone of a
    stranger could keep us busy; four times as many as are ever tried.
    """
    if response.rcode() not in (dns.rcode.NOERROR, dns.rcode.NXDOMAIN):
        raise NoAnswerError(dns.rcode.to_text(response.rcode()))
    try:
        chain = response.resolve_chaining()
    except dns.exception.DNSException as error:
        raise NoAnswerError(f"aliases lead nowhere: {error}") from None
    found = (_record(rdata) for rdata in list(chain.answer or ())[:RECORDS])
    return tuple(record for record in found if record is not None), float(chain.minimum_ttl)


def _record(rdata: Rdata) -> Record | None:
    """A record in the locator's form; None for a type that the locator does not use."""
    match rdata:
        case A() | AAAA():
            return str(rdata.address)
        case SRV():
            return Srv(rdata.priority, rdata.weight, rdata.port, _text(rdata.target))
        case NAPTR():
            flags, service, regexp = (
                text.decode("latin-1") for text in (rdata.flags, rdata.service, rdata.regexp)
            )
            replacement = _text(rdata.replacement)
            return Naptr(rdata.order, rdata.preference, flags, service, regexp, replacement)
    return None


def _text(name: Name) -> str:
    """A name without its final dot; the root is ""."""
    return name.to_text(omit_final_dot=True).rstrip(".").lower()


def _read(stream: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = stream.recv(size - len(data))
        if not more:
            raise NoAnswerError("connection closed")
        data += more
    return data


def _fields(path: str) -> Sequence[list[str]]:
    """The words of each line of a configuration file, without comments."""
    try:
        text = Path(path).read_text("utf-8", "replace")
    except OSError:
        return ()
    lines = (line.partition("#")[0].partition(";")[0].split() for line in text.splitlines())
    return [words for words in lines if words]

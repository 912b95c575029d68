"""A SIP phone for scripts: its methods wait, and other greenlets run meanwhile.

Implements RFC 3261 §8, §10.2 and §13 from the user's side, RFC 3428 §4, RFC 6665 §4.1 and
RFC 3515 §2.4.  `Agent.on_call` has a greenlet of its own and may wait; `Call.on_audio` is called in
gevent's hub and must not.

    with Agent(Account("bob", "example.com", password="secret")) as agent:
        agent.register()
        call = agent.call("alice@example.com")
        call.on_audio = lambda payload, timestamp: print(len(payload))
        call.send_audio(bytes(160))
        call.hangup()
"""

import logging
import os
from collections.abc import Callable, Sequence
from functools import partial
from signal import SIGINT, SIGTERM
from typing import Final, Self

import gevent
from gevent.event import AsyncResult, Event

from p2psip.errors import LocalError, RemoteError
from p2psip.net.clock import monotonic
from p2psip.net.driver import SipDriver, SipPorts
from p2psip.net.locator import ServerLocator, destination, proxies, server_uri
from p2psip.net.media.dtls_flow import DtlsSettings
from p2psip.net.media.port_pool import NoPortsError, PortPool
from p2psip.net.phone.audio import AudioHandler, AudioStream, EventHandler
from p2psip.net.phone.audio_codecs import audio_codec
from p2psip.net.phone.call import Call, followed
from p2psip.net.phone.phone_address import PhoneAddress
from p2psip.net.phone.phone_core import PhoneCore, user_agent_of
from p2psip.net.phone.phone_registration import PhoneContacts, PhoneRegistration
from p2psip.net.phone.ping import Ping
from p2psip.net.phone.serving import DIALOG, SUMMARY, Serving, dialog_states
from p2psip.net.phone.settings import Account, CallSettings, NetworkSettings
from p2psip.net.phone.watch import BODIES, Watch
from p2psip.net.waiting import FinalAnswer, result_of, wait_until
from p2psip.net.websocket import AVAILABLE
from p2psip.sdp.line import is_unspecified
from p2psip.sip.address import Address
from p2psip.sip.message import Request, Response
from p2psip.sip.uri import Uri
from p2psip.stack.stack import ServerHandle, Stack
from p2psip.transaction.flow import HostPort
from p2psip.ua.call import CallHandler
from p2psip.ua.event_bodies import MessageSummary
from p2psip.ua.messages import TEXT, InstantMessage, Messages
from p2psip.ua.outside import outside_request
from p2psip.ua.requests.authenticated_request import AuthenticatedRequest
from p2psip.ua.requests.digest_client import Login
from p2psip.ua.requests.identity import ANONYMOUS, PRIVACY, asserted_identity, sender
from p2psip.ua.requests.request_validation import SDP
from p2psip.ua.subscriptions import EventName
from p2psip.ua.transfers import Referral, status_of
from p2psip.ua.ua import IncomingCall
from p2psip.ua.ua import UserAgentCall as Signalling

__all__ = ["Account", "Agent", "Call", "CallSettings", "NetworkSettings"]

log: Final = logging.getLogger(__name__)


class Agent:
    """One user at one address: §8.

    `account` says whose phone it is, `network` where it is reached, and `calls` what it offers.

    `on_call(call)` is given every call that comes in, ringing already, in a greenlet of its own;
    unless it is set, calls are answered with 480.  `on_message(message)` is given every instant
    message, in the hub, and must not wait; unless it is set, messages are refused with 405.
    `on_replace(call, sender)`, in the hub, tells whether the sender of an INVITE may take the place
    of the call's other side, as in an attended transfer (RFC 3891 §3); nobody may unless it is set.
    `on_refer(target, sender)`, in the hub, tells whether to call somebody because a stranger to our
    calls asks for it (RFC 3515 §2.4.2).  `on_referred(call)` is given that call once it is up; such
    requests are declined unless it is set.  A sender is the one that a proxy of `trusted` asserts,
    else the one of the From header, without a proof.  `trusted` are addresses of proxies that
    assert who calls (RFC 3325 §8): see `Call.asserted`.  `serving` tells others of our calls and
    waiting messages: to those whom `serving.may_watch` allows it.  `contact` reaches the agent at
    its `address`; `aor` is its address-of-record.  Raises LocalError, and OSError as `bind` does.
    """

    trusted: frozenset[str] = frozenset()

    def __init__(
        self,
        account: Account = Account(),
        network: NetworkSettings = NetworkSettings(),
        calls: CallSettings = CallSettings(),
    ) -> None:
        self.on_refer: Callable[[Address, Address], bool] = lambda target, sender: False
        self.on_referred: Callable[[Call], object] = lambda call: call.hangup()
        self._pings: list[Ping] = []
        self.on_call: Callable[[Call], object] = _unavailable
        self.on_message: Callable[[InstantMessage], object] = _unwanted
        self.on_replace: Callable[[Call, Address], bool] = lambda call, sender: False
        self.calls: list[Call] = []
        self._closing = Event()
        servers = proxies(account.registrar)
        home = None if account.domain is None else server_uri(account.domain)
        listens = [each for each in (network.listen, network.also) if each is not None]
        ports = _ports(listens, network)
        self.address: HostPort = ports.address
        self._stream = _audio_streams(calls, network)
        self._address = PhoneAddress(
            ports.address[0],
            PortPool(*network.rtp_ports),
            None if network.also is None else network.also[0],
            ice=network.ice,
            ice_tcp=network.ice_tcp,
        )
        self._stack = _stack(ports, calls.user_agent, self._address)
        locator = ServerLocator(transports=ports.transports)
        self._contacts = PhoneContacts(
            self._stack,
            account.user,
            "WS" if network.websocket else None if network.tls is None else "TLS",
            None if network.also is None else locator,
        )
        self.contact = self._contacts.of_peer()
        self._home = home or self.contact.replace(user=None)
        self.aor = Address(self._home.replace(user=account.user), account.display)
        self._ua = user_agent_of(self._stack, calls.answer_timeout, calls.info_packages)
        self._ua.may_replace = self._may_replace
        self._messages = Messages(self._ua.core)
        self.serving = Serving(self._ua, self.contact, lambda: dialog_states(self.calls))
        self._stack.core = self._core(account.user)
        self._driver = SipDriver(self._stack, ports, locate=locator.flows, tls=network.tls)
        self._driver.machines.append(self._ua)
        self._registration = PhoneRegistration(
            self._driver,
            self.aor,
            self._home,
            servers,
            _login(account, (*servers, home)[0]),
            self._contacts,
            uses_gruus=account.uses_gruus,
        )
        self.serving.reached_at = self._registration.contact_for
        self.serving.sender_of = self._sender_of
        self._address.begin(self._driver, network.stun, network.turn, self._moved)

    def _core(self, user: str) -> PhoneCore:
        return PhoneCore(
            self._ua,
            user,
            self._incoming,
            lambda message: self.on_message(message),
            self.serving.on_subscribe,
            self._referred,
            self._sender_of,
        )

    @property
    def user(self) -> str:
        """The user part of our address-of-record: §10."""
        return self.aor.uri.user or ""

    # -- registering --------------------------------------------------------------------

    @property
    def registered(self) -> bool:
        return self._registration.is_in_force

    def register(self, timeout: float = 10.0, expires: int = 3600) -> int:
        """Register until `unregister` or `close`; returns the seconds granted: §10.2.

        The registration is refreshed automatically.  Raises RemoteError with the SIP status if it
        is refused, TimeoutError if it is not answered.
        """
        return self._registration.register(timeout, expires)

    def unregister(self, timeout: float = 5.0) -> bool:
        """Remove the registration: §10.2.2.  False if the registrar has not confirmed in time."""
        return self._registration.unregister(timeout)

    # -- calling ------------------------------------------------------------------------

    def call(
        self,
        uri: str,
        timeout: float = 60.0,
        *,
        on_audio: AudioHandler | None = None,
        on_ringing: Callable[[int, str], object] | None = None,
        private: bool = False,
    ) -> Call:
        """Call "bob", "bob@example.com" or a SIP URI, and wait for the answer: §13.2.

        A `private` call shows no name of ours, and asks the network to tell none (RFC 3325 §9.3).
        Raises RemoteError with the SIP status if that is a refusal, TimeoutError if nobody
        answers within `timeout` seconds (the call is then given up), LocalError for a `uri`
        that cannot be called.
        """
        to = destination(uri, self._home)
        call = self._new_call(self._registration.next_host(to.uri))
        call.on_audio = on_audio or call.on_audio
        call.on_ringing = on_ringing or call.on_ringing
        # RFC 3323 §4.2 [asks-the-network]
        call.dial(self._inviter(to, [PRIVACY] if private else ()))
        try:
            call.wait_answered(timeout)
        except BaseException:
            call.hangup()
            raise
        return call

    # -- outside of calls: §8.1 -----------------------------------------------------------

    @property
    def gruu(self) -> Uri | None:
        """The registrar's public URI that leads here from anywhere, None without: RFC 5627 §4.2."""
        return self._registration.gruu()

    def options(self, uri: str, timeout: float = 10.0) -> Response:
        """Ask a user or server for its capabilities, and return the answer: §11.1.

        Raises RemoteError with the SIP status if that is not a 2xx, TimeoutError, LocalError.
        """
        to = destination(uri, self._home)
        contact = self._registration.contact_to(to.uri)
        # §11.1 [options-with-contact] [options-say-accept]
        headers = [("Contact", Address(contact)), ("Accept", SDP)]
        request = self._request("OPTIONS", to, headers)
        question = FinalAnswer()
        exchange = AuthenticatedRequest(
            self._ua.stack,
            question,
            iter(range(2, 100)).__next__,
            self._registration.digest_client,
            max_redirects=self._ua.core.max_redirects,
        )
        self._driver.run(exchange.send, request, monotonic())
        return result_of(question.answer, timeout, f"{to.uri.host} does not answer")

    def ping(
        self,
        uri: str,
        on_alive: Callable[[bool], object],
        *,
        every: float = 30.0,
        timeout: float = 10.0,
    ) -> Ping:
        """Ask a user or server every so many seconds whether it is there, by OPTIONS: §11.1.

        `on_alive(alive)` is told of the first result and of each change, until `Ping.close` or the
        end of the agent.  Raises LocalError for a `uri` that cannot be asked.
        """
        destination(uri, self._home)
        ping = Ping(lambda: self.options(uri, timeout), every, on_alive)
        self._pings.append(ping)
        return ping

    def message(
        self, uri: str, text: str | bytes, timeout: float = 30.0, *, content_type: str = TEXT
    ) -> Response:
        """Send an instant message, and wait until it is accepted: RFC 3428 §4.

        Raises RemoteError with the SIP status if it is refused, TimeoutError, LocalError for one
        that is too large.
        """
        body = text.encode() if isinstance(text, str) else text
        request = self._request("MESSAGE", destination(uri, self._home), (), body, content_type)
        question, digest_client = FinalAnswer(), self._registration.digest_client
        self._driver.run(self._messages.send, request, question.heard, monotonic(), digest_client)
        return result_of(question.answer, timeout, "the message was not answered")

    def subscribe(
        self,
        uri: str,
        event: str,
        on_notify: Callable[[str, bytes], object],
        timeout: float = 30.0,
        *,
        expires: int = 3600,
    ) -> Watch:
        """Subscribe to the events of a user, and wait for the first notification: RFC 6665 §4.1.

        `on_notify(content_type, body)` is called in the hub for each notification.  The
        subscription is refreshed until `Watch.close`.  Raises RemoteError with the SIP status if it
        is refused, TimeoutError, LocalError.
        """
        name = EventName.parse(event)
        # RFC 6665 §3.1.2
        fields: list[tuple[str, object]] = [("Event", name), ("Expires", expires)]
        if name.package in BODIES:
            fields.append(("Accept", BODIES[name.package]))
        return self._watch(
            "SUBSCRIBE", destination(uri, self._home), name, fields, on_notify, timeout
        )

    def refer(
        self,
        uri: str,
        target: str,
        timeout: float = 60.0,
        *,
        on_progress: Callable[[int, str], object] = lambda status, reason: None,
    ) -> None:
        """Ask a phone to call `target`, and wait until it has: RFC 3515 §2.4.

        `on_progress(status, reason)` is told of each response to the phone's call.  Raises
        RemoteError with the SIP status if the phone refuses or its call fails, TimeoutError.
        """
        result: AsyncResult[None] = AsyncResult()

        def heard(content_type: str, body: bytes) -> None:
            status, reason = status_of(content_type, body)
            on_progress(status, reason)
            if status >= 300:
                result.set_exception(RemoteError(reason, status))
            elif status >= 200:
                result.set(None)

        fields = [("Refer-To", destination(target, self._home)), ("Referred-By", self.aor)]
        name = EventName("refer", "1")
        self._watch("REFER", destination(uri, self._home), name, fields, heard, timeout)
        result_of(result, timeout, "the transfer was not finished")

    # -- the end ------------------------------------------------------------------------

    def serve_forever(self) -> None:
        """Take calls until SIGINT or SIGTERM comes, or `close` is called.  Own design."""
        watchers = [gevent.signal_handler(each, self._closing.set) for each in (SIGINT, SIGTERM)]
        try:
            self._closing.wait()
        finally:
            for watcher in watchers:
                watcher.cancel()

    def close(self, timeout: float = 2.0) -> None:
        """Hang up, unregister, and close; waits at most `timeout` seconds for the answers."""
        self._closing.set()
        for ping in self._pings:
            ping.close()
        for call in list(self.calls):
            call.hangup()
        registration = self._registration.forget()
        wait_until(
            lambda: not self._ua.calls and (registration is None or not registration.pending),
            timeout,
        )
        self._address.close()
        self._driver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _inviter(
        self, to: Address, headers: Sequence[tuple[str, object]] = ()
    ) -> Callable[[bytes, CallHandler], Signalling]:
        private = PRIVACY in headers
        host = self._registration.next_host(to.uri)

        def invite(offer: bytes, handler: CallHandler) -> Signalling:
            return self._ua.invite(
                to,
                ANONYMOUS if private else self.aor,  # RFC 3323 §4.1 [anonymous-from]
                self._registration.contact_for(host, private=private),
                offer,
                handler,
                monotonic(),
                credentials=self._registration.login,
                route=self._registration.route,
                headers=headers,
            )

        return invite

    def _follow(self, referral: Referral) -> Call:
        """Call the target of a transfer; may wait for the DNS: RFC 3515 §2.4.2."""
        call = self._new_call(self._registration.next_host(referral.target.uri))
        call.referral = referral
        call.dial(self._inviter(referral.target, referral.headers))
        return call

    def _watch(
        self,
        method: str,
        to: Address,
        event: EventName,
        fields: Sequence[tuple[str, object]],
        on_notify: Callable[[str, bytes], object],
        timeout: float,
    ) -> Watch:
        contact, watch = self._registration.contact_to(to.uri), Watch(self._driver, on_notify)
        # RFC 3515 §2 [one-contact] [outside-of-calls]
        request = self._request(method, to, [("Contact", Address(contact)), *fields])
        watch.start(self._ua.core, contact, event, self._registration.digest_client, request)
        result_of(watch.first, timeout, f"{to.uri.host} does not notify us")
        return watch

    def _referred(self, server: ServerHandle, now: float) -> None:
        """Take a REFER outside of a call (RFC 3515 §2.4.2): see `Agent.on_refer`."""

        def allow(referral: Referral) -> None:
            if not self.on_refer(referral.target, self._sender_of(server)):
                raise RemoteError("Decline", 603)

        contact = self._registration.contact_for(server.flow.remote[0])
        referral = self._ua.referred(server, contact, allow, now)
        gevent.spawn(self._hand_over, referral)

    def _hand_over(self, referral: Referral) -> None:
        call = followed(self._driver, self._follow, referral)
        if call is not None:
            self.on_referred(call)

    def _request(
        self,
        method: str,
        to: Address,
        headers: Sequence[tuple[str, object]],
        body: bytes = b"",
        content_type: str = "",
    ) -> Request:
        request = outside_request(
            os.urandom,
            method,
            to,
            self.aor,
            route=self._registration.route,
            headers=headers,
            body=body,
            content_type=content_type,
        )
        return self._ua.core.signed(request)

    def _sender_of(self, server: ServerHandle) -> Address:
        return sender(server.request, server.flow, self.trusted)

    def _may_replace(self, sip: Signalling, server: ServerHandle) -> bool:
        """Whether the sender of an INVITE may take the place of a call's peer: RFC 3891 §3."""
        call = next((each for each in self.calls if each.is_of(sip)), None)
        return call is not None and self.on_replace(call, self._sender_of(server))

    def _new_call(self, peer: str) -> Call:
        call = Call(self._driver, partial(self._open_audio, peer), self._changed, self._follow)
        self.calls.append(call)
        return call

    def _open_audio(self, peer: str, on_audio: AudioHandler, on_event: EventHandler) -> AudioStream:
        host, advertised, ports = self._address.media(peer)
        return self._stream(
            host,
            pool=ports,
            on_audio=on_audio,
            on_event=on_event,
            wake=self._driver.wake,
            advertised=advertised,
            ice=self._address.ice_places(peer),
        )

    def _moved(self, address: HostPort) -> None:
        """Be reached at this address, which a router has given us: RFC 8489 §2."""
        self._stack.advertise(address)
        self.contact = self._contacts.of_peer()
        self._registration.move(address)

    def _changed(self, call: Call) -> None:
        if call.is_over and call in self.calls:
            self.calls.remove(call)
        self.serving.changed(DIALOG)

    def mailbox(self, new: int, old: int = 0) -> None:
        """Say how many messages wait, to those who watch (RFC 3842 §5.2): see `serving`."""
        self.serving.summary = MessageSummary(new, old, str(self.aor.uri))
        self.serving.changed(SUMMARY)

    def _incoming(self, server: ServerHandle, now: float) -> None:
        try:
            call = self._new_call(server.flow.remote[0])
        except NoPortsError:
            server.reply(503, now, "No Media Port")  # §21.5.4
            return
        call.asserted = asserted_identity(server.request, server.flow, self.trusted)

        def accept(handler: CallHandler) -> IncomingCall:
            login = self._registration.login
            secure = server.request.uri.scheme == "sips"
            contact = self._registration.contact_for(server.flow.remote[0], secure=secure)
            return self._ua.incoming(server, contact, handler, now, credentials=login)

        if call.take(accept):
            old = next((each for each in self.calls if call.replaces(each)), None)
            gevent.spawn(self._tell, call) if old is None else gevent.spawn(old.yield_to, call)

    def _tell(self, call: Call) -> None:
        try:
            self.on_call(call)
        except (RemoteError, TimeoutError) as error:
            log.info("call %s: %s", call.id, error)
            call.hangup()
        except Exception:
            log.exception("on_call of %s", call.id)
            call.hangup()


def _ports(listens: Sequence[HostPort], network: NetworkSettings) -> SipPorts:
    for host, _ in listens:
        if is_unspecified(host):
            raise LocalError(f"others cannot reach {host}: name one address to listen on")
    if network.websocket:
        if not AVAILABLE:
            raise LocalError("a WebSocket needs wsproto: pip install siprtmp[web]")
        ws = [(host, 0) for host, _ in listens]
        return SipPorts(*listens[0], also=listens[1:], ws=ws, opens_web=True)
    sips = [] if network.tls is None else [(host, network.tls_port) for host, _ in listens]
    return SipPorts(*listens[0], also=listens[1:], sips=sips)


def _login(account: Account, server: Uri | None) -> Login | None:
    if account.password is None:
        return None
    return Login(account.login or account.user, account.password, server)


def _audio_streams(calls: CallSettings, network: NetworkSettings) -> Callable[..., AudioStream]:
    if calls.dtls and not network.ice:
        raise LocalError("SRTP by DTLS needs ICE: NetworkSettings(ice=True)")
    return partial(
        AudioStream,
        codecs=[audio_codec(name) for name in calls.codecs],
        srtp=calls.srtp,
        rtcp_mux=calls.rtcp_mux,
        ptime=calls.ptime,
        voip_metrics=calls.voip_metrics,
        echo=calls.echo,
        dtls=_dtls() if calls.dtls else None,
    )


def _dtls() -> DtlsSettings:
    """A certificate of our own, and what shakes hands with it.  LocalError without OpenSSL."""
    try:
        from p2psip.net.dtls import DtlsEnd, DtlsIdentity
    except ImportError:
        wanted = "pip install siprtmp[webrtc]"
        raise LocalError(f"SRTP by DTLS needs an extra: {wanted}") from None
    identity = DtlsIdentity()

    def make(fingerprint: str, is_client: bool) -> DtlsEnd:
        return DtlsEnd(identity, fingerprint, is_client=is_client)

    return DtlsSettings(identity.fingerprint, make)


def _stack(ports: SipPorts, name: str, place: PhoneAddress) -> Stack:
    return Stack(
        random=os.urandom, listeners=ports.listeners, user_agent=name, inside=place.own_address
    )


def _unwanted(message: InstantMessage) -> None:
    raise RemoteError("Method Not Allowed", 405)


def _unavailable(call: Call) -> None:
    call.reject(480, "Nobody Answers Here")

"""A call between phones that the gateway has on both sides, since they have no media in common.

Own design: a proxy may not change a description (RFC 3261 §16.6), and a browser and a phone have no
transport in common.  So the gateway answers the caller itself, once the callee has answered a call
of its own: two calls, whose media sessions are each other's publisher.  What both sides have passes
as it is; other audio is decoded and encoded, as between a stream and a phone.

A user may have phones of both kinds.  Each kind is called by an offer of its own, which our proxy
takes to all of them, and the others refuse: the first that answers has the call.
"""

from collections.abc import Callable, Collection
from typing import Final, Protocol

from p2psip.errors import LocalError, RemoteError
from p2psip.sdp.codec import codecs_of
from p2psip.sdp.session import SessionDescription
from p2psip.sip.address import Address
from p2psip.sip.message import Request
from p2psip.sip.uri import Uri
from p2psip.stack.stack import ServerHandle
from p2psip.ua.messages import InstantMessage
from siprtmp.calls import codec_names
from siprtmp.calls.call import Call
from siprtmp.calls.home import CallHome
from siprtmp.calls.observer import CallObserver
from siprtmp.calls.trunks import Invitation
from siprtmp.media import sdp_map, video_lines
from siprtmp.media.sdp_map import MediaPlan
from siprtmp.media.sink import AUDIO, VIDEO, MediaSink, Published
from siprtmp.media.translate.audio_formats import OPUS, find

OTHER_SIDE: Final = "other side"  # why the call of one side ends
ELSEWHERE: Final = "answered elsewhere"
PASSING: Final = frozenset(("opus", "pcmu", "pcma"))  # from phone to phone as they are
STOCK: Final = ("opus", "pcmu", "pcma", "g722")


class BothSides(Protocol):
    """What two sides belong to, which hears of both; `source` is for the log."""

    source: str

    def rings(self, now: float) -> None:
        """A phone rings."""

    def up(self, side: "Side", plan: MediaPlan, now: float) -> None:
        """A phone has answered."""

    def failed(self, side: "Side", status: int, reason: str, now: float) -> None:
        """A phone has refused."""

    def over(self, side: "Side", now: float) -> None:
        """A phone has hung up."""


class Side(CallObserver, MediaSink):
    """One of the two calls: its observer, and the sink of the media that its phone sends."""

    payer: str | None = None  # the caller's side has been counted

    def __init__(self, both: BothSides, home: CallHome, log_id: str) -> None:
        super().__init__()
        self._both, self.log_id = both, log_id
        self.call = Call(self, self, home.context)
        self.other: Side | None = None
        self.wants_key_frame = False
        self._early = Published()  # what came before there was another side

    def show(self, other: "Side", now: float) -> None:
        """Send this phone's media to another side from now on, with headers and key frame first."""
        self.other = other
        if self._early.header.body:
            other.call.publish(AUDIO, 0, self._early.header.body, now)
        for at, payload in self._early.gop:
            other.call.publish(VIDEO, at, payload, now)
        self._early.clear()

    @property
    def source(self) -> str:
        return self._both.source

    # -- MediaSink ----------------------------------------------------------------------

    def on_tag(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        other = self.other
        if other is None:
            self._early.put(type_id, timestamp, payload)
            return
        if other.wants_key_frame:
            other.wants_key_frame = False
            self.call.request_key_frame(now)
        other.call.publish(type_id, timestamp, payload, now)

    def on_key_frame_wanted(self) -> None:
        self.wants_key_frame = True

    def on_digit(self, digit: str, now: float) -> None:
        if self.other is not None:
            self.other.call.press(digit, now)

    def takes(self, codec: str) -> bool:
        plan = self.other.call.plan if self.other is not None else None
        return plan is not None and plan.video is not None and codec in plan.video.names

    # -- CallObserver -------------------------------------------------------------------

    def on_call_ringing(self, status: int, reason: str, now: float) -> None:
        self._both.rings(now)

    def on_call_up(self, plan: MediaPlan, now: float) -> None:
        self._both.up(self, plan, now)

    def on_call_failed(self, status: int, reason: str, now: float) -> None:
        self._both.failed(self, status, reason, now)

    def on_call_cancelled(self, now: float) -> None:
        self._both.over(self, now)

    def on_call_over(self, reason: str, now: float) -> None:
        self._both.over(self, now)

    def on_call_held(self, held: bool, now: float) -> None:
        """Hold the other side as this one does, unless this one answers to that: RFC 3264 §8.4."""
        if self.other is not None and not self.call.holds:
            self.other.call.hold(held, now)

    def on_call_message(self, message: InstantMessage, now: float) -> None:
        if self.other is None:
            raise RemoteError("Temporarily Unavailable", 480)
        try:
            self.other.call.message(message.text, now)
        except LocalError:
            raise RemoteError("Message Too Large", 513) from None


class AnchoredCall:
    """A call from the INVITE to the end of both sides.

    `token` names its Contacts, and `gone` is called when it has placed its last call.
    """

    def __init__(
        self, home: CallHome, request: Request, token: str, gone: Callable[[], object]
    ) -> None:
        self._home, self._request, self._token, self._gone = home, request, token, gone
        self._name = request.uri.user or ""
        self._caller = Side(self, home, f"anchor/{self._name}")
        self._callees: list[Side] = []
        self._offer = SessionDescription.parse(request.body)
        self.source = ""
        self._is_over = False

    def incoming(self, server: ServerHandle, kinds: Collection[bool], now: float) -> None:
        """Call the callee's phones, those in browsers (True) and the others: RFC 3261 §13.2.1."""
        self.source = f"{server.flow.transport}:{server.flow.remote[0]}"
        if not self._caller.call.take(server, self._contact(), now):
            self._end()
            return
        refusal = 480, "Temporarily Unavailable"
        for browser in sorted(kinds):
            try:
                self._dial(browser, now)
            except RemoteError as error:
                refusal = error.status, error.reason
        if not self._callees:
            self._caller.call.refuse(*refusal, now)
            self._end()

    def _dial(self, browser: bool, now: float) -> None:
        request = self._request
        side = Side(self, self._home, self._caller.log_id)
        side.takes_opus = OPUS.name in self._sounds
        to = Address(request.uri.replace(params=(), headers=()), request.to.display)
        caller = Address(request.from_.uri, request.from_.display)
        names = self._offered()
        side.call.dial(Invitation(to, caller, self._contact(), names, browser=browser), now)
        self._callees.append(side)

    def _contact(self) -> Uri:
        return self._home.contact(self._name, self._token)

    @property
    def _sounds(self) -> list[str]:
        """The audio codecs that the caller offers."""
        lines = [each for each in self._offer.media if each.kind == "audio" and each.port]
        found = [
            find(one.name, one.clock_rate, one.channels)
            for each in lines
            for one in codecs_of(each)
        ]
        return [codec.name for codec in found if codec is not None]

    def _offered(self) -> tuple[str, ...]:
        """What the callees are offered: what the caller has, and what can be made of it."""
        passing = [name for name in self._sounds if name in PASSING]
        made = codec_names.possible(STOCK)
        shown = [name for name in video_lines.NAMES if video_lines.are_offered(self._offer, [name])]
        return tuple(dict.fromkeys((*passing, *made, "dtmf", *shown)))

    def _answered(self, plan: MediaPlan) -> tuple[str, ...]:
        """What the caller gets of that: what passes from the callee, else what can be made."""
        theirs = [codec.name for codec, _ in plan.audio.sending]
        both = [name for name in self._sounds if name in theirs and name in PASSING]
        shown = plan.video.names if plan.video is not None else ()
        return (*(both or codec_names.possible(sdp_map.STOCK_ANSWERS)), "dtmf", *shown)

    # -- what the sides tell ------------------------------------------------------------

    def rings(self, now: float) -> None:
        self._caller.call.ring(now)

    def up(self, side: Side, plan: MediaPlan, now: float) -> None:
        """Answer the caller once a callee has answered, and show each to the other."""
        caller = self._caller
        if side is caller:
            for each in (caller, *self._callees):
                each.call.request_key_frame(now)
            return
        for each in self._callees:
            if each is not side:
                each.call.hang_up(now, ELSEWHERE)
        self._callees = [side]
        caller.takes_opus = any(codec is OPUS for codec, _ in plan.audio.sending)
        caller.show(side, now)
        side.show(caller, now)
        try:
            caller.call.answer(self._answered(plan), now)
        except RemoteError as error:
            caller.call.refuse(error.status, error.reason, now)
            self.over(caller, now)

    def failed(self, side: Side, status: int, reason: str, now: float) -> None:
        """Refuse the caller when nobody is left who may answer: RFC 3261 §16.7."""
        self._callees = [each for each in self._callees if each is not side]
        if not self._callees:
            self._caller.call.refuse(status, reason, now)
            self._end()

    def over(self, side: Side, now: float) -> None:
        """End the other side as well: RFC 3261 §15."""
        for each in (self._caller, *self._callees):
            if each is not side:
                each.call.hang_up(now, OTHER_SIDE)
        self._end()

    def _end(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._gone()

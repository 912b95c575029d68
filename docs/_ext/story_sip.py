"""Stories of SIP: two user agents of ours on a link of 20 ms, which loses what a story says."""

from collections.abc import Iterator
from dataclasses import replace

from story import Step, Story, named, told
from support.rtmfp.link import Link
from support.sip.elements import Phone

from p2psip.sdp.agreed_media import AgreedMedia
from p2psip.sdp.codec import Codec
from p2psip.sdp.line import Origin
from p2psip.sdp.local_media import LocalMedia, LocalTransport
from p2psip.sdp.offer_answer import apply_answer, make_answer, make_offer
from p2psip.sdp.session import SessionDescription
from p2psip.sip.address import Address
from p2psip.sip.message import Request, parse_message
from p2psip.sip.uri import Uri
from p2psip.ua.call import UserAgentCall
from rtclab.explain.fields.field import Field

DELAY = 0.02  # seconds, one way
ALICE, BOB = ("alice", "192.0.2.1"), ("bob", "192.0.2.2")
SPEEX, PCMU = Codec("speex", 16000, 1, 97), Codec("PCMU", 8000, 1, 0)
PCMA, EVENTS = Codec("PCMA", 8000, 1, 8), Codec("telephone-event", 8000, 1, 101, "0-15")
H264 = Codec("H264", 90000, 1, 98, "profile-level-id=42e01f;packetization-mode=1")


def audio(*codecs: Codec, port: int, way: str = "sendrecv") -> LocalMedia:
    """A stream of audio that one end can have."""
    return LocalMedia("audio", codecs, LocalTransport(port), way)


class Talker(Phone):  # type: ignore[misc]
    """A phone that describes sessions: it offers and answers with `media`, and keeps `agreed`."""

    def __init__(self, link: Link, who: tuple[str, str], media: list[LocalMedia]) -> None:
        self.name, address = who
        super().__init__(link, address, answer=lambda call, now: call.ring(now))
        self.contact = self.stack.contact(self.name)
        self.media = media
        self.written: SessionDescription | None = None
        self.heard: SessionDescription | None = None
        self.agreed: list[tuple[AgreedMedia, ...]] = []

    def offer(self) -> bytes:
        """Write the next offer."""
        self.written = make_offer(
            self.media, self._origin, self.address, previous=self.written, remote=self.heard
        )
        return bytes(self.written)

    def answer_to(self, offer: bytes) -> bytes:
        """Write the answer to an offer."""
        self.heard = SessionDescription.parse(offer)
        self.written, agreed = make_answer(
            self.heard, self.media, self._origin, self.address, previous=self.written
        )
        self.agreed.append(agreed)
        return bytes(self.written)

    def call(self, who: tuple[str, str], now: float) -> None:
        """Call somebody."""
        name, host = who
        to, me = Address(Uri("sip", name, None, host)), Uri("sip", self.name, None, self.address)
        call = self.agent.invite(to, Address(me), self.contact, self.offer(), self, now)
        self.calls.append(call)

    def pick_up(self, now: float) -> None:
        """Accept the one call."""
        [call] = self.calls
        call.accept(self.answer_to(call.invite.body), now)

    def change(self, now: float, *media: LocalMedia) -> None:
        """Make a new offer in the one call."""
        self.media = list(media)
        self.calls[0].reinvite(self.offer(), now)

    def on_accepted(self, call: UserAgentCall, sdp: bytes, now: float) -> None:
        if call.direction == "out":
            self.on_answer(call, sdp, now)

    def on_answer(self, call: object, sdp: bytes, now: float) -> None:
        assert self.written is not None
        self.heard = SessionDescription.parse(sdp)
        self.agreed.append(apply_answer(self.written, self.heard))

    def on_offer(self, call: object, sdp: bytes, now: float) -> bytes:
        return self.answer_to(sdp)

    @property
    def _origin(self) -> Origin:
        return Origin.at(self.address, 1000)


class Line:
    """Alice and Bob, the link between them, and the messages lost: by their first words."""

    def __init__(self, alice: list[LocalMedia], bob: list[LocalMedia], *to_lose: str) -> None:
        self.to_lose, self.lost = list(to_lose), set[int]()
        self.link = Link(self._weather)
        self.alice, self.bob = Talker(self.link, ALICE, alice), Talker(self.link, BOB, bob)

    def run(self, seconds: float) -> float:
        """Go on to a time; answer it."""
        self.link.run(until=seconds)
        return seconds

    def steps(self) -> Iterator[Step]:
        """All messages, in order."""
        messages = [parse_message(data) for *_, (_, data) in self.link.sent]
        kinds = [m.method.lower() if isinstance(m, Request) else str(m.status) for m in messages]
        who = {address: name for name, address in (ALICE, BOB)}
        for place, name in enumerate(named(kinds)):
            at, source, destination, (_, data) = self.link.sent[place]
            message = messages[place]
            label = message.method if isinstance(message, Request) else message.reason
            if not isinstance(message, Request):
                label = f"{message.status} {label} to {message.cseq.method}"
            field = told("sip", data)
            ends = who[source], who[destination]
            yield Step(name, at, *ends, label, field, data, place in self.lost)

    def _weather(self, parcel: tuple[str, bytes], source: str, to: str) -> tuple[float, ...]:
        if self.to_lose and parcel[1].startswith(self.to_lose[0].encode()):
            del self.to_lose[0]
            self.lost.add(len(self.link.sent) - 1)
            return ()
        return (DELAY,)


def call() -> Story:
    """A call whose first ACK is lost; Alice holds it, and Bob hangs up."""
    line = Line([audio(PCMU, PCMA, port=4000)], [audio(PCMU, PCMA, port=5000)], "ACK")
    line.alice.call(BOB, 0.0)
    line.bob.pick_up(line.run(2.0))
    line.alice.change(line.run(5.0), audio(PCMU, PCMA, port=4000, way="sendonly"))
    line.bob.calls[0].bye(line.run(8.0))
    line.run(9.0)
    steps = tuple(line.steps())
    line.link.run()
    assert line.alice.idle and line.bob.idle
    return Story(("alice", "bob"), steps, {"rest": line.link.now})


def offer_answer() -> Story:
    """Four rounds of offer and answer in one call."""
    video = LocalMedia("video", (H264,), LocalTransport(4002))
    alice = [audio(SPEEX, PCMU, PCMA, EVENTS, port=4000), video]
    line = Line(alice, [audio(PCMA, PCMU, EVENTS, port=5000)])
    line.alice.call(BOB, 0.0)
    line.bob.pick_up(line.run(1.0))
    line.alice.change(line.run(2.0), replace(alice[0], direction="sendonly"))
    line.alice.change(line.run(3.0), alice[0])
    line.bob.change(line.run(4.0), audio(PCMA, port=5000))
    line.run(5.0)
    rounds = [each for each in line.steps() if b"\r\n\r\nv=0" in each.data]
    steps = []
    for place, each in enumerate(rounds):
        word = "answer" if place % 2 else "offer"
        name = f"{word}-{place // 2 + 1}"
        label = f"{word} {place // 2 + 1}, in {each.label.partition(' OK')[0]}"
        steps.append(replace(each, name=name, label=label, told=sdp_of(each)))
    facts = {"alice": line.alice.agreed, "bob": line.bob.agreed}
    return Story(("alice", "bob"), tuple(steps), facts)


def sdp_of(step: Step) -> Field:
    """The session description in a message."""
    return next(each for each in step.told.children if each.name == "SDP")

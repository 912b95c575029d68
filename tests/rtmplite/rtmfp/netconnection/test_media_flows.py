"""How long messages of a live stream are worth repeating, by sending flows that do nothing."""

from types import SimpleNamespace

import pytest

from rtmplite.rtmfp.netconnection.media_flows import (
    LIVE,
    Lifetimes,
    Medium,
    make_media_flow,
    medium_of,
)
from rtmplite.rtmfp.netconnection.messages import FlowMetadata, Intent, encode_message
from rtmplite.rtmfp.netconnection.output import Output
from rtmplite.rtmfp.session.flow_states import RecvState, SendState
from rtmplite.rtmfp.session.send_flow import Priority
from rtmplite.rtmp.wire.message import MessageType

KEY, INTER = b"\x17\x01\x00\x00\x00key", b"\x27\x01\x00\x00\x00inter"
HEADER, AAC_HEADER = b"\x17\x00\x00\x00\x00avcC", b"\xaf\x00\x12\x10"


class Handle:
    def __init__(self, expires):
        self.expires, self.abandoned = expires, False


class Flow:
    """A sending flow that takes everything and delivers nothing."""

    def __init__(self, options):
        self.options, self.sent, self.queued, self.state = options, [], 0, SendState.OPEN

    def send(self, data, now, *, lifetime=None):
        self.queued += len(data)
        handle = Handle(float("inf") if lifetime is None else now + lifetime)
        self.sent.append((data, handle))
        return handle

    def close(self, now):
        self.state = SendState.CLOSING


class Owner:
    """A connection with a session that opens such flows."""

    def __init__(self):
        self.session, self.flows = self, []
        self.far_control = SimpleNamespace(state=RecvState.OPEN)
        self.excepted, self.moved, self.lifetimes = [], 0, LIVE

    def open_flow(self, metadata, now, **options):
        self.flows.append(Flow(SimpleNamespace(metadata=metadata, **options)))
        return self.flows[-1]

    def media_flow_rejected(self, flow, now):
        self.excepted.append(flow)

    def media_flow_moved(self, flow, now):
        self.moved += 1


def video(payload, time=0):
    return encode_message(9, time, payload)


@pytest.mark.parametrize(
    ("medium", "priority"),
    [
        (Medium.COMMANDS, Priority.IMMEDIATE),
        (Medium.AUDIO, Priority.AUDIO),
        (Medium.VIDEO, Priority.VIDEO),
    ],
)
def test_a_flow_is_opened_when_there_is_something_to_send(medium, priority):
    """Covers RFC 7425 §5.3.5 [associated], §5.1.1 [one-stream] [stream-id-present]."""
    owner = Owner()
    media = make_media_flow(owner, 5, medium)
    assert owner.flows == [] and not media.is_open and media.is_over
    media.send(b"something", 1.0)
    (flow,) = owner.flows
    options = flow.options
    assert (options.metadata, options.priority) == (bytes(FlowMetadata(5)), priority)
    assert options.associated is owner.far_control and options.sender is media
    assert options.time_critical == (medium is Medium.AUDIO)
    assert media.is_open and media.queued == 9 and not media.is_over


def test_media_have_flows_of_their_own():
    """Covers RFC 7425 §5.1.1 [many-flows]: commands, data and control share one."""
    kinds = {type_id: medium_of(type_id) for type_id in (4, 8, 9, 15, 17, 18, 19, 20, 22, 255)}
    assert kinds.pop(8) is Medium.AUDIO and kinds.pop(9) is Medium.VIDEO
    assert set(kinds.values()) == {Medium.COMMANDS}
    assert medium_of(MessageType.VIDEO) is Medium.VIDEO


def test_sound_is_given_up_when_it_is_late():
    """Covers RFC 7425 §5.1.1 [abandons]; but not what a decoder needs, nor what is not live."""
    owner = Owner()
    media = make_media_flow(owner, 1, Medium.AUDIO)
    media.send_live(encode_message(8, 0, AAC_HEADER), 10.0, LIVE)
    media.send_live(encode_message(8, 0, b"\xaf\x01sound"), 10.0, LIVE)
    media.send(encode_message(8, 0, b"\xaf\x01sound"), 10.0)
    assert [handle.expires for _, handle in owner.flows[0].sent] == [
        float("inf"),
        11.0,
        float("inf"),
    ]


def test_data_are_never_given_up():
    """Covers RFC 7425 §5.1.1 [abandons]: a sender can, it need not."""
    owner = Owner()
    make_media_flow(owner, 1, Medium.COMMANDS).send_live(encode_message(18, 0, b"data"), 10.0, LIVE)
    assert owner.flows[0].sent[0][1].expires == float("inf")


def test_pictures_live_until_the_next_key_frame():
    """Covers RFC 7425 §5.1.1 [abandons]: and a little longer, as they may be on their way."""
    owner = Owner()
    media = make_media_flow(owner, 1, Medium.VIDEO)
    for at, payload in enumerate([HEADER, KEY, INTER, INTER]):
        media.send_live(video(payload), float(at), LIVE)
    handles = [handle for _, handle in owner.flows[0].sent]
    assert [each.expires for each in handles] == [float("inf"), 7.0, 8.0, 9.0]
    media.send_live(video(KEY), 4.0, LIVE)
    assert [each.expires for each in handles] == [float("inf"), 4.5, 4.5, 4.5]
    assert owner.flows[0].sent[-1][1].expires == 10.0
    media.send_live(video(KEY), 9.8, LIVE)
    assert handles[0].expires == float("inf")
    assert owner.flows[0].sent[-2][1].expires == 10.0  # which it had anyway


def test_only_sound_is_hinted_to_be_taken_as_it_arrives():
    """Covers RFC 7425 §5.1.1 [intent]: pictures and commands depend on their order."""
    owner = Owner()
    owner.lifetimes = Lifetimes(audio_intent=Intent.NETWORK_ORDER)
    for medium in Medium:
        make_media_flow(owner, 1, medium).send(b"x", 0.0)
    intents = [FlowMetadata.parse(flow.options.metadata).intent for flow in owner.flows]
    assert dict(zip(Medium, intents, strict=True)) == {
        Medium.COMMANDS: Intent.QUEUING_ORDER,
        Medium.AUDIO: Intent.NETWORK_ORDER,
        Medium.VIDEO: Intent.QUEUING_ORDER,
    }


def test_what_follows_a_picture_that_was_given_up_is_left_out():
    """Covers RFC 7425 §5.1.1 [abandons]: until the next key frame."""
    owner = Owner()
    media = make_media_flow(owner, 1, Medium.VIDEO)
    media.send_live(video(KEY), 0.0, LIVE)
    media.send_live(video(INTER), 0.1, LIVE)
    flow = owner.flows[0]
    flow.sent[0][1].abandoned = True
    media.send_live(video(INTER), 0.2, LIVE)
    media.send_live(video(INTER), 0.3, LIVE)
    assert len(flow.sent) == 2
    media.send_live(video(KEY), 0.4, LIVE)
    media.send_live(video(INTER), 0.5, LIVE)
    assert len(flow.sent) == 4


def test_what_has_arrived_is_forgotten():
    """A long group of pictures costs no memory while they arrive."""
    owner = Owner()
    media = make_media_flow(owner, 1, Medium.VIDEO)
    media.send_live(video(KEY), 0.0, LIVE)
    for at in range(100):
        owner.flows[0].queued = 0
        media.send_live(video(INTER), at / 25, LIVE)
    assert len(media._group) == 1


def test_nothing_is_given_up_if_nothing_may_be():
    """Lifetimes of None are for ever."""
    owner = Owner()
    for medium, data in (
        (Medium.AUDIO, encode_message(8, 0, b"\xb6x")),
        (Medium.VIDEO, video(INTER)),
    ):
        make_media_flow(owner, 1, medium).send_live(data, 0.0, Lifetimes(None, None))
    assert [flow.sent[0][1].expires for flow in owner.flows] == [float("inf")] * 2


def test_a_rejected_flow_is_the_end_of_it():
    """Covers RFC 7425 §5.3.5.3 [no-replacement]."""
    owner = Owner()
    media = make_media_flow(owner, 1, Medium.VIDEO)
    media.send(video(KEY), 0.0)
    media.on_exception(owner.flows[0], 0, 1.0)
    assert owner.excepted == [media] and not media.is_open
    media.send_live(video(KEY), 1.0, LIVE)
    assert media.send(video(KEY), 2.0) is None and len(owner.flows[0].sent) == 1
    assert len(owner.flows) == 1


def test_a_barrier_needs_two_flows():
    """Covers RFC 7425 §5.2 [count-at-least-2]."""
    owner = Owner()
    output = Output(owner)
    for medium in (Medium.COMMANDS, Medium.AUDIO):
        output.flow(1, medium).send(b"first", 0.0)
        output.put_barrier((), 1.0)
    assert [len(flow.sent) for flow in owner.flows] == [2, 2]


def test_a_closed_flow_is_over_when_all_has_arrived():
    """Covers RFC 7425 §5.3.5.3 [closing-says-nothing]."""
    owner = Owner()
    media = make_media_flow(owner, 1, Medium.COMMANDS)
    media.send(b"last words", 0.0)
    media.close(1.0)
    assert owner.flows[0].state is SendState.CLOSING and not media.is_over
    owner.flows[0].state = SendState.COMPLETE_LINGER
    media.on_complete(owner.flows[0], 2.0)
    assert media.is_over and owner.moved == 1

"""Viewers by WHEP, publishers by WHIP: what they count, and what they say of a server's refusal."""

import random
import re
import socket
import time
from contextlib import contextmanager

import gevent
import pytest
from gevent.event import Event
from gevent.pywsgi import WSGIServer
from support.web_server import web_server

from p2psip.rtp.fast import pack_fixed, unpack_fixed
from p2psip.rtp.payload.h264 import pack_h264
from p2psip.rtp.sequence import Source
from p2psip.sdp.session import Attribute, MediaDescription
from p2psip.srtp.srtp import SrtpSender
from p2psip.srtp.stream import SrtpStream
from p2psip.srtp.suites import AES_CM_128_HMAC_SHA1_80
from rtclab.command_line.arguments import ConfigError
from rtclab.load import crew
from rtclab.load.clients.datagrams import AT_ONCE, Batch, QuickBatch, best_batch, opened
from rtclab.load.clients.endpoint import MOST_REDIRECTS, Endpoint
from rtclab.load.clients.endpoint import TOKEN as TOKEN_VARIABLE
from rtclab.load.clients.rtp_lines import HeardLine
from rtclab.load.clients.whep import viewers
from rtclab.load.clients.whip import publishers
from rtclab.load.command import run
from rtclab.load.figures.tally import FIRST_PACKET, FIRST_VIDEO, SETUP, State, Tally
from rtmplite.errors import LocalError, RemoteError
from rtmplite.flv.video import is_key_frame, is_sequence_header
from rtmplite.live.streams import Registry
from rtmplite.net.clock import now

KEYS = (bytes(16), bytes(14)), (bytes(range(16)), bytes(range(14)))
KEY, SLICE = bytes([0x65]) + bytes(2000), bytes([0x41]) + bytes(1500)
PATIENCE = 60  # s, on a busy machine


def packets(ssrc, sequence, pictures, rate=3600):
    """The packets of pictures: header and payload of each."""
    found = []
    for number, unit in enumerate(pictures):
        for payload, marker in pack_h264([unit], 1100):
            head = pack_fixed(0x80, marker << 7 | 102, sequence, number * rate & 0xFFFFFFFF, ssrc)
            found.append(head + payload)
            sequence = sequence + 1 & 0xFFFF
    return found


def video_line():
    attributes = (Attribute("rtpmap", "102 H264/90000"),)
    return HeardLine(MediaDescription("video", 9, "", ("102",), attributes=attributes))


def take(line, datagrams, step=0.04):
    """Have a line hear these, one each `step`; return how many pictures end."""
    for at, data in enumerate(datagrams):
        line.heard(*unpack_fixed(data)[1:], at * step)
    return line.settle()


# -- what is counted ------------------------------------------------------------------------


def test_what_is_missing_by_the_numbers_is_lost_also_across_their_wrap():
    line, sent = video_line(), packets(7, 65530, [KEY] + [SLICE] * 6)
    kept = [each for at, each in enumerate(sent) if at not in (3, 4, 9)]
    take(line, kept)
    assert line.lost == 3 and line.reception.source.received == len(kept)


def test_what_was_lost_of_a_source_is_not_forgotten_with_the_next():
    line = video_line()
    first, second = packets(7, 10, [SLICE] * 4), packets(8, 5000, [SLICE] * 4)
    take(line, [*first[:2], *first[3:], *second])
    assert line.reception.ssrc == 8 and line.lost == 1


def test_jitter_is_that_of_packets_that_come_one_by_one():
    """What is counted here in haste is what `Source` counts, whatever is late, early or lost."""
    dice = random.Random(7)
    sent = packets(7, 65000, [bytes([0x41, 1])] * 900, rate=(1 << 32) // 500)
    kept = [each for each in sent if dice.random() > 0.05]
    for _ in range(40):
        at = dice.randrange(len(kept) - 1)
        kept[at : at + 2] = reversed(kept[at : at + 2])
    line, source = video_line(), Source(90_000)
    for number, data in enumerate(kept):
        at = number * 0.04 + dice.random() / 100
        _, second, sequence, timestamp, ssrc = unpack_fixed(data)
        line.heard(second, sequence, timestamp, ssrc, at)
        source.heard(sequence, timestamp, at)
    assert line.settle() == len(kept)
    theirs = line.reception.source
    assert (theirs.lost, theirs.received) == (source.lost, source.received)
    assert (theirs.highest, theirs.arrival) == (source.highest, source.arrival)
    assert line.media_ms == pytest.approx(1000 * (1 << 32) // 500 * 899 / 90_000, rel=0.01)


def test_the_first_picture_is_the_first_key_frame_that_is_whole():
    """What comes before it shows nothing, nor does the beginning of it."""
    line, stream = video_line(), SrtpStream()
    stream.use(AES_CM_128_HMAC_SHA1_80, *KEYS)
    theirs = SrtpSender(*KEYS[1])
    sent = packets(7, 1, [SLICE, KEY, SLICE])
    shown = [line.shows(theirs.protect_rtp(each), stream) for each in sent]
    assert shown == [False, False, False, True, False, False]


def test_a_key_frame_of_vp8_is_told_too():
    attributes = (Attribute("rtpmap", "96 VP8/90000"),)
    line = HeardLine(MediaDescription("video", 9, "", ("96",), attributes=attributes))
    stream = SrtpStream()
    shown = []
    for number, frame in enumerate((b"\x10\x01", b"\x10\x00")):
        packet = pack_fixed(0x80, 0x80 | 96, number, number * 3600, 7) + frame
        shown.append(line.shows(packet, stream))
    assert shown == [False, True]


# -- datagrams in batches -------------------------------------------------------------------


@pytest.mark.parametrize("make", [best_batch, Batch])
def test_all_that_waits_in_a_socket_is_read_in_its_order(make):
    batch = make()
    with opened("127.0.0.1") as ours, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as theirs:
        sent = [bytes([number]) * (20 * number + 1) for number in range(AT_ONCE + 6)]
        for data in sent:
            theirs.sendto(data, ("127.0.0.1", ours.getsockname()[1]))
        batch.read(ours.fileno())
        first, third = batch.datagrams, batch.packet(2)[0]
        batch.read(ours.fileno())
        assert [data for data, _ in first + batch.datagrams] == sent and len(first) == AT_ONCE
        assert third == (2, 2, 0x0202, 0x02020202, 0x02020202)
        assert all(abs(at - time.time()) < PATIENCE for _, at in first)
        batch.read(ours.fileno())
        assert batch.count == 0 and batch.datagrams == []


@pytest.mark.skipif(not isinstance(best_batch(), QuickBatch), reason="recvmmsg is of Linux")
def test_a_datagram_that_is_read_late_has_come_when_it_came():
    batch = best_batch()
    with opened("127.0.0.1") as ours, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as theirs:
        theirs.sendto(b"early", ("127.0.0.1", ours.getsockname()[1]))
        sent = time.time()
        while time.time() < sent + 0.05:
            gevent.sleep(0.01)
        batch.read(ours.fileno())
        [(_, at)] = batch.datagrams
    assert at <= sent


# -- against our own server -----------------------------------------------------------------


@contextmanager
def meeting(crowd, count):
    """Begin so many clients, and end them; give their tallies."""
    tallies = [Tally(f"client_{number}") for number in range(count)]
    clients = [gevent.spawn(crowd.client(n), tally) for n, tally in enumerate(tallies)]
    try:
        yield tallies
    finally:
        gevent.killall(clients)
        crowd.close()


def viewing(url, count=1):
    """Viewers of a URL."""
    return meeting(viewers(url.replace("http:", "whep:"), None), count)


def publishing(url, count=1):
    """Publishers, of a low bit rate."""
    crowd = publishers(url.replace("http:", "whip:"), None, 100_000.0, video=True)
    return meeting(crowd, count)


class Shown:
    """What comes of a stream, from its beginning."""

    def __init__(self, registry, name):
        self.name, self.sounds, self.pictures = name, [], []
        self.ended = False
        registry.on_begin.append(self._begun)

    def _begun(self, live, now):
        if live.name == self.name:
            live.tap(self)

    def write(self, type_id, timestamp, payload, now):
        if type_id == 8:
            self.sounds.append(timestamp)
        elif type_id == 9 and not is_sequence_header(payload):
            self.pictures.append((timestamp, payload))

    def end(self, now):
        self.ended = True


def until(condition):
    with gevent.Timeout(PATIENCE):
        while not condition():
            gevent.sleep(0.01)


def tag(unit):
    """The body of a tag with one NAL unit (FLV 10.1 §E.4.3.1)."""
    head = b"\x17" if unit is KEY else b"\x27"
    return head + b"\1\0\0\0" + len(unit).to_bytes(4, "big") + unit


def test_viewers_count_what_comes_and_say_goodbye():
    """The headers of the codec are in packets too, as the server pleases."""
    registry, ended = Registry(), []

    def noting(application):
        def serve(environ, start):
            ended.extend([environ["PATH_INFO"]] * (environ["REQUEST_METHOD"] == "DELETE"))
            return application(environ, start)

        return serve

    with web_server(noting, registry) as root, viewing(f"{root}/live/obs/whep", 2) as tallies:
        until(lambda: all(each.state is State.CONNECTED for each in tallies))
        live = registry.open("live", "obs")
        for number in range(5):
            live.write(9, number * 40, tag(KEY if number == 0 else SLICE), now())
        until(lambda: all(each.frames == 5 for each in tallies))
        for each in tallies:
            assert each.lost == 0 and each.packets >= 2 + 4 * 2
            assert each.bytes > len(KEY) + 4 * len(SLICE)
            assert [each.delays[kind].count for kind in (SETUP, FIRST_PACKET, FIRST_VIDEO)] == [
                1
            ] * 3
    assert len(ended) == 2


def test_a_viewer_that_the_server_ends_was_left():
    registry = Registry()
    with web_server(registry=registry) as root, viewing(f"{root}/live/obs/whep") as tallies:
        until(lambda: tallies[0].state is State.CONNECTED)
        registry.open("live", "obs").end(now())
        until(lambda: tallies[0].state is State.DISCONNECTED)
        assert tallies[0].refused and tallies[0].reason == "ended by the server"


@pytest.mark.parametrize(
    ("path", "said"),
    [("/live/absent/whep", "409 Conflict: "), ("/live/obs/nothing", "404 Not Found")],
)
def test_a_refusal_has_the_status_and_the_words_of_the_server(path, said):
    with web_server() as root, viewing(root + path) as tallies:
        until(lambda: tallies[0].state is State.FAILED)
        assert tallies[0].refused and tallies[0].reason.startswith(said)


def test_nobody_there_is_a_refusal_of_the_connection():
    with viewing("http://127.0.0.1:9/live/obs/whep") as tallies:
        until(lambda: tallies[0].state is State.FAILED)
        assert "refused" in tallies[0].reason


def test_publishers_send_pictures_with_their_sets_and_sound():
    """Each has a stream of its own, which begins with a key frame and goes with its publisher."""
    registry = Registry()
    shown = [Shown(registry, f"cam{number}") for number in range(2)]
    with web_server(registry=registry) as root, publishing(f"{root}/live/cam{{}}/whip", 2) as seen:
        until(lambda: all(len(each.pictures) > 5 and len(each.sounds) > 5 for each in shown))
        for each in seen:
            assert each.state is State.CONNECTED and each.key_frames
            assert each.packets > each.frames > 5
        for each in shown:
            times = [at for at, _ in each.pictures]
            assert is_key_frame(each.pictures[0][1])
            assert times == sorted(set(times)) and each.sounds == sorted(each.sounds)
    until(lambda: all(each.ended for each in shown))


@pytest.mark.parametrize("line", [b"m=video", b"m=audio"])
def test_a_server_that_refuses_a_line_is_no_place_to_publish(line):
    """The answer is that of our own server, with a port of zero."""

    def refusing(application):
        def serve(environ, start):
            body = b"".join(application(environ, start))
            return [re.sub(line + rb" \d+", line + b" 0", body)]

        return serve

    with web_server(refusing) as root, publishing(f"{root}/live/cam/whip") as seen:
        until(lambda: seen[0].state is State.FAILED)
        assert seen[0].refused and seen[0].reason.startswith("The answer takes no ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-n", "2"), "needs {} in the URL"),
        (("--ramp", "9/1"), "needs {} in the URL"),
        (("--file", "film.flv"), "no --file"),
        (("--play",), "whip cannot play; it can publish"),
    ],
)
def test_what_whip_cannot_do_is_said_before_anything_is_sent(words, said):
    with pytest.raises(ConfigError, match=re.escape(said)):
        run(["whip://127.0.0.1:9/live/cam/whip", *words])


def test_a_server_that_is_slow_at_goodbyes_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(crew, "GOODBYES", 0.01)
    began, over = Event(), Event()

    def work(tally):
        try:
            began.set()
            over.wait()
        finally:
            over.wait()

    clients = crew.Crew(lambda number: work, 0.0)
    clients.aim(1)
    assert began.wait(PATIENCE)
    clients.stop()
    assert clients.tallies[0].name == "client_0"
    over.set()


# -- the endpoint ---------------------------------------------------------------------------


@contextmanager
def endpoint_server(answer):
    """A server of `answer(environ)`, a status, its headers and a body; and what it was asked."""
    asked = []

    def application(environ, start):
        asked.append((environ["PATH_INFO"], environ.get("HTTP_AUTHORIZATION")))
        status, headers, body = answer(environ)
        start(status, headers)
        return [body]

    server = WSGIServer(("127.0.0.1", 0), application, log=None)
    server.start()
    try:
        yield f"127.0.0.1:{server.server_port}", asked
    finally:
        server.stop()


def created(environ):
    return "201 Created", [("Location", "/session/1")], b"answer"


def test_a_token_stands_before_the_host_or_in_the_environment(monkeypatch):
    with endpoint_server(created) as (place, asked):
        endpoint = Endpoint(f"whep://s%40cret@{place}/x", None)
        endpoint.end(endpoint.begin(b"offer"))
        monkeypatch.setenv(TOKEN_VARIABLE, "other")
        Endpoint(f"whep://{place}/x", None).begin(b"offer")
    assert asked == [
        ("/x", "Bearer s@cret"),
        ("/session/1", "Bearer s@cret"),
        ("/x", "Bearer other"),
    ]


@pytest.mark.parametrize("url", ["whep:///x", "whep://127.0.0.1:99999/x", "whep://[::1/x"])
def test_a_url_without_a_place_is_an_error_before_anything_is_sent(url):
    with pytest.raises((LocalError, ValueError)):
        viewers(url, None).client(0)


def test_a_redirection_is_followed_and_the_token_stays_with_its_host():
    with endpoint_server(created) as (place, asked):

        def elsewhere(environ):
            return "307 Temporary Redirect", [("Location", f"http://{place}/there")], b""

        with endpoint_server(elsewhere) as (first, at_first):
            session = Endpoint(f"whep://secret@{first}/x", None).begin(b"offer")
    assert at_first == [("/x", "Bearer secret")] and asked == [("/there", None)]
    assert session.url.geturl() == f"http://{place}/session/1"


def test_redirections_without_an_end_are_a_refusal():
    def around(environ):
        return "307 Temporary Redirect", [("Location", "/x")], b""

    with endpoint_server(around) as (place, asked):
        with pytest.raises(RemoteError, match="307"):
            Endpoint(f"whep://{place}/x", None).begin(b"offer")
        assert len(asked) == MOST_REDIRECTS


@pytest.mark.parametrize("answer", [b"", b"v=0", b"v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\n"])
def test_an_answer_that_is_none_ends_the_viewer_and_its_session(answer):
    def nonsense(environ):
        return "201 Created", [("Location", "/session/1")], answer

    with endpoint_server(nonsense) as (place, asked), viewing(f"http://{place}/x") as tallies:
        until(lambda: tallies[0].state is State.FAILED)
    assert [path for path, _ in asked] == ["/x", "/session/1"]

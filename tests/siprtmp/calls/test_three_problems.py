"""The three problems that the first gateway had with H.264, each in a call as a phone makes it.

The pages docs/4-protocols/h264-*.md tell of them.
"""

from itertools import pairwise

import pytest
from support.gateway.gateway_world import BOB as NAME
from support.gateway.gateway_world import PCMU, Desk, GatewayWorld, sdp
from support.gateway.video_rig import PPS, SPS, VideoRig, idr, inter

from rtmplite.flv.avc import AvcConfig, split_units
from rtmplite.flv.video import VideoTag, is_key_frame, is_sequence_header
from rtmplite.rtmp.handshake import ClientHandshake

DATA, VIDEO = 18, 9
H264 = "m=video 6000 RTP/AVP 99\r\na=rtpmap:99 H264/90000\r\na=fmtp:99 packetization-mode=1"


class Film:
    """A phone that a stream has called, and its camera: 25 pictures a second."""

    def __init__(self, fmtp="", *, keeps_groups=True):
        self.world = GatewayWorld()
        self.world.registry.keeps_groups = keeps_groups
        Desk(self.world.link, answers=sdp(PCMU) + f"{H264}{fmtp}\r\n".encode())
        self.world.tool().publish(NAME)
        self.world.wait()
        [self.stream] = self.world.gateway.videos
        self._camera, self._number = VideoRig(), 0

    def show(self, *units, octets=100):
        """One picture, 40 ms after the one before."""
        self._number += 1
        for datagram in self._camera.datagrams(3600 * self._number, *units, octets=octets):
            self.stream.on_rtp(datagram, self.world.now)
        self.world.run()

    def player(self, **options):
        """A player that comes now."""
        player = self.world.client("rtmp://host/call", **options)
        player.play(NAME)
        return player


def videos(player):
    """Time and body of the video messages that a player got."""
    return [(at, body) for type_id, at, body in player.media() if type_id == VIDEO]


def sets_of(body):
    """The parameter sets of a sequence header."""
    config = AvcConfig.parse(VideoTag.parse(body).data)
    return [*config.sps, *config.pps]


@pytest.mark.parametrize("digest", [True, False])
def test_players_that_sign_their_handshake_get_the_sequence_header_first(digest, monkeypatch):
    """Covers Field §"Digest handshake": Flash Player decodes H.264 after a signed one alone."""
    film = Film()
    film.show(SPS, PPS, idr(1))
    for number in range(2, 5):
        film.show(inter(number))
    made = []

    def shake(*args, **options):
        made.append(ClientHandshake(*args, **options))
        return made[-1]

    monkeypatch.setattr("rtmplite.rtmp.client.ClientHandshake", shake)
    player = film.player(digest=digest)
    assert [each.scheme for each in made] == ["digest0" if digest else "simple"]
    kinds = [type_id for type_id, *_ in player.media()]
    assert kinds[0] == DATA and set(kinds[1:]) == {VIDEO}
    (_, header), (_, key), *others = videos(player)
    assert is_sequence_header(header) and sets_of(header) == [SPS, PPS]
    assert is_key_frame(key) and others
    assert not any(is_key_frame(body) or is_sequence_header(body) for _, body in others)


@pytest.mark.parametrize("keeps_groups", [True, False])
@pytest.mark.parametrize("by_sip", [True, False])
def test_parameter_sets_that_are_sent_once_reach_late_players_in_time(by_sip, keeps_groups):
    """Covers FLV 10.1 §E.4.3.2: by the phone's description, or before its first picture."""
    sprop = ";sprop-parameter-sets=Z0LAH9kBQfsBEAAAAwAQAAADAUDxgySA,aMuDyyA=" if by_sip else ""
    film = Film(sprop, keeps_groups=keeps_groups)
    film.show(*(() if by_sip else (SPS, PPS)), idr(1))
    for number in range(2, 100):
        film.show(inter(number) if number % 50 else idr(number))
    late = film.player()
    film.show(idr(100))  # without sets
    film.show(inter(101))
    film.show(inter(102))
    (at, header), (begun, key), *_ = videos(late)
    assert sets_of(header) == [SPS, PPS] and is_key_frame(key)
    number = split_units(VideoTag.parse(key).data)[0][3]
    assert number == (50 if keeps_groups else 100)  # the last key frame, or the next
    assert at == begun if keeps_groups else begun - 80 <= at <= begun
    times = [at for at, _ in videos(late)]
    assert all(before <= after for before, after in pairwise(times))
    assert sum(is_sequence_header(body) for _, body in videos(late)) == 1


def test_parameter_sets_that_change_are_announced():
    """Covers FLV 10.1 §E.4.3.2: a phone that turns its camera sends others."""
    film, other = Film(), PPS[:-1] + b"\x21"
    early = film.player()
    film.show(SPS, PPS, idr(1))
    film.show(SPS, other, idr(2))
    film.show(inter(3))
    late = film.player()
    film.show(inter(4))
    headers = [sets_of(body) for _, body in videos(early) if is_sequence_header(body)]
    assert headers == [[SPS, PPS], [SPS, other]]
    assert sets_of(videos(late)[0][1]) == [SPS, other] and is_key_frame(videos(late)[1][1])


@pytest.mark.parametrize("markers", ["last", "each", "none"])
def test_several_slices_of_a_picture_are_one_message(markers):
    """Covers RFC 6184 §5.1 and FLV 10.1 §E.4.3.1: whatever the sender does with its markers."""
    film = Film()
    player = film.player()
    pictures = [[SPS, PPS, idr(1), _next(idr(1)), _next(idr(1))]]
    pictures += [[inter(at), _next(inter(at)), _next(inter(at))] for at in range(2, 8)]
    sequence = 0
    for at, units in enumerate(pictures):
        for place, unit in enumerate(units):
            sequence += 1
            marked = markers == "each" or (markers == "last" and place == len(units) - 1)
            head = bytes((0x80, 0x80 * marked | 99)) + sequence.to_bytes(2, "big")
            packet = head + (3600 * at).to_bytes(4, "big") + b"cam1" + unit
            film.stream.on_rtp(packet, film.world.now)
    film.world.run()
    seen = [split_units(VideoTag.parse(body).data) for _, body in videos(player)[1:]]
    wanted = [[unit for unit in units if unit not in (SPS, PPS)] for units in pictures]
    assert seen == wanted[: len(seen)] and len(seen) >= len(wanted) - 1
    assert len({at for at, _ in videos(player)[1:]}) == len(seen)


def _next(slice_):
    """Another slice of the same picture: its first macroblock is not the first of all."""
    return bytes((slice_[0], slice_[1] & 0x7F | 0x40)) + slice_[2:]

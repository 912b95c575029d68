"""Commands of a NetStream: publish, play, pause, seek, and the end of a stream.

Implements RTMP 1.0 §7.2.2, from the client's side.
"""

from functools import partial
from typing import Final

from rtclab.conform.case import Cases, NotApplicable, Unmet
from rtclab.conform.checks import expect_equal
from rtclab.conform.rtmp.line import information, said
from rtclab.conform.rtmp.peer import AUDIO, VIDEO, NetStream, RtmpPeer
from rtmplite.rtmp.wire import control
from rtmplite.rtmp.wire.command import Command

cases: Cases[RtmpPeer] = Cases()
must = partial(cases.case, role="server")
should = partial(cases.case, role="server", level="SHOULD")
may = partial(cases.case, role="server", level="MAY")
SOUND: Final = b"\x82" + bytes(99)
PICTURE: Final = b"\x12" + bytes(99)  # a key frame of Sorenson's
START: Final = "NetStream.Play.Start"
RESET: Final = "NetStream.Play.Reset"


@must("RTMP 1.0 §7.2.2.6", "on-status")
def publish_has_a_status(peer: RtmpPeer) -> None:
    """publish is answered by onStatus NetStream.Publish.Start (§7.2.2.6)."""
    _published(peer)


@must("RTMP 1.0 §7.2.2", "on-status")
def status_has_level_code_description(peer: RtmpPeer) -> None:
    """An onStatus has level, code and description, all of them strings (§7.2.2)."""
    found = information(_published(peer)[1])
    for name in ("level", "code", "description"):
        if not isinstance(found.get(name), str):
            raise Unmet(f"a string {name}", str(found.get(name)))


@must("RTMP 1.0 §7.2.2", "number-0")
def status_has_number_0(peer: RtmpPeer) -> None:
    """An onStatus has transaction id 0 and a null in place of an object (§7.2.2)."""
    status = _published(peer)[1]
    expect_equal("number and object", (0.0, None), (status.transaction_id, status.object))


@must("RTMP 1.0 §7.2.2", "on-status")
def status_comes_on_its_stream(peer: RtmpPeer) -> None:
    """The message stream of an onStatus is the one that it is about (§7.2.2)."""
    stream = peer.stream()
    stream.command("publish", stream.name, "live", number=stream.line.number())
    found = next(where for each, where in stream.line.commands() if each.name == "onStatus")
    expect_equal("message stream", stream.id, found)


@may("RTMP 1.0 §7.1.7", "stream-begin")
def publish_begins_the_stream(peer: RtmpPeer) -> None:
    """StreamBegin with the number of the stream answers publish, beside the status (§7.3.3)."""
    stream = peer.stream()
    stream.command("publish", stream.name, "live", number=stream.line.number())
    begin = control.StreamBegin(stream.id)
    if not any(control.parse_control(each) == begin for each in stream.line.between()):
        raise Unmet(f"StreamBegin {stream.id}", "none before the answer to a later call")


@must("RTMP 1.0 §7.2.2.6", "any-client-plays")
def publishing_as_obs_does(peer: RtmpPeer) -> None:
    """With the calls of OBS before and after publish the stream comes through (§7.2.2.6)."""
    line, player = peer.connected(), peer.stream()
    for name in ("releaseStream", "FCPublish"):
        line.write(Command(name, line.number(), None, (player.name,)).message())
    publisher = NetStream(line, line.create_stream(), player.name)
    publisher.publish()
    player.play()
    publisher.send(AUDIO, 0, SOUND)
    player.expect([(AUDIO, 0, SOUND)])
    line.write(Command("FCUnpublish", line.number(), None, (player.name,)).message())
    line.write(Command("deleteStream", line.number(), None, (float(publisher.id),)).message())
    line.between()
    _expect_published(peer.stream(), player.name)


@may('Field §"Names in use"', "bad-name")
def second_publisher_is_refused(peer: RtmpPeer) -> None:
    """A name has one publisher: NetStream.Publish.BadName for others (Field §"Names in use")."""
    first, second = peer.publisher(), peer.stream()
    second.command("publish", first.name, "live", number=second.line.number())
    found = information(next(second.statuses()))
    said_so = found.get("level"), found.get("code")
    expect_equal("level and code", ("error", "NetStream.Publish.BadName"), said_so)


@must("RTMP 1.0 §7.2.2.1", "start-is-told")
def play_has_a_status(peer: RtmpPeer) -> None:
    """play of a live stream is answered by NetStream.Play.Start (§7.2.2.1)."""
    publisher, player = peer.publisher(), peer.stream()
    player.command("play", publisher.name)
    player.status(START)


@must("RTMP 1.0 §7.1.7", "stream-begin")
def play_begins_the_stream(peer: RtmpPeer) -> None:
    """StreamBegin with the number of the stream comes before NetStream.Play.Start (§7.1.7)."""
    publisher, player = peer.publisher(), peer.stream()
    player.command("play", publisher.name)
    for message in player.line.messages():
        if control.parse_control(message) == control.StreamBegin(player.id):
            return
        if message.type_id == 20 and START in said(Command.parse(message)):
            raise Unmet(f"StreamBegin {player.id} first", START)


@must("RTMP 1.0 §7.2.2.1", "reset-if-asked")
def reset_is_told_if_asked(peer: RtmpPeer) -> None:
    """play with the flag for a reset has NetStream.Play.Reset as well (§7.2.2.1)."""
    publisher, player = peer.publisher(), peer.stream()
    player.command("play", publisher.name, -2.0, -1.0, True)
    expect_equal("codes", {START, RESET}, {_code(player), _code(player)})


@must("RTMP 1.0 §7.2.2.1", "reset-if-asked")
def reset_is_not_told_unasked(peer: RtmpPeer) -> None:
    """play without a reset has no NetStream.Play.Reset (§7.2.2.1)."""
    publisher, player = peer.publisher(), peer.stream()
    player.command("play", publisher.name, -2.0, -1.0, False)
    expect_equal("code", START, _code(player))


@must("RTMP 1.0 §7.2.2.1", "waits")
def player_waits_for_its_publisher(peer: RtmpPeer) -> None:
    """play of a name that nobody publishes waits for its publisher (§7.2.2.1)."""
    publisher, player = peer.stream(), peer.stream()
    player.command("play", publisher.name, -2.0)
    player.line.between()
    publisher.publish()
    publisher.send(AUDIO, 0, SOUND)
    player.expect([(AUDIO, 0, SOUND)])


@must("RTMP 1.0 §7.2.2", "several-streams")
def connection_publishes_and_plays(peer: RtmpPeer) -> None:
    """Two streams of one connection can publish and play at once (§7.2.2)."""
    publisher = peer.publisher()
    number = publisher.line.create_stream()
    if number == publisher.id:
        raise Unmet("a second stream", f"{number} again")
    player = NetStream(publisher.line, number, publisher.name)
    player.play()
    publisher.send(AUDIO, 0, SOUND)
    player.expect([(AUDIO, 0, SOUND)])


@must("RTMP 1.0 §7.2.2.8", "notify")
def pause_has_a_status(peer: RtmpPeer) -> None:
    """pause with true is answered by NetStream.Pause.Notify (§7.2.2.8)."""
    _, player = peer.pair()
    player.command("pause", True, 0.0)
    player.status("NetStream.Pause.Notify")


@must("RTMP 1.0 §7.2.2.8", "notify")
def going_on_has_a_status(peer: RtmpPeer) -> None:
    """pause with false is answered by NetStream.Unpause.Notify (§7.2.2.8)."""
    _, player = peer.pair()
    player.command("pause", True, 0.0)
    player.status("NetStream.Pause.Notify")
    player.command("pause", False, 0.0)
    player.status("NetStream.Unpause.Notify")


@must("RTMP 1.0 §7.2.2.8", "stops")
def paused_player_gets_nothing(peer: RtmpPeer) -> None:
    """Between pause and going on no sound is sent (§7.2.2.8)."""
    publisher, player = peer.pair()
    player.command("pause", True, 0.0)
    _expect_none_meanwhile(publisher, player, AUDIO, SOUND)


@must("RTMP 1.0 §7.2.2.7", "notify-or-error")
def seek_has_an_answer(peer: RtmpPeer) -> None:
    """seek is answered: by NetStream.Seek.Notify, by another status, or by _error (§7.2.2.7)."""
    _, player = peer.pair()
    player.command("seek", 1000.0, number=player.line.number())
    for command, _ in player.line.commands():
        if command.name == "_error" or "NetStream.Seek" in said(command):
            return


@must("RTMP 1.0 §7.2.2.4", "switched-off")
def receive_audio_switches_sound_off(peer: RtmpPeer) -> None:
    """After receiveAudio with false no sound is sent (§7.2.2.4)."""
    publisher, player = peer.pair()
    player.command("receiveAudio", False)
    _expect_none_meanwhile(publisher, player, AUDIO, SOUND)


@must("RTMP 1.0 §7.2.2.5", "switched-off")
def receive_video_switches_pictures_off(peer: RtmpPeer) -> None:
    """After receiveVideo with false no picture is sent (§7.2.2.5)."""
    publisher, player = peer.pair()
    player.command("receiveVideo", False)
    _expect_none_meanwhile(publisher, player, VIDEO, PICTURE)


@must("RTMP 1.0 §7.2.2.4", "says-when-on")
def receive_audio_has_two_statuses(peer: RtmpPeer) -> None:
    """receiveAudio with true has NetStream.Seek.Notify and NetStream.Play.Start (§7.2.2.4)."""
    _expect_two(peer, "receiveAudio")


@must("RTMP 1.0 §7.2.2.5", "says-when-on")
def receive_video_has_two_statuses(peer: RtmpPeer) -> None:
    """receiveVideo with true has NetStream.Seek.Notify and NetStream.Play.Start (§7.2.2.5)."""
    _expect_two(peer, "receiveVideo")


@must("RTMP 1.0 §7.2.2.3", "destroyed")
def deleted_stream_frees_its_name(peer: RtmpPeer) -> None:
    """After deleteStream another client can publish the name (§7.2.2.3)."""
    first, second = peer.publisher(), peer.stream()
    first.line.write(Command("deleteStream", 0.0, None, (float(first.id),)).message())
    first.line.between()
    _expect_published(second, first.name)


@must('Field §"Names in use"', "freed-by-close-stream")
def closed_stream_frees_its_name(peer: RtmpPeer) -> None:
    """After closeStream another client can publish the name (Field §"Names in use")."""
    first, second = peer.publisher(), peer.stream()
    first.command("closeStream")
    first.line.between()
    _expect_published(second, first.name)


@must('Field §"Names in use"', "freed-by-close-stream")
def closed_stream_can_be_published_again(peer: RtmpPeer) -> None:
    """A stream after closeStream can be published again by its client (Field §"Names in use")."""
    publisher, player = peer.pair()
    publisher.command("closeStream")
    publisher.line.between()
    _expect_published(publisher, publisher.name)
    publisher.send(AUDIO, 0, SOUND)
    player.expect([(AUDIO, 0, SOUND)])


@must('Field §"Names in use"', "freed-with-its-connection")
def lost_publisher_frees_its_name(peer: RtmpPeer) -> None:
    """The end of a publisher's connection frees its name (Field §"Names in use")."""
    first, second = peer.publisher(), peer.stream()
    first.line.socket.shutdown(1)
    while first.line.receive():
        pass
    _expect_published(second, first.name)


@must("RTMP 1.0 §7.1.7", "stream-eof")
def end_of_the_publisher_is_told(peer: RtmpPeer) -> None:
    """Players of a stream whose publisher leaves get StreamEOF (§7.1.7)."""
    publisher, player = peer.pair()
    publisher.send(AUDIO, 0, SOUND)
    player.expect([(AUDIO, 0, SOUND)])
    publisher.line.write(Command("deleteStream", 0.0, None, (float(publisher.id),)).message())
    for order in player.line.controls():
        if order == control.StreamEof(player.id):
            return


def _published(peer: RtmpPeer) -> tuple[NetStream, Command]:
    """Publish, and give the first onStatus; NotApplicable if it refuses."""
    stream = peer.stream()
    stream.command("publish", stream.name, "live", number=stream.line.number())
    status = next(stream.statuses())
    if information(status).get("level") == "error":
        raise NotApplicable(f"the target refuses: {said(status)}")
    expect_equal("code", "NetStream.Publish.Start", information(status).get("code"))
    return stream, status


def _code(player: NetStream) -> object:
    return information(next(player.statuses())).get("code")


def _expect_none_meanwhile(
    publisher: NetStream, player: NetStream, type_id: int, payload: bytes
) -> None:
    """The player, which does not want this medium now, gets none of it."""
    player.line.between()
    publisher.send_all((type_id, 20 * at, payload) for at in range(5))
    publisher.line.between()
    found = [each for each in player.line.between() if each.payload == payload]
    if found:
        raise Unmet(f"no message of type {type_id}", str(len(found)))


def _expect_two(peer: RtmpPeer, name: str) -> None:
    _, player = peer.pair()
    player.command(name, False)
    player.command(name, True)
    codes = "NetStream.Seek.Notify", START
    expect_equal("codes", set(codes), {str(player.status(*codes)["code"]) for _ in codes})


def _expect_published(stream: NetStream, name: str) -> None:
    stream.command("publish", name, "live", number=stream.line.number())
    stream.status("NetStream.Publish.Start")

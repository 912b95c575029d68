"""Those who follow a live stream and are no RTMP players: taps, and viewers with a framing."""

from rtmplite.amf import amf0
from rtmplite.live.streams import Registry


class Screen:
    """What a viewer's bytes go into."""

    def __init__(self):
        self.output, self.output_size = [], 0

    def put(self, data):
        self.output.append(data)

    def abort(self, reason, now):
        raise AssertionError(reason)


class Tape:
    """A sink that keeps everything."""

    def __init__(self):
        self.heard = []

    def write(self, type_id, timestamp, payload, now):
        self.heard.append((type_id, timestamp, payload))

    def end(self, now):
        self.heard.append("end")


def test_a_tap_has_everything_and_the_end():
    """Own design: what is meant for the server alone is not passed on, what wraps is taken off."""
    registry, begun = Registry(), []
    tape = Tape()

    def attach(live, now):
        begun.append((live.name, live.kind, now))
        live.tap(tape)

    registry.on_begin.append(attach)
    live = registry.open("live", "demo")
    live.begin(1.0, "record")
    data = amf0.encode("@setDataFrame", "onMetaData", {"width": 320.0})
    live.write(18, 0, data, now=1.0)
    live.write(18, 0, amf0.encode("@clearDataFrame"), now=1.0)
    live.write(9, 20, b"\x27\x01\0\0\0inter", now=1.0)
    assert live.kinds == {9, 18} and live.opening() == []
    live.begin(2.0)
    live.write(8, 0, b"\xb2sound", now=2.0)
    live.end(3.0)
    metadata = amf0.encode("onMetaData", {"width": 320.0})
    assert tape.heard == [
        *((18, 0, metadata), (9, 20, b"\x27\x01\0\0\0inter"), "end"),
        *((8, 0, b"\xb2sound"), "end"),
    ]
    assert begun == [("demo", "record", 1.0), ("demo", "live", 2.0)] and registry.streams == 0


def test_who_speaks_no_rtmp_is_written_to_in_another_way():
    """Own design: one framing, one piece of bytes for all who share it."""
    made = []

    def framing(type_id, timestamp, payload):
        made.append(b"%d at %d: %b" % (type_id, timestamp, payload))
        return made[-1]

    live = Registry().open("live", "demo")
    live.write(8, 0, b"\xaf\0header", now=0.0)
    live.write(8, 0, b"\xaf\1sound", now=0.0)
    screens = [Screen(), Screen()]
    for screen in screens:
        live.join(screen, framing, None, now=0.0)
    live.write(8, 20, b"\xaf\1more", now=0.0)
    assert screens[0].output == [b"8 at 0: \xaf\0header", b"8 at 20: \xaf\1more"]
    assert screens[0].output[1] is screens[1].output[1] and len(made) == 3

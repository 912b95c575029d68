"""A flood of RTMFP startups, beside calls and streams: the gateway ends when it is asked to."""

from threading import Thread

from support.attacks.hostile_rtmfp import KeyingFlood
from support.attacks.hostile_sip import Caller
from support.gateway.richclient import RichClient

from rtmplite.net.client.rtmfp_client import RtmfpClient


def test_a_flood_of_keyings_does_not_hold_up_the_end(gateway, tmp_path):
    """RFC 7016 §5: while keys are computed for a hundred strangers, in the middle of a call."""
    server = gateway("--rtmfp", "127.0.0.1:0", "--record", str(tmp_path))
    alice = RichClient(server.rtmp, "alice@127.0.0.1")
    caller = Caller(server, "alice")
    caller.call(alice)
    guest = RtmfpClient.connect(f"rtmfp://{server.rtmfp}/live")
    guest.create_stream().publish("demo")
    flood = KeyingFlood(server)
    flood.go_on(2.0)
    server.wait_until(lambda: server.status()["rtmfp_unproven"] > 8, what="strangers' sessions")
    attack = Thread(target=flood.go_on, args=(3.0,))
    attack.start()
    assert server.stop() == 0  # within five seconds, in an orderly way
    attack.join()
    flood.close()
    guest.close()
    alice.close()

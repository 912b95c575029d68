"""A phone in Python that calls our gateway as a page does: by ICE and DTLS."""

import gevent
import pytest
from support.limits import patience

from p2psip.agent import Account, Agent, CallSettings, NetworkSettings

pytest.importorskip("p2psip.net.dtls")
FRAME = bytes(range(160))  # no silence


def test_a_phone_by_ice_and_dtls_meets_a_plain_one_in_a_room(gateway):
    """The gateway is lite, and begins no handshake."""
    server = gateway("--room", "team", "--webrtc", "127.0.0.1:0")
    heard = {"page": 0, "phone": 0}

    def hear(name):
        def on_audio(payload, timestamp):
            heard[name] += len(set(payload)) > 1  # nobody else speaks

        return on_audio

    page = Agent(Account("page"), NetworkSettings(ice=True), CallSettings(dtls=True))
    with page, Agent(Account("phone")) as phone:
        room = f"sip:team@{server.sip}"
        calls = [page.call(room, on_audio=hear("page")), phone.call(room, on_audio=hear("phone"))]
        with patience(20):
            while min(heard.values()) < 20:
                for call in calls:
                    call.send_audio(FRAME)
                gevent.sleep(0.02)
        assert calls[0].is_by_ice and calls[0].is_encrypted
        assert not (calls[1].is_by_ice or calls[1].is_encrypted)
        assert b"a=ice-lite" in calls[0]._signalling.remote_sdp
        calls[0].hold()
        calls[0].resume()
        for call in calls:
            call.hangup()
    server.wait_status({"calls": 0})

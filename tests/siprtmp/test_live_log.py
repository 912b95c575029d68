"""What the gateway's log says of streams: each beginning and end, and names that lead nowhere."""

import pytest
from support.gateway.gateway import Gateway

from rtmplite.errors import RemoteError
from rtmplite.net.client.rtmp_client import RtmpClient
from rtmplite.rtmp.wire.message import MessageType


def test_streams_and_wrong_applications_have_lines(tmp_path):
    with Gateway(tmp_path / "gateway") as gateway:
        with pytest.raises(RemoteError, match="lvie; there are: call, live, mixed, sip"):
            RtmpClient.connect(gateway.url("lvie"))
        player = RtmpClient.connect(gateway.url("live"))
        player.create_stream().play("demo")
        client = RtmpClient.connect(gateway.url("live"))
        stream = client.create_stream()
        stream.publish("demo")
        stream.write(MessageType.AUDIO, 0, b"\x82" + bytes(160))
        client.close()
        player.close()
        gateway.wait_until(lambda: " play-end " in gateway.output, what="the end of the player")
        gateway.wait_until(lambda: " publish-end " in gateway.output, what="the publisher's end")
    lines = {line.split()[3]: line for line in gateway.output.splitlines()[1:]}
    assert {"refused", "publish-start", "publish-end", "play-start", "play-end"} <= lines.keys()
    assert " app=lvie wants=connect " in lines["refused"]
    for event in ("publish-start", "publish-end", "play-start", "play-end"):
        assert " source=127.0.0.1 port=" in lines[event] and " app=live name=demo" in lines[event]
    assert " bytes=" in lines["publish-end"] and " seconds=" in lines["publish-end"]
    assert list(lines)[-1] == "stopping"

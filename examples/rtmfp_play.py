"""Play a live stream, by RTMFP or RTMP, into a file that any player opens.

python rtmfp_play.py rtmfp://127.0.0.1/live/NAME NAME.flv
"""

import sys

from rtmplite import Player, Recorder

url, path = sys.argv[1:]
with Player.open(url) as player, open(path, "wb") as file:
    print(f"playing {player.name} of {player.client.target.tc_url}", flush=True)
    recorder = Recorder()
    for message in player:
        file.write(recorder.write(message.type_id, message.timestamp, message.payload))
    for position, data in recorder.patches():  # length and key frames, known at the end
        file.seek(position)
        file.write(data)
print(f"{recorder.size} bytes, {recorder.duration / 1000:.1f} s")

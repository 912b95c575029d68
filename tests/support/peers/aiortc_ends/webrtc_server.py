"""aiortc as a server of WHEP and WHIP, as a child process: full ICE, and DTLS as it begins.

POST to /whep gets a tone and numbered pictures, POST to /whip is watched,
DELETE ends a session.  It prints the address that it listens at, then a line of JSON for each
session that begins or ends, and for each picture and half second of sound that is published.
"""

import asyncio
import json
import sys

from aiortc import RTCPeerConnection, RTCSessionDescription
from webrtc_peer import Numbers, Tone, hear, see

SESSIONS: dict[str, RTCPeerConnection] = {}
TASKS = []


def tell(**said: object) -> None:
    """Print what has happened."""
    print(json.dumps(said), flush=True)


async def begin(path: str, offer: str) -> tuple[str, list[str], str]:
    """Answer an offer."""
    peer = RTCPeerConnection()

    @peer.on("track")
    def came(track) -> None:
        TASKS.append(asyncio.ensure_future((hear if track.kind == "audio" else see)(track)))

    await peer.setRemoteDescription(RTCSessionDescription(offer, "offer"))
    if path == "/whep":
        for each in peer.getTransceivers():
            each.sender.replaceTrack(Tone() if each.kind == "audio" else Numbers())
            each.direction = "sendonly"
    await peer.setLocalDescription(await peer.createAnswer())
    place = f"{path}/{len(SESSIONS)}"
    SESSIONS[place] = peer
    tell(begun=place)
    headers = [f"Location: {place}", "Content-Type: application/sdp"]
    return "201 Created", headers, peer.localDescription.sdp


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one request."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    method, path, _ = head.split(" ", 2)
    fields = dict(line.lower().split(": ", 1) for line in head.splitlines()[1:] if ": " in line)
    body = await reader.readexactly(int(fields.get("content-length", 0)))
    status, headers, said = "404 Not Found", [], ""
    if method == "POST" and path in ("/whep", "/whip"):
        status, headers, said = await begin(path, body.decode())
    elif method == "DELETE" and path in SESSIONS:
        await SESSIONS[path].close()
        tell(ended=path)
        status = "200 OK"
    lines = [f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(said)}", "Connection: close"]
    writer.write(("\r\n".join(lines) + "\r\n\r\n" + said).encode())
    await writer.drain()
    writer.close()


async def main() -> None:
    """Serve until SIGTERM."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    tell(listens=server.sockets[0].getsockname()[1])
    await server.serve_forever()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))

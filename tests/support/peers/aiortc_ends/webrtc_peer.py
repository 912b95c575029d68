"""aiortc as a browser that publishes or plays, as a child process: `webrtc_peer.py COMMAND ...`.

whip URL [TOKEN]   publish a tone of 440 Hz and numbered pictures until SIGTERM
whep URL [TOKEN]   play until SIGTERM
rtmp URL           play by RTMP with ffmpeg 8, which knows what browsers publish
ffmpeg URL FOLDER  publish the same by the WHIP of ffmpeg 8, until SIGTERM, which it ends by DELETE

A word more, PORT, is that of a relay on loopback to go through, in place of the candidates.

It prints a line of JSON for what comes: the number of each picture, the pitch of each half second.
"""

import asyncio
import json
import re
import signal
import sys
import time
import urllib.request
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from aiortc import AudioStreamTrack, RTCPeerConnection, RTCSessionDescription, VideoStreamTrack
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

RATE, TONE, STEP = 48000, 440, 960
WIDTH, HEIGHT, BITS, COLUMN = 320, 240, 16, 20


class Tone(AudioStreamTrack):
    """A tone, in packets of 20 ms."""

    async def recv(self):
        """One frame, when it is due."""
        if not hasattr(self, "at"):
            self.at, self.begun = 0, time.monotonic()
        await asyncio.sleep(max(0.0, self.begun + self.at / RATE - time.monotonic()))
        times = (np.arange(STEP) + self.at) / RATE
        wave = (8000 * np.sin(2 * np.pi * TONE * times)).astype(np.int16)
        frame = av.AudioFrame.from_ndarray(wave.reshape(1, -1), format="s16", layout="mono")
        frame.pts, frame.sample_rate, frame.time_base = self.at, RATE, Fraction(1, RATE)
        self.at += STEP
        return frame


class Numbers(VideoStreamTrack):
    """Pictures that carry their number, as `numbered_frames` has them."""

    async def recv(self):
        """One frame, when it is due."""
        pts, base = await self.next_timestamp()
        number = self.number = getattr(self, "number", -1) + 1
        picture = np.full((HEIGHT, WIDTH), 16, np.uint8)
        for bit in range(BITS):
            picture[:, bit * COLUMN : (bit + 1) * COLUMN] = 235 if number >> bit & 1 else 16
        frame = av.VideoFrame.from_ndarray(picture, format="gray").reformat(format="yuv420p")
        frame.pts, frame.time_base = pts, base
        return frame


def number_of(picture) -> int:
    """The number that a picture carries."""
    row = picture.to_ndarray(format="gray")[picture.height // 2]
    column = picture.width / BITS
    return sum(int(row[int((bit + 0.5) * column)] > 125) << bit for bit in range(BITS))


def pitch(sound: np.ndarray, rate: int) -> float:
    """The strongest frequency."""
    spectrum = np.abs(np.fft.rfft(sound * np.hanning(len(sound))))
    return float(np.argmax(spectrum) * rate / len(sound))


def post(url: str, sdp: str, token: str) -> str:
    """The answer to an offer; the address of the session is printed."""
    headers = {"Content-Type": "application/sdp"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    request = urllib.request.Request(url, sdp.encode(), headers, method="POST")
    with urllib.request.urlopen(request) as answer:
        print(json.dumps({"location": answer.headers["Location"]}), flush=True)
        return answer.read().decode()


async def hear(track) -> None:
    """Print the pitch of each half second."""
    kept = []
    while True:
        frame = await track.recv()
        sound = frame.to_ndarray().reshape(-1, len(frame.layout.channels))[:, 0]
        kept.append(sound)
        if sum(map(len, kept)) >= frame.sample_rate // 2:
            heard = pitch(np.concatenate(kept).astype(float), frame.sample_rate)
            print(json.dumps({"pitch": heard}), flush=True)
            kept = []


async def see(track) -> None:
    """Print the number of each picture."""
    while True:
        print(json.dumps({"number": number_of(await track.recv())}), flush=True)


def listen(url: str) -> None:
    """Play by RTMP."""
    options = {"rtmp_enhanced_codecs": "avc1,Opus", "rtmp_live": "live"}
    kept = []
    with av.open(url, options=options) as source:
        shown = [stream for stream in source.streams if stream.type in ("audio", "video")]
        codecs = [stream.codec_context.name for stream in shown]
        print(json.dumps({"codecs": codecs}), flush=True)
        for packet in source.demux(shown):
            for frame in packet.decode():
                if isinstance(frame, av.VideoFrame):
                    print(json.dumps({"number": number_of(frame)}), flush=True)
                    continue
                kept.append(frame.to_ndarray().reshape(len(frame.layout.channels), -1)[0])
                if sum(map(len, kept)) >= frame.sample_rate // 2:
                    heard = pitch(np.concatenate(kept).astype(float), frame.sample_rate)
                    print(json.dumps({"pitch": heard}), flush=True)
                    kept = []


def certificate(folder: Path) -> dict[str, str]:
    """A key of P-256 and its certificate; with GnuTLS ffmpeg makes one of a curve that is rare."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ffmpeg")])
    today = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(today - timedelta(1)).not_valid_after(today + timedelta(1))
    cert, secret = folder / "cert.pem", folder / "key.pem"
    cert.write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))
    written = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    secret.write_bytes(written)
    return {"cert_file": str(cert), "key_file": str(secret)}


def publish(url: str, folder: str) -> None:
    """Publish by the WHIP of ffmpeg."""
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: ended.append(number))
    options = certificate(Path(folder)) | {"whip_flags": "dtls_active"}
    with av.open(url, "w", format="whip", options=options) as output:
        video, audio = output.add_stream("libx264", rate=30), output.add_stream("libopus", RATE)
        video.width, video.height, video.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        video.options = {"preset": "ultrafast", "tune": "zerolatency", "g": "15"}
        audio.layout = "stereo"
        tone, numbers = Tone(), Numbers()
        both_ears = av.AudioResampler("s16", "stereo", RATE, STEP)

        async def send(track, stream) -> None:
            while not ended:
                frame = await track.recv()
                for each in both_ears.resample(frame) if stream is audio else [frame]:
                    output.mux(stream.encode(each))

        async def both() -> None:
            await asyncio.gather(send(tone, audio), send(numbers, video))

        asyncio.run(both())


async def main(command: str, url: str, token: str = "", relay: str = "") -> None:
    """Publish or play."""
    browser = RTCPeerConnection()
    tasks = []

    @browser.on("connectionstatechange")
    def changed() -> None:
        print(json.dumps({"state": browser.connectionState}), flush=True)

    @browser.on("track")
    def came(track) -> None:
        tasks.append(asyncio.ensure_future((hear if track.kind == "audio" else see)(track)))

    if command == "whip":
        browser.addTrack(Tone())
        browser.addTrack(Numbers())
    else:
        browser.addTransceiver("audio", direction="recvonly")
        browser.addTransceiver("video", direction="recvonly")
    await browser.setLocalDescription(await browser.createOffer())
    answer = await asyncio.to_thread(post, url, browser.localDescription.sdp, token)
    if relay:
        answer = re.sub(r"[0-9.]+ [0-9]+ typ host", f"127.0.0.1 {relay} typ host", answer)
    await browser.setRemoteDescription(RTCSessionDescription(answer, "answer"))
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()
    await browser.close()


if __name__ == "__main__":
    if sys.argv[1] == "rtmp":
        listen(sys.argv[2])
    elif sys.argv[1] == "ffmpeg":
        publish(*sys.argv[2:])
    else:
        asyncio.run(main(*sys.argv[1:]))

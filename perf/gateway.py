"""The gateway under measurement: its process, and calls and players set up in it."""

import sys
from pathlib import Path

from cpu import Server
from load import SPEEX_8K, Leg, Phone
from rtmp_load import CallClient
from sip_load import SipPeer

PROFILED = Path(__file__).resolve().parent / "profiled.py"
PAYLOAD_TYPES = {"narrowband": 98, "wideband": 96}  # by the names of the client's API


class Gateway(Server):
    """`python -m siprtmp` on free loopback ports, pinned to `core`."""

    def __init__(self, core: int, *arguments: str, profile: str = "") -> None:
        """Start it with more `arguments`; `profile` is where to write what cProfile saw."""
        program = [str(PROFILED), profile] if profile else ["-m", "siprtmp"]
        listen = ["--http", "off"]
        for protocol in ("rtmp", "rtmfp", "sip"):
            if f"--{protocol}" in arguments:
                continue
            listen += [f"--{protocol}", "127.0.0.1:0"]
        quiet = ["--log-level", "warning"]
        super().__init__([sys.executable, *program, *listen, *quiet, *arguments], core)
        words = dict(word.split("=") for word in self.line.split()[1:])
        self.rtmp, self.rtmfp, self.sip = words["rtmp"], words["rtmfp"], words.get("sip", "")
        self.http, self.ws = words.get("http", ""), words.get("ws", "")

    def url(self, stream: str) -> str:
        """Where `stream` is published and played."""
        return f"rtmp://{self.rtmp}/live/{stream}"

    def call_legs(self, calls: int, frame: bytes) -> list[Leg]:
        """Place `calls` calls by the rich client's API; both directions of each.

        The phone is at the rate of `frame`, and answers at once.
        """
        codec = "narrowband" if len(frame) == len(SPEEX_8K) else "wideband"
        peer, made = SipPeer(), list[Leg]()
        for number in range(calls):
            phone = Phone(frame, PAYLOAD_TYPES[codec])
            client = CallClient(f"rtmp://{self.rtmp}/sip/caller{number}@127.0.0.1", frame)
            client.invite(f"sip:phone@127.0.0.1:{peer.port}", codec)
            peer.answer(phone)
            client.open()
            made += phone, client
        return made

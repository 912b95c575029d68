"""The real phone: a headless baresip that is driven over TCP and records what it hears."""

import json
import select
import socket
from pathlib import Path
from typing import Any

from support.peers.process import PATIENCE, Process, free_port, lack, require
from support.peers.tones import Samples, read_wav, tone, write_wav

MODULES_PATH = Path("/usr/lib/baresip/modules")
MODULES = ("g711", "g722", "opus", "sndfile", "aubridge", "aufile", "uuid")
MIRROR = ("avcodec", "vp8", "vidbridge")
MOST_OCTETS = 19_200_000  # of its tone, at whose end it hangs up: 20 minutes of 8 kHz
APPLICATIONS = ("account", "contact", "menu", "ctrl_tcp")

PHONE_PORTS = range(10_000, 20_000)  # below those that the kernel gives to others

CONFIG = """\
poll_method epoll
sip_listen 127.0.0.1:{port}
call_local_timeout 120
call_max_calls 8
audio_source aufile,{folder}/tone.wav
audio_player aubridge,none
audio_alert aubridge,alert
ausrc_srate {rate}
auplay_srate {rate}
audio_buffer 20-160
rtp_ports {low}-{high}
rtcp_mux {rtcp_mux}
jitter_buffer_delay 1-5
rtp_stats yes
module_path {modules_path}
{modules}
ctrl_tcp_listen 127.0.0.1:{control}
snd_path {folder}
"""

# what it sees is what it shows
MIRROR_CONFIG = """\
video_source vidbridge,mirror
video_display vidbridge,mirror
video_size 320x240
video_fps 15
video_bitrate 500000
avcodec_h264enc libx264
avcodec_h265enc libx265
"""
FILM_CONFIG = MIRROR_CONFIG.replace("video_source vidbridge,mirror", "video_source avformat,{film}")


def with_srtp(word: str = "srtp") -> tuple[str, ...]:
    """The modules of a phone that can encrypt; without that one the test skips."""
    if not (MODULES_PATH / "srtp.so").is_file():
        lack("baresip's module srtp", "baresip-core")
    return (*MODULES, "srtp", *(["dtls_srtp"] if word == "dtls_srtp" else []))


class Baresip(Process):
    """A phone of `user` that plays a tone of `hz` and keeps what it hears as dump-*-dec.wav.

    With `registrar` (host:port) it registers there as sip:`user`@`domain` with `password` and is
    ready when the registrar has agreed. `answer` is "auto" or "manual". It offers its media on a
    local address that is not loopback when the machine has one, as it would at home.
    """

    def __init__(
        self,
        folder: Path,
        user: str,
        *,
        registrar: str = "",
        password: str = "",
        domain: str = "127.0.0.1",
        answer: str = "auto",
        hz: int = 440,
        level: float = 0.5,
        codecs: str = "PCMU/8000/1",
        rate: int = 8000,
        transport: str = "udp",
        account: str = "",
        ca: Path | None = None,
        mirror: bool = False,
        film: Path | None = None,
        video: str = "H264",
        rtcp_mux: bool = False,
        contact: str = "",
        srtp: str = "",
    ) -> None:
        """`codecs` in baresip's notation, `account` more account parameters (";name=value"),
        `contact` the address that its command "message" writes to.

        `level` is that of its tone, 1 the loudest.
        With `mirror` it has H.264, or the codec of `video`, and sends back what it sees; with
        `film` it sends the pictures of that file instead.
        With `rtcp_mux` it offers one port for RTP and RTCP, and takes one where that is offered.
        `srtp` is its word for SRTP by keys in SDP: "srtp" where both have it, "srtp-mand" always.
        With "dtls_srtp" its keys come by a handshake.  By the account's "medianat=ice" it has ICE,
        with those addresses of this machine that are not of loopback.
        By TLS it checks the server's certificate against the authorities in `ca`.
        """
        program = require("baresip", "baresip-core")
        super().__init__(folder)
        self.user, self.domain, self.registrar = user, domain, registrar
        self.port, self.control_port = free_port(), free_port()
        self.events: list[dict[str, Any]] = []
        self._replies: dict[str, dict[str, Any]] = {}
        self._control: socket.socket | None = None
        self._buffer = b""
        self._write_tone(tone(hz, 1, rate, level), rate, channels=2 if codecs[-2:] == "/2" else 1)
        self._modules = with_srtp(srtp) if srtp else MODULES
        self._modules += ("ice",) if "medianat=ice" in account else ()
        self._write_config(rate, ca, mirror, film, rtcp_mux)
        options = [f"answermode={answer}", f"audio_codecs={codecs}", "ptime=20"]
        options += [f"video_codecs={video}"] if mirror or film else []
        options += [f"mediaenc={srtp}"] if srtp else []
        options += [f"auth_user={user}", f"auth_pass={password}"] if password else []
        if registrar:
            options += [f'outbound="sip:{registrar};transport={transport}"', "regint=60"]
        else:
            options += ["regint=0"]
        line = f"<sip:{user}@{domain};transport={transport}>;{';'.join(options)}{account}\n"
        (folder / "accounts").write_text(line)
        (folder / "contacts").write_text(f'"them" <{contact}>\n' if contact else "")
        self.argv = [program, "-f", str(folder), "-v", "-s"]  # -s: SIP trace in the log

    def _write_tone(self, second: Samples, rate: int, channels: int) -> None:
        """Write what it says, with the channels that its codec has."""
        self._tone = self.folder / "tone.wav"
        seconds = max(120, MOST_OCTETS // (2 * channels * rate))
        write_wav(self._tone, second, rate, channels, times=seconds)

    def _write_config(
        self, rate: int, ca: Path | None, mirror: bool, film: Path | None, rtcp_mux: bool
    ) -> None:
        more = (*MIRROR, "avformat") if film else MIRROR if mirror else ()
        lines = [f"module {name}.so" for name in (*self._modules, *more)]
        lines += [f"module_app {name}.so" for name in APPLICATIONS]
        text = CONFIG.format(
            port=self.port,
            control=self.control_port,
            low=PHONE_PORTS[0],
            high=PHONE_PORTS[-1],
            folder=self.folder,
            rate=rate,
            rtcp_mux="yes" if rtcp_mux else "no",
            modules_path=MODULES_PATH,
            modules="\n".join(lines),
        )
        if film is not None:
            text += FILM_CONFIG.format(film=film)
        elif mirror:
            text += MIRROR_CONFIG
        if ca is not None:
            text += f"sip_cafile {ca}\nsip_verify_server yes\n"
        (self.folder / "config").write_text(text)

    @property
    def uri(self) -> str:
        """The phone's own address for a direct call, past any registrar."""
        return f"sip:{self.user}@127.0.0.1:{self.port}"

    def __exit__(self, *error: object) -> None:
        """Stop it, and keep no tone."""
        super().__exit__(*error)
        self._tone.unlink(missing_ok=True)

    def is_ready(self) -> bool:
        """Truthy once it can be commanded and, where it should be, is registered."""
        if self._control is None:
            if f"listening on 127.0.0.1:{self.control_port}" not in self.output:
                return False  # a probing connection would count as the controlling one
            self._control = socket.create_connection(("127.0.0.1", self.control_port))
        return not self.registrar or "OK " in self.command("reginfo")

    # the control connection: netstrings of JSON, events and replies mixed

    def _pump(self, seconds: float) -> None:
        assert self._control is not None
        if not select.select([self._control], [], [], seconds)[0]:
            return
        self._buffer += self._control.recv(65536)
        while b":" in self._buffer:
            length, _, rest = self._buffer.partition(b":")
            if len(rest) <= int(length):
                return
            item, self._buffer = json.loads(rest[: int(length)]), rest[int(length) + 1 :]
            if item.get("event"):
                self.events.append(item)
            else:
                self._replies[item.get("token", "")] = item

    def command(self, command: str, params: str = "") -> str:
        """Run one baresip command ("dial", "accept", "hangup", "reginfo"); its printed answer."""
        assert self._control is not None
        token = str(len(self._replies))
        text = json.dumps({"command": command, "params": params, "token": token}).encode()
        self._control.sendall(b"%d:%s," % (len(text), text))

        def answered() -> bool:
            self._pump(0)
            return token in self._replies

        self.wait_until(answered, what=f"{self.user}'s answer to {command}")
        return str(self._replies[token].get("data", ""))

    def wait_event(self, kind: str, timeout: float = PATIENCE) -> dict[str, Any]:
        """The first event of `kind` (CALL_INCOMING, CALL_ESTABLISHED, CALL_CLOSED ...); used up."""

        def seen() -> dict[str, Any] | None:
            self._pump(0)
            return next((event for event in self.events if event["type"] == kind), None)

        event = self.wait_until(seen, what=f"{kind} at {self.user}'s phone", timeout=timeout)
        assert event is not None
        self.events.remove(event)
        return event

    # what a test does with a phone

    def dial(self, uri: str) -> None:
        """Start a call; CALL_RINGING and CALL_ESTABLISHED tell how it goes."""
        self.command("dial", uri)

    def accept(self) -> None:
        """Answer the ringing call (of a phone with answer="manual")."""
        self.command("accept")

    def hangup(self) -> None:
        """End the call, cancel it, or decline it while it rings."""
        self.command("hangup")

    def heard(self) -> tuple[Samples, int]:
        """All the latest call brought, decoded, and its rate; whole once CALL_CLOSED was seen."""
        return self._recording("dec")

    def spoken(self) -> tuple[Samples, int]:
        """What the phone sent in its latest call, before encoding, and its rate."""
        return self._recording("enc")

    def _recording(self, direction: str) -> tuple[Samples, int]:
        files = sorted(self.folder.glob(f"dump-*-{direction}.wav"))
        assert files, f"{self.user} recorded no call\n{self.tail()}"
        return read_wav(files[-1])

"""Real RTMP and SIP programs as test peers: ffmpeg, rtmpdump, nginx-rtmp, SIPp and Kamailio.

Each class builds a command line, starts it on free loopback ports in a folder of its own and
knows what "ready" looks like. The phone is in `support.peers.baresip`, the gateway in
`support.gateway.gateway`; the fixture `start` runs any of them and shows their logs when a test
fails.
"""

import csv
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from socket import SOCK_DGRAM, SOCK_STREAM
from string import Template

import pytest
from support.certificates import Certificate
from support.peers.process import (
    Process,
    free_port,
    port_is_bound,
    require,
    tcp_answers,
    udp_is_bound,
)
from support.peers.tones import Samples, from_s16

HERE = Path(__file__).resolve().parent
G711_ULAW = ("-c:a", "pcm_mulaw", "-ar", "8000", "-ac", "1")
G711_ALAW = ("-c:a", "pcm_alaw", "-ar", "8000", "-ac", "1")
AAC_H264 = (
    *("-c:a", "aac", "-ar", "44100", "-ac", "1", "-b:a", "64k"),
    *("-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-pix_fmt", "yuv420p"),
    *("-g", "12", "-bf", "0"),
)
LASTING = 1200  # s of a publisher that its test ends: longer than any may take, however slow
ENDLESS = ("-flvflags", "no_duration_filesize")  # or rtmpdump calls what is cut short incomplete


class Ffmpeg(Process):
    """One run of ffmpeg; the class methods write the command lines that tests need."""

    def __init__(self, folder: Path, *words: str | Path) -> None:
        """`words` follow `ffmpeg -nostdin -loglevel info`."""
        program = require("ffmpeg", "ffmpeg")
        options = ("-nostdin", "-hide_banner", "-loglevel", "info", "-y")
        super().__init__(folder, [program, *options, *words])

    @classmethod
    def publish(
        cls,
        folder: Path,
        url: str,
        *,
        hz: float = 440,
        seconds: float = 10,
        codecs: tuple[str, ...] = G711_ULAW,
        video: bool = False,
        realtime: bool = True,
    ) -> "Ffmpeg":
        """Send a tone, with `video` also a test picture of 12 frames a second, as FLV to `url`."""
        pace = ("-re",) if realtime else ()
        words = [*pace, "-f", "lavfi", "-i", f"sine=frequency={hz}:sample_rate=48000"]
        if video:
            words += [*pace, "-f", "lavfi", "-i", "testsrc=size=320x240:rate=12"]
        return cls(folder, *words, "-t", str(seconds), *codecs, "-f", "flv", url)

    @classmethod
    def play(cls, folder: Path, url: str, *, to: Path, seconds: float | None = None) -> "Ffmpeg":
        """Store what `url` plays, tags as they come (`-c copy`), to the end or for `seconds`."""
        limit = () if seconds is None else ("-t", str(seconds))
        return cls(folder, "-i", url, *limit, "-c", "copy", to)

    def leave(self) -> bool:
        """End a publisher by Ctrl-C, when all have seen enough; whether it ended well."""
        self.child.send_signal(signal.SIGINT)
        return self.finish() == 255 and "Exiting normally" in self.output


def decode_audio(path: Path, rate: int = 8000) -> Samples:
    """The sound of any file ffmpeg can read, as mono samples at `rate`."""
    program = require("ffmpeg", "ffmpeg")
    words = ["-nostdin", "-loglevel", "error", "-i", path, "-vn", "-ac", "1", "-ar", str(rate)]
    done = subprocess.run([program, *words, "-f", "s16le", "-"], capture_output=True, timeout=600)
    assert done.returncode == 0, f"ffmpeg cannot decode {path.name}: {done.stderr.decode()}"
    return from_s16(done.stdout)


def frame_hashes(path: Path, stream: str = "0:v") -> list[str]:
    """One hash per decoded frame of `stream`, to compare pictures at the two ends."""
    program = require("ffmpeg", "ffmpeg")
    words = ["-nostdin", "-loglevel", "error", "-i", path, "-map", stream, "-f", "framemd5", "-"]
    done = subprocess.run([program, *words], capture_output=True, timeout=600, text=True)
    assert done.returncode == 0, f"ffmpeg cannot decode {path.name}: {done.stderr}"
    rows = [line for line in done.stdout.splitlines() if not line.startswith("#")]
    return [row.rsplit(",", 1)[1].strip() for row in rows]


class RtmpDump(Process):
    """rtmpdump playing `url` into `self.file` until the publisher goes or `stop`."""

    def __init__(self, folder: Path, url: str) -> None:
        """`url` is `rtmp://host:port/app/stream`."""
        program = require("rtmpdump", "rtmpdump")
        self.file = folder / "played.flv"
        super().__init__(folder, [program, "--live", "--rtmp", url, "-o", self.file])

    def is_ready(self) -> bool:
        """Truthy once the connection stands; the stream itself may start later."""
        return "Connecting" in self.output or "Starting" in self.output


class NginxRtmp(Process):
    """nginx with its RTMP module and one live application, `live`."""

    config = Template("""\
load_module $module;
daemon off;
worker_processes 1;
pid nginx.pid;
error_log stderr notice;
events { worker_connections 4096; }
rtmp { server { listen 127.0.0.1:$port; chunk_size 4096; application live {
    live on;
    publish_notify on;  # players are told when the publisher has gone
} } }
""")

    def __init__(self, folder: Path) -> None:
        """Write the configuration and pick a port."""
        program = require("nginx", "nginx libnginx-mod-rtmp")
        module = Path("/usr/lib/nginx/modules/ngx_rtmp_module.so")
        if not module.is_file():
            require("libnginx-mod-rtmp", "libnginx-mod-rtmp")
        super().__init__(folder)
        self.port = free_port()
        text = self.config.substitute(module=module, port=self.port)
        (folder / "nginx.conf").write_text(text)
        self.argv = [program, "-p", f"{folder}/", "-c", "nginx.conf", "-e", "stderr"]

    def url(self, stream: str) -> str:
        """Where `stream` is published and played."""
        return f"rtmp://127.0.0.1:{self.port}/live/{stream}"

    def is_ready(self) -> bool:
        """Truthy once the port answers."""
        return tcp_answers(self.port)


@dataclass(frozen=True, slots=True)
class Calls:
    """What SIPp counted."""

    created: int
    successful: int
    failed: int
    retransmissions: int


class Sipp(Process):
    """One SIPp instance on a port of its own; use `uac` or `uas`.

    Without `target` it answers calls. Speex is offered or answered as payload type 96 at `rate`
    Hz (any other codec by `codec`, such as "PCMU/8000"). `keys` fill `[name]` in the scenarios.
    It speaks UDP, or TCP by "-t t1" in `options`.
    """

    def __init__(
        self,
        folder: Path,
        scenario: str,
        target: str = "",
        *,
        codec: str = "speex/16000",
        options: tuple[str, ...] = (),
        host: str = "127.0.0.1",
        port: int = 0,
        **keys: str,
    ) -> None:
        """`scenario` names a file of tests/support/peers/sipp without its ending, or is "-sn NAME".

        The latter is one of those that are built in, which know no keys.
        """
        program = require("sipp", "sip-tester")
        super().__init__(folder)
        self._calls = bool(target)
        self.port, self.media_port = port or free_port(), free_port()
        self.statistics = folder / "statistics.csv"
        words = [program, target] if target else [program]
        file = ["-sf", str(HERE / "sipp" / f"{scenario}.xml")]
        words += scenario.split() if scenario.startswith("-sn ") else file
        words += ["-i", host, "-p", str(self.port)]
        words += ["-mi", "127.0.0.1", "-mp", str(self.media_port)]
        words += ["-trace_stat", "-stf", str(self.statistics), "-fd", "1"]
        words += ["-trace_err", "-error_file", str(folder / "errors.log"), "-nostdin"]
        payload_type = {"PCMU/8000": "0", "PCMA/8000": "8"}.get(codec, "96")
        for name, value in {"codec": codec, "pt": payload_type, **keys}.items():
            words += ["-key", name, value]
        self.argv = [*words, *options]

    @classmethod
    def uas(cls, folder: Path, *, echo: bool = False, **options: str) -> "Sipp":
        """Answers every call with 180 and 200 until it is stopped; `echo` returns the RTP."""
        return cls(folder, "uas", options=("-rtp_echo",) if echo else (), **options)

    @classmethod
    def uac(
        cls,
        folder: Path,
        target: str,
        *,
        user: str = "bob",
        calls: int = 1,
        at_once: int = 1,
        per_second: float = 50,
        hold_ms: int = 200,
        timeout: int = 60,
        **options: str,
    ) -> "Sipp":
        """Calls sip:`user`@`target` `calls` times, `at_once` in parallel, each for `hold_ms`."""
        words = ["-m", str(calls), "-l", str(at_once), "-r", str(per_second), "-d", str(hold_ms)]
        words += ["-s", user, "-timeout", f"{timeout}s", "-timeout_error"]
        return cls(folder, "uac", target, options=tuple(words), **options)

    def is_ready(self) -> bool:
        """Whether it can be called; one that calls is ready at once."""
        kind = SOCK_STREAM if "t1" in self.argv else SOCK_DGRAM
        return self._calls or port_is_bound(self.port, kind) or self.child.poll() is not None

    def calls(self) -> Calls:
        """The totals of the last line of the statistics file, written once a second and at end."""
        columns = ("TotalCallCreated", "SuccessfulCall(C)", "FailedCall(C)", "Retransmissions(C)")
        return Calls(*map(self.total, columns))

    def total(self, column: str) -> int:
        """One number of that line."""
        with self.statistics.open(newline="") as file:
            row = list(csv.DictReader(file, delimiter=";"))[-1]
        return int(row[column])

    def expect_success(self, timeout: float = 60.0) -> Calls:
        """Wait for a UAC to finish with all calls successful; what it counted."""
        if code := self.finish(timeout):
            errors = self.folder / "errors.log"
            detail = errors.read_text(errors="replace")[:4000] if errors.is_file() else ""
            pytest.fail(f"sipp ended with {code}: {self.calls()}\n{detail}")
        return self.calls()


TLS = """\
enable_tls=yes
listen=tls:127.0.0.1:{port}
loadmodule "tls.so"
modparam("tls", "tls_method", "TLSv1.2+")
modparam("tls", "private_key", "{tls.key}")
modparam("tls", "certificate", "{tls.file}")
modparam("tls", "verify_certificate", 0)
modparam("tls", "require_certificate", 0)
"""
WEB = """\
tcp_accept_no_cl=yes
loadmodule "xhttp.so"
loadmodule "websocket.so"
event_route[xhttp:request] {
    if ($hdr(Sec-WebSocket-Protocol) == "sip") ws_handle_handshake();
    else xhttp_reply("404", "Not Found", "", "");
}
"""
KAMAILIO_TLS = "*/kamailio/modules/tls.so"  # below /usr/lib, by machine
KAMAILIO_WEB = "*/kamailio/modules/websocket.so"


class Kamailio(Process):
    """A registrar and record-routing proxy with digest for `users`, all in memory, UDP and TCP."""

    def __init__(
        self,
        folder: Path,
        users: dict[str, str],
        domain: str = "127.0.0.1",
        tls: Certificate | None = None,
        *,
        web: bool = False,
    ) -> None:
        """`users` maps names to passwords; `domain` is theirs and the digest realm.

        Without users anybody may register as anybody.  With `tls` it listens on the next port for
        TLS, too; with `web` both ports take WebSockets.
        """
        program = require("kamailio", "kamailio")
        if web and not any(Path("/usr/lib").glob(KAMAILIO_WEB)):
            require("kamailio-websocket-modules", "kamailio-websocket-modules")
        if tls is not None and not any(Path("/usr/lib").glob(KAMAILIO_TLS)):
            require("kamailio-tls-modules", "kamailio-tls-modules")
        super().__init__(folder)
        self.port, self.domain = free_port(), domain
        secure = "" if tls is None else TLS.format(port=self.port + 1, tls=tls)
        passwords = "\n".join(
            f'        case "{name}": $var(password) = "{word}"; break;'
            for name, word in users.items()
        )
        also = {"TLS": secure, "WEB": WEB if web else ""}
        self._configure(program, "kamailio.cfg", DOMAIN=domain, PASSWORDS=passwords, **also)
        self.argv += [] if users else ["-A", "OPEN"]

    def _configure(self, program: str, source: str, **values: str) -> None:
        text = Template((HERE / source).read_text()).safe_substitute(PORT=self.port, **values)
        folder = self.folder
        (folder / "kamailio.cfg").write_text(text)
        # -m/-M: megabytes of memory; -DD: stay in the foreground; -E: log to standard error
        words = ["-f", "kamailio.cfg", "-DD", "-E", "-m", "32", "-M", "4", "-n", "2", "-w", folder]
        self.argv = [program, *map(str, words), "-Y", str(folder)]

    @property
    def address(self) -> str:
        """host:port of its UDP and TCP listeners."""
        return f"127.0.0.1:{self.port}"

    def is_ready(self) -> bool:
        """Truthy once both listeners exist."""
        return udp_is_bound(self.port) and tcp_answers(self.port)


class KamailioEdge(Kamailio):
    """A proxy through which phones register at `home`, a SIP URI: it puts itself in the Path."""

    def __init__(self, folder: Path, home: str) -> None:
        Process.__init__(self, folder)
        self.port = free_port()
        self._configure(require("kamailio", "kamailio"), "kamailio-edge.cfg", HOME=home)

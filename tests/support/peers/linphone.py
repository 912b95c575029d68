"""The phone that speaks Speex: linphonec, told what to do on its standard input."""

import re
import subprocess
from pathlib import Path
from typing import Self

from support.attacks.stalls import Watch
from support.peers.baresip import PHONE_PORTS
from support.peers.process import (
    PATIENCE,
    Growing,
    Process,
    free_port,
    require,
    tcp_answers,
    udp_is_bound,
)
from support.peers.tones import Samples, read_wav, tone, write_wav

# What this build of linphonec would offer if it were not told otherwise.
CODECS = ("opus/48000", "speex/16000", "speex/8000", "PCMU/8000", "PCMA/8000", "G729/8000")

SETTINGS = """\
[sip]
sip_port={udp}
sip_tcp_port={tcp}
sip_tls_port={tls_port}
root_ca={ca}
contact=sip:{user}@127.0.0.1
default_proxy={proxy}
use_ipv6=0
{more}

[rtp]
audio_rtp_port={media_port}

[video]
capture=0
display=0
"""

ACCOUNT = """\
[proxy_0]
reg_proxy=<sip:{registrar};transport={transport}>
{route}
reg_identity=sip:{user}@{domain}
reg_expires=600
reg_sendregister=1

[auth_info_0]
username={user}
passwd={password}
domain={domain}
"""
LATE = 0.04  # s; it drops sound that comes so much later than the rest
MISSING = re.compile(r"incoming (?:cumulative lost|bad formatted) +(\d+) packets")
OUTBOUND = "reg_route=<sip:{};transport={};lr>"  # of a domain that is in no DNS


class Linphone(Process):
    """A phone of `user` that answers by itself, plays a tone of `hz`, and records what it hears.

    `codec` is the only one it knows, such as "speex/16000".  With `registrar` (host:port) it
    registers there as sip:`user`@`domain` and is ready when that has agreed.  `sip` are more lines
    for the section of that name in its settings.
    """

    never_waits = True

    def __init__(
        self,
        folder: Path,
        user: str,
        *,
        codec: str,
        registrar: str = "",
        password: str = "",
        domain: str = "127.0.0.1",
        hz: float = 440,
        transport: str = "udp",
        ca: Path | None = None,
        sip: str = "",
    ) -> None:
        """Write its settings and the sound that it plays; `ca` has the authorities for TLS."""
        program = require("linphonec", "linphone-cli")
        super().__init__(folder)
        self.user, self.registrar, self.port = user, registrar, free_port()
        self.transport = transport
        self.recording = folder / "heard.wav"
        self._trace = Growing(folder / "trace")
        write_wav(folder / "tone.wav", tone(hz, 1, 16000), 16000, times=120)
        text = SETTINGS.format(
            udp=0 if transport == "tcp" else self.port,
            tcp=self.port if transport == "tcp" else 0,
            tls_port=-1 if transport == "tls" else 0,
            ca=ca or "",
            more=sip,
            user=user,
            proxy=0 if registrar else -1,
            media_port=f"{PHONE_PORTS[0]}-{PHONE_PORTS[-1]}",
        )
        for number, each in enumerate(CODECS):
            mime, _, rate = each.partition("/")
            enabled = int(each == codec)
            text += f"\n[audio_codec_{number}]\nmime={mime}\nrate={rate}\nenabled={enabled}\n"
        if registrar:
            text += "\n" + ACCOUNT.format(
                registrar=registrar,
                user=user,
                domain=domain,
                password=password,
                transport=transport,
                route="" if domain in registrar else OUTBOUND.format(registrar, transport),
            )
        (folder / "settings").write_text(text)
        (folder / ".local/share/linphone").mkdir(parents=True)  # it does not start without
        self.argv = ["env", f"HOME={folder}", program, "-a", "-c", str(folder / "settings")]
        self.argv += ["-d", "5", "-l", str(folder / "trace")]

    def start(self, timeout: float = PATIENCE) -> Self:
        """Start it with an ear for commands, and without a sound card."""
        self.launch(subprocess.PIPE)
        self.command("soundcard use files")
        self.command(f"play {self.folder / 'tone.wav'}")
        self.command(f"record {self.recording}")
        self.wait_until(self.is_ready, what=f"{self.user}'s linphonec to be ready", timeout=timeout)
        return self

    def is_ready(self) -> bool:
        """Truthy once it listens and, where it should be, is registered."""
        if self.registrar:
            return "to [LinphoneRegistrationOk]" in self.trace
        return (tcp_answers if self.transport == "tcp" else udp_is_bound)(self.port)

    @property
    def uri(self) -> str:
        """The phone's own address for a direct call, past any registrar."""
        return f"sip:{self.user}@127.0.0.1:{self.port};transport={self.transport}"

    @property
    def trace(self) -> str:
        """What its libraries have written down."""
        return self._trace.text

    def command(self, text: str) -> None:
        """Say one line: "call sip:...", "answer", "terminate"."""
        assert self.child.stdin is not None
        self.child.stdin.write(f"{text}\n".encode())
        self.child.stdin.flush()

    def wait_for(self, state: str, times: int = 1, timeout: float = PATIENCE) -> None:
        """Wait until its calls have come to a state, such as "LinphoneCallReleased", so often."""

        def seen() -> bool:
            return self.trace.count(f" to {state}\n") >= times

        self.wait_until(seen, what=f"{state} of {self.user}'s linphonec", timeout=timeout)

    def heard(self) -> tuple[Samples, int]:
        """What its call has brought, decoded, and the rate."""
        return read_wav(self.recording)

    def enough(self, watch: Watch) -> float:
        """The fraction of a tone that it has to have heard in the call that has ended.

        Where a core was withheld, much may have come too late for it: half is enough if by its own
        count no packet was lost or damaged.
        """
        missing = MISSING.findall(self.trace)
        assert missing, "linphonec has counted no packets"
        return 0.5 if watch.worst >= LATE and not any(map(int, missing)) else 0.95

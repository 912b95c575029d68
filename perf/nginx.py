"""Reference for fan-out: nginx with its RTMP module, one process on one core."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Self

from cpu import Meter

MODULE = Path("/usr/lib/nginx/modules/ngx_rtmp_module.so")
CONFIG = """\
load_module {module};
daemon off;
master_process off;
pid nginx.pid;
error_log stderr error;
events {{ worker_connections 8192; }}
rtmp {{ server {{
    listen 127.0.0.1:{port};
    chunk_size 4096;
    application live {{ live on; wait_key off; }}
}} }}
"""


class Nginx:
    """nginx-rtmp on a free loopback port, pinned to `core`; publish and play at `url(stream)`."""

    def __init__(self, core: int) -> None:
        """Start it and wait until it answers."""
        program = shutil.which("nginx", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
        if program is None or not MODULE.is_file():
            raise RuntimeError("nginx-rtmp is the reference: make peers installs it")
        self.core = core
        self._folder = tempfile.TemporaryDirectory()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        config = Path(self._folder.name) / "nginx.conf"
        config.write_text(CONFIG.format(module=MODULE, port=self.port))
        words = [program, "-p", f"{self._folder.name}/", "-c", str(config), "-e", "stderr"]
        self.process = subprocess.Popen(["taskset", "-c", str(core), *words])
        self._await()

    def _await(self) -> None:
        while self.process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        raise RuntimeError(f"nginx ended with {self.process.returncode}")

    def url(self, stream: str) -> str:
        """Where `stream` is published and played."""
        return f"rtmp://127.0.0.1:{self.port}/live/{stream}"

    def meter(self) -> Meter:
        """A new window on its CPU clock."""
        return Meter(self.process.pid, self.core)

    def __enter__(self) -> Self:
        """It runs since it was made."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it and remove its folder."""
        self.process.terminate()
        self.process.wait()
        self._folder.cleanup()

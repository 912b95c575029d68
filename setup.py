"""Compile the busiest modules, where a compiler is at hand; setup.cfg says everything else.

mypyc makes C of the same annotated Python, so that a module has two forms: its source, and a
compiled one beside it that Python prefers.  `pip install .` falls back to Python alone without a
compiler, and after an error in the build.  An editable install compiles nothing: `make fast` does
that in place, and there an error is an error.
"""

import os
import sys
import tempfile
from glob import glob
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

# The rooms that are compiled, a shared library for each family: what a packet, a message or a
# transaction runs through; of the edge only what each datagram of SIP does.
ROOMS = {
    "p2psip": [
        *("errors.py", "sip/*.py", "transaction/*.py", "dialog/*.py", "stack/*.py", "server/*.py"),
        *("net/udp.py", "net/host_queues.py", "net/host_scheduler.py"),
        *("net/alarm.py", "net/driver.py"),
    ],
    "rtmplite": [
        *("errors.py", "amf/*.py", "rtmp/wire/*.py"),
        *("rtmfp/wire/*.py", "rtmfp/session/*.py", "rtmfp/crypto/cipher.py"),
        *("rtmfp/endpoint/endpoint.py", "rtmfp/endpoint/session_table.py"),
        *("flv/tag.py", "flv/audio.py", "flv/video.py", "flv/enhanced.py", "flv/enhanced_raw.py"),
        *("flv/published_video.py", "live/*.py", "limits/memory_budget.py"),
    ],
}
# What stays Python: mypyc knows no class variable of a dataclass, no `cached_property`, no heir of
# a dict that makes itself by `__new__`, and no int beyond a double where a `float` is announced.
PYTHON = {
    "p2psip/server/judge.py",  # users make heirs of its class
    "rtmplite/live/probe.py",  # for a command, once
    *("rtmplite/amf/amf3_writer.py", "rtmplite/amf/values.py"),
    *("rtmplite/rtmp/wire/control.py", "rtmplite/rtmp/wire/shared_object.py"),
    *("rtmplite/rtmfp/wire/acks.py", "rtmplite/rtmfp/wire/control_chunks.py"),
    *("rtmplite/rtmfp/wire/flow_chunks.py", "rtmplite/rtmfp/wire/startup_chunks.py"),
    "rtmplite/rtmfp/wire/option.py",  # its objects would take more, and strangers send thousands
}
# Written in C, for the usual packets of calls; it needs Linux's epoll.
PUMP = [
    Extension(
        f"siprtmp.pump.{name}",
        [f"src/siprtmp/pump/{name}.c"],
        depends=glob("src/siprtmp/pump/*.h"),
        extra_compile_args=["-std=gnu11", "-ffp-contract=off"],  # the same jitter as Python's
    )
    for name in ("_pump", "_to_phone")
]
# The input and the output of RTMP connections, the first for publishers of audio on Linux; and what
# a socket of RTMFP reads, on Linux as well.
PIPE, INTAKE, DATAGRAMS = [
    Extension(
        f"rtmplite.net.{name}", [f"src/rtmplite/net/{name}.c"], extra_compile_args=["-std=gnu11"]
    )
    for name in ("_pipe", "_intake", "_datagrams")
]
# What viewers of the load tester count.
USUAL = Extension(
    "rtclab.load.clients._usual",
    ["src/rtclab/load/clients/_usual.c"],
    extra_compile_args=["-std=gnu11", "-ffp-contract=off"],
)
# The checksum of RTMFP's packets, and XOR of a block.
BLOCKS = Extension(
    "rtmplite.rtmfp.crypto._blocks",
    ["src/rtmplite/rtmfp/crypto/_blocks.c"],
    extra_compile_args=["-std=gnu11"],
)
COMMANDS = {"build", "build_ext", "bdist_wheel", "install"}
NEEDS = ["mypy >= 1.18"]


def has_compiler() -> bool:
    """Whether a program for this Python can be compiled: Debian has its headers apart."""
    from setuptools._distutils.ccompiler import new_compiler
    from setuptools._distutils.sysconfig import customize_compiler, get_python_inc

    compiler = new_compiler()
    customize_compiler(compiler)
    compiler.add_include_dir(get_python_inc())
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "trial.c")
        source.write_text("#include <Python.h>\nint trial;\n")
        try:
            compiler.compile([str(source)], output_dir=folder)
        except Exception:  # whatever it lacks
            return False
    return True


def compiled() -> list[Extension]:
    """The extensions that mypyc makes of the rooms; must run in this folder."""
    from mypyc.build import mypycify

    options = ["--config-file=", "--cache-dir=build/mypy_cache", "--explicit-package-bases"]
    options += ["--ignore-missing-imports", "--follow-imports=silent"]
    os.environ["MYPYPATH"] = "src"
    found = {
        family: sorted(
            path
            for room in rooms
            for path in glob(f"src/{family}/{room}")
            if not path.endswith("__init__.py") and path.removeprefix("src/") not in PYTHON
        )
        for family, rooms in ROOMS.items()
    }
    files = [path for paths in found.values() for path in paths]
    return mypycify(
        [*options, *files],
        only_compile_paths=files,
        separate=[(paths, f"{family}.native") for family, paths in found.items()],
        debug_level="0",
        target_dir="build/mypyc",
    )


class Build(build_ext):
    """Builds all extensions or none; only in place an error ends the command."""

    def run(self) -> None:
        """Compile, and on an error remove what is there already."""
        in_place = self.inplace
        try:
            super().run()
        except Exception as error:
            if in_place:
                raise
            print(f"siprtmp: pure Python, since the build failed: {error}", file=sys.stderr)
            for extension in self.extensions:
                Path(self.get_ext_fullpath(extension.name)).unlink(missing_ok=True)
            self.extensions = []


def extensions() -> list[Extension]:
    """What this command compiles; nothing where it should not or cannot."""
    if not COMMANDS & set(sys.argv) or os.environ.get("SIPRTMP_PURE") or not has_compiler():
        return []
    try:
        linux = [INTAKE, DATAGRAMS, *PUMP] if sys.platform == "linux" else []
        return [*compiled(), PIPE, BLOCKS, USUAL, *linux]
    except (ImportError, SystemExit):  # mypyc has printed why
        if "--inplace" in sys.argv:
            raise
        print("siprtmp: pure Python, since mypyc failed", file=sys.stderr)
        return []


setup(
    ext_modules=extensions(),
    cmdclass={"build_ext": Build},
    setup_requires=NEEDS if "egg_info" in sys.argv and has_compiler() else [],
)

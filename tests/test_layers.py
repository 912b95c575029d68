"""The arrows of the house, one way: errors <- codecs <- machines <- net <- programs.

The SIP family and the RTMP family do not know each other, only the edge touches the world, and no
file or function outgrows what a reader can hold.
"""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src"
FAMILIES = ("p2psip", "rtmplite", "siprtmp")
ERRORS, CODEC, MACHINE, NET, PROGRAM = range(5)
PROGRAMS = {"agent", "gateway", "sip_side", "demo", "conform", "oracle", "__main__"}
CODEC_FOLDERS = {
    *("p2psip.sip", "p2psip.sdp", "p2psip.rtp"),
    *("rtmplite.amf", "rtmplite.flv", "rtmplite.rtmp"),
    "siprtmp.translate",
}
CODECS_AMONG_MACHINES = {
    f"rtmplite.rtmfp.{name}"
    for name in (
        *("vlu", "option", "checksum", "address", "packet", "chunks", "startup_chunks"),
        *("flow_chunks", "control_chunks", "acks", "fields", "params", "certificate", "epd"),
    )
} | {"rtmplite.url"}
MACHINES_AMONG_CODECS = {
    *("p2psip.rtp.session", "p2psip.rtp.rtcp_timer", "p2psip.rtp.jitter"),
    *("rtmplite.rtmp.handshake", "rtmplite.rtmp.connection", "rtmplite.rtmp.netstream"),
    *("rtmplite.rtmp.server", "rtmplite.rtmp.client", "rtmplite.rtmp.tunnel"),
    *("rtmplite.rtmp.carrier", "rtmplite.rtmp.netconnection"),
    *("rtmplite.rtmp.application", "rtmplite.rtmp.live"),
    *("rtmplite.rtmp.vod", "rtmplite.rtmp.playback", "rtmplite.rtmp.playlist"),
    *("rtmplite.rtmp.feeder", "rtmplite.rtmp.excerpt"),
}
SPLIT_OFF_THE_GATEWAY = {
    *("siprtmp.alarm", "siprtmp.collector"),
    "siprtmp.films",
    "siprtmp.gathering",
    "siprtmp.location",
    "siprtmp.refusals",
    "siprtmp.state_folder",
    *("siprtmp.control", "siprtmp.calls_command", "siprtmp.call_limits"),
    "siprtmp.status",
    "siprtmp.media_side",
    "siprtmp.status_door",
    *("siprtmp.admission", "siprtmp.config", "siprtmp.rtmp_options", "siprtmp.rtmp_side"),
}  # its edge, in smaller files
# What tells the time, rolls dice, waits or talks to anybody.
WORLD = {
    *("gevent", "greenlet", "socket", "ssl", "select", "selectors", "asyncio", "threading"),
    *("time", "random", "secrets", "uuid", "subprocess"),
}
PURE = {"hypothesis", "Crypto", "dns"}  # libraries that compute and nothing else
MODULE_LINES, FUNCTION_LINES = 400, 60


def level(module):
    """Say how far out a module of ours stands."""
    parts = module.split(".")
    if PROGRAMS & set(parts) or module in FAMILIES:
        return PROGRAM
    if "net" in parts or module in SPLIT_OFF_THE_GATEWAY:
        return NET
    if parts[-1] == "errors":
        return ERRORS
    folder = ".".join(parts[:2])
    if module in CODECS_AMONG_MACHINES:
        return CODEC
    return CODEC if folder in CODEC_FOLDERS and module not in MACHINES_AMONG_CODECS else MACHINE


def imports(tree, module, known):
    """Yield (line, module) for all that a module imports, wherever in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join([*module.split(".")[: -node.level], *filter(None, [base])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                yield node.lineno, inner if inner in known else base


def trespasses(module, source, known):
    """Yield what a module imports against the arrows."""
    family, own = module.partition(".")[0], level(module)
    for line, name in imports(ast.parse(source), module, known):
        top = name.partition(".")[0]
        where = f"{module}:{line} imports {name}"
        if top == "rfc_annotations":
            yield f"{where}: the product does not know the tool"
        elif top in FAMILIES:
            if family != "siprtmp" and top != family:
                yield f"{where}: the families do not know each other"
            elif level(name) > own:
                yield f"{where}: that is further out"
            if "strategies" in name.split(".") and "strategies" not in module and own < PROGRAM:
                yield f"{where}: strategies are for tests"
        elif own < NET and top in WORLD:
            yield f"{where}: only the edge touches the world"
        elif top == "hypothesis" and "strategies" not in module and own < PROGRAM:
            yield f"{where}: strategies are for tests"
        elif own < NET and top not in sys.stdlib_module_names and top not in PURE:
            yield f"{where}: a codec or a machine stands alone"
    for node in ast.walk(ast.parse(source)):
        if own < NET and isinstance(node, ast.Attribute) and node.attr in ("urandom", "monkey"):
            yield f"{module}:{node.lineno} uses {node.attr}: only the edge touches the world"


def name_of(path):
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


PATHS = {name_of(path): path for path in sorted(SRC.rglob("*.py"))}


def test_every_import_follows_the_arrows():
    found = [
        text for name, path in PATHS.items() for text in trespasses(name, path.read_text(), PATHS)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("p2psip.sip.uri", "from p2psip.transaction.key import Key"),
        ("p2psip.sip.uri", "def f():\n    import time"),
        ("p2psip.transaction.client", "from p2psip import net"),
        ("p2psip.transaction.client", "import os\nos.urandom(3)"),
        ("p2psip.net.udp", "from rtmplite.errors import RemoteError"),
        ("rtmplite.rtmp.chunk", "from .connection import Connection"),
        ("rtmplite.streams", "from rtmplite.net.rtmp_server import Server"),
        ("rtmplite.streams", "import dpkt"),
        ("rtmplite.amf.amf0", "from rtmplite.strategies.amf import values"),
        ("rtmplite.amf.amf0", "from hypothesis import strategies"),
        ("siprtmp.call", "from siprtmp.gateway import Gateway"),
        ("siprtmp.gateway", "import rfc_annotations"),
    ],
)
def test_a_trespass_is_noticed(module, source):
    known = {*PATHS, "p2psip.net", "p2psip.transaction.key", "rtmplite.rtmp.connection"}
    assert list(trespasses(module, source, known))


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("p2psip.transaction.client", "from p2psip.sip.uri import Uri"),
        ("p2psip.net.udp", "import socket, time, gevent"),
        ("p2psip.strategies.sip", "from hypothesis import strategies"),
        ("siprtmp.translate.codecs", "from p2psip.rtp.packet import RtpPacket"),
        ("siprtmp.gateway", "import gevent\nfrom p2psip.net import udp"),
    ],
)
def test_what_the_arrows_allow_is_let_pass(module, source):
    assert list(trespasses(module, source, PATHS)) == []


OURS = [
    path
    for top in ("src", "rfc_annotations", "tests", "perf")
    for path in sorted((ROOT / top).rglob("*.py"))
]


def test_no_module_outgrows_a_reader():
    sizes = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in OURS}
    assert {path: size for path, size in sizes.items() if size > MODULE_LINES} == {}


def test_no_function_outgrows_a_screen():
    sizes = {
        f"{path.relative_to(ROOT)}:{node.lineno}": node.end_lineno - node.lineno + 1
        for path in OURS
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
    assert {place: size for place, size in sizes.items() if size > FUNCTION_LINES} == {}

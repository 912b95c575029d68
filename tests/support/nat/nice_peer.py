"""libnice, the ICE of GStreamer, as a program: a peer by TCP alone, which gives back what it hears.

    nice_peer.py controlling|controlled HOST

It prints a line of JSON for each thing that it tells, `sdp` first, and reads our description in
answer.  Data that comes is told as `heard` and sent back.  It ends with its input.
"""

import ctypes
import json
import os
import sys
import threading
from ctypes import c_char_p, c_int, c_uint, c_void_p

STATES = ("disconnected", "gathering", "connecting", "connected", "ready", "failed")
RFC5245 = 0  # libnice's number for the ICE of RFC 5245 and 8445
RECEIVER = ctypes.CFUNCTYPE(None, c_void_p, c_uint, c_uint, c_uint, c_void_p, c_void_p)
STATE_HANDLER = ctypes.CFUNCTYPE(None, c_void_p, c_uint, c_uint, c_uint, c_void_p)
FUNCTIONS = {
    "glib-2.0": {
        "g_main_context_new": (c_void_p,),
        "g_main_loop_new": (c_void_p, c_void_p, c_int),
        "g_main_loop_run": (None, c_void_p),
    },
    "gobject-2.0": {
        "g_object_set": (None, c_void_p, c_char_p, c_int, c_void_p),
        "g_signal_connect_data": (
            ctypes.c_ulong, c_void_p, c_char_p, STATE_HANDLER, c_void_p, c_void_p, c_int,
        ),
    },
    "nice": {
        "nice_agent_new": (c_void_p, c_void_p, c_int),
        "nice_address_new": (c_void_p,),
        "nice_address_set_from_string": (c_int, c_void_p, c_char_p),
        "nice_agent_add_local_address": (c_int, c_void_p, c_void_p),
        "nice_agent_add_stream": (c_uint, c_void_p, c_uint),
        "nice_agent_set_stream_name": (c_int, c_void_p, c_uint, c_char_p),
        "nice_agent_attach_recv": (
            c_int, c_void_p, c_uint, c_uint, c_void_p, RECEIVER, c_void_p,
        ),
        "nice_agent_gather_candidates": (c_int, c_void_p, c_uint),
        "nice_agent_generate_local_sdp": (c_void_p, c_void_p),
        "nice_agent_parse_remote_sdp": (c_int, c_void_p, c_char_p),
        "nice_agent_send": (c_int, c_void_p, c_uint, c_uint, c_uint, c_char_p),
    },
}  # fmt: skip
SONAMES = {"glib-2.0": 0, "gobject-2.0": 0, "nice": 10}


def load():
    """The functions of the three libraries, by name; OSError where one is absent."""
    found = {}
    for library, functions in FUNCTIONS.items():
        opened = ctypes.CDLL(f"lib{library}.so.{SONAMES[library]}")
        for name, (result, *arguments) in functions.items():
            found[name] = getattr(opened, name)
            found[name].restype, found[name].argtypes = result, arguments
    return found


def tell(**told):
    print(json.dumps(told), flush=True)


def main(role, host):
    call = load()
    context = call["g_main_context_new"]()
    agent = call["nice_agent_new"](context, RFC5245)
    settings = {"ice-udp": 0, "ice-tcp": 1, "upnp": 0, "controlling-mode": role == "controlling"}
    for name, value in settings.items():
        call["g_object_set"](agent, name.encode(), int(value), None)
    address = call["nice_address_new"]()
    call["nice_address_set_from_string"](address, host.encode())
    call["nice_agent_add_local_address"](agent, address)
    stream = call["nice_agent_add_stream"](agent, 1)
    call["nice_agent_set_stream_name"](agent, stream, b"audio")

    def hear(_agent, _stream, _component, length, data, _user):
        said = ctypes.string_at(data, length)
        tell(heard=said.hex())
        back = b"\x80 back: " + said
        call["nice_agent_send"](agent, stream, 1, len(back), back)

    receiver = RECEIVER(hear)
    handler = STATE_HANDLER(lambda _a, _s, _c, state, _u: tell(state=STATES[state]))
    call["nice_agent_attach_recv"](agent, stream, 1, context, receiver, None)
    call["nice_agent_gather_candidates"](agent, stream)
    sdp = ctypes.string_at(call["nice_agent_generate_local_sdp"](agent)).decode()
    tell(sdp=sdp)
    call["g_signal_connect_data"](agent, b"component-state-changed", handler, None, None, 0)
    taken = call["nice_agent_parse_remote_sdp"](agent, json.loads(sys.stdin.readline()).encode())
    tell(taken=taken)
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    call["g_main_loop_run"](call["g_main_loop_new"](context, 0))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""`rtclab demo`: a call through a gateway, judged by the sound that arrives at both ends.

Own design: gateway, client and phone are processes of their own that meet only at real sockets
on free loopback ports, with the gateway's default settings.  The phone registers as bob at the
embedded registrar; the client calls it through the public API of the application `sip`; each
sends a tone of its own in G.711, and the verdict is drawn from the tones that were decoded at the
other end.

- `stage` starts the processes, reads their output, and stops them all.
- `client` and `phone` are two of these processes; `ends` has the code that both share.
- `tones` makes and recognises tones; `figures` counts, times and judges.
- `show` runs the demo: the order of events, the live line, the verdict.
"""

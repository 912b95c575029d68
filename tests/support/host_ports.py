"""HOST:PORT as every option takes it, and how each mistake is answered, for all the readers."""

GOOD = {
    "localhost:80": ("localhost", 80),
    "127.0.0.1:1935": ("127.0.0.1", 1935),
    "[::1]:0": ("::1", 0),
    "[2001:db8::7]:5060": ("2001:db8::7", 5060),
}
# And what the answer says to write instead.
BAD = {
    "1935": "write 127.0.0.1:1935",
    "rtmp://127.0.0.1:1935": "write 127.0.0.1:1935",
    "rtmp://127.0.0.1:1935/live": "write 127.0.0.1:1935",
    "::1:1935": "write [::1]:1935",
    "": "write for example",
    "x": "write for example",
    ":1": "write for example",
    "x:": "write for example",
    "x:y": "write for example",
    "x:-1": "write for example",
    "x:65536": "write for example",
    "x:\u0663": "write for example",
    "a..b:1935": "write for example",
}

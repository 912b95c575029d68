"""The descriptions that a page sends: its offers, and the fragments about its ICE.

Own design: an offer is short, with one codec or two of each kind, which all servers know.  A case
that needs a broken one changes its text.
"""

from typing import Final

UFRAG: Final = "conf"
PASSWORD: Final = "conformconformconform24"
LINES: Final = {
    "audio": "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=rtpmap:111 opus/48000/2\r\n",
    "video": (
        "m=video 9 UDP/TLS/RTP/SAVPF 98 96\r\na=rtpmap:98 H264/90000\r\n"
        "a=fmtp:98 packetization-mode=1;profile-level-id=42e01f;level-asymmetry-allowed=1\r\n"
        "a=rtcp-fb:98 nack pli\r\na=rtpmap:96 VP8/90000\r\na=rtcp-fb:96 nack pli\r\n"
    ),
    "telephone": "m=audio 9 UDP/TLS/RTP/SAVPF 13\r\na=rtpmap:13 CN/8000\r\n",
}
CANDIDATE: Final = "a=candidate:1 1 udp 2130706431 192.0.2.7 50000 typ host"
_FINGERPRINT: Final = ":".join(["AB"] * 32)


def offer(flow: str, *lines: str) -> bytes:
    """Write an offer of these lines, audio and video if none are named (RFC 9725 §4.2)."""
    kinds = lines or ("audio", "video")
    names = " ".join(str(number) for number in range(len(kinds)))
    head = (
        f"v=0\r\no=- 7 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n"
        f"a=ice-options:trickle ice2\r\na=group:BUNDLE {names}\r\n"
    )
    return (head + "".join(_line(flow, *each) for each in enumerate(kinds))).encode()


def _line(flow: str, number: int, kind: str) -> str:
    shown = f"a=msid:conform {kind}{number}\r\n" if flow != "recvonly" else ""
    return (
        f"{LINES[kind]}c=IN IP4 0.0.0.0\r\na=mid:{number}\r\na={flow}\r\n{shown}"
        f"a=rtcp-mux\r\na=rtcp-mux-only\r\na=setup:actpass\r\n"
        f"a=ice-ufrag:{UFRAG}\r\na=ice-pwd:{PASSWORD}\r\n"
        f"a=fingerprint:sha-256 {_FINGERPRINT}\r\n"
    )


def fragment(ufrag: str = UFRAG, password: str = PASSWORD, *candidates: str) -> bytes:
    """Write a fragment about the ICE of the first line (RFC 9725 §4.3.2)."""
    lines = (
        f"a=ice-ufrag:{ufrag}",
        *((f"a=ice-pwd:{password}",) if password else ()),
        "a=ice-options:trickle ice2",
        "a=group:BUNDLE 0 1",
        LINES["audio"].partition("\r\n")[0],
        "a=mid:0",
        *(candidates or (CANDIDATE,)),
        "a=end-of-candidates",
    )
    return "".join(f"{each}\r\n" for each in lines).encode()

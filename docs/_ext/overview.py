"""The drawing of the front page: the gateway, its peers and their protocols.

An SVG in the colours of the theme, light or dark, narrow enough to be read on a phone.
"""

from html import escape

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

STREAMS = (
    (("ffmpeg, OBS Studio", "publish"), ("RTMP, RTMPS", "RTMPT"), "down"),
    (("VLC, web browsers", "play"), ("RTMP, HTTP-FLV", "WebSocket"), "up"),
    (("Flash-era clients", "publish, play, meet"), ("RTMFP", "RTMP"), "both"),
)
GATEWAY = ("siprtmp", "a stream that is published becomes a call,", "what the phone says a stream")
CALLS = (
    (("SIP phones", "register, call, answer"), ("SIP", "RTP"), "both"),
    (("other registrars", "providers, PBXs"), ("SIP", "RTP"), "both"),
    (("you", "status, log, web hooks"), ("HTTP", ""), "both"),
)
WIDTH, BOX, GAP, HEIGHT, ARROW = 600, 184, 16, 58, 62  # in pixels
LINE = 19  # from one line of text to the next


class Overview(Directive):
    """The drawing."""

    def run(self) -> list[nodes.Node]:
        """Draw it."""
        return [nodes.raw("", draw(), format="html")]


def draw() -> str:
    """Streams above, telephony below, the gateway between them."""
    top = HEIGHT + ARROW + 2
    height = 2 * (HEIGHT + ARROW) + HEIGHT + 24
    parts = [_box(8, top, WIDTH - 16, HEIGHT + 20, GATEWAY, "gateway")]
    for row, y, arrow in ((STREAMS, 2, 2 + HEIGHT), (CALLS, top + HEIGHT + 20 + ARROW, None)):
        for column, (words, protocols, way) in enumerate(row):
            x = 8 + column * (BOX + GAP)
            parts.append(_box(x, y, BOX, HEIGHT, words, "other"))
            parts.append(_arrow(x + 24, arrow or y - ARROW, protocols, way))
    title = "Publishers and players on one side of the gateway, SIP phones on the other"
    return (
        f'<svg class="overview" role="img" viewBox="0 0 {WIDTH} {height}" '
        f'xmlns="http://www.w3.org/2000/svg"><title>{title}</title>{"".join(parts)}</svg>'
    )


def _box(x: int, y: int, width: int, height: int, lines: tuple[str, ...], kind: str) -> str:
    out = f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="8"/>'
    first = y + (height - LINE * (len(lines) - 1)) / 2 + 5
    for number, line in enumerate(lines):
        weight = ' class="name"' if number == 0 else ""
        place = f'x="{x + width / 2:g}" y="{first + LINE * number:g}" text-anchor="middle"'
        out += f"<text{weight} {place}>{escape(line)}</text>"
    return out


def _arrow(x: int, top: int, protocols: tuple[str, ...], way: str) -> str:
    """A vertical arrow, with the protocols beside it; media goes this `way`."""
    begin, end = top + 4, top + ARROW - 4
    out = f'<path d="M{x} {begin}V{end}"/>'
    if way in ("down", "both"):
        out += f'<polygon points="{x},{end} {x - 5},{end - 9} {x + 5},{end - 9}"/>'
    if way in ("up", "both"):
        out += f'<polygon points="{x},{begin} {x - 5},{begin + 9} {x + 5},{begin + 9}"/>'
    for number, protocol in enumerate(protocols):
        y = top + 27 + (LINE - 2) * number
        out += f'<text class="way" x="{x + 14}" y="{y}">{escape(protocol)}</text>'
    return out


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx."""
    app.add_directive("overview", Overview)
    app.add_css_file("overview.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}

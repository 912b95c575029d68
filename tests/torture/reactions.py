"""What each torture message asks of an element, and what ours does: the tables of the page.

`python tests/torture/reactions.py` writes them into docs/6-conformance/torture.md; the tests of
`test_running` hold them against running elements and against the page.
"""

from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).resolve().parents[2] / "docs" / "6-conformance" / "torture.md"


class Row(NamedTuple):
    """One message: its section, what is asked, and the reactions of the elements.

    A phone does as the user agent does, where nothing else is said.
    """

    name: str
    section: str
    asked: str
    agent: str
    proxy: str
    phone: str = ""


REFUSED = "dropped: malformed"
STRAY = "dropped: stray"

# Source: RFC 4475 §3
TORTURE = (
    Row("wsinv", "3.1.1.1", "well formed, of a dialog that nobody has", "481", "481"),
    Row("intmeth", "3.1.1.2", "well formed, with an unknown method", "501", "forwarded"),
    Row("esc01", "3.1.1.3", "well formed; escapes are undone once", "200", "forwarded"),
    Row(
        "escnull", "3.1.1.4", "two contacts with escaped zeros are registered", "200", "200", "405"
    ),
    Row("esc02", "3.1.1.5", "501 of a user agent; a proxy goes by the Request-URI", "501", "480"),
    Row("lwsdisp", "3.1.1.6", "well formed", "200", "forwarded"),
    Row("longreq", "3.1.1.7", "well formed", "200", "forwarded"),
    Row("dblreq", "3.1.1.8", "the REGISTER is taken, what follows is noise", "200", "200", "405"),
    Row("semiuri", "3.1.1.9", "well formed; the user has a semicolon", "200", "forwarded"),
    Row("transports", "3.1.1.10", "well formed; lower Vias do not matter", "200", "forwarded"),
    Row("mpart01", "3.1.1.11", "well formed, and framed by its length", "405", "forwarded", "415"),
    Row("unreason", "3.1.1.12", "well formed", STRAY, STRAY),
    Row("noreason", "3.1.1.13", "well formed", STRAY, STRAY),
    Row("badinv01", "3.1.2.1", "400", "400", "400"),
    Row("clerr", "3.1.2.2", "400 by UDP; more is waited for on a stream", "400", "400"),
    Row("ncl", "3.1.2.3", "an error; on a stream the connection is closed", "400", "400"),
    Row("scalar02", "3.1.2.4", "400", "400", "400"),
    Row("scalarlg", "3.1.2.5", "dropped", REFUSED, REFUSED),
    Row("quotbal", "3.1.2.6", "400", "400", "400"),
    Row("ltgtruri", "3.1.2.7", "400 is always right", "400", "400"),
    Row("lwsruri", "3.1.2.8", "400", "400", "400"),
    Row("lwsstart", "3.1.2.9", "a refusal is acceptable", "400", "400"),
    Row("trws", "3.1.2.10", "a refusal is acceptable", "400", "400"),
    Row("escruri", "3.1.2.11", "400 is acceptable", "400", "400"),
    Row("baddate", "3.1.2.12", "no refusal where the date plays no part", "200", "forwarded"),
    Row("regbadct", "3.1.2.13", "400", "400", "400"),
    Row("badaspec", "3.1.2.14", "400", "400", "400"),
    Row("baddn", "3.1.2.15", "400 is always right", "400", "400"),
    Row("badvers", "3.1.2.16", "505", "505", "505"),
    Row("mismatch01", "3.1.2.17", "400", "400", "400"),
    Row("mismatch02", "3.1.2.18", "501", "501", "501"),
    Row("bigcode", "3.1.2.19", "dropped", REFUSED, REFUSED),
    Row("badbranch", "3.2.1", "400, or matched as RFC 2543 did", "200", "forwarded"),
    Row("insuf", "3.3.1", "400", "400", "400"),
    Row("unkscm", "3.3.2", "416", "416", "416"),
    Row("novelsc", "3.3.3", "416", "416", "416"),
    Row("unksm2", "3.3.4", "400 of a registrar, since the To is no SIP URI", "400", "400", "405"),
    Row("bext01", "3.3.5", "420 with what is not supported", "420", "420"),
    Row("invut", "3.3.6", "415 of a user agent; a proxy does not mind", "415", "forwarded"),
    Row(
        "regaut01",
        "3.3.7",
        "200 of a registrar without passwords, 401 with them",
        "200",
        "200",
        "405",
    ),
    Row("multi01", "3.3.8", "400", "400", "400"),
    Row("mcl01", "3.3.9", "an error", "400", "400"),
    Row("bcast", "3.3.10", "dropped; nothing goes to 255.255.255.255", STRAY, STRAY),
    Row("zeromf", "3.3.11", "483 of a proxy; a user agent does not mind", "200", "483"),
    Row("cparam01", "3.3.12", "registered; the parameter is the header's", "200", "200", "405"),
    Row("cparam02", "3.3.13", "registered; the parameter is the URI's", "200", "200", "405"),
    Row("regescrt", "3.3.14", "registered with the escaped Route", "200", "200", "405"),
    Row("sdp01", "3.3.15", "406 with a Warning, or 400, of a user agent", "406", "forwarded"),
    Row("inv2543", "3.4.1", "accepted, as RFC 2543 had it", "200", "forwarded"),
)

# Source: RFC 5118 §4
IPV6 = (
    Row("ipv6-good", "4.1", "well formed", "200", "200", "405"),
    Row("ipv6-bad", "4.2", "400: no brackets around an address", "400", "400"),
    Row("port-ambiguous", "4.3", "the last group is part of the address", "200", "200", "405"),
    Row("port-unambiguous", "4.4", "the port is the one behind the bracket", "200", "200", "405"),
    Row(
        "via-received-param-with-delim",
        "4.5",
        "well formed, of a dialog that nobody has",
        "481",
        "481",
    ),
    Row("via-received-param-no-delim", "4.5", "well formed", "200", "200"),
    Row("ipv6-in-sdp", "4.6", "well formed", "200", "forwarded", "488"),
    Row("mult-ip-in-header", "4.7", "well formed, of a dialog that nobody has", "481", "481"),
    Row("mult-ip-in-sdp", "4.8", "well formed", "200", "forwarded"),
    Row("ipv4-mapped-ipv6", "4.9", "well formed", "200", "forwarded", "488"),
    Row("ipv6-bug-abnf-3-colons", "4.10", "three colons are read as two", "200", "forwarded"),
    Row("ipv6-correct-abnf-2-colons", "4.10", "well formed", "200", "forwarded"),
)


def table(rows):
    """The rows as the page has them."""
    head = ("message", "section", "asked", "user agent", "proxy, registrar", "phone")
    cells = [(*row[:-1], row.phone or row.agent) for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *cells))


def page(text):
    """The page with the tables of today."""
    for mark, rows in (("RFC 4475", TORTURE), ("RFC 5118", IPV6)):
        before, heading, rest = text.partition(f"## {mark}\n")
        said, _, _ = rest.partition("|")
        _, gap, after = rest[len(said) :].partition("\n\n")
        text = before + heading + said + table(rows) + (gap + after if gap else "\n")
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))

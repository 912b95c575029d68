"""The messages of RFC 4475 and RFC 5118, taken from a copy of their text."""

import base64
import io
import re
import tarfile
from functools import cache


@cache
def archive(specs):
    """The messages by name, decoded as RFC 4475 §A.1 tells."""
    text = (specs / "rfc4475.txt").read_text(errors="replace")
    block = text.split("   -- BEGIN MESSAGE ARCHIVE --\n")[1].split("-- END MESSAGE ARCHIVE --")[0]
    lines = [line.strip() for line in block.splitlines() if re.fullmatch(r"\s*\S+\s*", line)]
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode("".join(lines)))) as tar:
        files = [member for member in tar.getmembers() if member.isfile()]
        return {
            file.name.rpartition("/")[2].removesuffix(".dat"): tar.extractfile(file).read()
            for file in files
        }


@cache
def messages(specs):
    """The messages by name, as RFC 5118 §2 says they are printed.

    The Content-Length of those with a body does not fit the body as printed; it is
    replaced, for it is not what they test.
    """
    text = (specs / "rfc5118.txt").read_text(errors="replace")
    text = re.sub(r"\n*\nGurbani, [^\n]*\n\f?\n*RFC 5118 [^\n]*\n+", "\n\n", text)
    found = {}
    for block in text.split("   Message Details: ")[1:]:
        name, _, rest = block.partition("\n")
        printed = re.match(r"(?:      [^\n]*\n|\s*\n)+", rest)[0]
        found[name.strip()] = _message(printed)
    return found


def _message(printed):
    printed = re.sub(
        r"      <allOneLine>\n(.*?)      </allOneLine>\n",
        lambda long: "      " + long[1].replace("\n", "").replace("      ", "") + "\n",
        printed,
        flags=re.DOTALL,
    )
    lines = [line.strip() for line in printed.strip().splitlines()]
    blank = lines.index("") if "" in lines else len(lines)
    body = "".join(f"{line}\r\n" for line in lines[blank:] if line)
    head = "".join(f"{line}\r\n" for line in lines[:blank])
    head = re.sub(r"(?m)^(Content-Length|L): .*\r$", f"Content-Length: {len(body)}\r", head)
    return f"{head}\r\n{body}".encode()

"""Download the RFCs that specs.toml lists into a folder: `python .ci/specs.py FOLDER`.

Files that are there already stay. The Adobe documents are published as PDF only, so marks in them
stay unverified until somebody puts text copies there.
"""

import sys
import tomllib
import urllib.request
from pathlib import Path

SPECS = Path(__file__).resolve().parent.parent / "rfc_annotations" / "specs.toml"
SOURCE = "https://www.rfc-editor.org/rfc/"


def main(folder: Path) -> None:
    """Fetch what is missing; name what has to come from elsewhere."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [spec["file"] for spec in tomllib.loads(SPECS.read_text())["spec"] if "file" in spec]
    missing = [name for name in names if not (folder / name).is_file()]
    for name in missing:
        if name.startswith("rfc"):
            with urllib.request.urlopen(SOURCE + name, timeout=30) as answer:
                (folder / name).write_bytes(answer.read())
            print(f"fetched {name}")
        else:
            print(f"{name}: not published as text; put a copy there by hand")
    print(f"{folder}: {len(names) - len(missing)} of {len(names)} were there already")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))

"""`python -m siprtmp.settings`: prints the example file, or the schema for editors.

Own design: an installation from a package has no folder of examples.
"""

import sys
from collections.abc import Sequence

from siprtmp.operation.arguments import Parser
from siprtmp.settings.generated import example, schema


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one of them; returns the exit code."""
    parser = Parser(prog="python -m siprtmp.settings", description="Print a file made of settings.")
    parser.add_argument("what", choices=("example", "schema"), help="Which one.")
    print({"example": example, "schema": schema}[parser.parse_args(arguments).what](), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())

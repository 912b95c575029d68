"""Sphinx configuration: Markdown pages (MyST) in the furo theme, parts of them taken from code."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# stories run on the links of tests; `src` is first, since `tests` has rooms of the same names
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "src"), str(HERE.parent / "tests")]

project = "siprtmp"
author = "the siprtmp authors"
copyright = "the siprtmp authors"
extensions = [
    *("myst_parser", "from_code", "explained", "overview", "source_pages"),
    *("book", "spec_pages", "dashboard", "peers", "measured", "offline"),
]
myst_enable_extensions = ["colon_fence"]
python_maximum_signature_line_length = 90
html_theme = "furo"
html_title = "siprtmp"
html_copy_source = False
html_static_path = ["_static"]
exclude_patterns = ["_build", "_ext"]
myst_heading_anchors = 3
myst_url_schemes = ("http", "https", "mailto", "source")

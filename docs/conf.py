"""Sphinx configuration: Markdown pages (MyST) in the furo theme, parts of them taken from code."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "_ext"))

project = "siprtmp"
author = "the siprtmp authors"
copyright = "the siprtmp authors"
extensions = [
    *("myst_parser", "from_code", "overview", "source_pages"),
    *("book", "spec_pages", "dashboard", "peers"),
]
myst_enable_extensions = ["colon_fence"]
python_maximum_signature_line_length = 90
html_theme = "furo"
html_title = "siprtmp"
html_static_path = ["_static"]
exclude_patterns = ["_build", "_ext"]
myst_heading_anchors = 3
myst_url_schemes = ("http", "https", "mailto", "source")

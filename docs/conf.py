"""Sphinx configuration: Markdown pages (MyST) in the furo theme."""

project = "siprtmp"
author = "the siprtmp authors"
copyright = "the siprtmp authors"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "siprtmp"
exclude_patterns = ["_build"]
myst_heading_anchors = 3

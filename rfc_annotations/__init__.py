"""The citation checker: which requirement is met where, and which test would notice.

Own design: README.md beside this file says how to cite, and what each rule is for.
"""

__version__ = "0.1.0"

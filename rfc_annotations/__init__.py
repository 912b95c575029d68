"""The citation checker: which requirement is met where, and which test would notice.

Own design: README.md beside this file says how to cite, and what each rule is for.
"""

from rfc_annotations.settings import VERSION as __version__

__all__ = ["__version__"]

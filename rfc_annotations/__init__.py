"""The citation checker: which requirement is met where, and which test would notice.

Own design: README.md beside this file says how to cite, and what each rule is for.
"""

from rfc_annotations import settings

__version__ = settings.VERSION

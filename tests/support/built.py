"""Load what is compiled before a test does, so that no test runs a mixture of both forms.

The laboratory reads the families from their sources, in a process of its own.  Here it shares one
with the tests: whatever came after its first import would be a source beside compiled modules.
"""

from importlib import import_module

from siprtmp.operation.build import compiled_modules


def pytest_configure() -> None:
    """Load all, wherever `make fast` has built."""
    for name in compiled_modules():
        import_module(name)

"""The examples in the tool's docstrings are true."""

import doctest
import importlib
import linecache
import pkgutil

import pytest

import rfc_annotations

MODULES = [f"rfc_annotations.{m.name}" for m in pkgutil.iter_modules(rfc_annotations.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    linecache.clearcache()  # doctest asks of every file in it whether it has changed
    assert doctest.testmod(importlib.import_module(name)).failed == 0
